"""Lets a plan happen, with a *baton*: whoever has it takes a step, everybody else stands still.

The director has it first. Clients take a turn when it says so. A run of a job has a thread of its own, and hands the
baton back at its seams (:mod:`tests.store.deadman`: before and after everything that it changes); there the plan may
have steps, other runs among them, let the run die, or park it. So nothing depends on what is faster, and a plan that is
carried out again is meant to make the same decisions in the same order, and the same cells.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from deadman import Effect

from lowtide.lab.workload import Shape, WorkloadError, script
from lowtide.lab.workload.client import COMMIT_TABLE
from tests.chaos import ledger_plan, sql_plan
from tests.chaos.actor import PARK, Actor
from tests.chaos.judge import Judge, Seen, journal_entries, standing, unproved
from tests.chaos.laboratory import FAMILIES, GRACE, LEDGER, STATE, Laboratory
from tests.chaos.ledger_clients import Bank, judge_of
from tests.chaos.ledger_forger import Forger
from tests.chaos.nemeses import AT_HBASE, Kind, Nemesis
from tests.chaos.oracle_steps import Oracle
from tests.chaos.oracles import Oracles
from tests.chaos.people import People
from tests.chaos.plan import Plan
from tests.chaos.scenes.ledger import WITH_GRACE
from tests.chaos.sql_clients import Phoenix
from tests.chaos.steps import (
    APPROVABLE,
    LOSING,
    MISTAKEN,
    RECORD,
    ROWS,
    Age,
    Alter,
    Change,
    Clients,
    Compact,
    Land,
    Look,
    Open,
    Phantom,
    Read,
    Resume,
    Run,
    Say,
    Settle,
    Step,
    Table,
    Turn,
    Watermark,
    told,
)
from tests.chaos.striking import Strikes
from tests.chaos.tables import Tables

#: Of clients that delete columns, and do that well.
_DELETING = {
    **dict.fromkeys(("crashes", "rollbacks", "reads", "overlaps", "checkpoints", "family_deletes", "row_deletes"), 0.0),
    "deletes": 1.0,
    "steps": (16, 24),
}
#: Runs at the end, after which nothing may be left.
LAST_ROUNDS = 3
_LAST = (
    ("orphan_cleanup", "--full", "--execute"),
    ("watermark_collection", "--execute"),
    ("commit_table_pruning", "--grace", "0s", "--execute"),
)


@dataclass
class Report:
    """What came of a plan."""

    plan: Plan
    wrong: list[str]
    #: Every decision in its order, and what came of it.
    trace: list[str]
    #: The cells of the plan's tables and the commit table at the end, and what the ledger decided.
    left: list[str]
    counts: Counter[str]

    @property
    def lines(self) -> list[str]:
        """All that is the same where a plan is carried out again."""
        return [*self.trace, *self.left]

    @property
    def digest(self) -> str:
        """Of all that."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return "\n".join([str(self.plan), "", *self.trace, "", *(self.wrong or ["nothing is wrong"])])


class _Enough(Exception):  # noqa: N818
    """Nothing more is to happen."""


