"""What the journal proves, what it let go of, and what a person may decide in its place."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lowtide.cleaning.facts import Fact
from lowtide.config import Config
from lowtide.errors import StoreError, UsageError
from lowtide.journal.decisions import Decisions
from lowtide.journal.life import Journal, Observed, OwnRow, in_force, unwatched
from lowtide.run.summary import myself
from lowtide.values.formats import (
    COMMIT_QUALIFIER,
    INVALID_QUALIFIER,
    INVALID_VALUE,
    LOW_WATERMARK_QUALIFIER,
    LOW_WATERMARK_ROW,
    OWN_INVALID_VALUE,
    commit_key,
    encode_long,
    shadow_qualifier,
)
from lowtide.values.intervals import Intervals
from lowtide.values.keyranges import KeyRange
from tests.varints import encode_varint

START = 5_000
#: Of the oracle, in every commit table here.
WATERMARK = START + 1_000
ENTRIES, JOURNAL = Config().omid.commit_table, Config().state.journal_table


#: Wall-clock ms of everything that :class:`Tables` is given to put.
NOW = 1_000


class Tables:
    """HBase as happybase shows it: tables of rows of columns, in one version, written at :data:`NOW` where a test puts
    them by hand, else at *clock*.
    """

    def __init__(self, *names: str) -> None:
        self.rows: dict[str, dict[bytes, dict[bytes, bytes]]] = {name: {} for name in names}
        if ENTRIES in names:
            column = Config().omid.watermark_family.encode() + b":" + LOW_WATERMARK_QUALIFIER
            self.rows[ENTRIES][LOW_WATERMARK_ROW] = {column: encode_long(WATERMARK)}
        self.written: dict[tuple[str, bytes, bytes], int] = {}
        self.clock = [NOW]
        self._named = ""

    def tables(self) -> list[bytes]:
        return [name.encode() for name in self.rows]

    def create_table(self, name: str, families: dict[str, Any]) -> None:
        assert set(families) == {"j"}
        self.rows[name] = {}

    def table(self, name: str) -> Tables:
        found = Tables()
        found.rows, found.written, found.clock, found._named = self.rows, self.written, self.clock, name
        return found

    def row(self, key: bytes, columns: list[bytes] | None = None, include_timestamp: bool = False) -> dict[bytes, Any]:
        found = self.rows[self._named].get(key, {})
        return {
            column: (value, self._at(key, column)) if include_timestamp else value
            for column, value in found.items()
            if columns is None or column in columns
        }

    def cells(
        self, key: bytes, column: bytes, versions: int, timestamp: int = 2**62, include_timestamp: bool = True
    ) -> list[tuple[bytes, int]]:
        assert (versions, include_timestamp) == (1, True)
        value = self.rows[self._named].get(key, {}).get(column)
        at = self._at(key, column)
        return [] if value is None or at >= timestamp else [(value, at)]

    def delete(self, key: bytes, columns: list[bytes], timestamp: int = 2**62) -> None:
        for column in columns:
            if timestamp >= self._at(key, column):
                self.rows[self._named][key].pop(column, None)

    def put(self, key: bytes, columns: dict[bytes, bytes], timestamp: int | None = None) -> None:
        self.rows[self._named].setdefault(key, {}).update(columns)
        for column in columns:
            self.written[self._named, key, column] = self.clock[0] if timestamp is None else timestamp

    def _at(self, key: bytes, column: bytes) -> int:
        return self.written.get((self._named, key, column), NOW)


def said(store: Tables, start: int = START) -> dict[bytes, bytes]:
    """What the journal's row says, without who decided so."""
    return {column: value for column, value in store.rows[JOURNAL][commit_key(start)].items() if column != b"j:by"}


def fact(*pairs: tuple[int, int]) -> Fact:
    return Fact(KeyRange(b"", b""), Intervals.of(pairs), frozenset(), 1)


def test_a_journal_that_is_missing_is_not_an_empty_one() -> None:
    """Once it was there, a run that does not find it is refused, with all three ways out; a store that never had one
    goes on.
    """
    assert in_force(Journal(), Observed(), JOURNAL) == Journal()
    with pytest.raises(StoreError, match=f"the journal {JOURNAL} is gone.*state.journal_table.*lowtide journal lost"):
        in_force(Journal(there=True), Observed(), JOURNAL)


