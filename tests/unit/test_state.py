"""The format of Lowtide's records: older ones are read, newer ones refused, and the first run that acts says which it
is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lowtide import __version__
from lowtide.cleaning.facts import Fact, Region, cleaned_before
from lowtide.cli.runs import done_text
from lowtide.config import Config
from lowtide.errors import FormatError, StoreError, WatermarkError
from lowtide.health import Cause, assess, reader
from lowtide.run.summary import Summary, by_hand, here, ran_by
from lowtide.store import rows
from lowtide.store.gateway import CheckedPut
from lowtide.store.records import Bound, Epoch, Journal, Listing
from lowtide.store.rows import FORMAT
from lowtide.store.state import StateStore
from lowtide.tables.consent import Pause
from lowtide.tables.inventory import Change, Entry, Kind
from lowtide.values.clock import from_millis
from lowtide.values.intervals import Intervals
from lowtide.values.keyranges import KeyRange

NEWER = json.dumps({"format": FORMAT + 1, "since": 1, "lowtide": "9.9.9"}).encode()


class Records:
    """As much of a happybase connection, and of its one table, as the format needs; counts what is read."""

    def __init__(self, **rows: bytes) -> None:
        self.held = {name.encode(): {b"s:value": value} for name, value in rows.items()}
        self.reads: Counter[str] = Counter()

    def tables(self) -> list[bytes]:
        return [b"LOWTIDE_STATE"]

    def table(self, _: str) -> Records:
        return self

    def row(self, row: bytes, _: Any = None) -> dict[bytes, bytes]:
        self.reads["row"] += 1
        return self.held.get(row, {})

    def rows(self, wanted: list[bytes], _: Any = None) -> list[tuple[bytes, dict[bytes, bytes]]]:
        self.reads["rows"] += 1
        return [(row, self.held[row]) for row in wanted if row in self.held]

    def put(self, row: bytes, cells: dict[bytes, bytes]) -> None:
        self.held.setdefault(row, {}).update(cells)

    def scan(self, row_prefix: bytes, limit: int | None = None) -> list[tuple[bytes, dict[bytes, bytes]]]:
        return [(row, self.held[row]) for row in sorted(self.held) if row.startswith(row_prefix)][:limit]

    def delete(self, row: bytes, columns: Sequence[bytes] = ()) -> None:
        for column in columns or list(self.held[row]):
            del self.held[row][column]
        if not self.held[row]:
            del self.held[row]


def store(records: Records) -> StateStore:
    return StateStore(records, "LOWTIDE_STATE", there=True)


def _answering(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checked writes come to them, and hold."""

    def put(_: Any, __: str, row: bytes, check: tuple[bytes, bytes | None], put: tuple[bytes, bytes]) -> bool:
        assert records.held.get(row, {}).get(check[0]) == check[1]
        records.put(row, dict([put]))
        return True

    monkeypatch.setattr(rows, "check_and_put", put)


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.read("orders"),
        lambda s: s.inventory(),
        lambda s: s.bounds(),
        lambda s: s.journal(),
        lambda s: s.record_cluster(),
        lambda s: s.add_run({"job": "j", "run": "r", "started": 1}),
        lambda s: s.begin("orders", []),
        lambda s: s.record_format(),
    ],
)
def test_records_of_a_newer_lowtide_are_neither_read_nor_written(use: Callable[[StateStore], Any]) -> None:
    """Said with the format, who wrote it and since when, what is known here and where that lies, and what to do: two
    checkouts may have one version.
    """
    records = Records(format=NEWER)
    with pytest.raises(FormatError) as refused:
        use(store(records))
    assert str(refused.value) == f"{refused.value.fact}. {refused.value.remedy}"
    for word in ("LOWTIDE_STATE", f"format {FORMAT + 1}", "Lowtide 9.9.9", f"Lowtide {__version__}", "Upgrade"):
        assert word in str(refused.value)
    assert f"9.9.9 on 1970-01-01; this is Lowtide {__version__} in {Path(rows.__file__).resolve().parents[2]}, " in str(
        refused.value
    )
    assert list(records.held) == [b"format"]


