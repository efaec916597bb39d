"""Which cells no read point at or after the mark needs: random histories against the reader's own steps, and the cases
by name.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, combinations

import pytest
from lowtide_spark.history import superseded
from pyspark.sql import Row as SparkRow
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lowtide.values.formats import base, shadow_qualifier
from tests import seeds
from tests.spark.histories import COLUMNS, History, leaving, random_history, versions
from tests.spark.omid_reader import EndlessError, Key, commits, is_family_tombstone, is_shadow, kind, put, read, shadow

HISTORIES = 500
BEATS = 40
FIRST = 50 * HISTORIES
MARK = 50 * HISTORIES * 24 + 49

Cells = dict[Key, bytes]


def plans(
    spark: SparkSession, rows: Mapping[bytes, Cells], mark: int, first: int
) -> tuple[dict[bytes, list[SparkRow]], dict[bytes, list[SparkRow]]]:
    """By row: the cells as planned, and the mutations, from what the connector would hand over."""
    shown = [r for name, cells in rows.items() for r in versions(cells, name)]
    frame = spark.createDataFrame(shown, COLUMNS)
    # The connector passes on what is wanted, and all traces.
    traces = "kind != 'put' or length(qualifier) = 0"
    handed = frame.where(superseded.wanted(mark, first) | F.expr(traces)).localCheckpoint()
    planned = superseded.plan(handed, mark, first).localCheckpoint()
    cells, mutations = defaultdict(list), defaultdict(list)
    for r in planned.collect():
        cells[bytes(r.row)].append(r)
    for m in superseded.mutations(planned.where(planned.action == superseded.REMOVE)).collect():
        mutations[bytes(m.row)].append(m)
    return cells, mutations


def removed(planned: Iterable[SparkRow]) -> set[Key]:
    """The keys that the plan removes, shadow cells too."""
    gone = set()
    for r in planned:
        if r.action == superseded.REMOVE:
            key = Key(bytes(r.family), bytes(r.qualifier), r.timestamp)
            gone |= {shadow(key)} if r.kind == "shadow" else {key, shadow(key)}
    return gone


def after(cells: Cells, mutations: Iterable[SparkRow]) -> Cells:
    """The row as HBase shows it behind the mutations' delete markers."""
    left = dict(cells)
    for m in mutations:
        family, qualifier = bytes(m.family), bytes(m.qualifier)
        both = (qualifier, shadow_qualifier(qualifier))
        if m.op == "remove_up_to":
            doomed = [k for k in left if k.family == family and k.qualifier in both and k.timestamp <= m.timestamp]
        elif m.op == "remove_version":
            doomed = [Key(family, q, m.timestamp) for q in both]
        else:
            assert m.op == "delete_if_absent"
            guard = Key(bytes(m.guard_family), bytes(m.guard_qualifier), m.timestamp)
            doomed = [] if guard in left else [Key(family, qualifier, m.timestamp)]
        for key in doomed:
            left.pop(key, None)
    return left


def seen(cells: Cells, mark: int, entries: Mapping[int, int]) -> list[tuple[int, object]]:
    """What Omid's client shows of the row at every read point from the mark on at which something may change."""
    commit = [c for c in commits(cells).values() if c >= mark] + [c for c in entries.values() if c >= mark]
    shown: list[tuple[int, object]] = []
    for snapshot in sorted({mark, *(c + 1 for c in commit), *(c for c in commit), 10**9}):
        try:
            shown.append((snapshot, read(cells, snapshot, entries)))
        except EndlessError:
            shown.append((snapshot, "endless"))
    return shown


@pytest.fixture(scope="module", params=seeds.of("histories", always=[7]))
def histories(request: pytest.FixtureRequest) -> dict[bytes, History]:
    """Rows whose transactions never share a timestamp, so that one frame can hold them all."""
    source = random.Random(request.param)

    def one(number: int) -> History:
        shift = source.randrange(0, 12)
        return random_history(
            source, lambda beat: 50 * (HISTORIES * (beat + shift) + number), BEATS, wide=number % 10 == 0
        )

    return {b"row%d" % number: one(number) for number in range(HISTORIES)}


@pytest.fixture(scope="module")
def planned(
    spark: SparkSession, histories: dict[bytes, History]
) -> tuple[dict[bytes, list[SparkRow]], dict[bytes, list[SparkRow]]]:
    """The plan of all of them, as one frame through the expressions that ship."""
    return plans(spark, {name: h.cells for name, h in histories.items()}, MARK, FIRST)


