"""Recording: which key ranges are done, when everything done to them was acknowledged and seen again."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from functools import partial

from lowtide.cleaning.facts import Fact, cleaned_intervals, last_full_pass, read_by
from lowtide.errors import FencedError
from lowtide.run.patience import Patience
from lowtide.store.facts import taken_over
from lowtide.store.records import TableState
from lowtide.values.clock import millis
from lowtide.values.intervals import Intervals
from lowtide_spark.cleaning import turn
from lowtide_spark.cleaning.suspects import PLAIN_ENTRY, rows_of
from lowtide_spark.cleaning.work import CleanupWork
from lowtide_spark.frames import omid
from lowtide_spark.frames.startset import StartSet
from lowtide_spark.run.context import Run
from lowtide_spark.run.table_work import failures_kept


def stop_if_entries_came(run: Run, works: Sequence[CleanupWork], committed: StartSet) -> None:
    """Record nothing where the commit table has gained an entry since it was first read.

    One healthy oracle never adds an entry below the low watermark; a deposed one or a low-latency client may. Cells of
    such a transaction that had shadow cells by then were not rewritten, and its entry must not be taken for dealt with.
    """
    cells = run.store.cells(run.config.omid.commit_table, rows_of(works))
    now = omid.entries(cells, run.config.omid.commit_family).where(PLAIN_ENTRY)
    came = committed.without(now).count()
    if came:
        for work in works:
            work.stop(
                [r.region for r in work.ranges],
                f"{came} commit entries below the low watermark came while the run went on; run again",
            )


def record_all(run: Run, works: Sequence[CleanupWork]) -> None:
    """Record of every table the ranges that are done, of those that are still the tables that were read. One that fails
    keeps its error and hides no other.
    """
    turn.check_lives(run, works)
    done = [work for work in works if work.suspects is not None]
    if not done:
        return
    state = run.state()
    now = millis(state.server_time())
    facts = {work.table: _facts(run, work, now) for work in done}
    overtaken: set[str] | None
    try:
        overtaken = state.record_all([one for work in done for one in _of(work, facts[work.table])])
    except Exception:  # of one of them, or of all: each is recorded by itself, once more where it had been
        traceback.print_exc()
        overtaken = None
    patience = Patience()
    for work in done:
        with failures_kept(work):
            mine = facts[work.table]
            lost = patience.ask(partial(state.record_all, _of(work, mine))) if overtaken is None else overtaken
            if work.table in lost:
                raise FencedError(taken_over(work.state))
            _forget_covered(run, work, mine)
            work.report.regions_recorded = len(mine)


def _of(work: CleanupWork, facts: Sequence[Fact]) -> list[tuple[TableState, Fact]]:
    return [(work.state, fact) for fact in facts]


def _facts(run: Run, work: CleanupWork, now: int) -> list[Fact]:
    """The ranges that are done at *now*, HBase's time in ms."""
    facts: list[Fact] = []
    for done in work.ranges:
        if done.region in work.stopped:
            continue
        known = cleaned_intervals(done.keys, work.facts)
        # From 0 over all that was recorded before: only that finds what a paused client landed since.
        is_full = done.from_ts == 0 and done.to_ts >= known.prefix_end(0)
        full = now if is_full else last_full_pass(done.keys, work.facts)
        read, since = read_by(run.request.run, done.keys, work.facts, now)
        fact = Fact(
            done.keys,
            known | Intervals.of([(done.from_ts, done.to_ts)]),
            frozenset(work.families),
            work.state.incarnation.number,
            run.request.run,
            now,
            full,
            read | Intervals.of([(done.from_ts, done.to_ts)]),
            since,
            work.entry.shape,
            work.before,
        )
        facts.append(fact)
    return facts


def _forget_covered(run: Run, work: CleanupWork, fresh: Sequence[Fact]) -> None:
    """Drop facts that say nothing more beside the *fresh* ones."""
    keys = {fact.keys for fact in fresh}
    for old in work.state.facts:
        covered = all(cleaned_intervals(old.keys, fresh).covers(a, b) for a, b in old.intervals)
        if old.keys not in keys and covered:
            run.state().forget(work.state, old.keys)