def test_records_of_before_are_read_and_say_their_format_once_a_run_acts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the row they are of format 1. The row that is there stays: it tells since when."""
    records = Records(
        inventory=b'[{"table": "orders", "kind": "transactional", "enabled": true, "families": ["f"], "unmarked": [], '
        b'"mark": "", "bytes": 1}]'
    )

    _answering(records, monkeypatch)
    assert [e.table for e in store(records).inventory()] == ["orders"]
    store(records).record_format()
    said = json.loads(records.held[b"format"][b"s:value"])
    assert (said["format"], said["lowtide"]) == (FORMAT, __version__)
    before = dict(records.held[b"format"])
    store(records).record_format()
    assert records.held[b"format"] == before


def test_a_low_watermark_that_went_back_stays_so_when_the_next_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that had looked before another saw it go back records a newer one: whoever comes after is refused all the
    same.
    """
    records = Records(oracle=b'{"low_watermark": 500, "at": 1}')
    _answering(records, monkeypatch)
    states = store(records)
    states.check_low_watermark(600)
    states.remember_gone_back(400)
    states.record_low_watermark(600)
    with pytest.raises(WatermarkError, match="gone back from 600 to 400, and has come to 600 again"):
        states.check_low_watermark(600)


def test_a_commit_table_of_another_life_is_refused_until_it_is_taken_for_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that a run sees is remembered, with records of before this was kept too; later ones are not."""
    records = Records(oracle=b'{"low_watermark": 500, "at": 1}')
    _answering(records, monkeypatch)
    states = store(records)
    states.check_commit_table("C", 7)
    states.record_low_watermark(500, 7)
    assert json.loads(records.held[b"oracle"][b"s:value"]) == {"low_watermark": 500, "at": 1, "commit_table": 7}
    states.check_commit_table("C", 7)
    states.record_low_watermark(600, 8)
    with pytest.raises(StoreError, match=r"the commit table C was .*commit-table whole.*state reset --same-oracle"):
        states.check_commit_table("C", 8)
    states.settle_commit_table(8)
    states.check_commit_table("C", 8)
    assert states.recorded_low_watermark().low_watermark == 600


def test_a_commit_table_that_lost_entries_by_itself_is_whole_in_no_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor by what the next run sees; of one of which nothing is known yet, nothing is remembered."""
    records = Records()
    _answering(records, monkeypatch)
    states = store(records)
    states.doubt_commit_table()
    assert records.held == {}
    states.record_low_watermark(500, 7)
    states.doubt_commit_table()
    states.record_low_watermark(600, 7)
    with pytest.raises(StoreError, match="or had a TTL"):
        states.check_commit_table("C", 7)
    states.settle_commit_table(7)
    states.check_commit_table("C", 7)


def test_the_format_costs_no_read_of_its_own_where_a_row_is_read_first() -> None:
    """It comes with that; the later ones are read alone."""
    records = Records(oracle=b'{"low_watermark": 5, "at": 1}')
    states = store(records)
    assert states.recorded_low_watermark().low_watermark == 5
    assert states.recorded_low_watermark().low_watermark == 5
    assert records.reads == {"rows": 1, "row": 1}


class Together(Records):
    """Records past the gateway, which are checked and put many at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []
        #: What becomes of a call's rows before they are checked.
        self.meanwhile: Callable[[], object] = lambda: None

    def check_and_put_all(self, _: str, asked: Sequence[CheckedPut]) -> list[bool]:
        self.calls.append(len(asked))
        self.meanwhile()
        done = [self.held.get(row, {}).get(check[0]) == check[1] for row, check, _ in asked]
        for (row, _, put), holds in zip(asked, done, strict=True):
            if holds:
                self.put(row, dict([put]))
        return done


def overtake(records: Records, row: bytes) -> None:
    """As another run that takes the table's next epoch."""
    records.put(row, {b"s:epoch": str(Epoch.parse(records.held[row][b"s:epoch"]).next("other", 0)).encode()})


def fact(number: int, incarnation: int = 0) -> Fact:
    keys = KeyRange(b"%d" % number, b"%d" % (number + 1))
    return Fact(keys, Intervals.of([(0, 9)]), frozenset("f"), incarnation, "run", 5, 5)


