"""Holds over their whole life, claims to a mark, and in which order a restore puts cells back: on state kept in
memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from lowtide_spark.cleaning import watermarks
from lowtide_spark.frames.store import Life, Written
from lowtide_spark.history import mark, removal
from lowtide_spark.history.compaction import compact
from lowtide_spark.history.work import HistoryWork
from lowtide_spark.undo import as_committed, live, putting_back, restore
from lowtide_spark.undo.protection import Protection, protected

from lowtide.config import Config
from lowtide.errors import FencedError, HistoryError, StoreError, TableError, UsageError
from lowtide.history import holding
from lowtide.history.holding import hold
from lowtide.history.mark import OF_RESTORE, By, Hold, Limit
from lowtide.run.summary import TableReport
from lowtide.store import history as history_rows
from lowtide.store import rows
from lowtide.store.records import Claim, History, Intent
from lowtide.store.state import StateStore
from lowtide.tables.inventory import OMID_COMPACTOR, Descriptor, Entry, Kind
from lowtide.values.clock import millis

NOW = datetime(2026, 1, 31, tzinfo=UTC)
Rows = dict[bytes, dict[bytes, bytes]]


class Connection:
    """As much of a happybase connection, and of its one table, as the state needs."""

    def __init__(self) -> None:
        self.held: Rows = {}

    def tables(self) -> list[bytes]:
        return [b"LOWTIDE_STATE", b"orders"]

    def table(self, _: str) -> Connection:
        return self

    def row(self, row: bytes, columns: list[bytes] | None = None) -> dict[bytes, bytes]:
        cells = self.held.get(row, {})
        return {name: cells[name] for name in (columns or cells) if name in cells}

    def rows(self, wanted: list[bytes], _: Any = None) -> list[tuple[bytes, dict[bytes, bytes]]]:
        return [(row, self.row(row)) for row in wanted if row in self.held]

    def put(self, row: bytes, cells: dict[bytes, bytes]) -> None:
        self.held.setdefault(row, {}).update(cells)

    def delete(self, row: bytes) -> None:
        self.held.pop(row, None)

    def scan(self, row_prefix: bytes, limit: int | None = None) -> list[tuple[bytes, dict[bytes, bytes]]]:
        return [(row, dict(self.held[row])) for row in sorted(self.held) if row.startswith(row_prefix)][:limit]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> StateStore:
    """The state of a store without anything."""
    connection = Connection()

    def check_and_put(_: Any, __: str, row: bytes, check: tuple[bytes, bytes | None], put: tuple[bytes, bytes]) -> bool:
        if connection.held.get(row, {}).get(check[0]) != check[1]:
            return False
        connection.put(row, dict([put]))
        return True

    monkeypatch.setattr(rows, "check_and_put", check_and_put)
    monkeypatch.setattr(holding, "connect", lambda _: nullcontext(connection))
    monkeypatch.setattr(holding, "low_watermark", lambda *_: 5000)
    monkeypatch.setattr(StateStore, "server_time", lambda _: holding._now())
    return StateStore(connection, "LOWTIDE_STATE")


def _apply(store: StateStore, mark: int) -> None:
    store.apply_mark(store.intend("orders", mark, "gc"), {})


# -- holds


def test_a_block_whose_history_went_meanwhile_fails_at_its_end(store: StateStore) -> None:
    """A reader that slept through its hold's expiry is told, although its record is still there to be released; others
    are not.
    """
    with hold(Config(), "orders", 1000, reason="kept"):
        _apply(store, 999)
    slept = hold(Config(), "orders", 1000, reason="slept")
    with pytest.raises(HistoryError, match="lies 49 before its ancient history mark 1049"), slept:
        _apply(store, 1049)
    assert store.holds() == []


@pytest.mark.parametrize("off", [timedelta(hours=1), timedelta(hours=-1), timedelta(days=1), timedelta(days=-1)])
def test_a_hold_lasts_by_hbases_clock(store: StateStore, monkeypatch: pytest.MonkeyPatch, off: timedelta) -> None:
    """By which history GC looks at it: one of a reader whose machine is a day behind would have expired before it
    began.
    """
    true = holding._now()
    monkeypatch.setattr(StateStore, "server_time", lambda _: true)
    monkeypatch.setattr(holding, "_now", lambda: true + off)
    lasting = timedelta(minutes=10)
    held = holding.take(Config(), "orders", 1000, owner="test", reason="a wrong clock", lasting=lasting)
    assert (held.taken, held.expires) == (true, true + lasting)
    assert holding.renew(Config(), held, 2 * lasting).expires == true + 2 * lasting


def test_no_hold_is_promised_where_omids_compactor_removes_history(store: StateStore) -> None:
    """It keeps to no hold, so none is given; nothing is left behind."""
    store.put_inventory([Entry("orders", Kind.TRANSACTIONAL, True, frozenset("f"), compactor=True)])
    with pytest.raises(HistoryError, match="Omid's own compactor is on it"), hold(Config(), "orders", 1000, reason="x"):
        pass
    assert store.holds() == []


def test_a_table_that_may_be_a_clone_is_listed_once_its_mark_holds(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collection that ends before it has published what it listed leaves it unknown, and the next raises its mark."""
    store.raise_mark("orders", 1000, "gc")
    clone = Entry("clone", Kind.TRANSACTIONAL, True, frozenset("f"), mark="configuration")
    summary = SimpleNamespace(run="r", low_watermark=2000)
    run: Any = SimpleNamespace(state=lambda: store, summary=summary, request=SimpleNamespace(run="r", now=NOW))

    def ends(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(store, "put_inventory", ends)
        with suppress(KeyboardInterrupt):
            watermarks._list(run, [clone])
    assert store.history("clone").applied == 1000, "whoever sees it listed sees its mark"
    assert store.inventory() == []
    watermarks._list(run, [clone])
    assert [entry.table for entry in store.inventory()] == ["clone"]


def test_an_error_of_the_gateway_does_not_end_the_renewals(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thrift's own errors are no reason to let a hold expire: it is renewed when the gateway is back, and nothing is
    raised then.
    """
    monkeypatch.setattr(holding, "RENEWED_FOR", timedelta(seconds=0.9))
    change, tried, renewed = StateStore.change_hold, [], threading.Event()

    def broken_at_first(self: StateStore, *arguments: Any) -> bool:
        tried.append(1)
        if len(tried) == 1:
            raise BrokenPipeError("gone")
        renewed.set()
        return change(self, *arguments)

    monkeypatch.setattr(StateStore, "change_hold", broken_at_first)
    with hold(Config(), "orders", 1000, reason="flaky") as held:
        assert renewed.wait(10)
        while store.holds() == [held]:
            pass
    assert store.holds() == []


def test_a_renewal_that_failed_in_passing_is_no_loss(store: StateStore) -> None:
    """Where the mark has not passed the hold, nothing was lost, whatever became of the renewals."""
    with hold(Config(), "orders", 1000, reason="flaky"):
        renewals = next(t for t in threading.enumerate() if t.name.startswith("hold "))
        renewals.failure = holding.GatewayError("not now")  # type: ignore[attr-defined]


@pytest.mark.parametrize("off", [timedelta(), timedelta(hours=2), timedelta(hours=-2)])
@pytest.mark.parametrize("clock", ["monotonic", "time"])
@pytest.mark.parametrize(("after", "raises"), [(holding.RENEWED_FOR, True), (timedelta(minutes=9), False)])
def test_a_hold_that_may_have_expired_unseen_fails_the_block(
    store: StateStore, monkeypatch: pytest.MonkeyPatch, off: timedelta, clock: str, after: timedelta, raises: bool
) -> None:
    """Where the gateway is away at the end: by the time that has passed since the last renewal, whatever the reader's
    clock shows. What failed before and has not expired is no loss, and no error.
    """
    true = holding._now()
    monkeypatch.setattr(StateStore, "server_time", lambda _: true)
    monkeypatch.setattr(holding, "_now", lambda: true + off)
    clocks = {"monotonic": 0.0, "time": (true + off).timestamp()}
    monkeypatch.setattr(holding, "time", SimpleNamespace(**{name: lambda n=name: clocks[n] for name in clocks}))

    def away(_: Any) -> Any:
        raise holding.GatewayError("gone")

    def sleep() -> None:
        with hold(Config(), "orders", 1000, reason="slept"):
            renewals = next(t for t in threading.enumerate() if t.name.startswith("hold "))
            renewals.failure = holding.GatewayError("not now")  # type: ignore[attr-defined]
            clocks[clock] += after.total_seconds()
            monkeypatch.setattr(holding, "connect", away)

    with pytest.raises(holding.GatewayError, match="gone") if raises else nullcontext():
        sleep()


def test_a_hold_that_was_lost_fails_the_block_whatever_comes_after(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the gateway is away at its end."""
    lost = hold(Config(), "orders", 1000, reason="lost")
    lost.__enter__()
    renewals = next(t for t in threading.enumerate() if t.name.startswith("hold "))
    renewals.failure = HistoryError("it was released")  # type: ignore[attr-defined]
    monkeypatch.setattr(holding, "connect", lambda _: nullcontext())  # whatever is read through it breaks off
    with pytest.raises(HistoryError, match="released"):
        lost.__exit__(None, None, None)


def test_a_hold_that_is_renewed_while_it_is_released_is_released(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there, so nobody is told that it is not; it is read again."""
    held = holding.take(Config(), "orders", 1000, owner="test", reason="kept", lasting=timedelta(minutes=1))
    drop, renewed = StateStore.drop_hold, []

    def renewed_first(self: StateStore, found: Hold) -> bool:
        if not renewed:
            renewed.append(holding.renew(Config(), found, timedelta(minutes=2)))
        return drop(self, found)

    monkeypatch.setattr(StateStore, "drop_hold", renewed_first)
    assert holding.release(Config(), "orders", held.id) == renewed[0] != held
    assert store.holds() == []
    with pytest.raises(HistoryError, match=f"there is no hold {held.id}"):
        holding.release(Config(), "orders", held.id)


def test_milliseconds_are_no_read_point_of_a_world_clock(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hold at a number that such an oracle cannot have given holds nothing that anybody means; none is left
    behind.
    """
    monkeypatch.setattr(holding, "low_watermark", lambda *_: 1_700_000_000 * 10**9)
    milliseconds = 1_700_000_000_000
    with pytest.raises(UsageError, match="six more digits"), hold(Config(), "orders", milliseconds, reason="x"):
        pass
    assert store.holds() == []


# -- claims


def test_a_write_whose_answer_was_lost_is_known_by_what_is_there(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HBase's client repeats a check whose answer it lost, and is refused by its own first try: the claim, and the
    hold, are ours.
    """
    once = rows.check_and_put
    monkeypatch.setattr(rows, "check_and_put", lambda *asked: once(*asked) and once(*asked))
    claimed = store.intend("orders", 1049, "gc", store.history("orders"))
    assert store.history("orders").claim == claimed.token
    assert store.lower_intent(claimed, 999, "gc").mark == 999
    with hold(Config(), "orders", 1000, reason="kept") as held:
        assert store.change_hold(held, replace(held, expires=held.expires + timedelta(minutes=1)))


def test_a_hold_with_a_strange_reason_is_told_plainly_and_can_be_let_go_of(store: StateStore) -> None:
    """However it came into the records; what is there is what is compared with."""
    with hold(Config(), "orders", 1000, reason="kept") as held:
        strange = {**held.to_json(), "id": "strange", "reason": "\x1b[2J\n" * 100}
        store._table.put(b"hold/orders/strange", {rows.VALUE: rows.dump(strange)})
        [found] = [each for each in store.holds() if each.id == "strange"]
        assert found.reason.isprintable()
        longer = replace(found, expires=found.expires + timedelta(minutes=1))
        assert store.change_hold(found, longer)
        assert not store.drop_hold(found), "another than it was"
        assert store.drop_hold(longer)


def test_a_mark_that_does_not_show_is_not_applied(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the region server's clock has stepped back the new mark lies below the old one: the run is stopped before
    it removes anything.
    """
    _apply(store, 1049)
    claimed = store.intend("orders", 2049, "gc")
    monkeypatch.setattr(rows, "check_and_put", lambda *_: True)
    with pytest.raises(StoreError, match=r"row history/orders of LOWTIDE_STATE .* clock .* has stepped back"):
        store.apply_mark(claimed, {})
    assert store.history("orders").applied == 1049


def test_a_run_says_that_it_removes_and_that_it_ended(store: StateStore) -> None:
    """In between it checks its claim before each step; whoever claims the mark stops it, before it begins and after."""
    claimed = store.intend("orders", 1049, "gc")
    store.apply_mark(claimed, {})
    removing = store.begin_removal(claimed, "gc")
    store.check_claim(removing)
    assert list(store.history("orders").intent["removing"]) == ["gc"]
    store.end_removal(removing, "gc")
    assert "removing" not in store.history("orders").intent
    for stopped in (store.check_claim, lambda claim: store.begin_removal(claim, "gc")):
        with pytest.raises(FencedError):
            stopped(removing)


def test_a_mark_that_is_raised_never_goes_back(store: StateStore) -> None:
    """What another's hand removed is gone; a lower mark changes nothing."""
    store.raise_mark("orders", 1049, "r")
    store.raise_mark("orders", 999, "r")
    assert store.history("orders").applied == 1049
    behind = store.intend("orders", 1999, "gc")
    store.raise_mark("orders", 2049, "r")
    assert (store.history("orders").applied, store.history("orders").about["run"]) == (2049, "r")
    with pytest.raises(FencedError):
        store.apply_mark(behind, {})
    assert store.history("orders").applied == 2049


def _announced(store: StateStore, monkeypatch: pytest.MonkeyPatch, ago: timedelta) -> Intent:
    """A mark that a run announced so long ago and has not applied."""
    then = int((datetime.now(UTC) - ago).timestamp() * 1000)
    with monkeypatch.context() as patched:
        patched.setattr(history_rows, "now_millis", lambda: then)
        return store.intend("orders", 2049, "dead")


def test_a_hold_takes_the_claim_of_a_run_that_died_before_it_applied_its_mark(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of such a run is under way. Should it live all the same, it cannot apply its mark any more."""
    dead = _announced(store, monkeypatch, history_rows.ANNOUNCED_FOR + timedelta(seconds=1))
    with hold(Config(), "orders", 1000, reason="kept"):
        assert store.history("orders").intended == 0
        with pytest.raises(FencedError, match="or a hold has"):
            store.apply_mark(dead, {})
    assert store.history("orders").applied == 0


def test_a_young_announcement_refuses_the_hold_and_says_until_when(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its run is about to apply it."""
    live = _announced(store, monkeypatch, history_rows.ANNOUNCED_FOR - timedelta(minutes=1))
    with (
        pytest.raises(HistoryError, match=r"comes too late.*if it was killed: from"),
        hold(Config(), "orders", 1000, reason="x"),
    ):
        pass
    assert store.apply_mark(live, {}) == 2049


@pytest.mark.parametrize("off", [timedelta(hours=2), timedelta(hours=-2)])
def test_a_claim_is_old_by_hbases_clock(store: StateStore, monkeypatch: pytest.MonkeyPatch, off: timedelta) -> None:
    """Not by the reader's: a fast one would take a live run's claim, a slow one would wait for a dead run's."""
    true = holding._now()
    monkeypatch.setattr(StateStore, "server_time", lambda _: true)
    monkeypatch.setattr(holding, "_now", lambda: true + off)
    about = {"owner": "test", "reason": "a wrong clock", "lasting": timedelta(minutes=10)}
    live = _announced(store, monkeypatch, history_rows.ANNOUNCED_FOR - timedelta(minutes=1))
    with suppress(HistoryError):
        holding.take(Config(), "orders", 1000, **about)
    assert store.history("orders").claim == live.token
    _announced(store, monkeypatch, history_rows.ANNOUNCED_FOR + timedelta(minutes=1))
    held = holding.take(Config(), "orders", 1000, **about)
    assert store.history("orders").intended == 0
    _announced(store, monkeypatch, history_rows.ANNOUNCED_FOR + timedelta(minutes=1))
    holding.renew(Config(), held, timedelta(minutes=10))
    assert store.history("orders").intended == 0


def test_a_mark_that_is_applied_meanwhile_refuses_the_hold_that_took_the_claim(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run applies its mark after the hold has looked: the mark stands, the hold is refused, and the run removes
    nothing.
    """
    slow = _announced(store, monkeypatch, history_rows.ANNOUNCED_FOR + timedelta(seconds=1))
    overtake = StateStore.overtake

    def applied_first(self: StateStore, *arguments: Any) -> bool:
        store.apply_mark(slow, {})
        return overtake(self, *arguments)

    monkeypatch.setattr(StateStore, "overtake", applied_first)
    with pytest.raises(HistoryError, match="mark 2049"), hold(Config(), "orders", 1000, reason="x"):
        pass
    with pytest.raises(FencedError):
        store.begin_removal(slow, "dead")
    assert store.history("orders").applied == 2049


def test_what_a_hold_overtakes_goes_on_telling_who_removes(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run's removal may be under way, whatever mark a dead one has announced."""
    first = store.intend("orders", 999, "first")
    store.apply_mark(first, {})
    store.begin_removal(first, "first")
    _announced(store, monkeypatch, history_rows.ANNOUNCED_FOR + timedelta(seconds=1))
    with hold(Config(), "orders", 1000, reason="kept"):
        assert list(store.history("orders").intent["removing"]) == ["first"]


def test_what_a_hold_overtakes_is_dated_by_hbases_clock(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a reader's machine that is days ahead a removal under way would look like a dead one, and be forgotten."""
    first = store.intend("orders", 999, "first")
    store.apply_mark(first, {})
    store.begin_removal(first, "first")
    store.intend("orders", 2049, "dead")
    server = datetime.now(UTC) + history_rows.ANNOUNCED_FOR
    monkeypatch.setattr(history_rows, "now_millis", lambda: millis(server + timedelta(days=2)))
    assert store.overtake(store.history("orders"), server, "hold h")
    claim = store.history("orders").intent
    assert (claim["at"], list(claim.get("removing", ()))) == (millis(server), ["first"])


@pytest.mark.parametrize("broken", [False, True])
def test_a_removal_ends_only_when_every_write_has_returned(store: StateStore, broken: bool) -> None:
    """Executors that the driver lost may go on with a write that broke off: restores wait, and a new claim stops those
    executors.
    """
    intent = store.intend("orders", 1049, "gc")
    store.apply_mark(intent, {})
    spark: Any = SimpleNamespace(unfinished=set())
    request = SimpleNamespace(run="gc")
    run: Any = SimpleNamespace(state=lambda: store, store=spark, request=request)
    with suppress(RuntimeError), removal._removal(run, intent) as claim:
        if broken:
            spark.unfinished.add("orders")
            raise RuntimeError("the stage was cancelled")
    known = store.history("orders")
    assert ("removing" in known.intent) == broken
    assert known.claim != claim.token


def test_a_claim_names_the_cell_that_whoever_takes_over_changes(store: StateStore) -> None:
    """Executors read it by itself: row, family, qualifier and the value of now."""
    intent = store.intend("orders", 1049, "gc")
    assert store.mark_claim(intent) == Claim("LOWTIDE_STATE", b"history/orders", "s", "intended", intent.token)
    taken = store.begin("orders", [])
    claim = store.epoch_claim(taken)
    assert (claim.row, claim.qualifier) == (b"table/orders", "epoch")
    assert store.read("orders").epoch == taken.epoch
    assert store._table.row(claim.row)[b"s:epoch"] == claim.value
    store.begin("orders", [])
    assert store._table.row(claim.row)[b"s:epoch"] != claim.value


def test_a_run_that_is_overtaken_may_still_be_removing(store: StateStore) -> None:
    """Its last write may be under way, whoever has claimed the mark since: that is told until it ends, or for a day."""
    first = store.intend("orders", 1049, "first")
    store.apply_mark(first, {})
    store.begin_removal(first, "first")
    second = store.begin_removal(store.intend("orders", 2049, "second", store.history("orders")), "second")
    assert set(store.history("orders").intent["removing"]) == {"first", "second"}
    store.end_removal(second, "second")
    assert set(store.history("orders").intent["removing"]) == {"first"}
    again = store.intend("orders", 2049, "first")
    assert "removing" not in store.history("orders").intent  # it says so itself, when it begins again
    assert again.mark == 2049


def test_a_claim_is_refused_where_another_came_after_what_was_read(store: StateStore) -> None:
    """What a run read is worth nothing once another run, or a restore, has claimed the mark."""
    seen = store.history("orders")
    store.intend("orders", 0, "a restore")
    with pytest.raises(FencedError, match="orders"):
        store.intend("orders", 1049, "gc", seen)
    assert store.history("orders").applied == 0
    assert store.intend("orders", 1049, "gc", store.history("orders")).mark == 1049


def test_a_mark_that_is_applied_already_needs_the_claim_all_the_same(store: StateStore) -> None:
    """A run that moves nothing is about to delete too: overtaken, it is stopped."""
    _apply(store, 2049)
    behind = store.intend("orders", 1049, "gc")
    assert store.apply_mark(behind, {}) == 2049
    store.intend("orders", 2049, "a restore")
    with pytest.raises(FencedError):
        store.apply_mark(behind, {})
    assert store.history("orders").applied == 2049


# -- what a run says and leaves alone


def _work(execute: bool = True, compactor: bool = False) -> HistoryWork:
    entry = Entry("orders", Kind.TRANSACTIONAL, True, frozenset("f"), compactor=compactor)
    limits = [Limit(1049, "a hold", "release it", By.HOLD)]
    return HistoryWork(TableReport("orders", execute=execute), entry, [], limits, 1049, History("orders"))


def test_a_mark_is_told_as_applied_only_when_it_is() -> None:
    """A run that is going to act has not applied anything yet: it may stop before."""
    work = _work()
    mark._report_mark(SimpleNamespace(summary=SimpleNamespace(blockers=[])), work, 99)  # type: ignore[arg-type]
    assert work.report.mark is not None
    assert (work.report.mark["mark"], work.report.mark["applied"]) == (1049, 99)


def test_no_compaction_is_asked_of_omids_compactor() -> None:
    """It would lose rows whose family was deleted and written again; the report says why nothing is compacted."""
    work = _work(compactor=True)
    compact(SimpleNamespace(), work)  # type: ignore[arg-type]
    assert "Omid's compactor is on the table" in work.report.notes[0]


def test_a_table_that_was_given_up_is_not_compacted() -> None:
    """A run over its budget removed nothing, so that nothing of what it planned could come back."""
    work = _work()
    work.going["region", "f"] = 10
    work.give_up("over budget")
    compact(SimpleNamespace(), work)  # type: ignore[arg-type]
    assert not work.going
    assert work.report.notes == []


def test_a_region_where_data_came_beside_a_lone_shadow_cell_gets_no_more() -> None:
    """The family tombstone of the next step may hide that data: it stays, and the run says so."""
    work = _work()
    removal._book(
        work,
        [Written("east", "delete_if_absent", 3, 0, 0, 9, None), Written("west", "delete_if_absent", 1, 1, 0, 3, None)],
    )
    assert list(work.stopped) == ["west"]
    assert "data came beside 1 lone shadow cells" in work.report.problems[0]


def test_a_mutation_that_nobody_answered_for_makes_its_region_count_as_not_done() -> None:
    """What was planned of a region and what the writer told of it must be the same number."""
    work = _work()
    work.by_region = [
        {"region": "east", "markers": 3},
        {"region": "west", "markers": 3},
        {"region": "stopped", "markers": 9},
    ]
    work.stopped["stopped"] = "before"
    removal._reckon(work, {"east": 3, "west": 2})
    assert list(work.stopped) == ["stopped", "west"]
    assert work.report.problems == ["region west: 3 mutations were planned and 2 answered for; run again"]


# -- restore


#: HBase, asked for the life of a table.
TABLES: Any = SimpleNamespace(life=lambda table: Life(table, 70))


class Cells(list[str]):
    """Cells by name, for want of a DataFrame."""

    def where(self, chosen: Callable[[str], bool]) -> Cells:
        return Cells(filter(chosen, self))

    def isEmpty(self) -> bool:  # noqa: N802 (Spark's name)
        return not self

    def count(self) -> int:
        return len(self)


@pytest.fixture
def put_back(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[str], TableReport, bool]]:
    """What a restore of two family tombstones, a tombstone and a put sends, where some fail and some lie behind delete
    markers.
    """

    def run(
        failing: str = "", behind: str = "", overtaken_after: str = "", sent: list[str] | None = None
    ) -> tuple[list[str], TableReport, bool]:
        sent = [] if sent is None else sent

        def renew(_: Any) -> None:
            if overtaken_after in sent:
                raise FencedError("another run has taken over")

        def write(cells: Cells, _: str, *, holding: Any) -> list[Any]:
            sent.extend(cells)
            failed = sum(cell == failing for cell in cells)
            return [SimpleNamespace(bytes=0, failed=failed, refused=0, failure="busy", done=len(cells) - failed)]

        steps = tuple(lambda cell, n=n: cell == n for n in ("highest", "family", "tombstone", "put"))
        monkeypatch.setattr(putting_back, "_steps", lambda: steps)
        monkeypatch.setattr(putting_back, "_mutations", lambda cells: cells)
        monkeypatch.setattr(putting_back, "_hiding", lambda cells: cells.where(lambda cell: cell != "put"))
        monkeypatch.setattr(live, "_read", lambda *_: Cells(cell for cell in sent if cell != behind))

        def missing(cells: Cells, there: Cells) -> tuple[Cells, int]:
            found = cells.where(lambda cell: cell not in there)
            return found, len(found)

        monkeypatch.setattr(live, "_missing", missing)
        report = TableReport("orders")
        state = SimpleNamespace(mark_claim=lambda _: ())
        fake: Any = SimpleNamespace(store=SimpleNamespace(write=write, check_life=lambda *_: None), state=lambda: state)
        cells: Any = Cells(["put", "tombstone", "family", "highest"])
        protection: Any = SimpleNamespace(renew=renew, claim=None, life=None)
        return sent, report, putting_back.put_back(fake, report, [], cells, protection, "still hidden")

    return run


def test_what_hides_comes_back_before_what_it_hides(put_back: Callable[..., Any]) -> None:
    """The highest family tombstone, the others, tombstones, then the rest."""
    sent, report, whole = put_back()
    assert (sent, whole, report.problems) == (["highest", "family", "tombstone", "put"], True, [])


@pytest.mark.parametrize("tombstone", ["highest", "family", "tombstone"])
def test_nothing_is_shown_whose_tombstone_failed(put_back: Callable[..., Any], tombstone: str) -> None:
    """A tombstone that failed ends the restore before what it hides is put."""
    sent, report, whole = put_back(failing=tombstone)
    assert ("put" in sent, whole) == (False, False)
    assert "failed would hide is not put back" in report.problems[-1]


@pytest.mark.parametrize("tombstone", ["highest", "family", "tombstone"])
def test_nothing_is_shown_whose_tombstone_is_not_seen(put_back: Callable[..., Any], tombstone: str) -> None:
    """So does one that was acknowledged and lies behind a delete marker."""
    sent, report, whole = put_back(behind=tombstone)
    assert ("put" in sent, whole) == (False, False)
    assert report.problems[-1] == "what 1 tombstones hide is not put back: these are put but still hidden"


def test_a_restore_looks_before_each_step_whether_the_table_is_its_own(put_back: Callable[..., Any]) -> None:
    """Its hold and its claim are renewed between what hides and what is hidden; where they are gone nothing more is
    put.
    """
    sent: list[str] = []
    with pytest.raises(FencedError):
        put_back(overtaken_after="family", sent=sent)
    assert sent == ["highest", "family"]


def _planning(store: StateStore, **changes: Any) -> Any:
    """A dry run that is about to plan the history of a table."""
    run = SimpleNamespace(
        executes=lambda _: False,
        summary=SimpleNamespace(tables=[], blockers=[]),
        store=SimpleNamespace(regions=lambda _: []),
        state=lambda: store,
        config=Config(),
        clock=None,
        request=SimpleNamespace(now=NOW, until=None),
        oracle_ahead=timedelta(),
        approved=None,
        note_reading=lambda *_: None,
    )
    vars(run).update(changes)
    return run


@pytest.mark.parametrize(("ahead", "back"), [(-50, 50), (50, 0)])
def test_ages_allow_for_an_oracle_that_is_a_little_behind(
    store: StateStore, monkeypatch: pytest.MonkeyPatch, ahead: int, back: int
) -> None:
    """What is young by its clock is older by HBase's, which the run goes by. One that is ahead keeps more as it is."""
    gone_by = []
    monkeypatch.setattr(mark, "limits", lambda **by: gone_by.append(by["now"]) or [Limit(0, "all", "", By.AGE)])
    run = _planning(store, oracle_ahead=timedelta(seconds=ahead))
    mark.prepare(run, Entry("orders", Kind.TRANSACTIONAL, True, frozenset("f")), 5000, 5000, "")
    assert gone_by == [NOW - timedelta(seconds=back)]


def test_a_restore_that_begins_while_a_run_looks_at_the_table_is_seen(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes its hold, then the claim. The run reads the claims, then the holds: what it misses of the one it sees of
    the other.
    """
    held = Hold(f"{OF_RESTORE}r", "orders", 0, "ann", "restore of run run1", NOW, NOW + timedelta(hours=1))
    seen: list[Hold] = []
    monkeypatch.setattr(mark, "limits", lambda **by: seen.extend(by["holds"]) or [Limit(0, "all", "", By.AGE)])

    with monkeypatch.context() as first:

        def restored_after(read: Callable[..., Any]) -> Callable[..., Any]:
            def then(self: StateStore, table: str) -> Any:
                found = read(self, table)
                first.undo()
                self.add_hold(held)
                self.intend(table, 0, "r")
                return found

            return then

        for name in ("history", "holds"):
            first.setattr(StateStore, name, restored_after(getattr(StateStore, name)))
        mark.prepare(_planning(store), Entry("orders", Kind.TRANSACTIONAL, True, frozenset("f")), 5000, 5000, "")
    assert seen == [held]


def test_history_gc_keeps_off_while_cells_come_back(store: StateStore) -> None:
    """All history is held meanwhile, and a run that has read before can no longer claim the mark; afterwards all is as
    it was.
    """
    _apply(store, 1049)
    before = store.history("orders")
    options = SimpleNamespace(restore="run1")

    run: Any = SimpleNamespace(
        request=SimpleNamespace(now=datetime.now(UTC) - timedelta(minutes=1), run="r"),
        options=options,
        state=lambda: store,
        store=TABLES,
    )
    with protected(run, "orders") as protection:
        [held] = store.holds("orders")
        assert (held.timestamp, held.reason, held.counts(datetime.now(UTC))) == (0, "restore of run run1", True)
        protection.renew(store)
        [longer] = store.holds("orders")
        assert longer.expires > held.expires
    assert store.holds() == []
    assert (store.history("orders").applied, store.history("orders").intended) == (1049, 1049)
    with pytest.raises(FencedError):
        store.intend("orders", 2049, "gc", before)


def test_the_hold_of_a_restore_is_nobodys_to_release(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with the restore, or expires; a restore that finds it gone puts nothing more."""
    monkeypatch.setattr(holding, "connect", lambda _: nullcontext())
    monkeypatch.setattr(holding, "StateStore", lambda *_: store)
    now = store.server_time()
    held = Hold(f"{OF_RESTORE}r", "orders", 0, "ann", "restore of run run1", now, now + timedelta(hours=1))
    dead = replace(held, id=f"{OF_RESTORE}q", expires=now - timedelta(hours=1))
    for one in (held, dead):
        store.add_hold(one)
    with pytest.raises(HistoryError, match=f"hold {OF_RESTORE}r on orders is a restore's .*expires at"):
        holding.release(Config(), "orders", held.id)
    assert holding.release(Config(), "orders", dead.id) == dead
    protection = Protection(store.intend("orders", 1049, "r"), held, TABLES.life("orders"))
    assert store.drop_hold(held)
    with pytest.raises(StoreError, match=f"the hold {OF_RESTORE}r on orders is gone"):
        protection.renew(store)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["50"], "--as-committed 50: the start and the commit timestamp"),
        (["50=x"], "--as-committed 50=x"),
        (["50=100", "50=150"], "transaction 50 cannot have committed at 100 too"),
    ],
)
def test_what_is_said_to_have_committed_is_read_strictly(given: list[str], told: str) -> None:
    """Pairs of timestamps, a transaction once, or twice the same."""
    assert as_committed.overruled(["50=100", "150=200", "50=100"]) == {50: 100, 150: 200}
    with pytest.raises(UsageError, match=told):
        as_committed.overruled(given)


def test_nothing_is_put_back_beside_a_run_that_removes(store: StateStore) -> None:
    """What hides a cell could go while the cell comes back. A run that was killed is not waited for longer than a
    day.
    """
    claimed = store.intend("orders", 1049, "gc7")
    store.apply_mark(claimed, {})
    store.begin_removal(claimed, "gc7")
    options = SimpleNamespace(restore="run1")

    def at(now: datetime) -> Any:
        return SimpleNamespace(
            request=SimpleNamespace(now=now, run="r"),
            options=options,
            state=lambda: store,
            store=TABLES,
        )

    with (
        pytest.raises(StoreError, match="run gc7 removes history of orders"),
        protected(at(datetime.now(UTC)), "orders"),
    ):
        raise AssertionError
    assert store.holds() == []
    now = store.server_time()
    left = Hold(f"{OF_RESTORE}q", "orders", 0, "ann", "restore of run run1", now, now)
    other = replace(left, id="h1")
    for one in (left, other):
        store.add_hold(one)
    with protected(at(datetime.now(UTC) + timedelta(days=1, minutes=1)), "orders"):
        assert {held.id for held in store.holds("orders")} == {f"{OF_RESTORE}r", "h1"}, "what a killed restore held"
    assert store.holds() == [other]


def test_a_table_with_omids_compactor_is_not_compacted_for_a_restore() -> None:
    """It would lose rows whose family was deleted and written again; a table that is gone is named too."""
    loaded = Descriptor("orders", True, {}, (f"|{OMID_COMPACTOR}|1073741823|",), {})
    with pytest.raises(StoreError, match="Take the coprocessor"):
        restore._checked("orders", loaded)
    with pytest.raises(TableError, match="orders is not in HBase any more"):
        restore._checked("orders", None)
    restore._checked("orders", replace(loaded, coprocessors=()))


def test_a_table_that_is_confirmed_gets_no_mark_past_a_hold(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets the greatest that was applied to any; a hold on it promised every read point from its own on, and counts
    as long as it lasts.
    """
    monkeypatch.setattr(store, "server_time", lambda: NOW)
    store.raise_mark("other", 899, "run1")
    store.add_hold(Hold("h", "orders", 500, "ann", "a report", NOW, NOW + timedelta(hours=1)))
    store.confirm("orders")
    assert store.history("orders").applied == 499
    store.add_hold(Hold("h", "copy", 500, "ann", "a report", NOW - timedelta(days=2), NOW - timedelta(days=1)))
    store.confirm("copy")
    assert store.history("copy").applied == 899
