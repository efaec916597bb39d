"""Whether it is still this run's turn on a table, and whether the table is still the one that it read."""

from __future__ import annotations

from collections.abc import Sequence

from lowtide.cleaning.facts import Region
from lowtide.errors import StoreError
from lowtide.store.records import Claim
from lowtide.values.text import names_text
from lowtide_spark.cleaning.work import CleanupWork
from lowtide_spark.frames.store import Life
from lowtide_spark.run.context import Run
from lowtide_spark.run.table_work import failures_kept


def epochs(run: Run, works: Sequence[CleanupWork]) -> list[Claim]:
    """What stands as long as this run is the newest of these tables, of those that it has not given up."""
    return [run.state().epoch_claim(w.state) for w in works if w.suspects is not None]


def check(run: Run, work: CleanupWork) -> None:
    """Before the first mark; each write claims the same again, batch by batch.

    Raises:
        FencedError: another run has taken the table since, or the records were reset or lost.
    """
    run.state().check_epoch(work.state)


def check_lives(run: Run, works: Sequence[CleanupWork]) -> None:
    """After the tables were read, and again before they are recorded: each is the one that the run's records speak of.
    One that was restored, made anew, or disabled and enabled since the run listed its regions keeps that as its error,
    and its work ends.

    What came back in between was never under watch: where the journal has let go of its proofs, absence would be taken
    for one.
    """
    read = [work for work in works if work.suspects is not None]
    regions_of = run.store.regions_of([work.table for work in read])
    for work in read:
        with failures_kept(work):
            _check_life(work, regions_of(work.table))


def check_searched(run: Run, searched: Sequence[Life]) -> None:
    """Before the first mark: no table that was searched for proofs has come back since, as it is *searched*. It may
    hold a proof now of what had none, for any table of the run. One that went has proved what it could.

    Raises:
        StoreError: one was restored, made anew, or disabled and enabled.
    """
    now = run.store.lives([life.table for life in searched])
    if back := [
        life.table for before, life in zip(searched, now, strict=True) if life.stated not in (before.stated, 0)
    ]:
        fact = (
            f"{names_text(back)} {'was' if len(back) == 1 else 'were'} restored, made anew, or disabled and enabled "
            "while the run went on, after it had been searched for proofs; nothing is done to any table"
        )
        raise StoreError(fact, "run again: what came back is searched then")


def _check_life(work: CleanupWork, regions: Sequence[Region]) -> None:
    if not work.state.incarnation.lives(regions):
        msg = (
            f"{work.table} was restored, made anew, or disabled and enabled while the run went on; nothing more is "
            "done to it and nothing is recorded. Run again: it is read from 0"
        )
        raise StoreError(msg)