def test_epochs_of_many_tables_are_taken_at_once_and_so_are_their_facts_recorded() -> None:
    """In a few calls whatever their number; each as by itself."""
    records = Together()
    tables = [f"t{number}" for number in range(600)]
    taken, _ = store(records).begin_all({table: [] for table in tables})
    assert [state.epoch.counter for state in taken.values()] == [1] * 600
    assert store(records).record_all([(taken[table], fact(1)) for table in tables]) == set()
    assert records.calls == [500, 100, 500, 100]
    assert all(state.facts == (fact(1),) for state in store(records).read_all(tables).values())
    assert store(records).read_all(tables) == {table: store(records).read(table) for table in tables}


def test_an_epoch_that_another_took_meanwhile_is_taken_after_it() -> None:
    """The others are not taken twice."""
    records = Together()

    def another() -> None:
        records.meanwhile = lambda: None
        for row in (b"table/b", b"table/c"):
            records.put(row, {b"s:epoch": str(Epoch.parse(None).next("other", 0)).encode()})

    records.meanwhile = another
    taken, overtaken = store(records).begin_all({"a": [], "b": [], "c": []})
    assert {table: state.epoch.counter for table, state in taken.items()} == {"a": 1, "b": 2, "c": 2}
    assert overtaken == {}


def test_of_many_tables_one_that_another_takes_over_at_once_keeps_nobody_from_the_others() -> None:
    """It is told apart, and is not the caller's; alone it is refused."""
    records = Together()
    regions = [Region("r", KeyRange(b"", b""), 5)]
    calls = 0

    def another() -> None:  # between the epochs and the incarnations
        nonlocal calls
        calls += 1
        if calls == 2:
            overtake(records, b"table/b")

    records.meanwhile = another
    taken, overtaken = store(records).begin_all({"a": regions, "b": regions})
    assert (list(taken), list(overtaken)) == (["a"], ["b"])
    assert store(records).read("a").incarnation == taken["a"].incarnation
    assert store(records).read("b").incarnation != overtaken["b"].incarnation


def test_of_many_tables_one_that_is_seen_to_be_overtaken_is_not_ones_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though there is nothing new to write of it."""
    records = Together()
    regions = [Region("r", KeyRange(b"", b""), 5)]
    states = store(records)
    states.begin_all({"a": regions, "b": regions})
    read_all, calls = states.read_all, 0

    def read(tables: Any) -> Any:  # first for the epochs, then for what stands under them
        nonlocal calls
        calls += 1
        if calls == 2:
            overtake(records, b"table/b")
        return read_all(tables)

    monkeypatch.setattr(states, "read_all", read)
    taken, overtaken = states.begin_all({"a": regions, "b": regions})
    assert (list(taken), list(overtaken)) == (["a"], ["b"])


def test_of_many_tables_those_that_were_overtaken_are_named_and_nothing_is_recorded_of_them() -> None:
    """Whatever becomes of the others."""
    records = Together()
    taken, _ = store(records).begin_all({"a": [], "b": []})
    store(records).begin_all({"b": [], "c": []})
    assert store(records).record_all([(taken["a"], fact(1)), (taken["b"], fact(1)), (taken["a"], fact(2))]) == {"b"}
    found = store(records).read_all(["a", "b"])
    assert (len(found["a"].facts), found["b"].facts) == (2, ())


def test_what_many_writes_show_afterwards_is_asked_of_few_rows_at_once() -> None:
    """Each is asked for the columns of all: tables with keys of their own would be asked for the square of them."""
    records = Together()
    tables = [f"t{number}" for number in range(700)]
    taken, _ = store(records).begin_all({table: [] for table in tables})
    asked, shown = [], records.rows
    records.rows = lambda wanted, columns=None: asked.append(len(wanted) * len(columns)) or shown(wanted)  # type: ignore[func-returns-value,method-assign]
    assert store(records).record_all([(state, fact(number)) for number, state in enumerate(taken.values())]) == set()
    assert sum(asked) <= len(tables) * 51


def test_one_of_many_records_that_does_not_show_is_named() -> None:
    """The clock of its region server has stepped back."""
    records = Together()
    taken, _ = store(records).begin_all({"a": [], "b": []})
    shown = records.rows
    records.rows = lambda wanted, _=None: [  # type: ignore[method-assign]
        (row, {b"s:epoch": cells[b"s:epoch"]} if row == b"table/b" else cells) for row, cells in shown(wanted)
    ]
    with pytest.raises(StoreError, match=r"row table/b of LOWTIDE_STATE and still shows"):
        store(records).record_all([(taken["a"], fact(1)), (taken["b"], fact(1))])


def test_what_comes_beneath_a_deletion_is_told() -> None:
    """A row was deleted by a server whose clock is ahead of the one that has it now: HBase takes what is put where
    nothing was, and does not show it.
    """
    records = Together()
    records.rows = lambda *_: []  # type: ignore[method-assign]
    with pytest.raises(StoreError, match=r"row table/a of LOWTIDE_STATE and still shows .* wait two minutes"):
        store(records).begin_all({"a": [], "b": []})


def test_of_two_resets_at_once_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number is the other's; and what it puts has the place of what it read, which it cannot come beneath."""
    records = Records(generation=b'{"generation": 4}')
    states = store(records)

    def other_first(_: Any, __: str, row: bytes, check: tuple[bytes, bytes], put: tuple[bytes, bytes]) -> bool:
        if row == b"generation":
            assert check == (b"s:value", b'{"generation": 4}')
            put = (b"s:value", b'{"generation": 5, "since": 9}')
        records.put(row, dict([put]))
        return row != b"generation"

    monkeypatch.setattr(StateStore, "server_time", lambda _: from_millis(7))
    monkeypatch.setattr(rows, "check_and_put", other_first)
    with pytest.raises(StoreError, match="somebody else resets the records"):
        states.reset()
    assert (states.generation(), states.numbered_anew()) == (5, 9)