class Director:
    """Carries out one plan, once."""

    def __init__(
        self,
        lab: Laboratory,
        plan: Plan,
        *,
        first: bool = False,
        over: Callable[[], bool] = lambda: False,
        entered: Callable[[int | None], None] = lambda _: None,
    ) -> None:
        """*first*: the first thing that is wrong says enough, and nothing happens after it; nor once it is *over*:
        whatever runs dies where it is, and no task of its is left at work. *entered* is told before each step which of
        the plan's scenes it is of.
        """
        self._first = first
        self._over = over
        self._entered = entered
        self.lab = lab
        self.plan = plan
        self.judge = Judge(sweeps=plan.sweeps, keeps_marks=plan.low_latency)
        self.counts: Counter[str] = Counter()
        self.trace: list[str] = []
        self.strikes = Strikes(lab)
        #: Whether the faults have ended.
        self._ending = False
        #: Whose requests are late, and who had said no when they were sent.
        self._awaited: Actor | None = None
        self._silent_then: set[str] = set()
        self._read_to = 0
        self._open: list[str] = []
        self._parked: list[Actor] = []
        self._under_way: list[Actor] = []
        self._ran: list[str] = []
        #: What ran of them in the oracle's life before this one.
        self._ran_before: list[str] = []
        #: When runs ended, in their order.
        self._times: list[datetime] = []
        #: Dry runs that ended well.
        self._plans: list[Actor] = []
        self._points: list[int] = []
        #: Commit timestamps of transactions whose clients have no answer, by start.
        self._in_flight: dict[int, int] = {}
        self.tables = Tables(lab, self.judge, self.strikes, phoenix=plan.phoenix)
        self.people = People(lab, self.judge, self.strikes, self.tables, self._in_flight, self._points)
        self.oracles = Oracles(
            lab,
            self.judge,
            self.strikes,
            self.tables,
            self.people,
            self._in_flight,
            self._forgotten,
            lambda: [each.entries_came_back() for each in self._under_way],
        )
        self._highest_bound = 0
        self._bank: Bank | None = None
        self._forger: Forger | None = None
        #: Tables of the ledger that take no writes.
        self._refusing: set[str] = set()
        self._phoenix: Phoenix | None = None
        #: Of how many gateways that were killed its connection knows.
        self._gateways = 0
        self._shape = Shape(
            tables=tuple(Table),
            families=FAMILIES,
            qualifiers=("p", "q"),
            rows=ROWS,
            crashes=0.3,
            overlaps=0.4,
            conflict_free=0.15,
            deletes=0.15,
            crash_points=(0, 1, 2, 4, 5, 6, 7, 8, 9, *((10,) if plan.torn else ())),
            **({"family_deletes": 0.0, "row_deletes": 0.0} if plan.compactor else {}),
        )

    def carried_out(self) -> Report:
        """Let it happen, then let the faults end, and see that nothing is left; what came of it."""
        kinds = {step.kind for step in self.plan.every() if isinstance(step, Nemesis)}
        self.lab.begin(
            ledger=self.plan.ledger,
            relayed=bool(kinds & AT_HBASE),
            patient=bool(kinds & {Kind.HBASE, Kind.SERVER}),
            phoenix=self.plan.phoenix,
            sweeps=self.plan.sweeps,
            low_latency=self.plan.low_latency,
            loose=sorted({s.table for s in self.plan.every() if isinstance(s, Alter) and s.change is Change.LOOSE}),
        )
        if self.plan.phoenix:
            assert self.lab.phoenix is not None
            self._phoenix = Phoenix(self.lab, self.lab.phoenix, self.judge, self.counts)
        left: list[str] = []
        try:
            with self.lab.ledger() if self.plan.ledger else nullcontext() as store:
                if store:
                    self._bank = Bank(store, judge_of(self.judge.wrong, self.judge.counts))
                    self._forger = Forger(self._bank, store)
                with suppress(_Enough):
                    left = self._all_of_it()
        finally:
            try:
                self.strikes.end()
            finally:
                self.lab.end()
        self.counts.update(self.judge.counts)
        self.counts.update(self.strikes.counts)
        return Report(self.plan, self.judge.wrong, self.trace, left, self.counts)

    def _all_of_it(self) -> list[str]:
        for step in self.plan.steps:
            self._entered(self.plan.scene_of(step))
            self._take(step)
        self._stop_if_enough()
        self._entered(None)
        self._end_the_faults()
        self._last_rounds()
        seen = self.seen()
        self.judge.at_the_end(seen)
        self._read_everything(seen)
        if self._bank:
            self._books().at_the_end()
        if self._phoenix:
            self._phoenix.asked("at the end")
        return self._left(seen)

    @property
    def has_enough(self) -> bool:
        """Whether nothing more is to happen."""
        return (self._first and bool(self.judge.wrong)) or self._over()

    def _stop_if_enough(self) -> None:
        if self.has_enough:
            raise _Enough

    def _books(self) -> Bank:
        """The plan's ledger, over a gateway that answers."""
        assert self._bank is not None
        self.strikes.put_back(Kind.GATEWAY)
        if self._gateways != self.strikes.gateways:
            self._gateways = self.strikes.gateways
            self._bank.store.renew()
        return self._bank

    def _forging(self) -> Forger:
        """Who forges the ledger's rows, over a gateway that answers."""
        self._books()
        assert self._forger is not None
        return self._forger

    def _mend(self, _: ledger_plan.Mend) -> str:
        """A person has the ledger's records set right, which is right then."""
        said = self.lab.mend_ledger()
        if said:
            self.judge.wrong.append(f"the ledger was not mended: {said} (8)")
        self._forging().mended()
        return said

    def _refuse(self, step: ledger_plan.Refuse) -> None:
        self.lab.omid.set(f"{LEDGER}{step.table}", READONLY=str(step.on).lower())
        (self._refusing.add if step.on else self._refusing.discard)(step.table)

    def _hush(self, step: ledger_plan.Hush) -> None:
        self.lab.veto(f"{LEDGER}{step.table}", on=not step.on)
        silent = self._books().judge.silent
        (silent.add if step.on else silent.discard)(step.table)

    def _loosen(self, step: ledger_plan.Loosen) -> None:
        self.lab.omid.set(f"{LEDGER}{step.table}", DURABILITY="ASYNC_WAL" if step.on else "USE_DEFAULT")
        loose = self._books().judge.alarms.loose
        (loose.add if step.on else loose.discard)(step.table)

    def note(self, line: str) -> None:
        """One decision, or what came of it."""
        self.trace.append(line)

    def seen(self) -> Seen:
        """What there is now."""
        return Seen(self.tables.raw(), self.lab.raw(COMMIT_TABLE), self.lab.journal(), self.oracles.foreign())

    def _shape_now(self, **changes: Any) -> Shape:
        return replace(self._shape, tables=tuple(sorted(self.tables.there)), **changes)

    # -- steps

    def _take(self, step: Step) -> None:
        """One step, and what is true after it."""
        self._stop_if_enough()
        if self.strikes.pass_step():
            self._receive()
        self.counts[type(step).__name__] += 1
        said = ""
        try:
            said = self._STEPS[type(step)](self, step) or ""
        except WorkloadError as error:
            # HBase refuses what cannot be done to a table now, such as to merge its last region.
            said = f"refused, {str(error).split(': ')[1:2]}"
            self.counts["refused"] += 1
        self.note(f"{step.number}: {told(step)}{said and ': '}{said}")

    def _clients(self, step: Clients) -> str:
        self.tables.make_fit()
        ends = {"crashes": 0.5, "steps": (1, 2), "crash_points": step.crashing} if step.crashing else {}
        shape = self._shape_now(**(_DELETING if step.deleting else ends))
        groups = script.generate(shape, step.seed, step.transactions)
        self.lab.omid.run(groups, self.lab.log, threads=1)
        return self._read_log()

    def _open_group(self, step: Open) -> str:
        self.tables.make_fit()
        if step.calm:
            shape = self._shape_now(overlaps=0.0, crashes=0.0, rollbacks=0.0, reads=0.0, checkpoints=0.0, steps=(4, 6))
        else:
            shape = self._shape_now(overlaps=1.0, steps=(2, 6))
        self.lab.omid.open(step.seed, script.generate(shape, step.seed, 1)[0], self.lab.log)
        self._open.append(step.seed)
        return self._turns(step.seed, 2)

    def _turn(self, step: Turn) -> str:
        if not self._open:
            return "nobody is there"
        self.tables.make_fit()
        return self._turns(self._open[step.pick % len(self._open)], step.turns)

    def _turns(self, name: str, turns: int) -> str:
        for _ in range(turns):
            if not self.lab.omid.turn(name):
                self._open.remove(name)
                break
        return self._read_log()

    def _watermark(self, _: Watermark) -> None:
        self.lab.omid.advance_watermark()

    def _phantom(self, _: Phantom) -> None:
        start = self.lab.omid.begin()
        self.judge.history.committed(start, self.lab.omid.decide(start))

    def _land(self, step: Land) -> str:
        # What the bound has passed is over for good: there the grace is to be longer than anything is under way. A
        # pruning goes by a bound of its own, which nobody need have published, and journals what it takes.
        bound = max(self._highest_bound, self.judge.bound, self.judge.history.pruned)
        over = journal_entries(self.lab.journal())
        late = sorted(start for start in self._in_flight if start > bound and start not in over)
        if not late:
            return "there is none"
        start = late[step.pick % len(late)]
        commit, omid = self._in_flight.pop(start), self.lab.omid
        there = omid.commit_table().get(start)
        marked = there is not None and there.invalid
        if not (step.guarded and marked):
            omid.add_commit_entry(start, commit)
        if marked:
            return "it is marked"
        self.counts["landed"] += 1
        self.judge.history.committed(start, commit)
        if not step.taken:
            return "it commits"
        omid.delete_commit_entry(start)
        self.judge.history.untold_of(start)
        return "it commits, and nothing tells"

    def _compact(self, _: Compact) -> None:
        self.lab.omid.flush(COMMIT_TABLE)
        self.lab.omid.compact(COMMIT_TABLE, major=True)

    def _unheal(self, step: Alter) -> str:
        """Of the cleanup at whose seam that is; it has yet to look."""
        if not self._under_way or not (first := self._under_way[-1].first):
            return "nobody is at work"
        return self.tables.unheal(step.table, set(unproved(standing(first.tables.get(step.table, ())))))

    def _alter(self, step: Alter) -> str | None:
        if step.change is Change.UNHEAL:
            return self._unheal(step)
        said = self.tables.alter(step, written=bool(self._open))
        if said is None and step.change in {*LOSING, Change.RENAME}:
            for each in self._under_way:
                each.came_back_since |= {step.table, *([Table.C] if step.change is Change.RENAME else [])}
        return said

    def _forgotten(self, emptied: list[Table]) -> None:
        """The oracle begins anew: nobody is in the middle of anything any more, and what ran before is of before."""
        for each in self._under_way:
            each.anew_since = True
            each.came_back_since |= set(emptied)
        self._ran_before = [*self._ran]
        for what in (self._open, self._points, self._ran, self._plans, self._in_flight):
            what.clear()  # type: ignore[attr-defined]
        self._highest_bound = 0

    def _look(self, _: Look) -> None:
        self._points.append(self.lab.omid.begin())

    def _read(self, step: Read) -> str | None:
        if not self._points:
            return "nobody is there"
        point = self._points[step.pick % len(self._points)]
        said, answered = [], True
        for table in sorted(set(self.tables.every()) - self.tables.disabled.keys() - self.tables.garbled.keys()):
            mark = self.judge.marks.get(table, -1)
            answered &= point >= mark and self._read_by_omid(f"step {step.number}", table, point, heals=step.heals)
            if step.as_of:
                said.append(self._as_of(step, table, point, mark))
        if answered:
            self.strikes.heard()
        return ", ".join(said)

    def _read_by_omid(self, where: str, table: str, point: int, *, heals: bool) -> bool:
        """Whether Omid's reader was answered."""
        try:
            got = self.lab.omid.read(table, point, heal=heals)
        except WorkloadError as error:
            self.judge.read_failed(where, error, shaken=self.strikes.shaken)
            return False
        self.judge.read(where, table, point, got)
        return True

    def _as_of(self, step: Read, table: str, point: int, mark: int) -> str:
        got = self.lab.as_of(table, point)
        if got is None:
            return "refused"
        self.judge.read_as_of(f"step {step.number}", table, point, got, mark)
        return f"{len(got)} cells"

    def _age(self, _: Age) -> str | None:
        if self._under_way:
            return "somebody is at work"
        self.lab.make_sidelines_old()
        self.judge.is_old()
        return None

    def _settle(self, _: Settle) -> None:
        self._mend_all()
        self._allow_all()

    def _resume(self, step: Resume) -> str | None:
        if not self._parked:
            return "nobody is parked"
        actor = self._parked.pop(step.pick % len(self._parked))
        self.counts["zombies"] += 1
        return self._go_on(actor)

    def _nemesis(self, step: Nemesis) -> str | None:
        if self._ending:  # a run that was parked comes to it only now
            return "the faults have ended"
        if step.kind in AT_HBASE and self.strikes.late:
            self._receive()
        self.strikes.strike(step)
        return None

    def _receive(self) -> None:
        """What is late arrives: a write of a run that is long past it, perhaps over, and judged as any of its."""
        actor, self._awaited = self._awaited, None
        assert actor is not None
        actor.before = self.seen()
        self.strikes.deliver()
        where = f"{actor.run_id} ({actor.step.job}), a request that came late"
        self._judged(actor, where, records=True, silent=self._silent_then)
        if actor.over:
            self._under_way.remove(actor)

    def _run(self, step: Run) -> str | None:
        run_id = self._last_that_acted() if step.again else f"run-{self.plan.seed}-{step.number}"
        if not run_id:
            return "nobody was there"
        arguments = step.arguments
        for word, (choices, none) in self._stand_for().items():
            if word in arguments:
                if not choices:
                    return none
                chosen = choices[step.pick % len(choices)]
                arguments = tuple(chosen if a == word else a for a in arguments)
        if step.job in APPROVABLE and not step.again:
            self._ran.append(run_id)
        arguments = self._with_files(run_id, arguments)
        if "{plan}" in arguments:
            plans = [dry for dry in self._plans if dry.step.job == step.job]
            if not plans:
                return "there is no plan"
            dry = plans[step.pick % len(plans)]
            arguments = (*dry.arguments, "--execute", "--approved", str(self.lab.summary(dry.run_id)))
            actor = Actor(self, step, run_id, arguments, approved=dry)
        else:
            actor = Actor(self, step, run_id, arguments)
        return self._start(actor)

    def _stand_for(self) -> dict[str, tuple[Sequence[str], str]]:
        """What words in a run's arguments may stand for now, and what is said where there is nothing."""
        mistaken = [f"{start}={commit}" for start, commit in self.judge.history.mistaken.items()]
        return {
            "{run}": (self._ran, "there is no run"),
            "{before}": (self._ran_before, "there was no run"),
            "{time}": ([time.isoformat() for time in self._times], "no run has ended"),
            MISTAKEN: (mistaken, "nobody was mistaken"),
        }

    def _last_that_acted(self) -> str:
        dry = {actor.run_id for actor in self._plans}
        return next((run for run in reversed(self._ran) if run not in dry), "")

    def _with_files(self, run_id: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
        files = {WITH_GRACE: self.lab.with_grace, ledger_plan.CSV: self.lab.table_of_balances(run_id)}
        return tuple(str(files.get(word, word)) for word in arguments)

    _STEPS: dict[type, Callable] = {  # type: ignore[type-arg]  # noqa: RUF012
        Clients: _clients,
        Open: _open_group,
        Turn: _turn,
        Watermark: _watermark,
        Phantom: _phantom,
        Land: _land,
        Compact: _compact,
        Alter: _alter,
        Say: lambda self, step: self.people.say(step),
        Look: _look,
        Read: _read,
        Age: _age,
        Settle: _settle,
        Resume: _resume,
        Run: _run,
        Nemesis: _nemesis,
        Oracle: lambda self, step: self.oracles.happen(step),
        ledger_plan.Transfers: lambda self, step: self._books().transfers(step),
        ledger_plan.Send: lambda self, step: self._books().send(step),
        ledger_plan.Move: lambda self, step: self._books().move(step),
        ledger_plan.Balance: lambda self, step: self._books().balance(step),
        ledger_plan.Forge: lambda self, step: self._forging().forge(step),
        ledger_plan.Undo: lambda self, _: self._forging().undo(),
        ledger_plan.Mend: _mend,
        ledger_plan.Lose: lambda self, _: self._forging().lose(),
        ledger_plan.Refuse: _refuse,
        ledger_plan.Hush: _hush,
        ledger_plan.Loosen: _loosen,
        ledger_plan.BreakOff: lambda self, step: self._books().break_off(step),
        sql_plan.Transactions: lambda self, step: self._phoenix.transactions(step),
        sql_plan.Begin: lambda self, step: self._phoenix.begin(step),
        sql_plan.End: lambda self, step: self._phoenix.end(step),
        sql_plan.Ask: lambda self, step: self._phoenix.ask(step),
        sql_plan.AskAgain: lambda self, step: self._phoenix.ask_again(step),
        sql_plan.Alter: lambda self, step: self._phoenix.alter(step),
    }

    # -- runs

    def _start(self, actor: Actor) -> str:
        if self._bank and actor.step.job in (ledger_plan.REPAIR, ledger_plan.BALANCES):
            self._bank.judge.begins(actor.run_id, actor.arguments, GRACE * (WITH_GRACE in actor.step.arguments))
        actor.hidden_then = frozenset(self.tables.hidden)
        actor.loose_then = frozenset(self.tables.loose)
        actor.clock_off = True
        # One that is done again goes on from what those of its name have read, when other cells may have been there.
        if actor.step.job == "orphan_cleanup" and not self.plan.phoenix and not actor.step.again:
            actor.first = self.seen()
        self._under_way.append(actor)
        return self._go_on(actor)

    def _go_on(self, actor: Actor) -> str:
        """Give a run the baton until it is over or parked; what became of it."""
        while True:
            lies = self.strikes.told()
            if not actor.looked:  # before, it may have been compared when it was right
                actor.clock_off &= self.strikes.clock_off
            with self.strikes.loose():
                actor.go_on()
            actor.lied_to |= self.strikes.told() > lies
            if self._awaited is None and self.strikes.late:
                self._awaited = actor
                self._silent_then = self.people.silent(actor.hidden_then)
            if actor.over:
                self.lab.settle()  # dead or alive, nothing of it may write from here on
                self._times.append(datetime.now(UTC))
                self._stop_if_enough()
                break
            if actor.wish == PARK:
                self._parked.append(actor)
                return "parked"
            for step in actor.wish:
                self._take(step)  # type: ignore[arg-type]
        if actor is not self._awaited:
            self._under_way.remove(actor)
        said = self._ended(actor)
        if "--as-committed" in actor.arguments:
            self._put_right(actor)
        self._look_aside(actor)
        if self._phoenix:
            self._phoenix.asked(actor.run_id)
        self._strike_after(actor)
        return said

    def _put_right(self, actor: Actor) -> None:
        """A restore has ended that was told of a mistake."""
        tables = actor.outcome.summary["tables"] if actor.outcome and actor.puts_back else []
        back = {t["table"]: self.lab.aside(actor.puts_back, t["table"]) for t in tables if not t["problems"]}
        whole = actor.outcome is not None and actor.outcome.code == 0
        self.judge.put_right(actor.run_id, self.seen(), whole=whole, back=back)

    def _look_aside(self, actor: Actor) -> None:
        """What is put aside, when a run has ended; and what it says of that."""
        where = f"{actor.run_id} ({actor.step.job})"
        self.judge.aside(where, self.lab.put_aside(), [each.puts_back for each in self._under_way if each.puts_back])
        if actor.outcome and not self.strikes.at_the_sideline:
            self.judge.could_put_aside(where, actor.outcome.problems)

    def _strike_after(self, actor: Actor) -> None:
        """A nemesis that was to meet a run where that never came meets what comes after it."""
        for seam in actor.step.seams:
            for step in () if seam.number in actor.reached else seam.steps:
                if isinstance(step, Nemesis):
                    self._take(step)

    def happened(self, actor: Actor, effect: Effect, *, failed: bool = False) -> None:
        """Called in the run's thread, after an effect of it; also after one that *failed*: what HBase did though nobody
        was told is as right as anything else, or wrong.
        """
        self.counts["effects that failed" if failed else "effects"] += 1
        if not failed:
            actor.did(effect)
        if failed and effect.seam == "connector":
            self.lab.settle()
        where = f"{actor.run_id} ({actor.step.job}), {effect.seam} {effect.name} of {effect.step}"
        self._judged(actor, where, records=effect.seam in ("rows", "gateway"))
        self._highest_bound = max(self._highest_bound, self.judge.bound)
        if actor.first and effect.step.endswith(RECORD):
            self.judge.done(where, actor.run_id, actor.first, self.seen(), actor.came_back_since)
        if effect.step.endswith(RECORD):
            self._went_by(actor, where, self.judge.just_recorded(actor.run_id))
        if effect.step.endswith("add_bound"):
            self.judge.published(where, self.seen())

    def _judged(self, actor: Actor, where: str, *, records: bool, silent: set[str] | None = None) -> None:
        if records:
            self.judge.recorded(where, actor.run_id, self.lab.raw(STATE), of_before=actor.of_before)
        if self._bank and actor.step.job == ledger_plan.REPAIR:
            self._books().look(where, actor.run_id)
        self._written(actor, where, silent)

    def _written(self, actor: Actor, where: str, silent: set[str] | None = None) -> None:
        """Judge the write that the run is in. *silent*: the tables that it was not to write to, if not those of now."""
        before, actor.before = actor.before, None
        if before is None:
            return
        self.counts["writes"] += 1
        after = self.seen()
        changed = [table for table in after.tables if before.tables[table] != after.tables[table]]
        aside = {table: self.lab.aside(actor.run_id, table) for table in changed}
        may_not = self.people.silent(actor.hidden_then) if silent is None else silent
        # What comes late was sent when the table may have been its own.
        owner = actor.run_id if actor.step.job == "orphan_cleanup" and silent is None else ""
        self.judge.written(
            where,
            before,
            after,
            aside,
            came_back=actor.came_back_since,
            listed_again=actor.listed_again,
            silent=may_not,
            owner=owner,
        )
        if actor.step.job == "sideline_restore" and silent is None:
            self.judge.put_back_beside(where, before, after)
        if actor.step.job in APPROVABLE and silent is None:
            self._went_by(actor, where, changed)
        if "--execute" not in actor.arguments:
            self.judge.dry(where, before, after)
        # What comes late was sent when the commit table had not come back.
        if actor.anew_since or (actor.entries_back and silent is None):
            self.judge.written_by_one_of_before(where, before, after, actor.of_before)
        if actor.clock_off:
            self.judge.written_by_a_wrong_clock(where, before, after)

    def _went_by(self, actor: Actor, where: str, tables: Collection[str]) -> None:
        """It has written to these tables, or recorded what it did."""
        for table in sorted(actor.loose_then & self.tables.loose & set(tables)):
            self.judge.went_by(where, table, actor.flushed[table])

    def _ended(self, actor: Actor) -> str:
        if actor.error is not None:
            raise actor.error
        where = f"{actor.run_id} ({actor.step.job})"
        assert actor.life is not None
        self.counts.update({"seams": len(actor.step.seams), "seams reached": len(actor.reached)})
        if self._bank:
            self._of_the_ledger(actor, where)
        if actor.life.killed:
            # What it did in part before is its own, not of whoever acts next.
            self._judged(actor, f"{where}, which died", records=True)
            self.counts["deaths"] += 1
            return f"died after {len(actor.life.effects)} effects, {actor.life.applied or 'whole'}"
        assert actor.outcome is not None
        self.judge.recorded(where, actor.run_id, self.lab.raw(STATE))
        self.judge.ended(where, actor.outcome.code, actor.outcome.summary)
        self.counts[f"exit {actor.outcome.code}"] += 1
        if actor.step.job == "watermark_collection" and actor.outcome.code == 0:
            self.judge.published(where, self.seen(), actor.came_back_since)
        if actor.outcome.code == 0 and "--execute" not in actor.arguments:
            self._plans.append(actor)
        if actor.approved and actor.approved.outcome:
            self.judge.held_to(where, actor.outcome.totals, actor.approved.outcome.totals)
        if "--execute" in actor.arguments:
            self._got_far(actor)
        totals = {name: n for name, n in sorted(actor.outcome.totals.items()) if n and isinstance(n, int)}
        if actor.lied_to:
            # Which of two tasks' requests it was, and so how often something was done again, the plan does not say.
            return f"exit {actor.outcome.code}, lied to"
        told = {name: n for name, n in totals.items() if not name.startswith("bytes")}
        # Without the folder's name, regions' names and numbers, which are other ones another time.
        problems = actor.outcome.problems.replace(str(self.lab.folder.parent), "")
        why = re.sub(r"[0-9a-f]{32}|\d+", "N", problems)[:80] if actor.outcome.code else ""
        return f"exit {actor.outcome.code}, {told}{why and ': '}{why}"

    def _of_the_ledger(self, actor: Actor, where: str) -> None:
        """What a run says that concerns it."""
        judge, outcome = self._books().judge, actor.outcome
        if actor.step.job == ledger_plan.REPAIR:
            self._books().look(where, actor.run_id)
        if outcome is None:
            judge.alarms.died(actor.run_id)
        elif actor.step.job == ledger_plan.BALANCES:
            if not outcome.code:
                judge.is_told_total(where, outcome.summary["figures"]["total"])
            if not outcome.code and ledger_plan.CSV in actor.step.arguments:
                judge.is_told_all(where, ledger_plan.USERS, self.lab.balances(actor.run_id))
            judge.alarms.balanced(where, actor.run_id, outcome.code)
        elif actor.step.job == ledger_plan.REPAIR:
            notes = [note for table in outcome.summary["tables"] for note in table["notes"]]
            judge.repaired(where, actor.run_id, outcome.code, outcome.problems.splitlines(), notes)

    def _came_clean(self, actor: Actor) -> None:
        """Tables that came back are as good as ever once a run has read them whole."""
        named = [a for a in actor.arguments if a in list(Table)] or list(Table)
        tables = self.tables
        passed_over = {*tables.disabled, *tables.vetoed, *self.people.paused, *tables.hidden, *tables.imported}
        self.judge.cleaned(set(named) - passed_over, actor.came_back_since)

    def _got_far(self, actor: Actor) -> None:
        """How far it has cleaned each table, pruned, or put back what was pruned."""
        assert actor.outcome is not None
        summary = actor.outcome.summary
        if actor.step.job == "orphan_cleanup" and "--to" not in actor.arguments:
            whole = [t["table"] for t in summary["tables"] if t["regions"] and t["regions_recorded"] == t["regions"]]
            self.judge.cleaned_up_to(summary["low_watermark"] or 0, whole, actor.came_back_since)
            if actor.outcome.code == 0:
                self._came_clean(actor)
        if actor.step.job == "journal_replay" and actor.outcome.code == 0 and not actor.came_back_since:
            self.judge.replayed()
        if actor.step.job == "commit_table_pruning" and actor.outcome.code == 0:
            self.judge.history.pruned = max(self.judge.history.pruned, summary["bound"] or 0)

    # -- clients

    def _read_log(self) -> str:
        """What the clients have told since; how their transactions ended."""
        if not self.lab.log.exists():
            return ""
        history = self.judge.history
        before = len(history.ended), len(history.commits)
        with self.lab.log.open() as log:
            log.seek(self._read_to)
            while line := log.readline():
                history.read(line)
            self._read_to = log.tell()
        watermark = self.lab.omid.watermark() if history.unanswered else 0
        for start in sorted(history.unanswered):
            if start > watermark:
                self._in_flight[start] = self.lab.omid.begin()
        history.unanswered.clear()
        ended, committed = len(history.ended) - before[0], len(history.commits) - before[1]
        self.counts.update({"transactions ended": ended, "transactions committed": committed})
        return f"{ended} ended, {committed} committed"

    # -- the end

    def _end_the_faults(self) -> None:
        """Servers run, networks and clocks tell the truth; whoever is parked goes on; nothing is disabled, paused,
        vetoed or held.
        """
        self._mend_all()
        self._ending = True
        if self._bank:
            self._forging().undo()
            for table in sorted(self._refusing):
                self._refuse(ledger_plan.Refuse(-1, table, on=False))
            for table in sorted(self._bank.judge.silent):
                self._hush(ledger_plan.Hush(-1, table, on=False))
            for table in sorted(self._bank.judge.alarms.loose):
                self._loosen(ledger_plan.Loosen(-1, table, on=False))
        if self._phoenix:
            self._phoenix.no_faults()
        self._read_log()
        while self._parked:
            actor = self._parked.pop(0)
            self.counts["zombies"] += 1
            self.note(f"{actor.run_id} goes on at the end: {self._go_on(actor)}")
        self.tables.make_fit()
        self.oracles.settle()
        self._allow_all()
        # Nothing lands any more.
        self._in_flight.clear()

    def _mend_all(self) -> None:
        if self.strikes.late:
            self._receive()
        self.strikes.end()

    def _allow_all(self) -> None:
        self.tables.make_fit()
        self.people.take_all_back()
        self.tables.show_all()

    def _last_rounds(self) -> None:
        """The jobs, with nothing else going on, until all of them end well, at most :data:`LAST_ROUNDS` times."""
        number = max(self.plan.numbers(), default=0)
        for _ in range(LAST_ROUNDS):
            self.lab.omid.advance_watermark()
            codes, collected = [], {}
            jobs = _LAST + (ledger_plan.LAST if self._bank else ())
            for job, *arguments in jobs:
                number += 1
                step = Run(number, job, tuple(arguments))
                run_id = f"run-{self.plan.seed}-{number}"
                actor = Actor(self, step, run_id, self._with_files(run_id, step.arguments))
                self.note(f"{job} at the end: {self._start(actor)}")
                assert actor.outcome is not None
                codes.append(actor.outcome.code)
                if actor.outcome.code:
                    last = actor.outcome.problems
                if job == "watermark_collection":
                    collected = actor.outcome.summary
            if not any(codes):
                holders = {blocker["table"] for blocker in collected["blockers"]}
                own = {*map(str, Table), *self.tables.physical}
                self.judge.came_up(collected["bound"], collected["low_watermark"], holders - own)
                return
            self.people.decide_the_rest()
        self.judge.wrong.append(f"at the end: after {LAST_ROUNDS} rounds the jobs still fail: {last} (9)")

    def _read_everything(self, seen: Seen) -> None:
        """Omid's own reader, at every read point at which something changed and that the mark leaves, some fifteen."""
        self.judge.came_back.clear()
        for table in seen.tables:
            mark = self.judge.kept(table)
            points = sorted(
                {*(c + 1 for c in self.judge.history.commits.values() if c >= mark), *([mark] if mark > 0 else [])}
            )
            for point in points[:: max(1, len(points) // 15)]:
                got = self.lab.omid.read(table, point)
                self.judge.read("at the end", table, point, got, whole=True)

    def _left(self, seen: Seen) -> list[str]:
        rows = self._books().decided() if self._bank else []
        history = self.judge.history
        known = {*history.begun, *history.commits.values()} if self.plan.phoenix else ()
        tables = {**seen.tables, COMMIT_TABLE: seen.commit_table}
        of_tables = (f"{t} {cell!r}" for t, raw in tables.items() for cell in self.lab.from_origin(raw, known, t))
        return [*map(repr, rows), *of_tables]
