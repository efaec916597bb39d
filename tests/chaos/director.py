"""Lets a plan happen, with a *baton*: whoever has it takes a step, everybody else stands still.

The director has it first. Clients take a turn when it says so. A run of a job has a thread of its own, and hands the
baton back at its seams (:mod:`tests.store.deadman`: before and after everything that it changes); there the plan may
have steps, other runs among them, let the run die, or park it. So nothing depends on what is faster, and a plan that is
carried out again is meant to make the same decisions in the same order, and the same cells.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import deadman
from deadman import Die, Effect
from job_kit import Outcome

from lowtide.errors import LowtideError, UsageError
from lowtide.lab.workload import Shape, WorkloadError, script
from lowtide.lab.workload.client import ALL_VERSIONS, COMMIT_TABLE
from tests.chaos import ledger_plan
from tests.chaos.judge import Judge, Key, Raw, Seen, standing
from tests.chaos.laboratory import FAMILIES, NO_COMPACTIONS, STATE, Laboratory, row
from tests.chaos.ledger_clients import Bank, judge_of
from tests.chaos.nemeses import ANY, AT_HBASE, Kind
from tests.chaos.plan import (
    APPROVABLE,
    LOSING,
    ROWS,
    Act,
    Alter,
    Change,
    Clients,
    Land,
    Look,
    Moment,
    Nemesis,
    Open,
    Phantom,
    Plan,
    Read,
    Resume,
    Run,
    Say,
    Seam,
    Step,
    Table,
    Turn,
    Watermark,
    Word,
    told,
)
from tests.chaos.striking import Strikes

#: Runs at the end, after which nothing may be left.
LAST_ROUNDS = 3
_LAST = (
    ("orphan_cleanup", "--full", "--execute"),
    ("watermark_collection", "--execute"),
    ("commit_table_pruning", "--grace", "0s", "--execute"),
)
_PARK = "park"


@dataclass
class Report:
    """What came of a plan."""

    plan: Plan
    wrong: list[str]
    #: Every decision in its order, and what came of it.
    trace: list[str]
    #: Of the trace, and of the cells of the plan's tables and the commit table at the end.
    digest: str
    counts: Counter[str]

    def __str__(self) -> str:
        return "\n".join([str(self.plan), "", *self.trace, "", *(self.wrong or ["nothing is wrong"])])


@dataclass(eq=False)
class Actor(threading.Thread):
    """A run of a job, which goes on only while it has the baton."""

    director: Director
    step: Run
    run_id: str
    arguments: Sequence[str]
    outcome: Outcome | None = None
    error: BaseException | None = None
    life: deadman.Life[Outcome] | None = None
    over: bool = False
    #: What it wants of the director: nothing (it is over), steps, or to be parked.
    wish: Sequence[Step] | str = ()
    #: What there was before the write that it is in.
    before: Seen | None = None
    #: Tables that came back since it looked which there are: it cannot know of those.
    came_back_since: set[str] = field(default_factory=set)
    #: Whether a relay has lied about a request of it.
    lied_to: bool = False
    #: The dry run that it is held to.
    approved: Actor | None = None
    #: Tables that hid cells when it began.
    hidden_then: frozenset[str] = frozenset()
    _go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _back: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _met: Counter[str] = field(default_factory=Counter)
    #: The numbers of its seams that it came to.
    reached: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__(name=self.run_id, daemon=True)

    def run(self) -> None:
        """The thread's work."""
        self._go.acquire()
        try:
            session = self.director.lab.spark
            session._jvm.SparkSession.setActiveSession(session._jsparkSession)  # type: ignore[union-attr]
            self.life = deadman.run(self._work, self._watch, reads=True)
            self.outcome = self.life.result
        except BaseException as error:  # the director raises it
            self.error = error
        self.over = True
        self._back.release()

    def did(self, effect: Effect) -> None:
        """An effect has taken place. A run lists the tables after it has recorded the low watermark: what came back
        before that it knows.
        """
        if effect.step.endswith("record_low_watermark"):
            self.came_back_since.clear()

    def _work(self) -> Outcome:
        return self.director.lab.job(self.step.job, self.run_id, *self.arguments)

    def go_on(self) -> None:
        """Called by the director: give it the baton, and wait until it comes back."""
        if not self.is_alive():
            self.start()
        self._go.release()
        self._back.acquire()

    def _hand_over(self, wish: Sequence[Step] | str) -> None:
        self.wish = wish
        self._back.release()
        self._go.acquire()

    def _watch(self, effect: Effect, moment: deadman.Moment) -> Die | None:
        try:
            return self._met_at(effect, moment)
        except Exception as error:  # ours, and no matter for the run to handle: the director raises it
            self.error = self.error or error
            return Die()

    def _met_at(self, effect: Effect, moment: deadman.Moment) -> Die | None:
        if threading.current_thread() is not self:  # a hold that is renewed
            return None
        if moment is not deadman.Moment.BEFORE:
            self.director.strikes.ended(effect)
            if effect.number:
                self.director.happened(self, effect, failed=moment is deadman.Moment.FAILED)
            if moment is deadman.Moment.FAILED:  # the run goes on with its error, and no step comes first
                return None
        else:
            self._met.update([effect.seam, *([ANY] if effect.number else [])])
        for seam in self._seams(effect, moment):
            self.reached.add(seam.number)
            self.director.note(f"{self.run_id} {moment} {effect.seam} {effect.name} of {effect.step}: it {seam.act}")
            if seam.steps:
                self._hand_over(seam.steps)
            if seam.act is Act.PARK:
                self._hand_over(_PARK)
            elif seam.act is not Act.ON:
                self._begins(effect)
                return Die(seam.share if seam.act is Act.PART else None, seam.seed)
        if moment is deadman.Moment.BEFORE:
            self._begins(effect)
        return None

    def _begins(self, effect: Effect) -> None:
        self.director.strikes.begins(effect)
        if effect.seam == "connector":
            self.before = self.director.seen()

    def _seams(self, effect: Effect, moment: deadman.Moment) -> list[Seam]:
        here = Moment.AFTER if moment is deadman.Moment.AFTER else Moment.BEFORE
        met = {effect.seam: self._met[effect.seam], **({ANY: self._met[ANY]} if effect.number else {})}
        return [s for s in self.step.seams if s.moment is here and met.get(s.kind) == s.nth]


