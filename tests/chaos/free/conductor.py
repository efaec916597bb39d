"""Lets a schedule happen: lanes that wait for nobody, runs and clients that are processes, and somebody who looks.

What goes wrong for a client, a reader or whoever changes a table while parts of the store are dead is written down as
what it is, and goes no further; whether it may go wrong is the judge's business.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from lowtide.lab.workload import OmidClient, Shape, WorkloadError, script
from lowtide.lab.workload.client import COMMIT_TABLE
from lowtide.store.state import opened
from tests.chaos.free.judging import never_committed
from tests.chaos.free.processes import JobProcess, configure
from tests.chaos.free.recording import Recorder, now, text
from tests.chaos.free.schedule import (
    CLIENTS,
    RUNS,
    TABLES,
    Client,
    Fate,
    Job,
    Lane,
    Part,
    Reset,
    Schedule,
    Strike,
    spoken,
)
from tests.chaos.judge import Raw, Records, standing, start_of, unproved
from tests.chaos.laboratory import FAMILIES, STATE, Laboratory, row
from tests.chaos.steps import ROWS, Alter, Change, Look, Read

#: Runs that live at a time, those that stand still among them: each has some 800 MB.
_ALIVE = 4
#: Between two looks at everything.
_LOOK_SECONDS = 15
#: A run that has not ended after it, or a client that does not end in order after the other, is killed.
_RUN_SECONDS, _CLIENT_SECONDS = 900, 30
LAST_ROUNDS = 3


class Conductor:
    """Carries out one schedule, once."""

    def __init__(self, lab: Laboratory, what: Schedule, folder: Path) -> None:
        self.lab, self.schedule = lab, what
        self._recorder = Recorder(folder)
        self._folder = folder
        self._over = threading.Event()
        self._points: list[int] = []
        self._removing: list[str] = []
        self._running: list[JobProcess] = []
        self._slots, self._alive = threading.Semaphore(RUNS), threading.Semaphore(_ALIVE)
        self._clients = threading.Semaphore(CLIENTS)
        self._threads: list[threading.Thread] = []
        self._looks = 0
        # No more transactions in an hour than in ten minutes: the judge goes through all of them at every look.
        self._pause = int(150 * max(1.0, what.seconds / 600))
        self._shape = Shape(
            tables=TABLES,
            families=FAMILIES,
            qualifiers=("p", "q"),
            rows=ROWS,
            crashes=0.2,
            overlaps=0.4,
            conflict_free=0.15,
            deletes=0.15,
            pauses=0.4,  # so that a kill meets some of them on their way
            pause_ms=200,
            crash_points=(0, 1, 2, 4, 5, 6, 7, 8, 9),
        )

    def carried_out(self) -> None:
        """Let it happen, then let the faults end and the jobs run, and write down what there is."""
        self.lab.begin()
        # With Lowtide's own patience: the dead server may be that of hbase:meta, or the state table's.
        root = self.lab.stack.hbase_properties()["hbase.rootdir"]
        thrift = {"port": self.lab.stack.config.thrift_port, "timeout": "60s"}
        configure(self.lab.file, properties={"hbase.rootdir": root}, thrift=thrift)
        # Of a counter's timestamps history GC knows no age before somebody has noted one.
        self._run_here("first run", f"free-{self.schedule.seed}-first", "watermark_collection", "--execute")
        self._recorder.line("begin", now(), seed=self.schedule.seed, seconds=self.schedule.seconds)
        try:
            with (
                OmidClient(self.lab.stack) as reader,
                OmidClient(self.lab.stack) as other,
                OmidClient(self.lab.stack) as looking,
            ):
                self._walk_all(reader, other, looking)
                self._end_the_faults()
                self._last_rounds(looking)
                self._look(looking)
                self._read_at_the_end(reader)
            self._put_down_sidelines()
            self._recorder.line("end", now())
        finally:
            self._over.set()
            for process in self._running:
                process.kill()
            for thread in self._threads:
                thread.join()
            self._recorder.close()
        self.lab.end()

    # -- lanes

    def _walk_all(self, reader: OmidClient, other: OmidClient, looking: OmidClient) -> None:
        begun = time.monotonic()
        handlers: dict[Lane, Callable[[Any], None]] = {
            Lane.TABLES: self._table,
            Lane.READERS: lambda step: self._reader(reader, step),
            Lane.AS_OF: lambda step: self._as_of(other, step),
            Lane.SERVERS: self._strike,
            Lane.RUNS: self._start_run,
            Lane.CLIENTS: self._start_client,
        }
        walkers = [threading.Thread(target=self._walk, args=(lane, handlers[lane], begun), name=lane) for lane in Lane]
        watcher = threading.Thread(target=self._keep_looking, args=(looking,), name="looking")
        for thread in (*walkers, watcher):
            thread.start()
        try:
            self._over.wait(self.schedule.seconds)
        finally:
            self._over.set()
            for thread in (*walkers, watcher):
                thread.join()

    def _walk(self, lane: Lane, handler: Callable[[Any], None], begun: float) -> None:
        for due in self.schedule.lanes[lane]:
            if self._over.wait(max(0.0, begun + due.at - time.monotonic())):
                return
            handler(due.step)

    def _got(self, slot: threading.Semaphore) -> bool:
        """Wait for it; False: it is all over."""
        while not self._over.is_set():
            if slot.acquire(timeout=0.5):
                return True
        return False

    def _in_thread(self, work: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=work, name=name)
        self._threads.append(thread)
        thread.start()

    def _table(self, step: Any) -> None:
        with self._recorder.during("step", step=spoken(step)):
            match step:
                case Alter():
                    self._alter(step)
                case Reset():
                    with opened(self.lab.config) as state:
                        state.reset(same_oracle=True)
                case _:
                    self.lab.omid.advance_watermark()

    def _alter(self, step: Alter) -> None:
        omid, table, key = self.lab.omid, step.table, row(step.key).encode()
        match step.change:
            case Change.FLUSH:
                omid.flush(table)
            case Change.COMPACT:
                omid.compact(table, major=True)
            case Change.SPLIT:
                omid.split(table, key)
                omid.compact(table, major=True)  # daughters refer to their parent's files until then
            case Change.MERGE:
                omid.compact(table, major=True)
                omid.merge(table, key)
                omid.compact(table, major=True)
            case Change.MOVE:
                omid.move(table, key)
            case Change.FAMILY:
                omid.add_family(table, f"c{key.decode()}")
            case Change.SNAPSHOT:
                if f"of-{table}" in omid.snapshots():
                    omid.delete_snapshot(f"of-{table}")
                omid.snapshot(table, f"of-{table}")
            case other:
                raise AssertionError(f"nobody here does this to a table: {other}")

    # -- readers

    def _reader(self, omid: OmidClient, step: Look | Read) -> None:
        if isinstance(step, Look):
            with self._recorder.during("look") as told:
                told["point"] = point = omid.begin()
                self._points.append(point)
            return
        if self._points:
            point = self._points[step.pick % len(self._points)]
            for table in TABLES:
                self._read(omid, table, point, "omid", lambda t=table: omid.read(t, point))  # type: ignore[misc]

    def _as_of(self, omid: OmidClient, step: Read) -> None:
        if self._points:
            # The newest are mostly above the low watermark, or below the mark: from these on backwards.
            point = self._points[-1 - step.pick % min(30, len(self._points))]
            session = self.lab.spark
            session._jvm.SparkSession.setActiveSession(session._jsparkSession)  # type: ignore[union-attr]
            for table in TABLES:
                self._read(omid, table, point, "as of", lambda t=table: self.lab.as_of(t, point))  # type: ignore[misc]

    def _read(self, omid: OmidClient, table: str, point: int, how: str, read: Callable[[], Any]) -> None:
        with self._recorder.during("read", how=how, table=table, point=point) as told:
            told["mark_before"] = self._mark(omid, table)
            got = read()
            told["refused"] = got is None
            told["cells"] = [[text(r), text(f), text(q), text(v)] for (r, f, q), v in sorted((got or {}).items())]
            told["mark_after"] = self._mark(omid, table)

    def _mark(self, omid: OmidClient, table: str) -> int:
        return Records.of(replace(self.lab, omid=omid).raw(STATE)).marks().get(table, -1)

    # -- servers

    def _strike(self, step: Strike) -> None:
        servers = self.lab.stack.region_servers
        part = {
            Part.REGION_SERVER: servers[step.pick % len(servers)] if servers else "",
            Part.GATEWAY: "thrift",
            Part.ORACLE: "tso",
        }[step.part]
        with self._recorder.during("server", part=part, kind=step.part):
            self.lab.stack.kill(part)
            self._over.wait(step.down)
            self.lab.stack.up()

    # -- runs

    def _start_run(self, step: Job) -> None:
        arguments = step.run.arguments
        if "{run}" in arguments:
            if not self._removing:
                return
            chosen = self._removing[step.run.pick % len(self._removing)]
            arguments = tuple(chosen if a == "{run}" else a for a in arguments)
        if not (self._got(self._alive) and self._got(self._slots)):
            return
        run = f"free-{self.schedule.seed}-{step.number}"
        if step.run.job in ("orphan_cleanup", "history_gc"):
            self._removing.append(run)
        self._in_thread(lambda: self._run(_Fated(self, step), run, arguments), run)

    def _run(self, fated: _Fated, run: str, arguments: tuple[str, ...]) -> None:
        step = fated.step
        with self._recorder.during("run", run=run, job=step.run.job, arguments=arguments, fate=step.fate) as told:
            try:
                process = JobProcess(self.lab.file, step.run.job, run, arguments, self._folder / "runs", fated.at)
                self._running.append(process)
                fated.meet(process)
                told["code"] = process.wait(_RUN_SECONDS)
                if told["code"] is None:
                    told["hung"] = True
                    process.kill()
                told |= {"phases": process.phases, "blows": fated.blows}
                if process.summary.exists():
                    told |= _told(json.loads(process.summary.read_text()))
            finally:
                fated.over()
                self._alive.release()

    # -- clients

    def _start_client(self, step: Client) -> None:
        if not self._got(self._clients):
            return
        self._in_thread(lambda: self._client(step), step.seed)

    def _client(self, step: Client) -> None:
        log = self._folder / "clients" / f"{step.number}.jsonl"
        with self._recorder.during("client", log=log.name, seed=step.seed, killed=step.killed) as told:
            try:
                omid = OmidClient(self.lab.stack, heap="128m")
                told["pid"] = omid._process.pid
                try:
                    omid.live(script.generate(self._shape, step.seed, 200), log, threads=2, pause_ms=self._pause)
                    self._over.wait(step.lives)
                    if not step.killed:
                        late = threading.Timer(_CLIENT_SECONDS, omid.kill)
                        late.start()
                        omid.stop()
                        late.cancel()
                finally:
                    omid.kill()
                    omid.close()
            finally:
                self._clients.release()

    # -- who looks

    def _keep_looking(self, omid: OmidClient) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            self._look(omid)

    def _look(self, omid: OmidClient) -> None:
        """All there is; records before what they speak of, and the journal after what went into it."""
        self._looks += 1
        lab = replace(self.lab, omid=omid)

        def looked() -> Iterator[tuple[str, Raw, int]]:
            for name in (STATE, COMMIT_TABLE, *TABLES, "journal"):
                begun = now()
                yield str(name), lab.journal() if name == "journal" else lab.raw(name), begun

        try:
            self._recorder.look(self._looks, looked())
        except WorkloadError as error:
            self._recorder.line("blind", now(), look=self._looks, error=str(error)[:300])

    # -- the end

    def _end_the_faults(self) -> None:
        self._recorder.line("the faults end", now())
        for process in self._running:
            process.resume()
        for thread in self._threads:
            thread.join()
        self.lab.stack.up()
        time.sleep(2)  # what the killed ones had sent may be on its way

    def _last_rounds(self, looking: OmidClient) -> None:
        for round_ in range(LAST_ROUNDS):
            self.lab.omid.advance_watermark()
            codes = []
            for job, *arguments in (
                ("orphan_cleanup", "--full"),
                ("watermark_collection",),
                ("commit_table_pruning", "--grace", "0s"),
            ):
                run = f"free-{self.schedule.seed}-last-{round_}-{job}"
                self._removing.append(run)
                codes.append(self._run_here("last run", run, job, *arguments, "--execute", round=round_))
            if not any(codes):
                return
            self._look(looking)
            self._decide_the_rest()

    def _decide_the_rest(self) -> None:
        """What no proof decides, as in tables that lost their records: of each transaction that never committed by all
        that was recorded of it, a person says so.
        """
        with self._recorder.during("step", step="a person decides of what nothing proves") as told:
            over, watermark = never_committed(self._folder), self.lab.omid.watermark()
            bare = {start_of(key[3]) for table in TABLES for key in unproved(standing(self.lab.raw(table)))}
            told["decided"] = sorted(start for start in bare & over if start <= watermark)
            if told["decided"]:
                self.lab.resolve_aborted(told["decided"])

    def _run_here(self, what: str, run: str, job: str, *arguments: str, **fields: Any) -> int:
        """A run in this process, with nothing beside it; its exit code."""
        with self._recorder.during(what, run=run, job=job, arguments=arguments, **fields) as told:
            told["code"] = 1
            outcome = self.lab.job(job, run, *arguments)
            told |= {"code": outcome.code, **_told(outcome.summary)}
        return int(told["code"])

    def _read_at_the_end(self, omid: OmidClient) -> None:
        points = random.Random(self.schedule.seed).sample(self._points, min(25, len(self._points)))
        for point in (*sorted(points), omid.begin()):
            for table in TABLES:
                self._read(omid, table, point, "omid", lambda t=table, p=point: omid.read(t, p))  # type: ignore[misc]

    def _put_down_sidelines(self) -> None:
        for run in self._removing:
            with contextlib.suppress(FileNotFoundError):
                self._recorder.aside(run, {str(table): self.lab.aside(run, table) for table in TABLES})


class _Fated:
    """A run's fate: it comes when the run has said that a phase is over, or after a time."""

    def __init__(self, conductor: Conductor, step: Job) -> None:
        self.step = step
        self.blows: list[dict[str, Any]] = []
        self._conductor = conductor
        self._met, self._over = threading.Event(), threading.Event()
        self._process: JobProcess | None = None
        self._has_slot = True

    def meet(self, process: JobProcess) -> None:
        """The process that it is of; it may have said something before."""
        self._process = process
        self._met.set()
        if self.step.phase is None:
            self._later(self.step.after, self._strike)

    def at(self, phase: str) -> None:
        """Called when the run has said so."""
        if self.step.phase == phase and not self.blows:
            self._met.wait()
            self._later(self.step.after, self._strike)

    def _later(self, seconds: float, do: Callable[[], None]) -> None:
        if not seconds:
            do()
            return
        timer = threading.Timer(seconds, do)
        timer.daemon = True
        timer.start()

    def _strike(self) -> None:
        assert self._process is not None
        if self._over.is_set() or self.step.fate is Fate.ENDS or self._conductor._over.is_set():
            return
        blow = {"at": now(), "what": str(self.step.fate), "phase": self._process.phases[-1:]}
        self.blows.append(blow)
        if self.step.fate is Fate.KILLED:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
            return
        self._process.stop()
        self._release()
        self._later(self.step.lasting, lambda: self._wake(blow))

    def _wake(self, blow: dict[str, Any]) -> None:
        if not self._over.is_set():
            blow["until"] = now()
            assert self._process is not None
            self._process.resume()

    def _release(self) -> None:
        if self._has_slot:
            self._has_slot = False
            self._conductor._slots.release()

    def over(self) -> None:
        """The run is."""
        self._over.set()
        self._release()


def _told(summary: dict[str, Any]) -> dict[str, Any]:
    problems = [*summary["problems"], *(p for table in summary["tables"] for p in table["problems"])]
    return {"problems": problems, "state": summary.get("state"), "totals": summary.get("totals")}
