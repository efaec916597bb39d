"""What is known of a transaction, and what becomes of a cell."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from lowtide_spark.cleaning import marks, rules
from lowtide_spark.cleaning.rules import ABORTED, ABSENT, COMMITTED, DELETE, HEAL, SKIP, STOP, UNDECIDED
from lowtide_spark.cleaning.work import CleanupWork
from lowtide_spark.frames.omid import JOURNALED
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lowtide.cleaning.evidence import Proof
from lowtide.cleaning.facts import Incarnation
from lowtide.cleaning.given import AHEAD, MILLIS, SKIPPED, Doubt, Given, given
from lowtide.cleaning.renumbered import beginning, skipped
from lowtide.run.summary import TableReport
from lowtide.store.records import TableState
from lowtide.tables.inventory import Entry, Kind
from lowtide.values.clock import first_timestamp
from lowtide.values.intervals import Intervals

#: Of what is known of a transaction, see ``rules.verdicts``.
KNOWN_COLUMNS = "start_ts bigint, verdict string, tc bigint, why string, marked boolean, proof string"
ENTRIES = (
    "row binary, start_ts bigint, commit_ts bigint, invalid boolean, own_mark boolean, problem string, fence boolean"
)


class Case:
    """A transaction and all that tells of it; *siblings* are (checkpoint, commit timestamp), as *strangers* in a table
    that is not confirmed.
    """

    def __init__(
        self,
        expected: tuple[str, int | None],
        when_blind: tuple[str, int | None] | None = None,
        *,
        entry: int | None = None,
        mark: bool = False,
        own: bool = False,
        problem: str | None = None,
        journal: tuple[int | None] | None = None,
        siblings: tuple[tuple[int, int], ...] = (),
        strangers: tuple[tuple[int, int | None], ...] = (),
        hidden: bool = False,
        odd_journal: bool = False,
        decided: bool = False,
        journaled_own: bool = False,
    ) -> None:
        self.expected, self.when_blind = expected, when_blind or expected
        self.entry, self.mark, self.own, self.problem = entry, mark, own, problem
        self.journal, self.siblings, self.hidden = journal, siblings, hidden
        self.odd_journal, self.strangers, self.decided = odd_journal, strangers, decided
        self.journaled_own = journaled_own


#: By name; commit timestamps count from the start timestamp: +50 is the first that can be.
CASES = {
    "a sibling's shadow cell proves": Case((COMMITTED, 50), siblings=((0, 50),)),
    "siblings at several checkpoints agree": Case((COMMITTED, 50), siblings=((0, 50), (3, 50), (49, 50))),
    "a shadow cell outranks a mark": Case((COMMITTED, 50), mark=True, siblings=((0, 50),)),
    "a shadow cell outranks journal and entry": Case((COMMITTED, 50), entry=50, journal=(50,), siblings=((7, 50),)),
    "a shadow cell outranks a journaled mark": Case((COMMITTED, 50), journal=(None,), siblings=((0, 50),)),
    "a shadow cell outranks a hidden row": Case((COMMITTED, 50), hidden=True, siblings=((0, 50),)),
    "contradictory shadow cells": Case((UNDECIDED, None), siblings=((0, 50), (1, 100))),
    "contradictory shadow cells beside an entry": Case((UNDECIDED, None), entry=50, siblings=((0, 50), (1, 100))),
    "own-timestamp shadow cells prove nothing for others": Case(
        (ABSENT, None), (UNDECIDED, None), siblings=((0, 0), (7, 7))
    ),
    "own-timestamp shadow cells beside a mark": Case((ABORTED, None), (UNDECIDED, None), mark=True, siblings=((0, 0),)),
    "own-timestamp shadow cell beside a real one": Case((COMMITTED, 50), siblings=((0, 0), (1, 50))),
    "the journal outranks a mark": Case((COMMITTED, 50), mark=True, journal=(50,)),
    "the journal outranks a hidden row": Case((COMMITTED, 50), journal=(50,), hidden=True),
    "a mark outranks an entry": Case((ABORTED, None), (UNDECIDED, None), mark=True, entry=50),
    "a mark": Case((ABORTED, None), (UNDECIDED, None), mark=True),
    "a mark of Lowtide's": Case((ABORTED, None), (UNDECIDED, None), mark=True, own=True),
    "a shadow cell outranks a mark of Lowtide's": Case((COMMITTED, 50), mark=True, own=True, siblings=((0, 50),)),
    "a mark before an older delete marker": Case((ABORTED, None), (UNDECIDED, None), mark=True, hidden=True),
    "an entry": Case((COMMITTED, 50), entry=50),
    "an entry outranks a journaled mark": Case((COMMITTED, 50), entry=50, journal=(None,)),
    "a journaled fence": Case((COMMITTED, 0), journal=(0,)),
    "a journaled mark": Case((ABORTED, None), (UNDECIDED, None), journal=(None,)),
    "a journaled mark of Lowtide's": Case((ABORTED, None), (UNDECIDED, None), journal=(None,), journaled_own=True),
    "a journaled mark of Lowtide's beside one of a reader's": Case(
        (ABORTED, None), (UNDECIDED, None), mark=True, journal=(None,), journaled_own=True
    ),
    "a shadow cell outranks a journaled mark of Lowtide's": Case(
        (COMMITTED, 50), journal=(None,), journaled_own=True, siblings=((0, 50),)
    ),
    "a journaled mark decides a hidden row": Case((ABORTED, None), (UNDECIDED, None), journal=(None,), hidden=True),
    "a decision": Case((ABORTED, None), (UNDECIDED, None), journal=(None,), decided=True),
    "a decision beside a mark": Case((ABORTED, None), (UNDECIDED, None), mark=True, journal=(None,), decided=True),
    "an entry outranks a decision": Case((COMMITTED, 50), entry=50, journal=(None,), decided=True),
    "a journal row of unknown form": Case((UNDECIDED, None), journal=(None,), odd_journal=True),
    "a journal row of unknown form with a commit": Case((UNDECIDED, None), journal=(50,), odd_journal=True),
    "a journal row of unknown form beside an entry": Case(
        (UNDECIDED, None), entry=50, journal=(None,), odd_journal=True
    ),
    "a shadow cell outranks a journal row of unknown form": Case(
        (COMMITTED, 50), journal=(None,), odd_journal=True, siblings=((0, 50),)
    ),
    "a hidden row": Case((UNDECIDED, None), hidden=True),
    "a fence": Case((UNDECIDED, None), entry=0),
    "a fence with a mark": Case((UNDECIDED, None), entry=0, mark=True),
    "a row of unknown form": Case((UNDECIDED, None), problem="unknown column"),
    "a row of unknown form with an entry": Case((UNDECIDED, None), entry=50, problem="unknown column"),
    "a row of unknown form with a mark": Case((UNDECIDED, None), mark=True, problem="mark with value"),
    "a stranger's shadow cell": Case((UNDECIDED, None), strangers=((0, 50),)),
    "a stranger's shadow cell beside a mark": Case((UNDECIDED, None), mark=True, strangers=((0, 50),)),
    "a stranger's shadow cell beside a journaled mark": Case((UNDECIDED, None), journal=(None,), strangers=((0, 50),)),
    "a stranger's shadow cell contradicts no proof": Case((COMMITTED, 50), siblings=((0, 50),), strangers=((0, 100),)),
    "a stranger's shadow cell contradicts no entry": Case((COMMITTED, 50), entry=50, strangers=((0, 100),)),
    "strangers' shadow cells contradict one another": Case((UNDECIDED, None), strangers=((0, 50), (0, 100))),
    "a stranger's shadow cell of unknown form": Case((UNDECIDED, None), strangers=((0, None),)),
    "a stranger's shadow cell of unknown form beside an entry": Case((COMMITTED, 50), entry=50, strangers=((0, None),)),
    "a stranger's index": Case((ABORTED, None), (UNDECIDED, None), mark=True, strangers=((7, 7),)),
    "nothing": Case((ABSENT, None), (UNDECIDED, None)),
}
START = {name: 1000 * (n + 1) for n, name in enumerate(CASES)}


def names_a_remedy(why: str) -> bool:
    """A command, a statement that stands in for one, or what mends itself."""
    return any(word in why for word in ("lowtide ", "run again", "enable it", "put this version's"))


def frames(spark: SparkSession) -> dict[str, DataFrame]:
    known = [(START[name], case) for name, case in CASES.items()]
    entries = [
        (b"", t, None if c.entry is None else t + c.entry, c.mark, c.own, c.problem, c.entry == 0)
        for t, c in known
        if c.entry is not None or c.mark or c.problem
    ]
    stray = [(b"", 77_000, 77_100, False, False, None, False), (b"", None, None, False, False, "row key", False)]
    return {
        "starts": spark.createDataFrame([(t,) for t, _ in known] * 2, "start_ts bigint"),
        "entries": spark.createDataFrame(entries + stray, ENTRIES),
        "journal": spark.createDataFrame(
            [
                (t, None if c.journal[0] is None else t + c.journal[0], c.odd_journal, c.decided, c.journaled_own)
                for t, c in known
                if c.journal is not None
            ]
            + [(78_000, None, False, False, False)],
            JOURNALED,
        ),
        "siblings": spark.createDataFrame(
            [(t, t + k, t + tc, None) for t, c in known for k, tc in c.siblings]
            + [(t, t + k, tc and t + tc, "import") for t, c in known for k, tc in c.strangers],
            "start_ts bigint, timestamp bigint, commit_ts bigint, unconfirmed string",
        ),
        "hidden": spark.createDataFrame([(t,) for t, c in known if c.hidden], "start_ts bigint"),
    }


@pytest.fixture(scope="module")
def verdicts(spark: SparkSession) -> dict[bool, dict[int, Row]]:
    """The verdicts on all cases, by start timestamp, for a run that sees every table (False) and for a blind one
    (True).
    """
    given = frames(spark)
    found = {}
    for blind in (False, True):
        rows = rules.verdicts(**given, blind=blind).collect()
        assert len(rows) == len(CASES), "one row a transaction, and none for transactions that nobody asked about"
        found[blind] = {r.start_ts: r for r in rows}
    return found


@pytest.mark.parametrize("blind", [False, True], ids=["seeing", "blind"])
@pytest.mark.parametrize("name", CASES)
def test_verdicts(verdicts: dict[bool, dict[int, Row]], name: str, blind: bool) -> None:
    """Proof is looked for in the order shadow cell, journal, mark, entry, nothing; a blind run decides by proof
    alone.
    """
    case, found = CASES[name], verdicts[blind][START[name]]
    verdict, tc = case.when_blind if blind else case.expected
    assert (found.verdict, found.tc) == (verdict, None if tc is None else START[name] + tc)
    assert found.marked is case.mark
    assert (found.why is not None) == (verdict == UNDECIDED)
    assert found.why is None or names_a_remedy(found.why), "what stays undecided says what to do"


def test_entry_of_an_odd_start_leaves_its_transaction_undecided(spark: SparkSession) -> None:
    """A row whose start is no multiple of 50 may prove the cells of its base: they are undecided, never absent."""
    given = {name: frame.limit(0) for name, frame in frames(spark).items()}
    given["starts"] = spark.createDataFrame([(1000,)], "start_ts bigint")
    problem = "start timestamp 1003 is no multiple of 50"
    given["entries"] = spark.createDataFrame([(b"", 1003, 1050, False, False, problem, False)], ENTRIES)
    [found] = rules.verdicts(**given, blind=False).collect()
    assert found.verdict == UNDECIDED


# -- cells

T = 1_700_000_000 * 10**9
TC = T + 50
#: Verdicts by start timestamp: tc, marked.
KNOWN = {
    T: (COMMITTED, TC, None, False),
    T + 100: (ABORTED, None, None, True),
    T + 200: (ABSENT, None, None, False),
    T + 300: (UNDECIDED, None, "for a reason; run again", False),
    T + 400: (COMMITTED, T + 400, None, False),
    T + 500: (COMMITTED, T + 600, None, True),
    T + 700: (COMMITTED, T + 749, None, False),
    50: (ABSENT, None, None, False),
    1_769_824_800_000: (ABSENT, None, None, False),
    10**17: (ABSENT, None, None, False),
    10**17 - 50: (ABSENT, None, None, False),
    100: (COMMITTED, 150, None, False),
}
COLUMNS = (
    "region string, row binary, family binary, qualifier binary, timestamp bigint, start_ts bigint, commit_ts bigint, "
    "kind string, value binary, problem string"
)

#: timestamp, own shadow cell, kind, problem -> action, tc, part of why; for a world clock's oracle
Suspect = tuple[int, int | None, str, str | None]
WORLD: dict[str, tuple[Suspect, tuple[str, int | None, str | None]]] = {
    "committed": ((T, None, "put", None), (HEAL, TC, None)),
    "committed, last checkpoint": ((T + 49, None, "put", None), (HEAL, TC, None)),
    "committed tombstone": ((T + 1, None, "tombstone", None), (HEAL, TC, None)),
    "committed family tombstone": ((T + 2, None, "family_tombstone", None), (HEAL, TC, None)),
    "aborted": ((T + 100, None, "put", None), (DELETE, None, None)),
    "aborted checkpoint": ((T + 149, None, "tombstone", None), (DELETE, None, None)),
    "absent": ((T + 200, None, "family_tombstone", None), (DELETE, None, None)),
    "undecided": ((T + 300, None, "put", None), (STOP, None, "for a reason")),
    "nothing known": ((T + 350, None, "put", None), (STOP, None, "nothing is known")),
    "own shadow cell, same commit": ((T + 3, TC, "put", None), (HEAL, TC, None)),
    "own shadow cell, other commit": ((T + 4, TC + 50, "put", None), (STOP, None, "differ")),
    "own shadow cell outranks a mark": ((T + 101, T + 150, "put", None), (HEAL, T + 150, None)),
    "own shadow cell, absent": ((T + 201, T + 250, "put", None), (HEAL, T + 250, None)),
    "own shadow cell, undecided": ((T + 301, T + 350, "put", None), (HEAL, T + 350, None)),
    "own shadow cell, nothing known": ((T + 351, T + 400, "put", None), (HEAL, T + 400, None)),
    "own timestamp proves itself": ((T + 5, T + 5, "put", None), (SKIP, None, "committed")),
    "own timestamp proves itself though aborted": ((T + 102, T + 102, "put", None), (SKIP, None, "committed")),
    "own timestamp proves itself, nothing known": ((T + 352, T + 352, "put", None), (SKIP, None, "committed")),
    "committed at its start": ((T + 400, None, "put", None), (STOP, None, "commit before the start")),
    "committed between its checkpoints": ((T + 700, None, "put", None), (STOP, None, "commit before the start")),
    "committed though marked": ((T + 500, None, "put", None), (HEAL, T + 600, None)),
    "shadow cell without data": ((T, TC, "shadow", None), (SKIP, None, "shadow cell without data")),
    "unknown form": ((T, None, "unknown", "shadow cell of 3 bytes"), (STOP, None, "shadow cell of 3 bytes")),
    "unknown kind": ((T, None, "delete", None), (STOP, None, "unknown kind delete")),
    "foreign milliseconds": ((1_769_824_800_001, None, "put", None), (SKIP, None, "written by no oracle")),
    "foreign small number": ((51, None, "put", None), (SKIP, None, "written by no oracle")),
    "proved, of when the oracle counted": ((100, None, "put", None), (HEAL, 150, None)),
    "foreign, just below the world clock": ((10**17 - 1, None, "put", None), (SKIP, None, "written by no oracle")),
    "first of the world clock": ((10**17, None, "put", None), (DELETE, None, None)),
}
#: The same for a counter: small numbers are its own.
COUNTER: dict[str, tuple[Suspect, tuple[str, int | None, str | None]]] = {
    "small number": ((51, None, "put", None), (DELETE, None, None)),
    "small number committed": ((100, None, "put", None), (HEAL, 150, None)),
    "below the first timestamp of any oracle": ((7, None, "put", None), (SKIP, None, "written by no oracle")),
}


def actions(spark: SparkSession, cases: dict[str, Any], world_clock: bool) -> dict[str, Row]:
    """What becomes of each case's cell; the case's name is the cell's row."""
    known = dict(KNOWN) if world_clock else {**KNOWN, 0: (ABSENT, None, None, False)}
    cells = [
        ("r", bytearray(name.encode()), b"f", b"q", ts, ts - ts % 50, own, kind, b"v", problem)
        for name, ((ts, own, kind, problem), _) in cases.items()
    ]
    suspects = spark.createDataFrame(cells, COLUMNS)
    frame = spark.createDataFrame(
        [(t, *said, None) for t, said in known.items()],
        KNOWN_COLUMNS,
    )
    found = rules.cell_actions(suspects, frame, Given(first_timestamp(world_clock)))
    assert set(suspects.columns) < set(found.columns)
    rows = {bytes(r.row).decode(): r for r in found.collect()}
    assert len(rows) == len(cases)
    return rows