def test_a_newer_format_is_a_finding_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a gateway that is to be started."""
    monkeypatch.setattr(reader, "low_watermark", lambda *_: 1)
    monkeypatch.setattr(reader, "tables_there", lambda _: {b"LOWTIDE_STATE"})
    monkeypatch.setattr(reader, "connect", lambda *_: _Open(Records(format=NEWER)))
    [finding] = assess(reader.read(Config()), Config()).findings
    assert finding.cause is Cause.NEWER
    assert "Lowtide 9.9.9" in finding.why
    assert "Upgrade" in finding.remedy
    assert "Upgrade" not in finding.why, "the remedy is told twice"


class _Open:
    def __init__(self, records: Records) -> None:
        self._records = records

    def __enter__(self) -> Records:
        return self._records

    def __exit__(self, *_: object) -> None:
        pass


def test_a_run_says_who_and_with_what() -> None:
    """One of before that was kept says nothing, and is shown all the same."""
    by = here("/etc/lowtide.yaml")
    assert set(by) == {"user", "host", "lowtide", "config", "principal"}
    run = json.loads(json.dumps(Summary("orphan_cleanup", "r1", execute=True, by=by).to_json()))
    assert ran_by(run) == f"{by['user']}@{by['host']}, Lowtide {__version__}, /etc/lowtide.yaml"
    run["by"]["principal"] = by["user"]
    assert ran_by(run) == f"{by['user']}@{by['host']}, Lowtide {__version__}, /etc/lowtide.yaml"
    del run["by"]["principal"]  # of before that was kept
    assert ran_by(run).startswith(f"{by['user']}@{by['host']}, Lowtide ")
    del run["by"]
    assert ran_by(run) == ""


def test_a_run_says_as_whom_and_who_approved_it() -> None:
    """Where HBase knows the user by another name; and whoever answered in Airflow."""
    by = {**here("l.yaml", "lowtide@EXAMPLE.ORG"), "user": "airflow", "host": "worker-1"}
    run = Summary("history_gc", "r1", execute=True, by=by, context={"approved_by": "Ann"}).to_json()
    assert ran_by(run) == (f"airflow@worker-1 as lowtide@EXAMPLE.ORG, approved by Ann, Lowtide {__version__}, l.yaml")


def test_what_was_done_by_hand_is_told_among_the_runs() -> None:
    """In the words of its note."""
    run = by_hand("forget", "forgot 3 key ranges of orders", "lowtide.yaml").to_json()
    assert (run["state"], done_text(run)) == ("done", "forgot 3 key ranges of orders")


def test_what_an_oracle_skipped_is_remembered_through_every_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside what it skipped before: cells of either stay where they are."""
    records = Records()
    _answering(records, monkeypatch)
    assert store(records).skipped() == []
    for skipped in ((1001, 5000), None, (6000, 9000)):
        store(records).reset(same_oracle=True, skipped=skipped)
    assert store(records).skipped() == [(1001, 5000), (6000, 9000)]
    assert store(records).generation() == 3


