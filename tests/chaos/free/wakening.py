"""Carries out the plans of :mod:`tests.chaos.free.zombies`: a director that knows runs which are processes."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.director import Director
from tests.chaos.free.judging import resumed
from tests.chaos.free.processes import JobProcess, configure
from tests.chaos.free.schedule import DECIDED
from tests.chaos.free.zombies import Oracle, Reset, Step, Zombie
from tests.chaos.judge import Raw, Seen
from tests.chaos.laboratory import STATE, Laboratory

#: Until a run has decided, or has ended after it went on: on a busy machine.
_PATIENCE = 240


class ForProcesses(Laboratory):
    """A laboratory whose configuration starts small runs, as processes."""

    def begin(self, **options: Any) -> None:
        """See :meth:`tests.chaos.laboratory.Laboratory.begin`."""
        super().begin(**options)
        configure(self.file)


@dataclass(eq=False)
class _Standing:
    """As much of a run as the director knows of those that are under way."""

    came_back_since: set[str] = field(default_factory=set)
    anew_since: bool = False
    puts_back: str = ""


class Wakening(Director):
    """A director that knows zombies too."""

    #: What came of the zombie.
    told = "there was none"

    def _take(self, step: Step) -> None:  # type: ignore[override]
        match step:
            case Zombie():
                self.told = self._zombie(step)
                self.note(f"{step.number}: {step.job} stands still, {step.what}: {self.told}")
            case Reset():
                self.lab.reset()
                self.judge.recorded("the reset", "the reset", self.lab.raw(STATE))
                self.note(f"{step.number}: the records are reset")
            case Oracle():
                self._restart_oracle()
                self.note(f"{step.number}: the oracle is killed and starts again")
            case _:
                super()._take(step)
                return
        self.counts[type(step).__name__] += 1

    def _restart_oracle(self) -> None:
        self.lab.stack.kill("tso")
        self.lab.stack.up()
        self.lab.new_oracle()

    def _zombie(self, step: Zombie) -> str:
        run = f"zombie-{self.plan.seed}-{step.number}"
        where = f"{run} ({step.job}, {step.what})"
        standing = _Standing()
        self._under_way.append(standing)  # type: ignore[arg-type]
        before = self.seen()

        def at(phase: str) -> None:
            if phase == DECIDED[step.job]:
                threading.Timer(step.delay, process.stop).start() if step.delay else process.stop()

        process = JobProcess(self.lab.file, step.job, run, step.arguments, self.lab.folder, at)
        try:
            if not process.await_stop(_PATIENCE):
                if process.alive:
                    self.judge.wrong.append(f"{where}: it had not decided after {_PATIENCE} s; see {process.log}")
                    return "never decided"
                self.counts["ended before it stood still"] += 1
            stopped = self._judged_since(where, run, before, standing)
            untouched = _same(before, stopped)
            records = self.lab.raw(STATE)
            for each in step.meanwhile:
                self._take(each)
            settled, records_then = self.seen(), self.lab.raw(STATE)
            process.resume()
            code = process.wait(_PATIENCE)
            if code is None:
                self.judge.wrong.append(f"{where}: it had not ended {_PATIENCE} s after it went on; see {process.log}")
                return "did not end"
        finally:
            process.kill()
            self._under_way.remove(standing)  # type: ignore[arg-type]
        after = self._judged_since(where, run, settled, standing)
        self._forbidden(
            where, step, standing, (records, records_then), settled, after, writing=step.delay > 0 or not untouched
        )
        summary = json.loads(process.summary.read_text()) if process.summary.exists() else None
        if summary is None:
            self.judge.wrong.append(f"{where}: it ended with {code} and left no summary; see {process.log}")
            return f"exit {code}"
        self.judge.ended(where, code, summary)
        self.counts["zombies that had written nothing" if untouched else "zombies in the middle of writing"] += 1
        self.counts[f"zombies with exit {code}"] += 1
        self.counts["zombies that then wrote nothing" if _same(settled, after) else "zombies that then wrote"] += 1
        problems = [*summary["problems"], *(p for t in summary["tables"] for p in t["problems"])]
        return (
            f"{'before' if untouched else 'after'} its first write; exit {code}, "
            f"{'nothing' if _same(settled, after) else 'something'} written then; {problems[:1] or 'no problem'}"
        )

    def _judged_since(self, where: str, run: str, before: Seen, standing: _Standing) -> Seen:
        """What there is now, when what the run did since *before* is judged."""
        after = self.seen()
        self.judge.recorded(where, run, self.lab.raw(STATE))
        aside = {table: self.lab.aside(run, table) for table in after.tables}
        silent = {*self.people.paused, *self.tables.vetoed}
        came_back = standing.came_back_since
        self.judge.written(where, before, after, aside, came_back=came_back, silent=silent)
        self.counts["zombies' writes judged"] += 1
        return after

    def _forbidden(
        self,
        where: str,
        step: Zombie,
        standing: _Standing,
        records: tuple[Raw, Raw],
        settled: Seen,
        after: Seen,
        *,
        writing: bool,
    ) -> None:
        self.judge.wrong += resumed(
            where,
            (settled, after),
            (*records, self.lab.raw(STATE)),
            by_epoch=step.job == "orphan_cleanup",
            came_back=standing.came_back_since,
            writing=writing,
        )


def _same(one: Seen, other: Seen) -> bool:
    return (one.tables, one.commit_table, one.journal) == (other.tables, other.commit_table, other.journal)
