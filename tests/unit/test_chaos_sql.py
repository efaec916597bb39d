"""Phoenix's clients in a plan of chaos, without Phoenix: what the judge is told of their transactions, and when SQL is
asked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from types import SimpleNamespace
from typing import Any

import pytest

from lowtide.lab.workload.phoenix import PHYSICAL
from lowtide.lab.workload.sql import SqlError
from tests.chaos import sql_plan
from tests.chaos.judge import Cell, Judge, shadow
from tests.chaos.sql_clients import Phoenix
from tests.chaos.sql_plan import Fate


class Store:
    """In the place of Phoenix and its store: every transaction writes one cell, and a shadow cell where it commits."""

    def __init__(self, refuses: str = "") -> None:
        self.cells: dict[str, set[Cell]] = defaultdict(set)
        self.refuses = refuses
        self.begun = 1000
        self.stopped: list[int | None] = []
        self.asked: list[str] = []
        self._commits: dict[int, int] = {}
        self._under_way = False

    def execute(self, _text: str, *_values: Any, session: str = "main") -> None:
        assert session == "main"
        if not self._under_way:
            self.begun += 100
            self._under_way = True
        self.cells["PX_A"].add(Cell(b"r", b"f", b"q", self.begun, "put", b"v"))

    def start(self, _session: str = "main") -> int:
        return self.begun

    def query(self, _text: str, session: str = "main") -> list[tuple[Any, ...]]:
        self.asked.append(session)
        return []

    def commit(self, _session: str = "main", *, point: int | None = None) -> bool:
        if not self._under_way:  # of a session that read
            return False
        self._under_way = False
        self.stopped.append(point)
        if self.refuses:
            raise SqlError(self.refuses)
        if point in (None, 4):
            self._commits[self.begun] = self.begun + 50
        if point is None:
            proof = shadow((b"r", b"f", b"q", self.begun))
            self.cells["PX_A"].add(Cell(*proof, "put", (self.begun + 50).to_bytes(8, "big")))
        return point is not None

    def committed(self, start: int) -> int | None:
        return self._commits.get(start)

    def rollback(self) -> None:
        self._under_way = False


def _phoenix(store: Store) -> Phoenix:
    lab: Any = SimpleNamespace(stack=None, raw=lambda table: frozenset(store.cells[table]))
    return Phoenix(lab, store, Judge(), Counter())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fate", "committed"),
    [(Fate.COMMIT, True), (Fate.ENTRY_ONLY, True), (Fate.UNDECIDED, False), (Fate.ROLL_BACK, False)],
)
def test_the_judge_hears_of_a_transaction_what_it_was(fate: Fate, committed: bool) -> None:
    """Its cells when they come, its commit when it commits, and only then is it what SQL must answer."""
    store = Store()
    made = _phoenix(store)
    made.begin(sql_plan.Begin(0, "a"))
    history = made.judge.history
    assert history.tables["PX_A"] == history.ever["PX_A"] == {(b"r", b"f", b"q", 1100): b"v"}
    assert (history.begun, history.ended, history.commits) == ({1100}, set(), {})
    made.end(sql_plan.End(1, fate))
    assert (history.ended, history.commits) == ({1100}, {1100: 1150} if committed else {})
    assert bool(made.work.tables["PX_LOG"]) is committed
    assert made.end(sql_plan.End(2, Fate.COMMIT)) == "nobody waits"


def test_who_is_refused_has_not_committed() -> None:
    """A conflict is Omid's to tell of, and no oracle is what was asked for; any other error is nobody's."""
    made = _phoenix(Store("ERROR 523 (42900): Transaction aborted due to conflict with other mutations"))
    assert made.transactions(sql_plan.Transactions(0, "a", 3)).split(", ") == ["none"] * 3
    assert made.judge.history.commits == {}
    made = _phoenix(Store("ERROR 101 (08000): Connection lost"))
    made.begin(sql_plan.Begin(0, "a"))
    with pytest.raises(SqlError, match="Connection lost"):
        made.end(sql_plan.End(1, Fate.COMMIT))
    made.begin(sql_plan.Begin(2, "a"))
    assert made.end(sql_plan.End(3, Fate.NO_ORACLE)) == "none"


def test_cells_of_somebody_else_are_noticed() -> None:
    """All that the judge is told hangs on there being one writer."""
    store = Store()
    made = _phoenix(store)
    store.cells["PX_M"].add(Cell(b"r", b"f", b"q", 500, "put", b"v"))
    with pytest.raises(AssertionError, match="is of another than 1100"):
        made.begin(sql_plan.Begin(0, "a"))


def test_sql_is_asked_where_everything_has_its_proof() -> None:
    """Before that Phoenix answers wrongly, with jobs or without; whoever began to read before the history mark is not
    asked either.
    """
    store = Store()
    made = _phoenix(store)
    made.transactions(sql_plan.Transactions(0, "x", 1))
    store.cells.clear()
    assert made.ask(sql_plan.Ask(7)) == "all of it"
    assert set(store.asked[1:]) == {"reader-7"}
    asked = len(store.asked)
    store.cells["PX_S"].add(Cell(b"r", b"f", b"q", 1, "put", b"v"))
    made.asked("x")
    assert made.ask_again(sql_plan.AskAgain(8, 0)) == "something has no proof"
    assert len(store.asked) == asked
    store.cells.clear()
    made.asked("x")
    assert set(store.asked[asked:]) == {"asker"}, "the writer would be shown what it has not committed"
    assert made.judge.wrong, "the store has no rows at all, and one committed"
    made.judge._records = SimpleNamespace(marks=lambda: {PHYSICAL[-1]: 10**6})  # type: ignore[assignment]
    assert made.ask_again(sql_plan.AskAgain(9, 0)) == "history that it needs may be gone"