class Director:
    """Carries out one plan, once."""

    def __init__(self, lab: Laboratory, plan: Plan) -> None:
        self.lab = lab
        self.plan = plan
        self.judge = Judge()
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
        #: Dry runs that ended well.
        self._plans: list[Actor] = []
        self._points: list[int] = []
        self._holds: dict[str, list[str]] = {table: [] for table in Table}
        self._paused: dict[str, str] = {}
        self._vetoed: set[str] = set()
        self._vetoed_then: set[str] = set()
        self._disabled: dict[str, Raw] = {}
        self._there = {Table.A, Table.B}
        #: What the HBase snapshots have, as one who exports them sees it.
        self._exports: dict[str, dict[Key, bytes]] = {}
        #: Those that a person has yet to confirm.
        self._imported: set[str] = set()
        self._hidden: set[str] = set()
        self._compactor: set[str] = set()
        self._hidden_then: set[str] = set()
        #: Commit timestamps of transactions whose clients have no answer, by start.
        self._in_flight: dict[int, int] = {}
        self._highest_bound = 0
        self._bank: Bank | None = None
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
        )
        try:
            with self.lab.ledger() if self.plan.ledger else nullcontext() as store:
                if store:
                    self._bank = Bank(store, judge_of(self.judge.wrong, self.judge.counts))
                digest = self._all_of_it()
        finally:
            try:
                self.strikes.end()
            finally:
                self.lab.end()
        self.counts.update(self.judge.counts)
        self.counts.update(self.strikes.counts)
        return Report(self.plan, self.judge.wrong, self.trace, digest, self.counts)

    def _all_of_it(self) -> str:
        for step in self.plan.steps:
            self._take(step)
        self._end_the_faults()
        self._last_rounds()
        seen = self.seen()
        self.judge.at_the_end(seen)
        self._read_everything(seen)
        if self._bank:
            self._books().at_the_end()
        return self._digest(seen)

    def _books(self) -> Bank:
        """The plan's ledger, over a gateway that answers."""
        assert self._bank is not None
        self.strikes.put_back(Kind.GATEWAY)
        if self._gateways != self.strikes.gateways:
            self._gateways = self.strikes.gateways
            self._bank.store.renew()
        return self._bank

    def note(self, line: str) -> None:
        """One decision, or what came of it."""
        self.trace.append(line)

    def seen(self) -> Seen:
        """What there is now. A disabled table has what it had."""
        raw = self.lab.raw
        tables = {str(t): self._disabled[t] if t in self._disabled else raw(t) for t in sorted(self._there)}
        return Seen(tables, raw(COMMIT_TABLE), self.lab.journal())

    def _shape_now(self, **changes: Any) -> Shape:
        return replace(self._shape, tables=tuple(sorted(self._there)), **changes)

    # -- steps

    def _take(self, step: Step) -> None:
        """One step, and what is true after it."""
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
        self._enable_all()
        groups = script.generate(self._shape_now(), step.seed, step.transactions)
        self.lab.omid.run(groups, self.lab.log, threads=1)
        return self._read_log()

    def _open_group(self, step: Open) -> str:
        self._enable_all()
        shape = self._shape_now(overlaps=1.0, steps=(2, 6))
        self.lab.omid.open(step.seed, script.generate(shape, step.seed, 1)[0], self.lab.log)
        self._open.append(step.seed)
        return self._turns(step.seed, 2)

    def _turn(self, step: Turn) -> str:
        if not self._open:
            return "nobody is there"
        self._enable_all()
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
        # What the bound has passed is over for good: there the grace is to be longer than anything is under way.
        bound = max(self._highest_bound, self.judge.bound)
        late = sorted(start for start in self._in_flight if start > bound)
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
        self.judge.history.committed(start, commit)
        self.counts["landed"] += 1
        return "it commits"

    def _alter(self, step: Alter) -> str | None:
        table = step.table
        if (table in self._there) is (step.change in (Change.MAKE, Change.COPY)):
            return f"it is {'' if table in self._there else 'not '}there"
        if table in self._disabled:
            if step.change is not Change.ENABLE:
                return "it is disabled"
            self._enable(table)
            return None
        change = self._CHANGES.get(step.change)
        said = None if change is None else change(self, table, row(step.key).encode())
        if step.change in LOSING:
            for each in self._under_way:
                each.came_back_since.add(table)
        return said

    def _flush(self, table: Table, _: bytes) -> None:
        self.lab.omid.flush(table)

    def _compact(self, table: Table, _: bytes) -> None:
        self.lab.omid.compact(table, major=True)
        if table in self._compactor:
            self.judge.compacted(table, self.lab.omid.watermark())

    def _give_compactor(self, table: Table, _: bytes) -> None:
        self.lab.omid.attach_omid_compactor(table)
        self._compactor.add(table)

    def _compact_some(self, table: Table, _: bytes) -> None:
        """Two files are enough for once; HBase takes those that it finds worth it, and drops no delete marker."""
        self.lab.omid.set(table, **dict.fromkeys(NO_COMPACTIONS, "2"))
        try:
            self.lab.omid.flush(table)
            self.lab.omid.compact(table, major=False)
        finally:
            self.lab.omid.set(table, **NO_COMPACTIONS)

    def _split(self, table: Table, key: bytes) -> None:
        self.lab.omid.split(table, key)
        self._compact(table, key)  # HBase would by itself, at some time: daughters refer to their parent's files

    def _merge(self, table: Table, key: bytes) -> None:
        self._compact(table, key)
        self.lab.omid.merge(table, key)
        self._compact(table, key)

    def _move(self, table: Table, key: bytes) -> None:
        self.lab.omid.move(table, key)

    def _add_family(self, table: Table, key: bytes) -> None:
        self.lab.omid.add_family(table, f"c{key.decode()}")

    def _disable(self, table: Table, _: bytes) -> None:
        self.lab.omid.flush(table)
        self._disabled[table] = self.lab.raw(table)
        self.lab.omid.disable(table)

    def _truncate(self, table: Table, _: bytes) -> None:
        self.lab.omid.truncate(table)
        self.judge.history.emptied(table)

    def _make_anew(self, table: Table, _: bytes) -> None:
        self.lab.omid.drop(table)
        self.lab.make(table)
        self.judge.history.emptied(table)
        for said in (self._vetoed, self._hidden):
            said.discard(table)

    def _make(self, table: Table, _: bytes) -> None:
        self.lab.make(table)
        self._there.add(table)

    def _copy(self, table: Table, key: bytes) -> str | None:
        source = Table.A if key < row(ROWS // 2).encode() else Table.B
        if not self.judge.history.copyable(source):
            return "there is none that tells"
        self.lab.omid.clone(_snapshot(source), table)
        self._there.add(table)
        self._imported.add(table)
        self.judge.history.copied(source, table)
        self.judge.came_back.add(table)
        self._as_then(source, table)
        return None

    def _drop(self, table: Table, _: bytes) -> str | None:
        if self._open:
            return "somebody writes to it"
        self.lab.omid.drop(table)
        self._there.discard(table)
        self.judge.history.emptied(table)
        for said in (self._vetoed, self._hidden, self._imported, self.judge.came_back):
            said.discard(table)
        self.judge.dropped(table)
        return None

    def _load(self, table: Table, _: bytes) -> str | None:
        """As a backup is put back into a table that is there, with what docs/safety.md asks of who does so."""
        if not self.judge.history.loadable(table, self.lab.raw(table)):
            return "there is none that tells"
        self.strikes.put_back(Kind.GATEWAY)  # a person says so through it
        self.lab.omid.bulk_load(table, [(*key, value) for key, value in self._exports[table].items()])
        self.judge.history.loaded(table)
        self.judge.came_back.add(table)
        for said in (self.lab.forget, self.lab.confirm):
            with suppress(UsageError):  # nothing is recorded of it yet
                said(table)
        self.judge.recorded("a bulk load", "a person", self.lab.raw(STATE))
        return None

    def _hide(self, table: Table, key: bytes) -> None:
        """By a setting that takes nothing away from what is there."""
        few = key < row(ROWS // 2).encode()
        self.lab.omid.set(table, families={"VERSIONS": "1000"} if few else {"KEEP_DELETED_CELLS": "TRUE"})
        self._hidden.add(table)

    def _show(self, table: Table, _: bytes) -> None:
        self.lab.omid.set(table, families={"VERSIONS": str(ALL_VERSIONS), "KEEP_DELETED_CELLS": "FALSE"})
        self._hidden.discard(table)

    def _take_snapshot(self, table: Table, _: bytes) -> None:
        self._forget_snapshot(table)
        self.lab.omid.snapshot(table, _snapshot(table))
        self.judge.history.kept(table)
        self._exports[table] = standing(self.lab.raw(table))
        for then, now in ((self._vetoed_then, self._vetoed), (self._hidden_then, self._hidden)):
            then.discard(table)
            then |= now & {table}

    def _restore(self, table: Table, _: bytes) -> str | None:
        return self._bring_back(table, lambda: self.lab.omid.restore(_snapshot(table)))

    def _clone(self, table: Table, _: bytes) -> str | None:
        def cloned() -> None:
            self.lab.omid.drop(table)
            self.lab.omid.clone(_snapshot(table), table)

        return self._bring_back(table, cloned)

    _CHANGES: dict[Change, Callable] = {  # type: ignore[type-arg]  # noqa: RUF012
        Change.FLUSH: _flush,
        Change.COMPACT: _compact,
        Change.MINOR: _compact_some,
        Change.SPLIT: _split,
        Change.MERGE: _merge,
        Change.MOVE: _move,
        Change.FAMILY: _add_family,
        Change.DISABLE: _disable,
        Change.TRUNCATE: _truncate,
        Change.ANEW: _make_anew,
        Change.SNAPSHOT: _take_snapshot,
        Change.RESTORE: _restore,
        Change.CLONE: _clone,
        Change.HIDE: _hide,
        Change.SHOW: _show,
        Change.MAKE: _make,
        Change.COPY: _copy,
        Change.DROP: _drop,
        Change.COMPACTOR: _give_compactor,
        Change.LOAD: _load,
    }

    def _bring_back(self, table: Table, bring: Callable[[], None]) -> str | None:
        if not self.judge.history.restorable(table):
            return "there is none that tells"
        bring()
        self._there.add(table)
        self._as_then(table, table)
        self.judge.history.restored(table)
        self.judge.came_back.add(table)
        return None

    def _as_then(self, source: Table, table: Table) -> None:
        """The HBase snapshot has what the owner said then, and how the families kept cells."""
        for then, now in ((self._vetoed_then, self._vetoed), (self._hidden_then, self._hidden)):
            now.discard(table)
            if source in then:
                now.add(table)

    def _forget_snapshot(self, table: str) -> None:
        if _snapshot(table) in self.lab.omid.snapshots():
            self.lab.omid.delete_snapshot(_snapshot(table))

    def _say(self, step: Say) -> str | None:
        if step.table not in self._there:
            return "it is not there"
        self.strikes.put_back(Kind.GATEWAY)  # people say so through it
        try:
            return self._DECIDING.get(step.word, Director._say_of_tables)(self, step)
        except LowtideError as error:
            return type(error).__name__

    def _say_of_tables(self, step: Say) -> str | None:
        table = step.table
        match step.word:
            case Word.PAUSE if table not in self._paused:
                self._paused[table] = f"pause-{step.number}"
                self.lab.pause(table, self._paused[table])
            case Word.RESUME if table in self._paused:
                self.lab.resume(self._paused.pop(table))
            case Word.VETO if table not in self._disabled:
                self._vetoed.add(table)
                self.lab.veto(table, on=False)
            case Word.CONSENT if table in self._vetoed and table not in self._disabled:
                self._vetoed.discard(table)
                self.lab.veto(table, on=True)
            case Word.HOLD:
                name, point = self.lab.hold(table)
                self._holds[table].append(name)
                self.judge.held[table].append(point)
            case Word.RELEASE if self._holds[table]:
                self.lab.release(table, self._holds[table].pop(0))
                self.judge.held[table].pop(0)
            case _:
                return "nothing to say"
        return None

    def _forget(self, step: Say) -> None:
        self.lab.forget(step.table)
        self.judge.recorded(f"step {step.number}", "a person", self.lab.raw(STATE))

    def _confirm(self, step: Say) -> None:
        self.lab.confirm(step.table)
        self._imported.discard(step.table)

    def _resolve(self, step: Say) -> str:
        """What a person says of a transaction is so: of one that is over, and that the low watermark has passed."""
        history, watermark = self.judge.history, self.lab.omid.watermark()
        known = sorted(start for start in history.ended if start <= watermark and start not in self._in_flight)
        if not known:
            return "there is none"
        start = known[step.number * 7 % len(known)]
        self.lab.resolve(start, history.commits.get(start))
        return "it committed" if start in history.commits else "it never did"

    _DECIDING: dict[Word, Callable] = {  # type: ignore[type-arg]  # noqa: RUF012
        Word.FORGET: _forget,
        Word.CONFIRM: _confirm,
        Word.RESOLVE: _resolve,
    }

    def _look(self, _: Look) -> None:
        self._points.append(self.lab.omid.begin())

    def _read(self, step: Read) -> str | None:
        if not self._points:
            return "nobody is there"
        point = self._points[step.pick % len(self._points)]
        said = []
        for table in sorted(self._there):
            if table in self._disabled:
                continue
            mark = self.judge.marks.get(table, -1)
            if point >= mark:
                self._read_by_omid(f"step {step.number}", table, point)
            if step.as_of:
                said.append(self._as_of(step, table, point, mark))
        return ", ".join(said)

    def _read_by_omid(self, where: str, table: str, point: int) -> None:
        try:
            got = self.lab.omid.read(table, point)
        except WorkloadError as error:
            self.judge.read_failed(where, error, shaken=self.strikes.shaken)
        else:
            self.judge.read(where, table, point, got)

    def _as_of(self, step: Read, table: str, point: int, mark: int) -> str:
        got = self.lab.as_of(table, point)
        if got is None:
            return "refused"
        self.judge.read_as_of(f"step {step.number}", table, point, got, mark)
        return f"{len(got)} cells"

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
        run_id = f"run-{self.plan.seed}-{step.number}"
        arguments = step.arguments
        if "{run}" in arguments:
            if not self._ran:
                return "there is no run"
            chosen = self._ran[step.pick % len(self._ran)]
            arguments = tuple(chosen if a == "{run}" else a for a in arguments)
        elif step.job in APPROVABLE:
            self._ran.append(run_id)
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

    _STEPS: dict[type, Callable] = {  # type: ignore[type-arg]  # noqa: RUF012
        Clients: _clients,
        Open: _open_group,
        Turn: _turn,
        Watermark: _watermark,
        Phantom: _phantom,
        Land: _land,
        Alter: _alter,
        Say: _say,
        Look: _look,
        Read: _read,
        Resume: _resume,
        Run: _run,
        Nemesis: _nemesis,
        ledger_plan.Transfers: lambda self, step: self._books().transfers(step),
        ledger_plan.Send: lambda self, step: self._books().send(step),
        ledger_plan.Move: lambda self, step: self._books().move(step),
        ledger_plan.Balance: lambda self, step: self._books().balance(step),
    }

    # -- runs

    def _start(self, actor: Actor) -> str:
        if self._bank and actor.step.job == ledger_plan.REPAIR:
            self._bank.judge.begins(actor.run_id)
        actor.hidden_then = frozenset(self._hidden)
        self._under_way.append(actor)
        return self._go_on(actor)

    def _go_on(self, actor: Actor) -> str:
        """Give a run the baton until it is over or parked; what became of it."""
        while True:
            lies = self.strikes.told()
            with self.strikes.loose():
                actor.go_on()
            actor.lied_to |= self.strikes.told() > lies
            if self._awaited is None and self.strikes.late:
                self._awaited = actor
                self._silent_then = self._silent(actor)
            if actor.over:
                self.lab.settle()  # dead or alive, nothing of it may write from here on
                break
            if actor.wish == _PARK:
                self._parked.append(actor)
                return "parked"
            for step in actor.wish:
                self._take(step)  # type: ignore[arg-type]
        if actor is not self._awaited:
            self._under_way.remove(actor)
        said = self._ended(actor)
        self._strike_after(actor)
        return said

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
        if effect.step.endswith("add_bound"):
            self.judge.published(where, self.seen())

    def _judged(self, actor: Actor, where: str, *, records: bool, silent: set[str] | None = None) -> None:
        if records:
            self.judge.recorded(where, actor.run_id, self.lab.raw(STATE))
        if self._bank and actor.step.job == ledger_plan.REPAIR:
            self._books().look(where, actor.run_id)
        self._written(actor, where, silent)

    def _silent(self, actor: Actor) -> set[str]:
        """The tables that a run may not write to now."""
        return {*self._paused, *self._vetoed, *(actor.hidden_then & self._hidden)}

    def _written(self, actor: Actor, where: str, silent: set[str] | None = None) -> None:
        """Judge the write that the run is in. *silent*: the tables that it was not to write to, if not those of now."""
        before, actor.before = actor.before, None
        if before is None:
            return
        self.counts["writes"] += 1
        after = self.seen()
        changed = [table for table in after.tables if before.tables[table] != after.tables[table]]
        aside = {table: self.lab.aside(actor.run_id, table) for table in changed}
        may_not = self._silent(actor) if silent is None else silent
        # What comes late was sent when the table may have been its own.
        owner = actor.run_id if actor.step.job == "orphan_cleanup" and silent is None else ""
        self.judge.written(where, before, after, aside, came_back=actor.came_back_since, silent=may_not, owner=owner)

    def _ended(self, actor: Actor) -> str:
        if actor.error is not None:
            raise actor.error
        where = f"{actor.run_id} ({actor.step.job})"
        assert actor.life is not None
        self.counts.update({"seams": len(actor.step.seams), "seams reached": len(actor.reached)})
        if self._bank and actor.step.job == ledger_plan.BALANCES and actor.outcome and not actor.outcome.code:
            self._bank.judge.is_told_total(where, actor.outcome.summary["figures"]["total"])
        if self._bank and actor.step.job == ledger_plan.REPAIR:
            self._books().look(where, actor.run_id)
            self._bank.judge.ended(where, iter(actor.outcome.problems.splitlines() if actor.outcome else ()))
        if actor.life.killed:
            self._written(actor, f"{where}, which died")
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
        if actor.step.job == "orphan_cleanup" and actor.outcome.code == 0:
            self._came_clean(actor)
        totals = {name: n for name, n in sorted(actor.outcome.totals.items()) if n and isinstance(n, int)}
        if actor.lied_to:
            # Which of two tasks' requests it was, and so how often something was done again, the plan does not say.
            return f"exit {actor.outcome.code}, lied to"
        told = {name: n for name, n in totals.items() if not name.startswith("bytes")}
        # Without numbers, which are other ones another time.
        why = re.sub(r"\d+", "N", actor.outcome.problems)[:80] if actor.outcome.code else ""
        return f"exit {actor.outcome.code}, {told}{why and ': '}{why}"

    def _came_clean(self, actor: Actor) -> None:
        """Tables that came back are as good as ever once a run has read them whole."""
        if "--execute" not in actor.arguments:
            return
        named = [a for a in actor.arguments if a in list(Table)] or list(Table)
        passed_over = {*self._disabled, *self._vetoed, *self._paused, *self._hidden, *self._imported}
        self.judge.cleaned(set(named) - passed_over, actor.came_back_since)

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

    def _enable(self, table: str) -> None:
        self.lab.omid.enable(table)
        del self._disabled[table]

    def _enable_all(self) -> None:
        """No client writes to a disabled table: it would wait."""
        for table in list(self._disabled):
            self._enable(table)

    # -- the end

    def _end_the_faults(self) -> None:
        """Servers run, networks and clocks tell the truth; whoever is parked goes on; nothing is disabled, paused,
        vetoed or held.
        """
        if self.strikes.late:
            self._receive()
        self.strikes.end()
        self._ending = True
        self._read_log()
        while self._parked:
            actor = self._parked.pop(0)
            self.counts["zombies"] += 1
            self.note(f"{actor.run_id} goes on at the end: {self._go_on(actor)}")
        self._enable_all()
        for table in Table:
            if table in self._paused:
                self.lab.resume(self._paused.pop(table))
            if table in self._vetoed:
                self.lab.veto(table, on=True)
            if table in self._hidden:
                self._show(table, b"")
            if table in self._imported:
                self.lab.confirm(table)
            for name in self._holds[table]:
                with suppress(LowtideError):
                    self.lab.release(table, name)
            self.judge.held[table].clear()
        self._vetoed.clear()
        self._imported.clear()

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
                actor = Actor(self, step, f"run-{self.plan.seed}-{number}", step.arguments)
                self.note(f"{job} at the end: {self._start(actor)}")
                assert actor.outcome is not None
                codes.append(actor.outcome.code)
                if actor.outcome.code:
                    last = actor.outcome.problems
                if job == "watermark_collection":
                    collected = actor.outcome.summary
            if not any(codes):
                holders = {blocker["table"] for blocker in collected["blockers"]}
                own = {str(table) for table in Table}
                self.judge.came_up(collected["bound"], collected["low_watermark"], holders - own)
                return
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

    def _digest(self, seen: Seen) -> str:
        rows = self._books().decided() if self._bank else []
        content = [self.trace, rows, *(self.lab.from_origin(raw) for raw in (*seen.tables.values(), seen.commit_table))]
        return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def _snapshot(table: str) -> str:
    return f"of-{table}"