def test_nothing_extra_goes_and_nothing_extra_stays(
    histories: dict[bytes, History], planned: tuple[dict[bytes, list[SparkRow]], dict[bytes, list[SparkRow]]]
) -> None:
    """Of 500 random histories exactly those cells go that the mark's read point and all later ones pass over."""
    seen_kinds: set[object] = set()
    for name, history in histories.items():
        wanted = leaving(history.cells, MARK, FIRST)
        found = removed(planned[0].get(name, []))
        assert found == wanted, (name, "extra", found - wanted, "kept", wanted - found, history.cells)
        for r in planned[0].get(name, []):
            seen_kinds |= {(r.action, r.kind), r.why, ("marker", r.up_to is not None), ("last", r.last)}
    # The histories have it all, or the agreement would say little.
    assert seen_kinds >= {
        *((superseded.REMOVE, k) for k in ("put", "tombstone", "family_tombstone", "shadow")),
        *((superseded.KEEP, k) for k in ("put", "tombstone", "family_tombstone", "shadow")),
        *(superseded.UNDECIDED, superseded.DOUBTFUL, superseded.BARE, superseded.COVERS, superseded.FOREIGN),
        *(("marker", True), ("marker", False), ("last", True), ("last", False)),
    }


@seeds.each("parts of a plan")
def test_every_read_point_from_the_mark_on_reads_as_before(
    histories: dict[bytes, History], planned: tuple[dict[bytes, list[SparkRow]], dict[bytes, list[SparkRow]]], seed: int
) -> None:
    """After all mutations, and after any part of them in the order in which they are sent, Omid's client shows the
    same.
    """
    source = random.Random(seed)
    compared = 0
    for name, history in histories.items():
        mutations = planned[1].get(name, [])
        early, last = [m for m in mutations if not m.last], [m for m in mutations if m.last]
        assert set(history.cells) - set(after(history.cells, mutations)) == removed(planned[0].get(name, []))
        parts = [early, [*early, *last]]
        parts += [source.sample(early, source.randrange(len(early) + 1)) for _ in range(2)]
        parts += [[*early, *chosen] for chosen in _few(last, source)]
        late = _late_commits(history)
        for entries in ({}, late) if late else ({},):
            # Where a lone shadow cell already makes the client search for ever, there is nothing to keep as it was.
            shown = seen(history.cells, MARK, entries)
            before = [(s, shows) for s, shows in shown[:: max(1, len(shown) // 12)] if shows != "endless"]
            told = {**entries, **_told_by_siblings(history)}
            whole = [(s, _read(history.cells, s, told)) for s, _ in before] if told else before
            for part in parts:
                left = after(history.cells, part)
                now = [(s, _read(left, s, entries)) for s, _ in before]
                right = all(shows in both for shows, *both in zip(now, before, whole, strict=True))
                assert right, (name, history.cells, part, now, before, whole)
            compared += len(before) > 1
    assert compared > HISTORIES // 2


def _told_by_siblings(history: History) -> dict[int, int]:
    """Transactions that left a cell without shadow cell, by a shadow cell of theirs elsewhere in the row.

    Omid's client takes such a cell for committed if that shadow cell is among the versions of the row that it happens
    to fetch: as their number falls, it shows the cell or not. Below the prune bound, where history goes, the cleanup
    has given each its own.
    """
    shown = {base(key.timestamp) for key in history.cells if is_shadow(key.qualifier)}
    return {start: commit for start, commit in history.doubtful.items() if start in shown}


def _few(mutations: list[SparkRow], source: random.Random) -> Iterable[Sequence[SparkRow]]:
    """Every proper part of a few mutations, a random one of many."""
    if len(mutations) <= 3:
        return _proper_parts(mutations)
    return [source.sample(mutations, source.randrange(1, len(mutations)))]


def _proper_parts(mutations: list[SparkRow]) -> Iterable[Sequence[SparkRow]]:
    """Every part between none of them and all."""
    return chain.from_iterable(combinations(mutations, size) for size in range(1, len(mutations)))


def _late_commits(history: History) -> dict[int, int]:
    """Undecided transactions as if they had committed after all: nothing that is in doubt may cost them anything.

    Below the prune bound there are none. Those with a family tombstone are left out: it would undo an older one.
    """
    proof = commits(history.cells)
    unproven = {k.timestamp for k, v in history.cells.items() if is_family_tombstone(k, v) and k not in proof}
    return {
        start: commit
        for start, commit in history.doubtful.items()
        if not any(start <= t < start + 50 for t in unproven)
    }


def _read(cells: Cells, snapshot: int, entries: Mapping[int, int]) -> object:
    try:
        return read(cells, snapshot, entries)
    except EndlessError:
        return "endless"


def test_one_marker_a_column(
    planned: tuple[dict[bytes, list[SparkRow]], dict[bytes, list[SparkRow]]], histories: dict[bytes, History]
) -> None:
    """A column of which only the lowest versions go gets one delete marker, however many they are."""
    single = 0
    for name, mutations in planned[1].items():
        columns = defaultdict(list)
        for m in mutations:
            if m.op != "delete_if_absent":
                columns[bytes(m.family), bytes(m.qualifier)].append(m)
        for column, of_column in columns.items():
            stays = [
                r.timestamp
                for r in planned[0][name]
                if r.action != superseded.REMOVE and (bytes(r.family), bytes(r.qualifier)) == column
            ]
            if not stays or min(stays) > max(m.timestamp for m in of_column):
                assert len(of_column) == 1, (name, column)
                single += 1
    assert single > 100


# -- cases by name; a version is (timestamp, commit or none), tombstones and family tombstones are marked so

Version = tuple[int, int | None]


class Case:
    """One row, and which of its data cells are to stay with the mark at 1049."""

    def __init__(self, stays: str, **columns: dict[str, Version]) -> None:
        self.columns, self.stays = columns, set(stays.split())

    def cells(self, stamp: Callable[[int], int]) -> tuple[Cells, dict[Key, str]]:
        """The row, with every timestamp moved by *stamp*, and the names of its data cells."""
        row: Cells = {}
        names: dict[Key, str] = {}
        for column, versions_of in self.columns.items():
            for name, (timestamp, commit) in versions_of.items():
                bare = column in ("family", "bare")
                key = Key(b"f", b"" if bare else column.encode(), stamp(timestamp))
                value = b"" if column == "family" or name.startswith("gone") else b"v"
                put(row, key, value, None if commit is None else stamp(commit))
                names[key] = name
        return row, names


CASES = {
    "ordering by start alone would remove a version that is visible": Case(
        # 900 began later and commits after the mark; until then 800 is what readers are shown.
        "shown later",
        a={"old": (700, 750), "shown": (800, 850), "later": (900, 1100)},
    ),
    "ordering by commit alone would remove a version that is visible": Case(
        # 850 commits before 800 does, and is the higher cell: readers show 850 for ever.
        "shown",
        a={"early": (800, 960), "shown": (850, 900)},
    ),
    "a version that commits after the mark, under one that committed before it": Case(
        "shown", a={"late": (800, 1200), "shown": (850, 900)}
    ),
    "checkpoints commit at one timestamp": Case(
        "third", a={"first": (800, 900), "second": (801, 900), "third": (802, 900)}
    ),
    "checkpoints that commit after the mark": Case(
        "shown first second", a={"shown": (700, 750), "first": (800, 1100), "second": (801, 1100)}
    ),
    "replaced after the mark": Case("shown new", a={"shown": (800, 850), "new": (1100, 1150)}),
    "an orphan between committed versions": Case(
        "orphan shown", a={"old": (700, 750), "orphan": (800, None), "shown": (900, 950)}
    ),
    "a deleted column": Case("", a={"old": (700, 750), "gone": (800, 850)}),
    "a deleted column, written again": Case("again", a={"old": (700, 750), "gone": (800, 850), "again": (900, 950)}),
    "a deleted column, written again after the mark": Case(
        "again", a={"old": (700, 750), "gone": (800, 850), "again": (1100, 1150)}
    ),
    "deleted after the mark": Case("shown gone", a={"shown": (700, 750), "gone": (800, 1100)}),
    "a tombstone over an orphan": Case("orphan gone", a={"orphan": (700, None), "gone": (800, 850)}),
    "a deleted family": Case("F", family={"F": (800, 850)}, a={"x": (700, 750)}, b={"y": (700, 750)}),
    "a family tombstone hides up to its commit": Case(
        "F above", family={"F": (800, 900)}, a={"between": (850, 950)}, b={"above": (950, 1000)}
    ),
    "a family tombstone over an orphan in another column, between its start and its commit": Case(
        "F orphan", family={"F": (800, 900)}, a={"x": (700, 750)}, b={"orphan": (850, None)}
    ),
    "a family tombstone under a newer one that commits after the mark": Case(
        "F G", family={"F": (800, 850), "G": (900, 1100)}, a={"x": (700, 750)}
    ),
    "a family tombstone over nothing that is there": Case("again", family={"F": (800, 850)}, a={"again": (900, 950)}),
    "a family tombstone over nothing but one below": Case("", family={"F": (700, 750), "G": (800, 850)}),
    # Phoenix leaves both where a transaction writes a row and deletes it, in either order.
    "a put of the family tombstone's own transaction, beside it and above it": Case(
        "F", family={"F": (800, 850)}, a={"beside": (800, 850)}, b={"above": (801, 850)}
    ),
    "a put of the family tombstone's own transaction, over an orphan up to its commit": Case(
        "F orphan",
        family={"F": (800, 900)},
        a={"beside": (800, 900)},
        b={"above": (801, 900)},
        c={"orphan": (850, None)},
    ),
    "an uncommitted family tombstone above": Case(
        "F orphan", family={"F": (800, 850), "orphan": (900, None)}, a={"x": (700, 750)}
    ),
    "an undecided family tombstone above, of a transaction that committed earlier": Case(
        # To whoever meets the sibling's shadow cell the higher one counts, whose commit leaves 850 alone.
        "F open proof shown",
        family={"F": (700, 1000), "open": (750, None)},
        a={"shown": (850, 900), "x": (600, 650)},
        b={"proof": (750, 800)},
    ),
    "of two family tombstones the higher one counts, not the one that commits last": Case(
        # 700 commits after 750 does; readers use 750, whose commit leaves 850 alone.
        "G shown",
        family={"F": (700, 1000), "G": (750, 800)},
        a={"shown": (850, 900), "x": (600, 650)},
    ),
    "beside a put without qualifier family tombstones stay": Case(
        "F bare x", family={"F": (700, 750)}, bare={"bare": (800, 850)}, a={"x": (600, 650)}
    ),
    "a cell of no oracle": Case("foreign shown", a={"foreign": (7, None), "old": (700, 750), "shown": (900, 950)}),
    "a cell of a transaction of which another cell is undecided": Case(
        "proof shown torn", a={"proof": (700, 750), "shown": (800, 850)}, b={"torn": (700, None)}
    ),
    "index population proves a cell with its own timestamp": Case("shown", a={"old": (700, 700), "shown": (800, 800)}),
}


@pytest.fixture(scope="module")
def cases(spark: SparkSession) -> dict[str, set[str]]:
    """By case: the names of the data cells that stay. One frame, in which no two cases share a transaction. Whatever
    part of a plan is carried out before its run ends, the reader shows what it showed."""
    number = len(CASES)

    def stamp(timestamp: int, case: int) -> int:
        beat, rest = divmod(timestamp, 50)
        return 50 * (number * beat + case) + rest if beat else timestamp

    mark, first = 50 * number * 21 - 1, 50 * number
    rows = {
        name.encode(): case.cells(lambda timestamp, n=n: stamp(timestamp, n))
        for n, (name, case) in enumerate(CASES.items())
    }
    _, mutations = plans(spark, {name: cells for name, (cells, _) in rows.items()}, mark, first)
    kept: dict[str, set[str]] = {}
    for name, (cells, names) in rows.items():
        early, last = [m for m in mutations[name] if not m.last], [m for m in mutations[name] if m.last]
        parts = [*_proper_parts(early), early, *([*early, *some] for some in _proper_parts(last)), mutations[name]]
        shown = seen(cells, mark, {})
        for part in parts:
            left = after(cells, part)
            assert shown == [(s, _read(left, s, {})) for s, _ in shown], (name, part)
        left = after(cells, mutations[name])
        kept[name.decode()] = {names[k] for k in left if not is_shadow(k.qualifier)}
    return kept


@pytest.mark.parametrize("name", CASES)
def test_cases(cases: dict[str, set[str]], name: str) -> None:
    """What goes and what stays, case by case."""
    assert cases[name] == CASES[name].stays


def test_a_family_tombstone_goes_with_its_shadow_cell_and_last() -> None:
    """Left behind alone, its shadow cell would make Omid's client search for ever: the model of the reader shows it."""
    row: Cells = {}
    put(row, Key(b"f", b"", 800), b"", 850)
    put(row, Key(b"f", b"", 900), b"", 1100)
    del row[Key(b"f", b"", 800)]
    with pytest.raises(EndlessError):
        read(row, 1000)


def test_the_last_family_tombstone_stays_before_a_shadow_cell_alone(spark: SparkSession) -> None:
    """A client that may not see the newer tombstone yet looks for an older one: without any it would search for ever at
    the shadow cell.
    """
    row: Cells = {}
    for start, commit in ((136_700, 236_700), (511_700, MARK + 100)):
        put(row, Key(b"f", b"", start), b"", commit)
    alone = Key(b"f", b"", 361_700)
    put(row, alone, b"", MARK + 200)
    del row[alone]
    assert read(row, MARK + 1) == {}
    assert plans(spark, {b"r": row}, MARK, FIRST)[1] == {}
    with pytest.raises(EndlessError):
        read({k: v for k, v in row.items() if k.timestamp != 136_700}, MARK + 1)


def test_a_family_tombstone_goes_in_the_run_after_that_of_what_it_hid(spark: SparkSession) -> None:
    """A client that scans has rows as they were, and asks for an older family tombstone only when it comes to them:
    what it still shows then is hidden by one that is still there.
    """
    row: Cells = {}
    put(row, Key(b"f", b"q", 136_700), b"v", 186_700)
    put(row, Key(b"f", b"", 236_700), b"", 286_700)
    first = plans(spark, {b"r": row}, MARK, FIRST)[1][b"r"]
    assert {(m.op, m.timestamp, m.last) for m in first} == {("remove_version", 136_700, False)}
    second = plans(spark, {b"r": after(row, first)}, MARK, FIRST)[1][b"r"]
    assert {(m.op, m.timestamp, m.last) for m in second} == {("remove_version", 236_700, True)}


def test_a_shadow_cell_alone_goes_before_the_last_family_tombstone(spark: SparkSession) -> None:
    """The tombstone goes in the next run: without it a client would search for ever at the shadow cell."""
    row: Cells = {}
    for start, commit in ((136_700, 236_700), (361_700, 411_700), (511_700, MARK + 100)):
        put(row, Key(b"f", b"", start), b"", commit)
    del row[Key(b"f", b"", 361_700)]
    assert read(row, MARK + 1) == {}
    mutations = plans(spark, {b"r": row}, MARK, FIRST)[1][b"r"]
    assert {(m.op, m.timestamp, m.last) for m in mutations} == {("delete_if_absent", 361_700, False)}
    left = after(row, mutations)
    assert read(left, MARK + 1) == {}
    assert {(m.op, m.timestamp) for m in plans(spark, {b"r": left}, MARK, FIRST)[1][b"r"]} == {
        ("remove_version", 136_700)
    }


def test_unknown_forms_stop_their_range(spark: SparkSession) -> None:
    """What no rule names is neither kept nor removed: the plan says stop, and why."""
    shown = [
        ("r", b"row", b"f", b"q", 800, 800, None, None, "unknown", b"", "shadow cell of 3 bytes"),
        ("r", b"row", b"f", b"q", 750, 750, None, None, "novelty", b"", None),
        ("r", b"row", b"f", b"p", 700, 700, 720, None, "tombstone", b"", None),
    ]
    frame = spark.createDataFrame(
        [tuple(bytearray(v) if isinstance(v, bytes) else v for v in r) for r in shown], COLUMNS
    )
    found = {r.timestamp: (r.action, r.why) for r in superseded.plan(frame, 1049, 50).collect()}
    assert found == {
        800: (superseded.STOP, "unknown form: shadow cell of 3 bytes"),
        750: (superseded.STOP, "unknown kind novelty"),
        700: (superseded.STOP, "commit before the start"),
    }


def test_the_reader_model_has_every_kind(histories: dict[bytes, History]) -> None:
    """The histories hold what the model must know: deletes of both kinds, old tombstones, checkpoints, two families."""
    keys = [(k, v) for h in histories.values() for k, v in h.cells.items() if not is_shadow(k.qualifier)]
    assert {kind(k, v) for k, v in keys} == {"put", "tombstone", "family_tombstone"}
    assert any(k.timestamp % 50 for k, _ in keys)
    # A family tombstone and a put of one transaction, at one timestamp and after a checkpoint, as Phoenix leaves them.
    beside = {
        k.timestamp - tombstone.timestamp
        for h in histories.values()
        for proof in [commits(h.cells)]
        for tombstone in proof
        if is_family_tombstone(tombstone, h.cells[tombstone])
        for k in proof
        if k.family == tombstone.family and k.qualifier and base(k.timestamp) == base(tombstone.timestamp)
    }
    assert beside >= {0, 1}
    assert any(is_family_tombstone(k, v) for k, v in keys)
    assert {k.family for k, _ in keys} == {b"f", b"g"}
