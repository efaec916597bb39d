"""Which tables are transactional: the marks that Omid and Phoenix leave in table descriptors. Pure.

A table that is missed here would lose commit proofs when the commit table is pruned, so everything that is not clearly
plain counts: a family flag, a coprocessor, the configuration, and, for the rest, shadow cells seen in a sample of every
region.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

OMID_COMPACTOR = "org.apache.omid.transaction.OmidCompactor"
#: Substrings of coprocessor class names that say: this table's cells are written in Omid transactions.
OMID_COPROCESSORS = (
    OMID_COMPACTOR,
    "org.apache.omid.transaction.OmidSnapshotFilter",
)
PHOENIX_FILTER = "org.apache.phoenix.coprocessor.OmidTransactionalProcessor"
#: Also on the physical tables of view indexes, which bear no other mark.
PHOENIX_INDEXER = "org.apache.phoenix.index.PhoenixTransactionalIndexer"
PHOENIX_COPROCESSORS = (PHOENIX_FILTER, "org.apache.phoenix.coprocessor.OmidGCProcessor", PHOENIX_INDEXER)
#: ``OmidCompactor(true)``, inside Phoenix's classes, takes every family; Omid's own asks each family for this flag.
FAMILY_FLAG = "OMID_ENABLED"
#: How the doubt of a table begins that bore a mark, or was named in the configuration, and does not any more.
UNMARKED_SINCE = "the last collection recorded as transactional"
#: How the doubt of a table begins whose cells are older than it can be.
_STRANGER = "it came from elsewhere"


class Kind(StrEnum):
    """What a table is to Lowtide."""

    TRANSACTIONAL = "transactional"
    #: Holds no transactional cells: configured so, or no mark and no shadow cell in the sample.
    PLAIN = "plain"
    #: No mark, yet shadow cells, or disabled so that none can be searched for: nothing is touched, and the prune bound
    #: is 0 until the configuration says what it is.
    UNMARKED = "unmarked"


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A table as its descriptor tells; attribute names and values are text."""

    table: str
    enabled: bool
    attributes: Mapping[str, str]
    coprocessors: Sequence[str]
    families: Mapping[str, Mapping[str, str]]


class Change(NamedTuple):
    """A change of a table's settings that not every region's server may know of."""

    #: When a collection saw the table without it last, ms by HBase's clock: it came after that.
    since: int
    what: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One table of the inventory; *families* are the transactional ones, *unmarked* those with shadow cells and no
    mark.
    """

    table: str
    kind: Kind
    enabled: bool
    families: frozenset[str] = frozenset()
    unmarked: frozenset[str] = frozenset()
    mark: str = ""
    bytes: int = 0
    #: What SQL calls it, where it is one of Phoenix's; several for the table that holds a table's view indexes.
    names: tuple[str, ...] = ()
    #: Why it is left alone for now although it holds cells of transactions, or may: it keeps the prune bound back.
    doubt: str = ""
    #: Whether its readers see orphans: the table of view indexes lacks Omid's snapshot filter, so SQL shows what
    #: lies there.
    unfiltered: bool = False
    #: Whether Omid's own compactor runs in its compactions.
    compactor: bool = False
    #: Of the transactional families, see ``lowtide.tables.settings.shape_of``; only known of a table that was listed
    #: now.
    shape: str = ""
    #: The shape of all of its families, as the master told it last; empty: not known. A plain table's is not kept.
    settings: str = ""
    #: What of it servers may not go by yet; None: as far as is known they all do.
    change: Change | None = None
    #: A low watermark that a collection recorded while the table was not there, inclusive: a transaction of this oracle
    #: that began at or below it was over before the table came. 0: nothing of the kind is known, or it is settled.
    came_after: int = 0
    #: What its descriptor says against being written to (``lowtide.tables.consent.veto``); empty: nothing.
    veto: str = ""
    #: Why this user may not write to all of it (``lowtide.store.permissions.unwritable``); empty: they may, or HBase
    #: was not asked. Only known of a table that was listed now.
    denied: str = ""

    @property
    def title(self) -> str:
        """The table's name, with SQL's names where they are others."""
        return self.table if self.names in ((), (self.table,)) else f"{self.table} ({', '.join(self.names)})"

    def doubted(self, why: str) -> Entry:
        """The same table, left alone for *why* too; itself where *why* is empty."""
        return replace(self, doubt="; ".join(filter(None, (self.doubt, why)))) if why else self

    @property
    def unconfirmed(self) -> bool:
        """Whether its cells may be another oracle's, as far as is known: its shadow cells then prove nothing of this
        one's transactions.
        """
        return self.came_after > 0

    @property
    def workable(self) -> bool:
        """Whether nothing forbids to work on it now."""
        return self.enabled and not self.doubt


def is_phoenix(descriptor: Descriptor) -> bool:
    """Whether the table is one of Phoenix's, transactional or not."""
    return any("org.apache.phoenix." in name for name in descriptor.coprocessors)