@pytest.mark.parametrize(
    ("known", "seen", "held"),
    [
        (Journal(), Observed(True, 7), Journal(True, 0, 0, 7)),
        (Journal(True, 5), Observed(True, 7), Journal(True, 5, 0, 7)),
        (Journal(), Observed(True, 7, None, OwnRow(5, 9)), Journal(True, 5, 9, 7)),
        (Journal(True, 6, 8, 7), Observed(True, 7, None, OwnRow(5, 9)), Journal(True, 6, 9, 7)),
        (Journal(False, 6, 8), Observed(True, 7), Journal(True, 6, 8, 7)),
    ],
    ids=["of before", "upgraded", "state lost", "state restored", "made after it was lost"],
)
def test_the_higher_horizon_is_in_force(known: Journal, seen: Observed, held: Journal) -> None:
    """Of the state's and of the journal's own; what neither of them has said yet is no contradiction."""
    assert in_force(known, seen, JOURNAL) == held


@pytest.mark.parametrize(
    ("seen", "doubt", "told"),
    [
        (Observed(True, 7), "", "has lost .*row about itself is gone.*lowtide journal lost"),
        (Observed(True, 8), "", "has lost .*row about itself is gone.*lowtide journal lost"),
        (Observed(True, 8, None, OwnRow(5, 8)), "", "has lost .*pruned up to 9, and it says 8.*lowtide journal lost"),
        (Observed(True, 8, None, OwnRow(5, 9)), "", "may have lost .*lowtide journal whole.*lowtide journal lost"),
        (Observed(True, 7, None, OwnRow(5, 9)), "it had a TTL", "may have lost .*TTL.*whole.*lowtide journal lost"),
        (
            Observed(True, 7, timedelta(days=30), OwnRow(5, 9)),
            "",
            f"for 30d only.*alter '{JOURNAL}', {{NAME => 'j', TTL => 'FOREVER'}}",
        ),
    ],
    ids=["truncated", "made anew", "restored", "enabled", "had a ttl", "has a ttl"],
)
def test_a_journal_that_may_have_lost_rows_is_refused(seen: Observed, doubt: str, told: str) -> None:
    """By its row about itself, by the life of its table, by what a run saw of it before; each with the ways out."""
    known = Journal(True, 5, 9, 7)
    assert in_force(known, Observed(True, 7, None, OwnRow(5, 9)), JOURNAL) == known
    with pytest.raises(StoreError, match=f"the journal {JOURNAL} .*{told}"):
        in_force(replace(known, doubt=doubt), seen, JOURNAL)


def test_what_was_under_watch_up_to_the_horizon_is_watched() -> None:
    """A range that was cleaned without a gap from 0 to the horizon, which is inclusive; without a horizon every range
    is.
    """
    whole = KeyRange(b"", b"")
    assert not unwatched(whole, [], Intervals.up_to(0))
    assert unwatched(whole, [], Intervals.up_to(1))
    assert not unwatched(whole, [fact((0, 101))], Intervals.up_to(100))
    assert unwatched(whole, [fact((0, 100))], Intervals.up_to(100))
    assert unwatched(whole, [fact((0, 50), (51, 200))], Intervals.up_to(100))
    assert unwatched(whole, [fact((50, 200))], Intervals.up_to(100))
    assert not unwatched(whole, [fact((50, 200))], Intervals.of([(60, 70), (80, 200)]))
    assert unwatched(whole, [fact((50, 200))], Intervals.of([(60, 70), (80, 201)]))


def test_a_decision_is_kept_where_the_cleanup_looks_for_proofs() -> None:
    """In the journal, under the commit table's key; the journal is made where there is none."""
    store = Tables(ENTRIES)
    for start, commit in ((START, None), (START + 50, START + 150)):
        Decisions(store, Config()).check(start, commit)
        Decisions(store, Config()).record(start, commit)
    by = {b"j:by": myself().encode()}
    assert store.rows[JOURNAL] == {
        commit_key(START): {b"j:" + INVALID_QUALIFIER: INVALID_VALUE, **by},
        commit_key(START + 50): {b"j:" + COMMIT_QUALIFIER: encode_long(START + 150), **by},
    }


