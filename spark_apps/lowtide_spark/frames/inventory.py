"""The inventory: every transactional table of the cluster, whichever tables a run was given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from lowtide.cleaning.planning import WorkRange
from lowtide.config import Config
from lowtide.errors import StoreError, UsageError
from lowtide.journal import others
from lowtide.run import oracles
from lowtide.store.permissions import judged, unreadable, unwritable
from lowtide.store.records import Listing
from lowtide.tables import consent, replication
from lowtide.tables.inventory import (
    Descriptor,
    Entry,
    Kind,
    came_after,
    checks_age,
    classify,
    contradiction,
    doubt_lost_marks,
    doubt_older_cells,
    is_phoenix,
    marked_families,
)
from lowtide.tables.phoenix_catalog import CATALOG_TABLES, COLUMNS, Catalog, parse, with_catalog
from lowtide.tables.settings import change_of, doubt_unopened, hiding, losing, losing_entries, shape_of
from lowtide.values.clock import first_timestamp, on_world_clock
from lowtide.values.formats import after
from lowtide.values.keyranges import KeyRange
from lowtide_spark.frames.computed import union
from lowtide_spark.frames.kinds import SHADOW, UNKNOWN
from lowtide_spark.frames.store import Store, TableRead, cause, explained

T = TypeVar("T")

#: Rows at the start of each region that are searched for shadow cells, where a family bears no mark.
SAMPLE_ROWS = 1000
#: Tables looked into in one read.
TOGETHER = 500
META = "hbase:meta"
#: HBase makes it where its servers keep visibility labels. They are tags of cells, which do not travel to clients.
LABELS_TABLE = "hbase:labels"
LABELLED = (
    f"HBase has {LABELS_TABLE}, so cells may bear visibility labels: they do not travel to clients, a heal would copy "
    "a labelled cell without its label, for everybody to read, and cells that this user may not see are missing in "
    "every read. Nothing is judged. If no cell of a transactional table was ever put with a label, say hbase: "
    "{unlabelled: true}"
)


def take_inventory(store: Store, doubts: list[str] | None = None) -> list[Entry]:
    """All tables but HBase's, Omid's, Lowtide's own and other oracles', with what each is.

    Must be called after the low watermark was read: a table that comes later can hold no committed cell at or below it.

    Args:
        store: the store.
        doubts: of a job that acts on nothing: takes what would else be refused. Tables are what their marks say then.

    Raises:
        UsageError: what the configuration says of tables contradicts what is seen of them.
        StoreError: HBase may leave out families of one of them in what it shows this user, or does not tell.
    """
    config = store.config
    there = store.descriptors()
    lacks = store.lacking(judged(config, there))
    told = unreadable(lacks), losing_entries(there, config.omid.commit_table)
    refusals = [StoreError(fact, remedy) for fact, remedy in told if fact]
    if refusals and doubts is None:
        raise refusals[0]
    denied = {lack.table: str(StoreError(*unwritable([lack]))) for lack in lacks if lack.right == "WRITE"}
    listed = [d for d in there if d.table not in config.own_tables]
    descriptors = [d for d in listed if not config.omid.is_foreign(d.table)]
    listing, beside = _recorded(store, descriptors)
    recorded = {e.table: e for e in listing.entries}
    contradictions = _contradictions(store, descriptors, recorded)
    kinds = {d.table: None if d.table in contradictions else config.table(d.table).kind for d in descriptors}
    in_question = [d for d in descriptors if _needs_sample(d, kinds[d.table])]
    shadowed: dict[str, frozenset[str]] = {}
    for some in _portions(in_question):
        shadowed |= _shadowed_families(store, some)
    catalog = _catalog(store, descriptors)
    entries = []
    for d in sorted(descriptors, key=lambda d: d.table):
        entry = with_catalog(catalog, classify(d, kinds[d.table], shadowed.get(d.table, frozenset())), d)
        entry = _doubted(store, entry, d, recorded)
        if entry.kind is not Kind.PLAIN:
            entry = _change_settled(store, entry, shape_of(d, d.families), recorded.get(d.table), listing.at)
        entry = replace(entry, veto=consent.veto(d.attributes), denied=denied.get(d.table, ""))
        entries.append(replace(entry, shape=shape_of(d, entry.families)))
    entries = _newcomers_settled(store, entries, listing, recorded)
    problems = [*contradictions.values(), *oracles.problems(config.omid, listed, entries), *beside]
    if problems and doubts is None:
        raise UsageError("; ".join(problems))
    (doubts if doubts is not None else []).extend([*map(str, refusals), *problems])
    return entries


def _recorded(store: Store, descriptors: Sequence[Descriptor]) -> tuple[Listing, list[str]]:
    """The inventory as recorded last; and why nothing may be judged by what else HBase has: labels of cells, or records
    of another installation.
    """
    config = store.config
    state = store.state()
    listing = state.listing()
    labelled = bool(state.connection.table(META).row(LABELS_TABLE.encode()))
    labels = [LABELLED] if labelled and not config.hbase.unlabelled else []
    return listing, [*labels, *others.problems(state.connection, config.state, descriptors)]


def _doubted(store: Store, entry: Entry, descriptor: Descriptor, recorded: Mapping[str, Entry]) -> Entry:
    """*entry* with what its settings, and what was recorded of it, say against working on it."""
    entry = doubt_lost_marks(entry, descriptor, recorded.get(entry.table))
    if entry.kind is not Kind.TRANSACTIONAL:
        return entry
    entry = entry.doubted("; ".join(hiding(descriptor, entry.families)))
    return entry if store.config.table(entry.table).accept_durability else entry.doubted(losing(descriptor))


def _change_settled(store: Store, entry: Entry, settings: str, before: Entry | None, at: int) -> Entry:
    """*entry* with the *settings* that the master tells, doubted where some region may be run by others.

    hbase:meta is read of a table whose settings changed, alone. One that is disabled is asked for when it is enabled.
    """
    change = change_of(settings, before, at)
    entry = replace(entry, settings=settings)
    if change is None:
        return entry
    if not entry.enabled:
        return replace(entry, change=change)
    return doubt_unopened(entry, change, store.opened(entry.table))


def _newcomers_settled(
    store: Store, entries: Sequence[Entry], listing: Listing, recorded: Mapping[str, Entry]
) -> list[Entry]:
    """*entries*, those doubted that the last collection did not list and whose cells are older than it.

    One read, of these tables alone.
    """
    came = {
        e.table: came_after(e, recorded.get(e.table), listing.low_watermark, e.table in listing.confirmed)
        for e in entries
    }
    asked = {e.table: came[e.table] for e in entries if came[e.table] and checks_age(e)}
    older = _with_cells_up_to(store, asked)
    return [doubt_older_cells(e, came[e.table], e.table in older) for e in entries]


def _with_cells_up_to(store: Store, limits: Mapping[str, int]) -> frozenset[str]:
    """Those of the tables that hold a cell with a timestamp that an oracle may have given, at or below their limit.

    Delete markers are cells, too.
    """
    found: set[str] = set()
    for some in _portions([*limits.items()]):
        reads = []
        for table, limit in some:
            first = first_timestamp(on_world_clock(store.config.omid.clock, limit))
            # By the range's name the cells tell whose they are.
            reads.append(TableRead(table, ranges=[WorkRange(table, KeyRange(b"", b""), first, after(limit))]))
        frames = store.raw_cells_of(reads, first=1)
        cells = union([frame.select(F.col("region").alias("table")) for frame in frames], like=frames[0])
        found |= {r.table for r in _collected(cells.distinct())}
    return frozenset(found)


def _portions(asked: Sequence[T]) -> Iterator[Sequence[T]]:
    """Tables that are looked into in one read."""
    return (asked[start : start + TOGETHER] for start in range(0, len(asked), TOGETHER))


def _collected(frame: DataFrame) -> list[Row]:
    """Rows of a read of several tables.

    Raises:
        StoreError: one is not there any more, or cannot be read.
    """
    try:
        return frame.collect()
    except Exception as error:  # Spark's, with HBase's in it
        raise explained(error, None) from error


def _contradictions(store: Store, descriptors: Sequence[Descriptor], recorded: Mapping[str, Entry]) -> dict[str, str]:
    """Tables that the configuration calls plain against what is seen or recorded of them, and how."""
    config = store.config
    plain = [d for d in descriptors if config.table(d.table).kind is Kind.PLAIN]
    kinds = {table: entry.kind for table, entry in recorded.items()}
    found = {d.table: contradiction(d, config.key_of(d.table, "kind"), kinds.get(d.table)) for d in plain}
    return {table: why for table, why in found.items() if why}


def _catalog(store: Store, descriptors: Sequence[Descriptor]) -> Catalog | None:
    """Phoenix's catalog; None where no table of the cluster is Phoenix's."""
    if not any(is_phoenix(d) for d in descriptors):
        return None
    table = next((d.table for d in descriptors if d.table in CATALOG_TABLES), None)
    if table is None:
        return Catalog({}, f"there is no {CATALOG_TABLES[0]}")
    try:
        cells = store.cells(table).where(F.col("qualifier").isin([bytearray(name) for name in COLUMNS]))
        return parse((bytes(c.row), bytes(c.qualifier), bytes(c.value)) for c in cells.collect())
    except Exception as error:  # Spark's, HBase's: whatever it is, what the catalog would have shown is not known
        return Catalog({}, f"{table}: {cause(error)}")


def _needs_sample(descriptor: Descriptor, configured: Kind | None) -> bool:
    unmarked = frozenset(descriptor.families) - marked_families(descriptor)[0]
    return bool(unmarked) and descriptor.enabled and configured is None


def _shadowed_families(store: Store, descriptors: Sequence[Descriptor]) -> dict[str, frozenset[str]]:
    seen = F.max(F.col("commit_ts").isNotNull() | F.col("kind").isin(SHADOW, UNKNOWN)).alias("seen")
    samples = store.samples_of([d.table for d in descriptors], SAMPLE_ROWS)
    found: dict[str, set[str]] = defaultdict(set)
    for r in _collected(union(samples, like=samples[0]).groupBy("table", "family").agg(seen).where("seen")):
        found[r.table].add(bytes(r.family).decode())
    return {table: frozenset(families) for table, families in found.items()}


def left_behind(
    config: Config, descriptors: Sequence[Descriptor], families: Mapping[str, Collection[str]]
) -> tuple[str, str]:
    """What :func:`lowtide.tables.replication.left_behind` says of this store, whose transactional tables have these
    *families*.
    """
    replicated = {config.omid.commit_table: (config.omid.commit_family,), **families}
    return replication.left_behind(descriptors, replicated, (config.state.journal_table, config.state.table))


def transactional(entries: Sequence[Entry]) -> list[Entry]:
    """The tables whose cells may be transactions', those of unknown standing included."""
    return [e for e in entries if e.kind is not Kind.PLAIN]