@pytest.fixture(scope="module")
def world(spark: SparkSession) -> dict[str, Row]:
    """What a run under a world clock does with every case."""
    return actions(spark, WORLD, world_clock=True)


@pytest.fixture(scope="module")
def counter(spark: SparkSession) -> dict[str, Row]:
    """What a run under a counting oracle does with every case."""
    return actions(spark, COUNTER, world_clock=False)


def check(row: Row, expected: tuple[str, int | None, str | None]) -> None:
    action, tc, why = expected
    assert (row.action, row.tc) == (action, tc)
    assert (row.why is None) == (why is None)
    assert why is None or why in row.why
    assert action != STOP or names_a_remedy(row.why), "what stops a range says what to do"


@pytest.mark.parametrize("name", WORLD)
def test_cells_under_a_world_clock(world: dict[str, Row], name: str) -> None:
    """A cell is healed by proof, deleted without any, left alone if it is no transaction's, and stops its range if
    unknown.
    """
    check(world[name], WORLD[name][1])


#: Transactions of cells that may have come back, and what is known of each of them.
BACK = {
    "below": (T, ABSENT, None),
    "at": (T + 50, ABSENT, None),
    "above": (T + 100, ABSENT, None),
    "marked by Lowtide": (T - 50, ABORTED, Proof.OWN_MARK),
    "marked in this run": (T - 100, ABORTED, Proof.FRESH_MARK),
    "marked by Lowtide, and pruned": (T - 150, ABORTED, Proof.JOURNALED_OWN_MARK),
    "met by a reader, and pruned": (T - 350, ABORTED, Proof.JOURNALED_MARK),
    "decided": (T - 200, ABORTED, Proof.DECIDED),
    "met by a reader": (T - 250, ABORTED, Proof.MARK),
    "committed": (T - 300, COMMITTED, Proof.ENTRY),
}