@pytest.mark.parametrize("commit", [None, START + 100])
def test_a_decision_that_does_not_show_is_told(commit: int | None) -> None:
    """The journal's server has a clock that is behind the one of the records when they were reset: what it puts now
    counts as of before.
    """
    store = Tables(ENTRIES)
    with pytest.raises(StoreError, match=f"transaction {START}, and does not show it: the clock .* two minutes"):
        Decisions(store, Config(), store.clock[0] + 30_000).record(START, commit)
    assert Decisions(store, Config(), store.clock[0]).record(START, commit) is None


@pytest.mark.parametrize(
    ("start", "commit", "told"),
    [
        (START + 1, None, "no start timestamp"),
        (0, None, "no start timestamp"),
        (START, START + 49, "commits at 5050 or later"),
        (START, START + 51, "5051 is no commit timestamp: those are multiples of 50"),
        (START, WATERMARK + 50, "6050 is above the low watermark 6000"),
        (WATERMARK + 50, None, "began above the low watermark 6000: it may still commit"),
        (START, 50 * 2**60, "above the low watermark"),
    ],
)
def test_what_no_transaction_can_be_is_refused(start: int, commit: int | None, told: str) -> None:
    """Timestamps are multiples of 50, a commit comes after its start's checkpoints, and neither above the low
    watermark, where a transaction may still commit.
    """
    with pytest.raises(UsageError, match=told):
        Decisions(Tables(ENTRIES), Config()).check(start, commit)


@pytest.mark.parametrize("table", [ENTRIES, JOURNAL])
@pytest.mark.parametrize("commit", [None, START + 100])
def test_a_proof_is_not_overruled(table: str, commit: int | None) -> None:
    """An entry, pruned or not, speaks against both; a mark against a commit, and agrees with an abort."""
    family = b"j:" if table == JOURNAL else Config().omid.commit_family.encode() + b":"
    store = Tables(ENTRIES, JOURNAL)
    value = encode_long(START + 100) if table == JOURNAL else encode_varint(100)
    store.rows[table][commit_key(START)] = {family + COMMIT_QUALIFIER: value}
    with pytest.raises(StoreError, match=f"{table} holds a proof of transaction {START}, that it committed at 5100:"):
        Decisions(store, Config()).check(START, commit)
    store.rows[table][commit_key(START)] = {family + INVALID_QUALIFIER: OWN_INVALID_VALUE}
    if commit is None:
        Decisions(store, Config()).check(START, commit)
        return
    with pytest.raises(StoreError, match="that it never committed"):
        Decisions(store, Config()).check(START, commit)


@pytest.mark.parametrize("table", [ENTRIES, JOURNAL])
def test_a_mark_of_omids_is_overruled(table: str) -> None:
    """Its reader may have met a cell that had come back without its proof, and pruning took it along. Who decides is
    told of it.
    """
    family = b"j:" if table == JOURNAL else Config().omid.commit_family.encode() + b":"
    store = Tables(ENTRIES, JOURNAL)
    store.rows[table][commit_key(START)] = {family + INVALID_QUALIFIER: INVALID_VALUE}
    told = Decisions(store, Config()).check(START, START + 100)
    assert told.startswith(f"what a client or reader of Omid's, by its mark in {table}, said")
    assert Decisions(store, Config()).check(START, None) == ""


@pytest.mark.parametrize("commit", [None, START + 100])
@pytest.mark.parametrize("proof", [(COMMIT_QUALIFIER, encode_long(START + 200)), (INVALID_QUALIFIER, INVALID_VALUE)])
def test_what_the_journal_has_of_before_the_oracle_was_made_anew_is_decided_over(
    proof: tuple[bytes, bytes], commit: int | None
) -> None:
    """It is no proof to a cleanup, which asks for a decision; the decision stands alone then. What was written in that
    very moment is a proof.
    """
    store, (column, value) = Tables(ENTRIES, JOURNAL), proof
    store.rows[JOURNAL][commit_key(START)] = {b"j:" + column: value}
    if proof[0] == COMMIT_QUALIFIER:
        with pytest.raises(StoreError, match="holds a proof"):
            Decisions(store, Config(), NOW).check(START, commit)
    Decisions(store, Config(), NOW + 1).check(START, commit)
    Decisions(store, Config()).record(START, commit)
    word = (INVALID_QUALIFIER, INVALID_VALUE) if commit is None else (COMMIT_QUALIFIER, encode_long(commit))
    assert said(store) == {b"j:" + word[0]: word[1]}


