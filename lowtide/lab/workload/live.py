"""Clients that commit without pause while something else happens to their tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from lowtide.lab.stack import Stack
from lowtide.lab.waiting import reached
from lowtide.lab.workload import history, script
from lowtide.lab.workload.client import OmidClient, WorkloadError
from lowtide.lab.workload.model import Model
from lowtide.lab.workload.runner import make_tables
from lowtide.lab.workload.script import Shape

#: A script of this length is run round and round, with other values each time.
_SCRIPT = 500


class LiveClients:
    """*clients* threads of one client process that run transactions until ``stop``. Use as a context manager.

    Every acknowledged commit and every abort with its reason is in the history that ``stop`` writes to *out*: with
    outcome ``watermark`` where the low watermark had passed the transaction, ``conflict`` otherwise (a transaction that
    was both counts as ``watermark``).
    """

    def __init__(
        self,
        stack: Stack,
        out: Path,
        *,
        seed: int = 1,
        clients: int = 2,
        shape: Shape | None = None,
        pause_ms: int = 0,
    ) -> None:
        self._out = Path(out)
        self._events = self._out.with_suffix(".events")
        self._shape = shape or Shape(crashes=0.0, pauses=0.03)
        self._seed, self._clients, self._pause_ms = seed, clients, pause_ms
        self._omid = OmidClient(stack)
        self._running = False

    def start(self) -> None:
        """Make missing tables and begin."""
        make_tables(self._omid, self._shape)
        self._events.unlink(missing_ok=True)
        groups = script.generate(self._shape, f"live{self._seed}", _SCRIPT)
        self._omid.live(groups, self._events, threads=self._clients, pause_ms=self._pause_ms)
        self._running = True

    def counts(self) -> dict[str, int]:
        """Outcomes so far: ``committed``, ``conflict``, ``watermark``, ``rolled back``, ``read only``, ..."""
        return self._omid.counts()

    def await_commits(self, count: int, seconds: float = 60) -> None:
        """Wait until *count* more transactions have committed."""
        wanted = self.counts()["committed"] + count
        if not reached(lambda: self.counts()["committed"] >= wanted, seconds, pause=0.05):
            raise WorkloadError(f"the live clients did not commit {count} transactions within {seconds:.0f} s")

    def stop(self) -> dict[str, int]:
        """End in good order, write the history, return the counts."""
        counts = self._omid.stop()
        self._running = False
        self._settle(self._omid.advance_watermark, self._omid.fate, None)
        return counts

    def kill(self, omid: OmidClient) -> Model:
        """End with SIGKILL; *omid*, another client, settles what was under way."""
        self._omid.kill()
        self._running = False
        self._settle(omid.advance_watermark, omid.fate, "kill")
        return self.model

    @property
    def model(self) -> Model:
        """The history, once stopped."""
        return Model.load(self._out)

    def _settle(self, advance: Callable[[], int], fate: history.Fate, ended: str | None) -> None:
        """In doubt are only those of a killed client or of a lost oracle; then the watermark must pass them first."""
        transactions = history.read(self._events, lambda _start, _cells: None, ended)
        if any(each.outcome == "abandoned" and each.crash is None for each in transactions):
            advance()
            transactions = history.read(self._events, fate, ended)
        Model(transactions).save(self._out)

    def __enter__(self) -> LiveClients:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running and error is None:
            self.stop()
        self._omid.close()