def come_back(spark: SparkSession, regions: Sequence[str], **named: Any) -> dict[str, dict[str, str]]:
    """What becomes of a cell of each of them, by region."""
    cells = [
        (region, name.encode(), b"f", b"q", start + 1, start, None, "put", b"v", None)
        for region in regions
        for name, (start, *_) in BACK.items()
    ]
    known = [
        (start, verdict, TC if verdict == COMMITTED else None, None, False, proof and str(proof))
        for start, verdict, proof in BACK.values()
    ]
    found = rules.cell_actions(
        spark.createDataFrame(cells, COLUMNS),
        spark.createDataFrame(known, KNOWN_COLUMNS),
        Given(first_timestamp(world_clock=True)),
        **named,
    )
    done: dict[str, dict[str, str]] = {}
    for row in found.collect():
        done.setdefault(row.region, {})[bytes(row.row).decode()] = row.action
    return done


def becomes(*stopped: str) -> dict[str, str]:
    """Of these nobody knows; all others are decided as ever."""
    return {
        name: STOP if name in stopped else HEAL if verdict == COMMITTED else DELETE
        for name, (_, verdict, _) in BACK.items()
    }


def test_absence_decides_nothing_where_the_journal_let_go_and_a_cell_may_have_come_since(spark: SparkSession) -> None:
    """At or below the horizon, in a range that was not under watch, nor does a mark of Omid's; a proof, also of an
    abort, decides there as ever, and elsewhere so do absence and every mark.
    """
    done = come_back(spark, ["came back", "watched"], horizon=T + 50, unwatched=["came back"])
    assert done["came back"] == becomes("below", "at", "met by a reader", "met by a reader, and pruned")
    assert done["watched"] == becomes()


