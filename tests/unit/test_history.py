"""Holds over their whole life, claims to a mark, and in which order a restore puts cells back: on state kept in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from lowtide_spark import history as gc
from lowtide_spark import restore
from lowtide_spark.compaction import compact
from lowtide_spark.store import Written

from lowtide import history, state
from lowtide.ancient import By, Limit
from lowtide.config import Config
from lowtide.errors import FencedError, HistoryError
from lowtide.history import hold
from lowtide.inventory import Entry, Kind
from lowtide.state import StateStore
from lowtide.summary import TableReport

NOW = datetime(2026, 1, 31, tzinfo=UTC)
Rows = dict[bytes, dict[bytes, bytes]]


class Connection:
    """As much of a happybase connection, and of its one table, as the state needs."""

    def __init__(self) -> None:
        self.rows: Rows = {}

    def tables(self) -> list[bytes]:
        return [b"LOWTIDE_STATE", b"orders"]

    def table(self, _: str) -> Connection:
        return self

    def row(self, row: bytes) -> dict[bytes, bytes]:
        return dict(self.rows.get(row, {}))

    def put(self, row: bytes, cells: dict[bytes, bytes]) -> None:
        self.rows.setdefault(row, {}).update(cells)

    def delete(self, row: bytes) -> None:
        self.rows.pop(row, None)

    def scan(self, row_prefix: bytes, limit: int | None = None) -> list[tuple[bytes, dict[bytes, bytes]]]:
        return [(row, dict(self.rows[row])) for row in sorted(self.rows) if row.startswith(row_prefix)][:limit]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> StateStore:
    """The state of a store without anything."""
    connection = Connection()

    def check_and_put(_: Any, __: str, row: bytes, check: tuple[bytes, bytes | None], put: tuple[bytes, bytes]) -> bool:
        if connection.rows.get(row, {}).get(check[0]) != check[1]:
            return False
        connection.put(row, dict([put]))
        return True

    monkeypatch.setattr(state, "check_and_put", check_and_put)
    monkeypatch.setattr(history, "connect", lambda _: nullcontext(connection))
    return StateStore(connection, "LOWTIDE_STATE")


def _apply(store: StateStore, mark: int) -> None:
    store.apply_mark(store.intend("orders", mark, "gc"), {})


# -- holds


def test_a_block_whose_history_went_meanwhile_fails_at_its_end(store: StateStore) -> None:
    """A reader that slept through its hold's expiry is told, although its record is still there to be released; others are not."""
    with hold(Config(), "orders", 1000, reason="kept"):
        _apply(store, 999)
    slept = hold(Config(), "orders", 1000, reason="slept")
    with pytest.raises(HistoryError, match="lies 49 before its ancient history mark 1049"), slept:
        _apply(store, 1049)
    assert store.holds() == []


def test_no_hold_is_promised_where_omids_compactor_removes_history(store: StateStore) -> None:
    """It keeps to no hold, so none is given; nothing is left behind."""
    store.put_inventory([Entry("orders", Kind.TRANSACTIONAL, True, frozenset("f"), compactor=True)])
    with pytest.raises(HistoryError, match="Omid's own compactor is on it"), hold(Config(), "orders", 1000, reason="x"):
        pass
    assert store.holds() == []


def test_an_error_of_the_gateway_does_not_end_the_renewals(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thrift's own errors are no reason to let a hold expire: it is renewed when the gateway is back, and nothing is raised then."""
    monkeypatch.setattr(history, "RENEWED_FOR", timedelta(seconds=0.9))
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


# -- claims


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


def _work(execute: bool = True, compactor: bool = False) -> gc.Work:
    entry = Entry("orders", Kind.TRANSACTIONAL, True, frozenset("f"), compactor=compactor)
    limits = [Limit(1049, "a hold", "release it", By.HOLD)]
    return gc.Work(entry, TableReport("orders", execute=execute), execute, [], limits, 1049, state.History("orders"))


def test_a_mark_is_told_as_applied_only_when_it_is() -> None:
    """A run that is going to act has not applied anything yet: it may stop before."""
    work = _work()
    gc._tell_mark(SimpleNamespace(summary=SimpleNamespace(blockers=[])), work, 99)  # type: ignore[arg-type]
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
    gc._book(
        work,
        [Written("east", "delete_if_absent", 3, 0, 0, 9, None), Written("west", "delete_if_absent", 1, 1, 0, 3, None)],
    )
    assert list(work.stopped) == ["west"]
    assert "data came beside 1 lone shadow cells" in work.report.problems[0]


# -- restore


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
    """What a restore of two family tombstones, a tombstone and a put sends, where some fail and some lie behind delete markers."""

    def run(failing: str = "", behind: str = "") -> tuple[list[str], TableReport, bool]:
        sent: list[str] = []

        def write(cells: Cells, _: str) -> list[Any]:
            sent.extend(cells)
            failed = sum(cell == failing for cell in cells)
            return [SimpleNamespace(bytes=0, failed=failed, failure="busy", done=len(cells) - failed)]

        steps = tuple(lambda cell, n=n: cell == n for n in ("highest", "family", "tombstone", "put"))
        monkeypatch.setattr(restore, "_steps", lambda: steps)
        monkeypatch.setattr(restore, "_puts", lambda cells: cells)
        monkeypatch.setattr(restore, "_hiding", lambda cells: cells.where(lambda cell: cell != "put"))
        monkeypatch.setattr(restore, "_live", lambda *_: Cells(cell for cell in sent if cell != behind))
        monkeypatch.setattr(restore, "_missing", lambda cells, live: cells.where(lambda cell: cell not in live))
        report = TableReport("orders")
        fake: Any = SimpleNamespace(store=SimpleNamespace(write=write))
        cells: Any = Cells(["put", "tombstone", "family", "highest"])
        return sent, report, restore._put_back(fake, report, [], cells)

    return run


def test_what_hides_comes_back_before_what_it_hides(put_back: Callable[..., Any]) -> None:
    """The highest family tombstone, the others, tombstones, then the rest."""
    sent, report, whole = put_back()
    assert (sent, whole, report.problems) == (["highest", "family", "tombstone", "put"], True, [])


@pytest.mark.parametrize("tombstone", ["highest", "family", "tombstone"])
def test_nothing_is_shown_whose_tombstone_did_not_come_back(put_back: Callable[..., Any], tombstone: str) -> None:
    """A tombstone that failed, or that is not seen behind a delete marker, ends the restore before what it hides is put."""
    sent, report, whole = put_back(failing=tombstone)
    assert ("put" in sent, whole) == (False, False)
    assert "failed would hide is not put back" in report.problems[-1]
    sent, report, whole = put_back(behind=tombstone)
    assert ("put" in sent, whole) == (False, False)
    assert "1 tombstones are put but still hidden" in report.problems[-1]


def test_history_gc_keeps_off_while_cells_come_back(store: StateStore) -> None:
    """All history is held meanwhile, and a run that has read before can no longer claim the mark; afterwards all is as it was."""
    _apply(store, 1049)
    before = store.history("orders")
    options = SimpleNamespace(restore="run1")

    run: Any = SimpleNamespace(
        request=SimpleNamespace(now=NOW, run="r"), options=options, state=lambda: nullcontext(store)
    )
    with restore._undisturbed(run, "orders"):
        [held] = store.holds("orders")
        assert (held.timestamp, held.reason, held.counts(NOW)) == (0, "restore of run run1", True)
    assert store.holds() == []
    assert (store.history("orders").applied, store.history("orders").intended) == (1049, 1049)
    with pytest.raises(FencedError):
        store.intend("orders", 2049, "gc", before)