@pytest.mark.parametrize("table", [ENTRIES, JOURNAL])
@pytest.mark.parametrize("commit", [None, START + 100])
def test_what_is_of_an_unknown_form_or_no_commit_is_decided_over(table: str, commit: int | None) -> None:
    """A run names it and asks for a decision; what the journal's row holds beside it goes, or the row would decide
    nothing still.
    """
    store = Tables(ENTRIES, JOURNAL)
    family = b"j:" if table == JOURNAL else Config().omid.commit_family.encode() + b":"
    for value in (b"whatever!", encode_long(START) if table == JOURNAL else encode_varint(0)):
        store.rows[table][commit_key(START)] = {family + COMMIT_QUALIFIER: value, family + b"odd": b""}
        assert Decisions(store, Config()).check(START, commit) == ""
        Decisions(store, Config()).record(START, commit)
        word = (INVALID_QUALIFIER, INVALID_VALUE) if commit is None else (COMMIT_QUALIFIER, encode_long(commit))
        assert said(store) == {b"j:" + word[0]: word[1]}
        store.rows[JOURNAL].clear()


def test_what_a_person_decided_a_person_decides_anew_and_what_was_pruned_since_stands() -> None:
    """As often as need be, and it is told whose word that replaces; what pruning writes over a decision is a proof like
    any other.
    """
    store = Tables(ENTRIES)
    decisions = (
        (START + 100, None),
        (None, f"committed at {START + 100}"),
        (START + 150, "never committed"),
        (START + 150, None),
    )
    for step, (commit, replaced) in enumerate(decisions):
        store.clock[0] = NOW + step
        told = Decisions(store, Config()).check(START, commit)
        assert told == (f"what {myself()} decided: that transaction {START} {replaced}" if replaced else "")
        Decisions(store, Config()).record(START, commit)
        word = (INVALID_QUALIFIER, INVALID_VALUE) if commit is None else (COMMIT_QUALIFIER, encode_long(commit))
        assert said(store) == {b"j:" + word[0]: word[1]}
    store.table(JOURNAL).put(commit_key(START), {b"j:" + COMMIT_QUALIFIER: encode_long(START + 150)}, timestamp=NOW + 9)
    with pytest.raises(StoreError, match="holds a proof"):
        Decisions(store, Config()).check(START, None)


def shadowed(commit: int, *, journaled: bytes = INVALID_QUALIFIER) -> Tables:
    """A store with a mark in the commit table and a word in the journal, beside a shadow cell that names *commit*."""
    store = Tables(ENTRIES, JOURNAL, "orders")
    family = Config().omid.commit_family.encode() + b":"
    store.table(ENTRIES).put(commit_key(START), {family + INVALID_QUALIFIER: OWN_INVALID_VALUE}, START)
    value = INVALID_VALUE if journaled == INVALID_QUALIFIER else encode_long(START + 300)
    store.table(JOURNAL).put(commit_key(START), {b"j:" + journaled: value})
    store.table("orders").put(b"row", {b"f:q": b"v"}, START + 1)
    store.table("orders").put(b"row", {b"f:" + shadow_qualifier(b"q"): encode_long(commit)}, START + 1)
    store.table("orders").put(b"row", {b"f:" + shadow_qualifier(b"later"): encode_long(1)}, START + 50)
    return store


@pytest.mark.parametrize("journaled", [INVALID_QUALIFIER, COMMIT_QUALIFIER])
def test_a_shadow_cell_overrules_marks_and_the_journal(journaled: bytes) -> None:
    """The one of the transaction in the row that is named: the mark goes from the commit table, and the journal says
    what readers are shown.
    """
    store, commit = shadowed(START + 100, journaled=journaled), START + 100
    with pytest.raises(StoreError, match=f"{ENTRIES} holds a proof .*that it never committed.*--shown-in TABLE ROW"):
        Decisions(store, Config()).check(START, commit)
    Decisions(store, Config()).check(START, commit, shown=("orders", b"row"))
    Decisions(store, Config()).record(START, commit, overrule=True)
    assert said(store) == {b"j:" + COMMIT_QUALIFIER: encode_long(commit)}
    assert store.rows[ENTRIES][commit_key(START)] == {}