NOW = datetime(2026, 11, 27, tzinfo=UTC)
MILLI = 1_795_737_600_000  # now
LAST = 5000
#: The same for a counter whose low watermark is far beyond what a plain cell's milliseconds are.
BEYOND: dict[str, tuple[int, str, str | None, tuple[str, str | None]]] = {
    "a plain cell's time": (MILLI, ABSENT, Proof.NONE, (SKIP, SKIPPED)),
    "it bears a mark of a reader's": (MILLI + 50, ABORTED, Proof.MARK, (SKIP, SKIPPED)),
    "it bears a mark of a reader's that was pruned": (MILLI + 100, ABORTED, Proof.JOURNALED_MARK, (SKIP, SKIPPED)),
    "a person decided": (MILLI + 150, ABORTED, Proof.DECIDED, (DELETE, None)),
    "proved": (MILLI + 200, COMMITTED, Proof.ENTRY, (HEAL, None)),
    "the last number of before": (LAST, ABSENT, Proof.NONE, (DELETE, None)),
    "the first that was skipped": (LAST + 1, ABSENT, Proof.NONE, (SKIP, SKIPPED)),
    "a time in seconds, skipped": (MILLI // 1000, ABSENT, Proof.NONE, (SKIP, SKIPPED)),
    "the last that was skipped": (beginning(LAST) - 1, ABSENT, Proof.NONE, (SKIP, SKIPPED)),
    "the first of the new life": (beginning(LAST), ABSENT, Proof.NONE, (DELETE, None)),
}
#: The same where it got there unaided.
UNAIDED: dict[str, tuple[int, str, str | None, tuple[str, str | None]]] = {
    "before anybody's time": (10**12 - 1, ABSENT, Proof.NONE, (DELETE, None)),
    "a time of 2001": (10**12, ABSENT, Proof.NONE, (SKIP, MILLIS)),
    "a time of now": (MILLI, ABSENT, Proof.NONE, (SKIP, MILLIS)),
    "of a client whose clock is fast": (MILLI + 86_399_999, ABORTED, Proof.MARK, (SKIP, MILLIS)),
    "later than any clock": (MILLI + 86_400_000, ABSENT, Proof.NONE, (DELETE, None)),
    "a person decided": (MILLI + 150, ABORTED, Proof.DECIDED, (DELETE, None)),
    "undecided": (MILLI + 200, UNDECIDED, None, (STOP, "run again")),
}


def far(
    spark: SparkSession, cases: dict[str, Any], numbers: Given, *, marking: bool = False
) -> dict[str, tuple[str, str | None]]:
    """What becomes of each case's cell, and why; with *marking*, once marks were put for none of them."""
    cells = [
        ("r", bytearray(name.encode()), b"f", b"q", ts, ts - ts % 50, None, "put", b"v", None)
        for name, (ts, *_) in cases.items()
    ]
    known = {
        # As text: Spark 3.5 takes no member of an enumeration.
        ts - ts % 50: (verdict, ts + 100 if verdict == COMMITTED else None, "run again", False, proof and str(proof))
        for ts, verdict, proof, _ in cases.values()
    }
    frame = spark.createDataFrame([(start, *said) for start, said in known.items()], KNOWN_COLUMNS)
    frame = rules.after_marking(frame, spark.createDataFrame([], ENTRIES)) if marking else frame
    found = rules.cell_actions(spark.createDataFrame(cells, COLUMNS), frame, numbers).collect()
    return {bytes(r.row).decode(): (r.action, r.why) for r in found}


def test_numbers_that_a_counter_was_set_beyond_are_no_orphans(spark: SparkSession) -> None:
    """A plain cell's milliseconds are at or below the low watermark then, and nothing proves it; what the counter gave
    before and since is judged as ever, and so is what a proof or a person speaks of.
    """
    spans = skipped(LAST, beginning(LAST))
    assert spans is not None
    found = far(spark, BEYOND, given(False, [spans], NOW))
    assert found == {name: expected for name, (*_, expected) in BEYOND.items()}
    left = {name: why for name, (action, why) in found.items() if action == SKIP}
    after = far(spark, BEYOND, given(False, [spans], NOW), marking=True)
    assert {name: why for name, (action, why) in after.items() if action == SKIP} == left, "it stays so in this run"


def test_the_milliseconds_of_plain_cells_are_no_orphans_of_a_counter_that_passed_them(spark: SparkSession) -> None:
    """From when anybody wrote cells to a day from now, where no reset tells that they were skipped."""
    found = far(spark, UNAIDED, given(False, [], NOW))
    assert found == {name: expected for name, (*_, expected) in UNAIDED.items()}
    assert given(False, [], NOW).doubts == (Doubt(10**12, MILLI + AHEAD // timedelta(milliseconds=1), MILLIS),)
    assert given(True, [(1, 10**15)], NOW) == Given(first_timestamp(True)), "a world clock's numbers are far above"


def test_absence_decides_nothing_of_what_began_before_a_table_came_back(spark: SparkSession) -> None:
    """At the times for which the table was cleaned before, each by its own: what never committed was marked then. A
    proof, also of an abort, decides there as ever, but for a mark of Omid's: a reader may have put it for the cell that
    came back. In other tables, and at times between, absence and every mark decide.
    """
    before = {
        "back": Intervals.up_to(T + 50),
        "back up to less": Intervals.up_to(T),
        "back, and once skipped": Intervals.of([(0, T), (T + 50, T + 51)]),
    }
    done = come_back(spark, [*before, "watched"], before=before)
    met = ("met by a reader", "met by a reader, and pruned")
    assert done["back"] == becomes("below", "at", *met)
    assert done["back up to less"] == becomes("below", *met)
    assert done["back, and once skipped"] == becomes("at", *met)
    assert done["watched"] == becomes()


@pytest.mark.parametrize("name", COUNTER)
def test_cells_under_a_counter(counter: dict[str, Row], name: str) -> None:
    """Under a counting oracle small numbers are timestamps like others, but none is below its first, 50."""
    check(counter[name], COUNTER[name][1])


def test_marks_are_told(world: dict[str, Row]) -> None:
    """Each cell says whether its transaction bears a mark; without a verdict it bears none."""
    assert {name for name, r in world.items() if r.marked} == {
        name for name, ((ts, *_), _) in WORLD.items() if KNOWN.get(ts - ts % 50, (None,) * 4)[3]
    }
    assert world["nothing known"].marked is False


# -- marks to put and to take back


def work(plan: DataFrame) -> CleanupWork:
    entry = Entry("t", Kind.TRANSACTIONAL, True, frozenset({"f"}))
    state = TableState("t", 1, Incarnation.unknown(), ())
    return CleanupWork(TableReport("t", execute=True), entry, [], state, [], [], suspects=plan, plan=plan)


@pytest.fixture(scope="module")
def plan(spark: SparkSession) -> DataFrame:
    """One cell without shadow cell of every case of a transaction."""
    known = rules.verdicts(**frames(spark), blind=False)
    cells = [("r", b"r", b"f", b"q", t, t, None, "put", b"v", None) for t in START.values()]
    return rules.cell_actions(
        spark.createDataFrame(cells, COLUMNS), known, Given(first_timestamp(False))
    ).localCheckpoint()


def names(frame: DataFrame) -> set[str]:
    by_start = {t: name for name, t in START.items()}
    return {by_start[r.start_ts] for r in frame.collect()}


def test_marks_are_put_where_nothing_decides(plan: DataFrame) -> None:
    """A mark is put for what is absent alone: where one is there or was journaled, it could not be read back and need
    not be.
    """
    expected = {name for name, case in CASES.items() if case.expected[0] == ABSENT}
    assert names(marks.needed([work(plan)], like=plan)) == expected


def test_marks_of_committed_transactions_are_taken_back(plan: DataFrame) -> None:
    """A mark is wrong where its transaction is committed, and only there."""
    expected = {name for name, case in CASES.items() if case.expected[0] == COMMITTED and case.mark}
    assert names(marks.wrong([work(plan)], like=plan)) == expected


def test_every_delete_is_of_an_abort_or_an_absence(plan: DataFrame) -> None:
    """No cell is deleted on any other verdict, and every cell of the plan has an action."""
    found = plan.where(F.col("action") == DELETE).select("start_ts")
    assert names(found) == {name for name, case in CASES.items() if case.expected[0] in (ABORTED, ABSENT)}
    assert plan.where(F.col("action").isNull()).isEmpty()


# -- once the marks were put


def test_nothing_is_absent_once_marks_were_put(spark: SparkSession) -> None:
    """What was absent is decided by its row as read back: marked, committed after all, or undecided, also where there
    is no row.
    """
    looked = {
        50: ((0, True, None, False), (ABORTED, None)),
        100: ((150, False, None, False), (COMMITTED, 150)),
        150: ((0, True, "odd", False), (UNDECIDED, None)),
        200: ((200, False, None, True), (UNDECIDED, None)),
        250: (None, (UNDECIDED, None)),
    }
    known = spark.createDataFrame(
        [*((start, ABSENT, None, None, False, None) for start in looked), (300, COMMITTED, 350, None, True, None)],
        KNOWN_COLUMNS,
    )
    again = spark.createDataFrame(
        [(start, row[0] or None, *row[1:]) for start, (row, _) in looked.items() if row],
        "start_ts bigint, commit_ts bigint, invalid boolean, problem string, fence boolean",
    )
    found = {r.start_ts: (r.verdict, r.tc) for r in rules.after_marking(known, again).collect()}
    assert found == {start: verdict for start, (_, verdict) in looked.items()} | {300: (COMMITTED, 350)}