def marked_families(descriptor: Descriptor) -> tuple[frozenset[str], str]:
    """The families that the descriptor marks as transactional, and by which mark."""
    for name in descriptor.coprocessors:
        if any(known in name for known in PHOENIX_COPROCESSORS):
            return frozenset(descriptor.families), name
    flagged = frozenset(
        family
        for family, attributes in descriptor.families.items()
        if attributes.get(FAMILY_FLAG, "").lower() == "true"
    )
    if flagged:
        return flagged, FAMILY_FLAG
    for name in descriptor.coprocessors:
        if any(known in name for known in OMID_COPROCESSORS):
            return frozenset(descriptor.families), name
    return frozenset(), ""


def classify(descriptor: Descriptor, configured: Kind | None, shadowed: frozenset[str]) -> Entry:
    """What a table is.

    Args:
        descriptor: as HBase tells it.
        configured: what the configuration says of this table, which outranks the rest; None where it is silent.
        shadowed: families in which the sample met shadow cells; only asked for families without a mark.
    """
    families, mark = marked_families(descriptor)
    if configured is Kind.PLAIN:
        return Entry(descriptor.table, Kind.PLAIN, descriptor.enabled, mark="configuration")
    if configured is Kind.TRANSACTIONAL:
        return Entry(
            descriptor.table,
            Kind.TRANSACTIONAL,
            descriptor.enabled,
            families=frozenset(descriptor.families),
            mark=mark or "configuration",
            unfiltered=_is_unfiltered(descriptor),
            compactor=has_compactor(descriptor),
        )
    # A disabled table cannot be sampled, so it may hold anything.
    unmarked = shadowed - families if descriptor.enabled else frozenset(descriptor.families) - families
    kind = Kind.TRANSACTIONAL if families else Kind.UNMARKED if unmarked else Kind.PLAIN
    return Entry(
        descriptor.table,
        kind,
        descriptor.enabled,
        families,
        unmarked,
        mark,
        unfiltered=_is_unfiltered(descriptor),
        compactor=has_compactor(descriptor),
    )


def contradiction(descriptor: Descriptor, key: str, recorded: Kind | None) -> str:
    """Why a table that the configuration calls plain cannot be meant to be; empty where nothing speaks against it.

    A plain table holds no prune bound back and is never read, so that a wrong word would cost proofs, and without
    a trace.

    Args:
        descriptor: as HBase tells it.
        key: of the configuration that says so.
        recorded: what the last collection listed the table as; None where it did not.
    """
    families, mark = marked_families(descriptor)
    where = f"{key} is plain in the configuration, and table {descriptor.table}"
    if mark == FAMILY_FLAG:
        mark_text = f"bears Omid's mark: {FAMILY_FLAG} is true of {', '.join(sorted(families))}"
        return (
            f"{where} {mark_text}. Take {key} out; or, where no transaction writes the table any more, "
            "take off the mark: " + "; ".join(_unflag(descriptor.table, family) for family in sorted(families))
        )
    if mark:
        return (
            f"{where} bears Omid's mark, the coprocessor {mark}. Take {key} out; or, where no transaction writes "
            "the table any more, take off the mark"
        )
    if recorded is Kind.TRANSACTIONAL:
        return (
            f"{where} was recorded as transactional by the last collection. Take {key} out and run "
            "watermark_collection with --execute, which reads the table for itself; it may be called plain after that "
            "if it is found to be no longer transactional"
        )
    return ""