def test_a_reset_is_remembered_where_the_records_were_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the journal holds of before proves nothing then, and how far it was pruned says nothing of any table; with
    the same oracle there is nothing to remember.
    """
    records = Records()
    _answering(records, monkeypatch)
    states = store(records)
    made: list[bool] = []
    monkeypatch.setattr(StateStore, "exists", lambda _: bool(made))
    monkeypatch.setattr(StateStore, "create", lambda _: made.append(True))
    monkeypatch.setattr(states, "server_time", lambda: from_millis(7))
    states.reset(same_oracle=True)
    assert (made, records.held) == ([], {})
    states.reset(pruned=40)
    assert (states.numbered_anew(), states.generation(), states.pruned_before()) == (7, 1, 40)
    states.remember_journal(pruned=40)
    assert states.greatest_bound(states.journal()) == 0


def test_after_a_reset_of_the_same_oracle_another_ones_tables_are_still_doubted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The low watermark that the inventory was read at stays: a table that comes in is told by it from those of
    before.
    """
    records = Records()
    _answering(records, monkeypatch)
    states = store(records)
    monkeypatch.setattr(states, "server_time", lambda: from_millis(7))
    states.put_inventory([], 900, 5)
    states.reset(same_oracle=True)
    assert states.listing().low_watermark == 900
    states.reset()
    assert states.listing().low_watermark == 0


def test_for_which_times_a_table_was_cleaned_outlives_what_is_forgotten_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often; what was cleaned of an earlier life of it is among that. Without it, what comes back then would be
    judged as if nothing had ever been marked.
    """
    records = Records()
    _answering(records, monkeypatch)
    taken = store(records).begin("orders", [])
    earlier = replace(fact(1), before=Intervals.of([(20, 30)]))
    store(records).record_all([(taken, earlier), (taken, replace(fact(2), intervals=Intervals.of([(50, 60)])))])
    for ranges in (2, 0):
        assert store(records).void("orders") == ranges
        found = store(records).read("orders")
        assert (found.facts, list(found.forgotten)) == ((), [(0, 9), (20, 30), (50, 60)])
    store(records).record(store(records).begin("orders", []), replace(fact(1), intervals=Intervals.of([(70, 80)])))
    store(records).void("orders")
    assert list(store(records).read("orders").forgotten) == [(0, 9), (20, 30), (50, 60), (70, 80)]


def test_a_bound_of_before_there_were_intervals_is_read_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout has recorded up to where a table was cleaned before it came, as a number."""
    records = Records()
    _answering(records, monkeypatch)
    states = store(records)
    states.record(states.begin("orders", []), fact(1))
    (column,) = [name for name in records.held[b"table/orders"] if name.startswith(b"s:fact/")]
    old = json.loads(records.held[b"table/orders"][column])
    for said, expected in ((70, [(0, 71)]), (0, []), ([[5, 9]], [(5, 9)])):
        records.put(b"table/orders", {column: json.dumps(old | {"before": said}).encode()})
        assert list(states.read("orders").facts[0].before) == expected


def test_what_an_older_record_does_not_say_was_cleaned_before_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of before that was kept may have written over what told of the table's earlier life: cells of up to the
    bound may be from then, as in a table of which nothing is recorded.
    """
    records = Records()
    _answering(records, monkeypatch)
    states = store(records)
    taken = states.begin("orders", [])
    states.record(taken, replace(fact(1), incarnation=taken.incarnation.number))
    known = states.read("orders")
    assert cleaned_before(known.facts, known.incarnation, lambda: 70, known.forgotten) == Intervals()
    (column,) = [name for name in records.held[b"table/orders"] if name.startswith(b"s:fact/")]
    told = json.loads(records.held[b"table/orders"][column])
    del told["before"]
    records.put(b"table/orders", {column: json.dumps(told).encode()})
    known = states.read("orders")
    assert cleaned_before(known.facts, known.incarnation, lambda: 70, known.forgotten) == Intervals.up_to(70)


def test_after_a_reset_of_the_same_oracle_it_is_known_what_was_cleaned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And after one because the oracle was made anew it is not, for its numbers may be others' now."""
    records = Records()
    _answering(records, monkeypatch)
    states = store(records)
    monkeypatch.setattr(states, "server_time", lambda: from_millis(7))
    monkeypatch.setattr(StateStore, "put_inventory", lambda *_, **__: None)

    def known() -> tuple[list[tuple[int, int]], int]:
        return list(states.read("orders").forgotten), states.greatest_bound(states.journal())

    states.record(states.begin("orders", []), fact(1))
    states.remember_journal(pruned=40)
    states.reset(same_oracle=True)
    assert known() == ([(0, 9)], 40), "of the same oracle"
    states.record(states.begin("orders", []), fact(1))
    states.reset()
    assert known() == ([], 0), "another oracle's transactions"
    states.reset(same_oracle=True)
    assert known() == ([], 0), "it is not known again by another reset"
    states.remember_journal(pruned=50)
    assert known() == ([], 50)


