"""The demo itself, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta

from rich.console import Console

from lowtide import report as values
from lowtide.config import load
from lowtide.health.reader import read_through
from lowtide.lab.airflow import LocalAirflow
from lowtide.lab.demo import bank
from lowtide.lab.demo.dagruns import Backfill, run_dag
from lowtide.lab.demo.filling import backdate, outcomes, work
from lowtide.lab.demo.jobs import run_job
from lowtide.lab.demo.proof import compare
from lowtide.lab.demo.screen import Screen, Tell
from lowtide.lab.demo.settings import DemoSettings, start_afresh
from lowtide.lab.stack import Stack
from lowtide.lab.workload import Model, OmidClient, Result
from lowtide.report import ModelCheck, Observation, Report, contents, render, scans, terminal
from lowtide.store.gateway import connect
from lowtide.store.state import opened
from lowtide.values.clock import oracle_clock


def tell_story(settings: DemoSettings, console: Console) -> Report:
    """Run the whole demo; what it started stays up. The report, which is also written to ``settings.page``.

    Raises:
        LowtideError: something could not be done; the message says what and how to go on.
    """
    screen = Screen(console)
    with screen.step("A clean slate: Java, disk, ports; nothing left of an earlier demo") as tell:
        start_afresh(settings, tell)
    return _Story(settings, screen, console).tell()


@dataclass
class _Story:
    settings: DemoSettings
    screen: Screen
    console: Console
    today: date = field(default_factory=lambda: datetime.now(UTC).date())

    def tell(self) -> Report:
        settings, screen = self.settings, self.screen
        stack, airflow = settings.stack(), settings.airflow()
        settings.write_config(stack)
        with ThreadPoolExecutor(1) as beside:
            # Airflow takes half a minute to start, most of it waiting: it does so while the store is filled.
            starting = beside.submit(airflow.up)
            with screen.step("Boot HBase, its Thrift gateway and Omid's oracle; Airflow starts beside") as tell:
                stack.up(tell)
            with OmidClient(stack) as omid:
                made = self._fill(stack, omid)
                days = self._backdate(made)
                before, check_before = self._look_before(omid, made.model, days)
                self._clean(airflow, starting, days)
                after, check = self._look_after(omid, made.model, days)
                customers = self._bank(airflow)
        found = Report(
            title=_title(len(days), check, after),
            made_at=datetime.now(UTC),
            after=after,
            before=before,
            days=days,
            runs=self._runs(days),
            check=check,
            check_before=check_before,
            workload=outcomes(settings.seed, made.model),
            bank=customers,
            seconds=screen.seconds,
            commands=self._commands(airflow),
        )
        with screen.step("The report"):
            settings.page.write_text(render(found), "utf-8")
            settings.numbers.write_text(found.to_json(), "utf-8")
        return found

    # -- filling the store

    def _fill(self, stack: Stack, omid: OmidClient) -> Result:
        settings = self.settings
        with self.screen.step(
            f"{settings.days} days of transactions through Omid's client; one client a day is killed"
        ) as tell:
            made = work(stack, settings, omid, settings.history, self.today, tell)
            told = outcomes(settings.seed, made.model).outcomes
            tell(", ".join(f"{number:,} {name}" for name, number in told))
        return made

    def _backdate(self, made: Result) -> tuple[values.Day, ...]:
        """Make the slices the last days.

        The first day begins at timestamp 0, as everything before the first sample does.
        """
        config = load(self.settings.config_file)
        backdate(config, made.boundaries, self.today)
        with opened(config) as state:
            clock = oracle_clock(config.omid.clock, made.watermark, state.samples)
        return contents.last_days(clock, self.today, self.settings.days)

    # -- looking

    def _look_before(
        self, omid: OmidClient, model: Model, days: Sequence[values.Day]
    ) -> tuple[Observation, ModelCheck]:
        with self.screen.step("What is wrong with it: a dry run, the commit table, and readers") as tell:
            seen = self._look(tell, days)
            with connect(load(self.settings.config_file).hbase.thrift) as connection:
                seen = replace(seen, regions=scans.uncleaned_regions(connection, model.tables))
            check = compare(omid, model, model.read_timestamps(self.settings.snapshots), tell)
        self.screen.show(terminal.leftovers(seen))
        self.screen.show(terminal.commit_table(seen))
        self.screen.say(f"{check.sentence}.", "yellow" if check.differences else "")
        if check.differences:
            self.screen.say("(torn transactions: their entry went before all their shadow cells were there)", "dim")
        return seen, check

    def _look_after(self, omid: OmidClient, model: Model, days: Sequence[values.Day]) -> tuple[Observation, ModelCheck]:
        with self.screen.step("What is right now: the same looks, and every read point against the model") as tell:
            seen = self._look(tell, days)
            check = compare(omid, model, model.read_timestamps(self.settings.snapshots), tell)
        self.screen.show(terminal.regions(seen))
        return seen, check

    def _look(self, tell: Tell, days: Sequence[values.Day]) -> Observation:
        """A dry run that reads everything from 0, the commit table by day, the marks."""
        tell("spark-submit: orphan_cleanup --full, dry run")
        summary = run_job(self.settings.config_file, "orphan_cleanup", ["--full"], self.settings.home)
        config = load(self.settings.config_file)
        with connect(config.hbase.thrift) as connection:
            seen = contents.observation(
                read_through(connection, config, datetime.now(UTC)), contents.leftovers(summary, config)
            )
            return replace(seen, commit_table=scans.commit_rows(connection, config, days))

    # -- cleaning

    def _clean(self, airflow: LocalAirflow, starting: Future[None], days: Sequence[values.Day]) -> None:
        first, last = days[0].date, days[-1].date
        with self.screen.step(f"airflow backfill create: orphan_cleanup, {first} to {last}") as tell:
            starting.result()
            tell(f"Airflow answers at {airflow.config.url}")
            backfill = Backfill.create(airflow, load(self.settings.config_file), days)
            backfill.follow(tell)
        self.screen.show(terminal.runs(backfill.done))
        with self.screen.step("Airflow: watermark_collection, then commit_table_pruning") as tell:
            # Dated, so that Airflow does not start the daily run of that day beside it when the DAG is unpaused.
            done = [
                run_dag(airflow, load(self.settings.config_file), dag, datetime.combine(last, time(), UTC), tell)
                for dag in ("watermark_collection", "commit_table_pruning")
            ]
        self.screen.show(terminal.runs(run for runs in done for run in runs))

    # -- the ledger

    def _bank(self, airflow: LocalAirflow) -> values.Bank:
        """A bank on the same store: killed clients, the hourly repair for the hour before, and the money counted."""
        config = load(self.settings.config_file)
        with self.screen.step("A small bank on the store: its clients transfer money and are killed") as tell:
            killed = bank.crash_clients(self.settings.config_file, self.settings.seed, tell)
            before = bank.look(config)
            tell(f"{killed} clients killed; transfers: {', '.join(f'{n:,} {state}' for state, n in before)}")
        with self.screen.step("Airflow: transaction_repair") as tell:
            hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
            done = run_dag(airflow, config, "transaction_repair", hour, tell)
            found = bank.settle_up(config, killed, before)
        self.screen.show(terminal.runs(done))
        self.screen.show(terminal.transfers(found))
        return found

    # -- telling

    def _runs(self, days: Sequence[values.Day]) -> tuple[values.JobRun, ...]:
        """Every run that the state table knows, oldest first."""
        config = load(self.settings.config_file)
        with opened(config) as state:
            summaries = state.runs()
        return tuple(contents.job_run(summary, days) for summary in reversed(summaries))

    def _commands(self, airflow: LocalAirflow) -> tuple[tuple[str, str], ...]:
        config = self.settings.shown(self.settings.config_file)
        return (
            ("Airflow, on this store", airflow.config.url),
            ("user and password", f"{airflow.user} / {airflow.password}"),
            ("watermarks", f".venv/bin/lowtide status --tables --config {config}"),
            ("runs", f".venv/bin/lowtide runs --config {config}"),
            ("a dry run", f".venv/bin/lowtide run orphan_cleanup --config {config}"),
            ("stop everything", self.settings.end_command),
        )


def _title(days: int, check: ModelCheck, after: Observation) -> str:
    clean = not (after.orphans or after.unproven)
    if clean and not check.differences:
        return f"{days} days of crashes cleaned up; every read point reads right"
    return "The cleaning left something undone" if not clean else "Readers do not see what the model says"