def doubt_lost_marks(entry: Entry, descriptor: Descriptor, before: Entry | None) -> Entry:
    """*entry*, doubted where a family was transactional when it was recorded *before*, and nothing says so any more.

    A mark that is taken off leaves the cells, and the proofs that they need. What is doubted stays so, whatever is
    recorded of it next, until the configuration says what it is or the mark is there again.
    """
    if before is None or entry.mark == "configuration":
        return entry
    was = before.families | (before.unmarked if UNMARKED_SINCE in before.doubt else frozenset())
    lost = (was - entry.families) & frozenset(descriptor.families)
    if not lost:
        return entry
    table, families = entry.table, ", ".join(sorted(lost))
    why = (
        f"{UNMARKED_SINCE} what bears no mark now: families {families}. If transactions write them, "
        + "; ".join(_flag(table, family, "true") for family in sorted(lost))
        + f"; or say tables: {{{table}: {{kind: transactional}}}}"
    )
    if not entry.families:
        why += (
            ". If none does any more, and no cell of theirs is needed, let watermark_collection --execute see the "
            f"table as it is, then say tables: {{{table}: {{kind: plain}}}}"
        )
    kind = entry.kind if entry.families else Kind.UNMARKED
    return replace(entry, kind=kind, unmarked=entry.unmarked | lost).doubted(why)


def came_after(entry: Entry, before: Entry | None, low_watermark: int, confirmed: bool) -> int:
    """The low watermark at or below which this oracle can have written nothing to the table (:attr:`Entry.came_after`);
    0: none is known.

    Args:
        entry: as it is now.
        before: as the last collection recorded it; None where that did not list it.
        low_watermark: as that collection recorded it; 0 where none did.
        confirmed: whether somebody confirmed that the table's transactions are this oracle's.
    """
    if confirmed or entry.kind is Kind.PLAIN or entry.mark == "configuration":
        return 0
    return low_watermark if before is None else before.came_after


def doubt_older_cells(entry: Entry, after: int, older: bool) -> Entry:
    """*entry*, doubted where it holds cells that are *older* than it: another oracle's, or those of a table that was
    here under another name.

    Once seen without such cells it is like any other. One that cannot be read now is read when it can be.

    Args:
        entry: as it is now.
        after: of :func:`came_after`.
        older: whether a cell of it lies at or below that.
    """
    if not after:
        return entry
    if not checks_age(entry):
        return replace(entry, came_after=after)
    if not older:
        return entry
    why = (
        f"{_STRANGER} (imported, or cloned from another cluster or under a new name): it holds cells at or below "
        f"{after}, the low watermark of a collection for which it was not there. If their transactions were this "
        f"oracle's, as those of a clone of one of this store's tables, run: lowtide confirm {entry.table}. If not, "
        "move the table away, or put it under omid.foreign"
    )
    return replace(entry, came_after=after).doubted(why)


def checks_age(entry: Entry) -> bool:
    """Whether it is asked of the table if its cells are older than it."""
    return entry.enabled and entry.kind is Kind.TRANSACTIONAL


def _unflag(table: str, family: str) -> str:
    return _flag(table, family, "false")


def _flag(table: str, family: str, value: str) -> str:
    return f"alter '{table}', {{NAME => '{family}', METADATA => {{'{FAMILY_FLAG}' => '{value}'}}}}"


def _is_unfiltered(descriptor: Descriptor) -> bool:
    indexer = any(PHOENIX_INDEXER in name for name in descriptor.coprocessors)
    return indexer and not any(PHOENIX_FILTER in name for name in descriptor.coprocessors)


def without_compactor(table: str) -> str:
    """The statement for HBase's shell that takes Omid's compactor off a table; its families stay marked."""
    return f"alter '{table}', METHOD => 'table_remove_coprocessor', CLASSNAME => '{OMID_COMPACTOR}'"


def has_compactor(descriptor: Descriptor) -> bool:
    """Whether Omid's own compactor runs in the table's compactions. One that a region server loads for all tables shows
    nowhere.
    """
    return any(OMID_COMPACTOR in name for name in descriptor.coprocessors)
