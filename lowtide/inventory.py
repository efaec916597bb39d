"""Which tables are transactional: the marks that Omid and Phoenix leave in table descriptors. Pure.

A table that is missed here would lose commit proofs when the commit table is pruned, so everything that is not clearly plain counts:
a family flag, a coprocessor, the configuration, and, for the rest, shadow cells seen in a sample of every region.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

OMID_COMPACTOR = "org.apache.omid.transaction.OmidCompactor"
#: Substrings of coprocessor class names that say: this table's cells are written in Omid transactions.
OMID_COPROCESSORS = (
    OMID_COMPACTOR,
    "org.apache.omid.transaction.OmidSnapshotFilter",
)
PHOENIX_COPROCESSORS = (
    "org.apache.phoenix.coprocessor.OmidTransactionalProcessor",
    "org.apache.phoenix.coprocessor.OmidGCProcessor",
    # Also on the physical tables of view indexes, which bear no other mark.
    "org.apache.phoenix.index.PhoenixTransactionalIndexer",
)
#: ``OmidCompactor(true)``, inside Phoenix's classes, takes every family; Omid's own asks each family for this flag.
FAMILY_FLAG = "OMID_ENABLED"


class Kind(StrEnum):
    """What a table is to Lowtide."""

    TRANSACTIONAL = "transactional"
    #: Holds no transactional cells: configured so, or no mark and no shadow cell in the sample.
    PLAIN = "plain"
    #: No mark, yet shadow cells, or disabled so that none can be looked for: nothing is touched, and the prune bound is 0 until the configuration says what it is.
    UNMARKED = "unmarked"


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A table as its descriptor tells; attribute names and values are text."""

    table: str
    enabled: bool
    attributes: Mapping[str, str]
    coprocessors: Sequence[str]
    families: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Entry:
    """One table of the inventory; *families* are the transactional ones, *unmarked* those with shadow cells and no mark."""

    table: str
    kind: Kind
    enabled: bool
    families: frozenset[str] = frozenset()
    unmarked: frozenset[str] = frozenset()
    mark: str = ""
    bytes: int = 0


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
        )
    # A disabled table cannot be sampled, so it may hold anything.
    unmarked = shadowed - families if descriptor.enabled else frozenset(descriptor.families) - families
    kind = Kind.TRANSACTIONAL if families else Kind.UNMARKED if unmarked else Kind.PLAIN
    return Entry(descriptor.table, kind, descriptor.enabled, families, unmarked, mark)
