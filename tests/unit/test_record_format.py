"""The number of the records' format stands for the rows as they are written: rows that change take another one, and
those of the numbers before are read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lowtide import __version__
from lowtide.cleaning.commit_count import CommitCount
from lowtide.cleaning.facts import Fact, Region
from lowtide.history.compaction import Uncompacted
from lowtide.history.mark import Hold
from lowtide.journal import life
from lowtide.store import history, listing, oracle, rows
from lowtide.store.records import Bound, Journal
from lowtide.store.rows import FORMAT
from lowtide.store.state import StateStore
from lowtide.tables.consent import Pause
from lowtide.tables.inventory import Entry, Kind
from lowtide.values import formats
from lowtide.values.clock import from_millis
from lowtide.values.intervals import Intervals
from lowtide.values.keyranges import KeyRange

#: A row a kind, as each format has them, by its number.
GOLDEN: dict[str, dict[str, dict[str, Any]]] = json.loads(Path(__file__).with_name("records.json").read_text("utf-8"))
DAY = timedelta(days=1)


class Tables:
    """As much of a happybase connection, and of a table, as records need; all tables are one."""

    def __init__(self) -> None:
        self.held: dict[bytes, dict[bytes, bytes]] = {}

    def tables(self) -> list[bytes]:
        return [b"LOWTIDE_STATE", b"LOWTIDE_JOURNAL"]

    def table(self, _: str) -> Tables:
        return self

    def row(self, row: bytes, columns: Sequence[bytes] | None = None) -> dict[bytes, bytes]:
        cells = self.held.get(row, {})
        return {name: cells[name] for name in (columns or cells) if name in cells}

    def rows(self, wanted: Sequence[bytes], columns: Sequence[bytes] | None = None) -> list[tuple[bytes, Any]]:
        return [(row, self.row(row, columns)) for row in wanted if row in self.held]

    def put(self, row: bytes, cells: dict[bytes, bytes]) -> None:
        self.held.setdefault(row, {}).update(cells)

    def scan(self, row_prefix: bytes, limit: int | None = None) -> list[tuple[bytes, dict[bytes, bytes]]]:
        return [(row, dict(self.held[row])) for row in sorted(self.held) if row.startswith(row_prefix)][:limit]

    def delete(self, row: bytes, columns: Sequence[bytes] = ()) -> None:
        for column in columns or list(self.held[row]):
            del self.held[row][column]
        if not self.held[row]:
            del self.held[row]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Tables:
    """Tables of nothing; checked writes come to them, the time stands still, and nothing is random."""
    made = Tables()

    def put(_: Any, __: str, row: bytes, check: tuple[bytes, bytes | None], put: tuple[bytes, bytes]) -> bool:
        if made.held.get(row, {}).get(check[0]) != check[1]:
            return False
        made.put(row, dict([put]))
        return True

    for module in (rows, life):
        monkeypatch.setattr(module, "check_and_put", put)
    for module in (rows, history, listing, oracle):
        monkeypatch.setattr(module, "now_millis", lambda: 7)
    monkeypatch.setattr(history.secrets, "token_hex", lambda _: "0a")
    monkeypatch.setattr(StateStore, "server_time", lambda _: from_millis(7))
    return made


def _state(tables: Tables) -> StateStore:
    return StateStore(tables, "LOWTIDE_STATE", there=True, nonce=lambda: "0b")


def _written(tables: Tables) -> dict[str, dict[str, Any]]:
    """A row of each kind that results hang on, as this version writes it: row, then column, then value."""
    state, at = _state(tables), from_millis(1000)
    state.reset(skipped=(50, 100), pruned=900)
    state.record_low_watermark(5000, stated=3)
    state.remember_gone_back(4000)
    state.add_sample(at, 120)
    taken = state.begin("orders", [Region("r", KeyRange(b"", b""), 5, stated=6)])
    times, before = Intervals.of([(0, 100)]), Intervals.of([(0, 50)])
    fact = Fact(KeyRange(b"", b"m"), times, frozenset("f"), 1, "run", 8, 9, times, 10, "f:1", before)
    state.record(taken, fact)
    again = state.begin("copy", [Region("r", KeyRange(b"", b""), 5, stated=6)])
    state.record(again, fact)
    state.void("copy")
    state.add_bound(Bound(at, 950, ({"table": "orders", "region": "r", "reason": "x", "watermark": 950},)))
    state.put_watermarks("orders", {"at": 1})
    state.put_inventory([Entry("orders", Kind.TRANSACTIONAL, True, frozenset("f"), mark="OMID_ENABLED")], 5, at=7)
    state.confirm("orders")
    intent = state.begin_removal(state.intend("orders", 1049, "gc"), "gc")
    state.apply_mark(intent, {"run": "gc", "held_by": []})
    state.add_hold(Hold("h", "orders", 1000, "ann", "an audit", at, at + DAY))
    state.put_uncompacted("orders", {"r": Uncompacted(1, {"f": 5})})
    state.add_pause(Pause("p", "orders", "ann", "a move", at, at + DAY), at)
    state.add_commit_count(CommitCount(at, 5, 6))
    life.hold(tables, state, "LOWTIDE_JOURNAL", Journal(True, 100, 900, 7))
    found: dict[str, dict[str, Any]] = {}
    for row, cells in sorted(tables.held.items()):
        found[row.decode()] = {column.decode(): _told(value) for column, value in sorted(cells.items())}
    found["a mark of our own"] = {"F:IT": formats.OWN_INVALID_VALUE.hex()}
    return found


def _told(value: bytes) -> Any:
    text = value.decode().replace(f'"{__version__}"', '"VERSION"')
    return json.loads(text) if text[:1] in "{[" else text


def test_rows_that_change_take_another_number(tables: Tables) -> None:
    """The rows of a number stay what they are for ever: an older Lowtide goes by that number alone.

    Where this fails, raise FORMAT in lowtide/store/rows.py and in Records.java, see that rows of the number before are
    read, and add the new rows to records.json under the new number; but for what no older one goes by, such as a key
    more that is only shown.
    """
    assert str(FORMAT) == max(GOLDEN, key=int), "each number has its rows"
    assert _written(tables) == GOLDEN[str(FORMAT)], f"these are no rows of format {FORMAT}: raise the number"


@pytest.mark.parametrize("number", sorted(GOLDEN))
def test_rows_of_every_number_are_read(number: str, tables: Tables) -> None:
    """Nothing of them is lost; what a format does not say is not known."""
    for row, cells in GOLDEN[number].items():
        tables.put(
            row.encode(), {c.encode(): v.encode() if isinstance(v, str) else rows.dump(v) for c, v in cells.items()}
        )
    state, at = _state(tables), from_millis(1000)
    assert state.format_read == 0
    orders, copy = state.read("orders"), state.read("copy")
    assert state.format_read == int(number)
    times = Intervals.of([(0, 100)])
    knows = int(number) >= 5
    before = Intervals.of([(0, 50)]) if knows else None
    fact = Fact(KeyRange(b"", b"m"), times, frozenset("f"), 1, "run", 8, 9, times, 10, "f:1", before)
    assert (orders.facts, orders.incarnation.number) == ((fact,), 1)
    assert (copy.facts, copy.forgotten) == ((), Intervals.of([(0, 100)]) if knows else Intervals())
    assert (state.recorded_low_watermark(), state.commit_table_life()) == ((5000, from_millis(7), 4000), 3)
    assert state.samples() == [(at, 120)]
    assert (state.generation(), state.numbered_anew()) == (1, 7)
    assert (state.pruned_before(), state.skipped()) == ((900, [(50, 100)]) if knows else (0, []))
    assert [(b.at, b.value) for b in state.bounds()] == [(at, 950)]
    assert [e.table for e in state.inventory()] == ["orders"]
    assert state.listing().confirmed == {"orders"}
    assert state.history("orders").applied == 1049
    assert [(h.id, h.expires) for h in state.holds()] == [("h", at + DAY)]
    assert state.all_uncompacted() == {"orders": 5}
    assert [(p.id, p.until) for p in state.pauses()] == [("p", at + DAY)]
    assert [(c.entries, c.marks) for c in state.commit_counts()] == [(5, 6)]
    assert (state.journal().there, state.journal().horizon, state.journal().pruned) == (True, 100, 900)
    state.record_format()
    assert state.written_format() == FORMAT, "an older Lowtide refuses it from here on"


def test_what_was_between_two_numbers_is_read(tables: Tables) -> None:
    """A checkout wrote facts under number 4 that said, as one number, up to where a table was cleaned before."""
    for column, value in GOLDEN["5"]["table/orders"].items():
        old = {**value, "before": 99} if column.startswith("s:fact/") else value
        tables.put(b"table/orders", {column.encode(): old.encode() if isinstance(old, str) else rows.dump(old)})
    [fact] = _state(tables).read("orders").facts
    assert fact.before == Intervals.up_to(99)