@pytest.mark.parametrize(
    ("commit", "shown", "told"),
    [
        (
            START + 150,
            ("orders", b"row"),
            f"does not show that transaction {START} committed at {START + 150}.*: {START + 100}",
        ),
        (START + 100, ("orders", b"other"), "in its shadow cells there: none"),
        (START + 100, ("nothing", b"row"), "a row of a table that is there, and nothing is none"),
        (None, ("orders", b"row"), "orders is given for an abort"),
    ],
)
def test_what_no_shadow_cell_shows_overrules_nothing(commit: int | None, shown: tuple[str, bytes], told: str) -> None:
    """Another commit timestamp, another row, no such table; an abort is shown by none."""
    with pytest.raises((StoreError, UsageError), match=told):
        Decisions(shadowed(START + 100), Config()).check(START, commit, shown=shown)


def test_an_entry_that_differs_stands_against_a_shadow_cell() -> None:
    """Readers of other cells go by it: which of the two is wrong is to be mended first."""
    store = shadowed(START + 100)
    entry = Config().omid.commit_family.encode() + b":" + COMMIT_QUALIFIER
    for delta, fits in ((100, True), (200, False)):
        store.table(ENTRIES).put(commit_key(START), {entry: encode_varint(delta)}, START)
        if fits:
            Decisions(store, Config()).check(START, START + 100, shown=("orders", b"row"))
            continue
        with pytest.raises(StoreError, match=f"{ENTRIES} holds a proof"):
            Decisions(store, Config()).check(START, START + 100, shown=("orders", b"row"))


def overruling(commit: int, *, entry: bytes | None = None, journaled: int | None = None, anew: int = 0) -> Tables:
    """A store with a mark of the transaction in both tables, after it was decided that it committed."""
    store = Tables(ENTRIES, JOURNAL)
    omid, row = Config().omid, commit_key(START)
    store.table(ENTRIES).put(row, {omid.commit_family.encode() + b":" + INVALID_QUALIFIER: INVALID_VALUE})
    store.table(JOURNAL).put(row, {b"j:" + INVALID_QUALIFIER: INVALID_VALUE})
    if entry is not None:
        store.table(ENTRIES).put(row, {omid.commit_family.encode() + b":" + COMMIT_QUALIFIER: entry})
    if journaled is not None:
        store.table(JOURNAL).put(row, {b"j:" + COMMIT_QUALIFIER: encode_long(journaled)})
    Decisions(store, Config(), anew).check_overruled(START, commit)
    Decisions(store, Config()).record(START, commit)
    return store


@pytest.mark.parametrize("journaled", [None, START + 100])
def test_a_mark_is_overruled_where_nothing_speaks_against_it(journaled: int | None) -> None:
    """The journal says when it committed, alone, also where it was said before."""
    assert said(overruling(START + 100, journaled=journaled)) == {b"j:" + COMMIT_QUALIFIER: encode_long(START + 100)}


def test_what_the_journal_has_of_before_the_oracle_was_made_anew_is_overruled() -> None:
    """It may be of another transaction with the same number, so that it speaks against nothing; what was written in
    that very moment does.
    """
    with pytest.raises(StoreError, match=f"{START} committed at {START + 150}, not at {START + 100}"):
        overruling(START + 100, journaled=START + 150, anew=NOW)
    store = overruling(START + 100, journaled=START + 150, anew=NOW + 1)
    assert said(store) == {b"j:" + COMMIT_QUALIFIER: encode_long(START + 100)}


@pytest.mark.parametrize(
    ("commit", "about", "told"),
    [
        (START + 1050, {}, "6050 is above the low watermark 6000"),
        (START + 49, {}, "commits at 5050 or later"),
        (START + 100, {"entry": b"whatever"}, f"{ENTRIES} has an entry of transaction {START}"),
        (START + 100, {"journaled": START + 150}, f"{START} committed at {START + 150}, not at {START + 100}"),
    ],
)
def test_what_is_proved_otherwise_is_not_overruled(commit: int, about: dict[str, Any], told: str) -> None:
    """A commit entry, another commit timestamp in the journal, and what cannot have been."""
    with pytest.raises((StoreError, UsageError), match=told):
        overruling(commit, **about)
