"""What keeps history GC off a table while cells come back to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lowtide.errors import StoreError
from lowtide.history.mark import OF_RESTORE, Hold
from lowtide.run.summary import myself
from lowtide.store.history import REMOVES_FOR
from lowtide.store.records import History, Intent
from lowtide.store.state import StateStore
from lowtide.values.clock import from_millis
from lowtide_spark.frames.store import Life
from lowtide_spark.run.context import Run

#: A restore that is killed keeps history GC off its table for so long; one that goes on renews its hold with each step.
HELD_FOR = timedelta(days=1)


@dataclass
class Protection:
    """The claim of the table's mark, and a hold on all its history; and the table as it was then."""

    claim: Intent
    hold: Hold
    life: Life

    def renew(self, state: StateStore) -> None:
        """Before each step: both are there, and the hold lasts on from now.

        Raises:
            FencedError: another run has the mark.
            StoreError: the hold is gone.
        """
        state.check_claim(self.claim)
        longer = replace(self.hold, expires=state.server_time() + HELD_FOR)
        if not state.change_hold(self.hold, longer):
            msg = (
                f"the hold {self.hold.id} on {self.hold.table} is gone: this restore took longer than {HELD_FOR} over "
                "a step; run it again"
            )
            raise StoreError(msg)
        self.hold = longer


@contextmanager
def protected(run: Run, table: str) -> Iterator[Protection]:
    """Keep history GC off *table* while cells come back.

    A run that read the table between the return of a tombstone and that of what it hides would remove the tombstone
    alone, and readers would be shown for good what was deleted. All history is held, and a claim takes the mark from
    every run that does not remove yet. Beside one that does, what hides a cell may go while the cell comes back: the
    restore is refused. The claim ends every other restore of the table, so what these held is let go of.

    Raises:
        StoreError: a run removes history of the table, or HBase does not tell the table's life.
        FencedError: another run claimed the mark meanwhile.
    """
    now = run.request.now
    reason = f"restore of run {run.options.restore}"
    held = Hold(f"{OF_RESTORE}{run.request.run}", table, 0, myself(), reason, now, now + HELD_FOR)
    state = run.state()
    state.create()
    state.add_hold(held)
    protection = None
    try:
        history = state.history(table)
        _check_removal(table, history, now)
        life = run.store.life(table)  # before anything of it is read
        protection = Protection(state.intend(table, history.applied, run.request.run, history), held, life)
        for left in state.holds(table):  # of restores that were killed: without the claim they put nothing back
            if left.of_restore and left.id != held.id:
                state.drop_hold(left)
        yield protection
    finally:
        state.drop_hold(protection.hold if protection else held)


def _check_removal(table: str, history: History, now: datetime) -> None:
    for run, at in history.intent.get("removing", {}).items():
        since = from_millis(at)
        if now < since + REMOVES_FOR:
            msg = (
                f"run {run} removes history of {table} since {since:%Y-%m-%d %H:%M} UTC; nothing is put back beside "
                "it. Wait until it has ended; if it was killed, let the next run finish its work, and restore after "
                f"{since + REMOVES_FOR:%Y-%m-%d %H:%M} UTC: until then a write of it may be under way"
            )
            raise StoreError(msg)