def test_the_greatest_bound_is_known_however_long_a_table_holds_it() -> None:
    """What is older than the records are kept for goes, but for the newest bound and the greatest; and the journal
    tells of what was pruned without a collection.
    """
    records = Records()
    assert store(records).greatest_bound(Journal()) == 0
    days = [datetime(2026, 1, day, tzinfo=UTC) for day in range(1, 7)]
    for day, value in zip(days, (10, 90, 90, 30, 0, 0), strict=True):
        store(records).add_bound(Bound(day, value))
    store(records).sweep(before=days[0])
    assert len(store(records).bounds()) == 6
    store(records).sweep(before=days[5] + timedelta(days=90))
    assert [(bound.at, bound.value) for bound in store(records).bounds()] == [(days[5], 0), (days[2], 90)]
    assert store(records).greatest_bound(Journal(pruned=80)) == 90
    assert store(records).greatest_bound(Journal(pruned=95)) == 95


def test_the_inventory_is_kept_with_its_low_watermark() -> None:
    """That of format 1 had none, nor its time, nor its tables' settings; after a reset of the records the numbers are
    another oracle's.
    """
    changed = Change(5, "DURABILITY SYNC_WAL -> ASYNC_WAL")
    entry = Entry("t", Kind.TRANSACTIONAL, True, frozenset("f"), doubt="d", settings="s", change=changed, came_after=7)
    records = Records()
    store(records).put_inventory([entry], 1000, at=9)
    assert store(records).listing() == Listing((entry,), 1000, at=9)
    assert store(records).inventory() == [entry]
    old = Records(
        inventory=b'[{"table": "t", "kind": "plain", "enabled": true, "families": [], "unmarked": [], "mark": "", '
        b'"bytes": 1}]'
    )
    assert store(old).listing() == Listing((Entry("t", Kind.PLAIN, True, bytes=1),), 0)


@pytest.mark.parametrize("table", [None, "orders"])
def test_a_pause_is_judged_or_breaks_what_is_claimed(monkeypatch: pytest.MonkeyPatch, table: str | None) -> None:
    """One that comes while the pauses are read is among those that a write is judged by, or what executors hold against
    the records is no longer there: never neither.
    """
    made: list[Pause] = []

    class Read(Records):
        def rows(self, *asked: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
            found = [(row, dict(cells)) for row, cells in super().rows(*asked)]
            self._then()
            return found

        def row(self, *asked: Any) -> dict[bytes, bytes]:
            found = dict(super().row(*asked))
            self._then()
            return found

        def _then(self) -> None:
            if not made:
                now = from_millis(0)
                made.append(Pause("p", table, "ann", "a move", now, now + timedelta(hours=1)))
                store(self).add_pause(made[0], now)

    records = Read(pauses=b"[]")
    _answering(records, monkeypatch)
    judged, claims = store(records).pauses_of("orders")
    now = records.held[b"pauses"]
    stands = [now.get(f"{claim.family}:{claim.qualifier}".encode()) == claim.value for claim in claims]
    assert made
    assert judged == made or not all(stands)


def test_what_was_confirmed_is_asked_again_of_another_table_of_that_name() -> None:
    """It goes when the table is listed without the question, or is gone; it stays for a collection that had listed the
    table before.
    """
    records = Records()
    store(records).confirm("t")
    assert store(records).listing().confirmed == {"t"}
    asked = Entry("t", Kind.TRANSACTIONAL, True, frozenset("f"), came_after=7)
    store(records).sweep_confirmed([asked])
    assert store(records).listing().confirmed == {"t"}
    store(records).sweep_confirmed([replace(asked, came_after=0)])
    assert store(records).listing().confirmed == frozenset()
