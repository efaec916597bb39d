"""The DAGs for real: Airflow's scheduler, spark-submit, and a store whose transactions never ended well.

One store and one Airflow serve the tests of this file, which follow one another as the days of an installation do.
Their jobs run on one driver that is up already (warm_driver.py), but for one chain from cleanup to pruning and where a
test is about the process of ``spark-submit`` itself.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import ProxyHandler, build_opener

import httpx
import psutil
import pytest
from browser import browser, log_in, tab
from installation import PATIENCE, SUBMITTED, first_of_its_kind, follow_only, installation
from lowtide_airflow.approved import APPROVE, PLAN
from lowtide_airflow.operator import SUMMARY_KEY
from playwright.sync_api import Page, expect
from prometheus import server
from test_metrics import collector
from warm_driver import AirflowWithDriver

from lowtide.config import Config, load
from lowtide.lab.airflow import Dags, Run, Task
from lowtide.lab.servers import Process, start_time
from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient
from lowtide.store.state import opened
from tests.prove import PROVE

RULES = Path(__file__).resolve().parents[2] / "monitoring" / "alerts.yaml"
DAYS = tuple(date(2026, 1, 5) + timedelta(n) for n in range(7 if PROVE else 2))
#: How long a person looks at a question. Airflow starts the task that asks anew if the answer comes before its executor
#: has taken note of the pause.
LOOK = 10
#: Seconds within which it must be answered.
ANSWER = 90
#: Seconds after which a run is late.
DEADLINE = 20
#: The file of the token of Prometheus.
TOKEN = "prometheus-token"


@dataclass
class Site:
    """A small installation, and the cells that dead clients left in it."""

    stack: Stack
    omid: OmidClient
    airflow: AirflowWithDriver
    config: Config
    #: Start timestamps of the transactions that never committed, by the day they began on; the last began today.
    orphans: list[list[int]]
    #: What came to the receiver of Airflow's metrics, by name and table.
    metrics: dict[str, float]

    @property
    def dags(self) -> Dags:
        return self.airflow.dags

    def left(self, table: str) -> set[int]:
        """Timestamps of the cells that a table still holds: deleted ones lie there until a compaction, behind a
        marker.
        """
        cells = self.omid.raw(table)
        gone = {cell.key for cell in cells if cell.kind == "delete"}
        return {cell.timestamp for cell in cells if cell.kind == "put" and cell.key not in gone}

    def orphan(self, table: str, count: int = 3) -> list[int]:
        """Let *count* clients die after their first write."""
        starts = [self.omid.begin() for _ in range(count)]
        for start in starts:
            self.omid.put(table, b"row%d" % start, b"a", b"q", start, b"never committed")
        return starts

    def submitted(self, run_id: str) -> list[bool]:
        """Of each ``spark-submit`` of a job's run, whether it was the real one."""
        return [call.real for call in self.airflow.driver.calls() if run_id in call.argv]

    def over(self, *runs: Run) -> list[Run]:
        return self.dags.wait(runs, timeout=PATIENCE)

    def task(self, run: Run, task_id: str, label: str = "") -> Task:
        return next(t for t in self.dags.tasks(run) if t.task_id == task_id and (not label or t.label == label))

    def asked(self, run: Run) -> str:
        """What a person is shown, and has looked at, once the run waits for an approval."""
        deadline, since = time.monotonic() + PATIENCE, None
        while since is None or time.monotonic() < since + LOOK:
            assert time.monotonic() < deadline
            assert not self.dags.run(run.dag_id, run.run_id).over
            waits = any(t.task_id == APPROVE and t.state == "awaiting_input" for t in self.dags.tasks(run))
            since = (since or time.monotonic()) if waits else None
            time.sleep(0.5)
        return str(self.airflow.rest.get(*self.question(run))["body"])

    def driver_at_work(self, run: Run) -> psutil.Process:
        """The Python process of the driver that cleans, a process of its own, once it has made its plan and is about to
        act.
        """
        deadline = time.monotonic() + PATIENCE
        while not any(
            t.state == "running" and "orphan_cleanup: plan took" in self.dags.log(run, t)
            for t in self.dags.tasks(run)
            if t.task_id == "clean"
        ):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        scheduler = psutil.Process(next(part.pid for part in self.airflow.status() if part.name == "scheduler"))
        (found,) = filter(is_driver, scheduler.children(recursive=True))
        return found

    def cleared_alone(self, run: Run, task_id: str) -> None:
        """Clear a task, and none after it; return when its run is over again."""
        self.airflow.rest.post("dags", run.dag_id, "clearTaskInstances", body=clearing(run, task_id))
        self.over(run)

    def question(self, run: Run) -> tuple[str, ...]:
        """Where Airflow's API has it."""
        return ("dags", run.dag_id, "dagRuns", run.run_id, "taskInstances", APPROVE, "-1", "hitlDetails")

    def expect(self, dag_id: str, kind: str) -> Run:
        """See ``first_of_its_kind``."""
        return first_of_its_kind(self.dags, dag_id, kind)

    def summary(self, run: Run, task: Task) -> dict[str, Any]:
        """The digest of its job's summary, which a task left for others."""
        path = ("dags", run.dag_id, "dagRuns", run.run_id, "taskInstances", task.task_id, "xcomEntries", SUMMARY_KEY)
        found: dict[str, Any] = self.airflow.rest.get(*path, map_index=task.map_index, deserialize="true")["value"]
        return found

    def shown(self) -> dict[str, Any]:
        """What the page is given, read after this call began: at first it is told to wait, and later what was read
        before.
        """
        since, deadline = datetime.now(UTC), time.monotonic() + PATIENCE
        while True:
            data: dict[str, Any] = self.airflow.rest.below("lowtide/data")
            if not data["waiting"] and datetime.fromisoformat(data["at"]) >= since:
                return data
            assert time.monotonic() < deadline
            time.sleep(0.2)


def is_driver(process: psutil.Process) -> bool:
    """Whether it is a driver's Python: that has the program as its first word; ``spark-submit`` has it further on."""
    try:
        words = process.cmdline()
    except psutil.Error:
        return False
    return len(words) > 1 and words[1].endswith("orphan_cleanup.py")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    stack = Stack(free_ports_config(folder / "store", timestamps="incremental", conflict_map_size=64))
    # Every table has a task of its own.
    quick = {"page_seconds": "1", "approval_timeout": str(ANSWER), "deadline": str(DEADLINE), "batch_bytes": "0"}
    (folder / TOKEN).write_text(secrets.token_hex(32))
    quick["metrics_token_file"] = str(folder / TOKEN)
    # Nothing at all may be removed from this one: its runs fail.
    tables = {"guarded": {"budget": {"rows": 1, "always": 0, "share": 1.0}}}
    with collector() as (port, came):
        metrics = {"otel_on": "True", "otel_host": "127.0.0.1", "otel_port": str(port)}
        # How soon a task counts as dead whose worker no longer says that it lives.
        watchful = {"task_instance_heartbeat_timeout": "30", "task_instance_heartbeat_timeout_detection_interval": "5"}
        settings = {"lowtide": quick, "metrics": metrics, "scheduler": watchful}
        options = {"settings": settings, "triggerer": True}
        with installation(folder, stack, tables, warm=True, **options) as (airflow, file), OmidClient(stack) as omid:
            assert isinstance(airflow, AirflowWithDriver)
            omid.create("orders")
            site = Site(stack, omid, airflow, load(file), [], came)
            site.orphans = make_days(site)
            yield site


def make_days(site: Site) -> list[list[int]]:
    """Orphans of some past days and of today; the samples say when the oracle's counter stood where."""
    orphans = []
    with opened(site.config) as state:
        state.create()
        for day in DAYS:
            orphans.append(site.orphan("orders"))
            state.add_sample(datetime(day.year, day.month, day.day, 12, tzinfo=UTC), site.omid.begin())
    orphans.append(site.orphan("orders"))
    site.omid.advance_watermark()
    return orphans


def test_a_backfill_cleans_its_days_and_no_other(site: Site) -> None:
    """Some days, and each run has one of them; together they leave what began today alone."""
    runs = site.dags.backfill("orphan_cleanup", DAYS[0], DAYS[-1])
    assert [run.logical_date.date() for run in runs if run.logical_date] == list(DAYS)
    runs = site.over(*runs)
    assert [run.state for run in runs] == ["success"] * len(DAYS)
    assert site.left("orders") == set(site.orphans[-1])
    for run, day in zip(runs, DAYS, strict=True):
        summary = site.summary(run, site.task(run, "clean"))
        assert summary["totals"]["deleted"] == 3
        (event,) = site.dags.asset_events(run)
        assert event["extra"]["totals"]["deleted"] == 3
        log = site.dags.log(run, site.task(run, "clean", "orders"))
        assert f"--from {day}T00:00:00+00:00 --to {day + timedelta(days=1)}T00:00:00+00:00" in log
        assert "--as-configured" in log
    assert site.metrics["airflow.lowtide.orphan_cleanup.deleted orders"] == 3
    assert site.metrics["airflow.lowtide.orphan_cleanup.duration"] > 0


def test_the_daily_run_starts_by_itself_and_stops_at_midnight(site: Site) -> None:
    """Unpaused, the DAG catches up with yesterday; what began today waits for tomorrow's run."""
    run = site.expect("orphan_cleanup", "scheduled")
    assert run.state == "success"
    log = site.dags.log(run, site.task(run, "clean", "orders"))
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    assert f"--to {midnight.isoformat()}" in log
    assert "--from" not in log
    assert site.left("orders") == set(site.orphans[-1])


@pytest.fixture(scope="module")
def mistyped(site: Site) -> Run:
    """A run by hand on a table that is not there: it fails, and in time is late."""
    return site.dags.trigger("orphan_cleanup", {"tables": ["ordres"]})


def test_bad_arguments_fail_at_once(site: Site, mistyped: Run) -> None:
    """No retry can help, and the message says what is wrong."""
    form = {"tables": ["orders"], "from": "2026-01-11T00:00:00Z", "to": "2026-01-10T00:00:00Z"}
    reversed_ = site.dags.trigger("orphan_cleanup", form)
    day = date(2026, 1, 1)
    (dated,) = site.dags.backfill("orphan_cleanup", day, day, conf={"from": "2026-01-01T00:00:00Z"})
    for run, task_id, said in (
        (mistyped, "choose_tables", "no such table: ordres; HBase has "),
        (reversed_, "clean", "not after its start 2026-01-11"),
        (dated, "clean", "a backfill takes its interval from its dates"),
    ):
        (over,) = site.over(run)
        task = site.task(over, task_id)
        assert (over.state, task.state, task.tries) == ("failed", "failed", 1)
        assert said in site.dags.log(over, task)


def test_a_late_run_is_told_of(site: Site, mistyped: Run) -> None:
    """Its deadline over, the triggerer logs which run has not ended well and how the store is, and Airflow's metrics
    count it.
    """
    log = site.airflow.config.home / "logs" / "triggerer.out"
    deadline = time.monotonic() + DEADLINE + PATIENCE
    while f"its deadline: run {mistyped.run_id}" not in (said := log.read_text()):
        assert time.monotonic() < deadline, said[-3000:]
        time.sleep(0.5)
    while "airflow.lowtide.orphan_cleanup.late" not in site.metrics:
        assert time.monotonic() < deadline, sorted(site.metrics)
        time.sleep(0.5)


def test_a_failing_table_hides_no_other_and_the_next_dags_follow(site: Site) -> None:
    """By hand: the good table is clean, the run is red, its retry had the same name, and watermarks and pruning follow.
    Each job is a process of its own, made by the real ``spark-submit``."""
    site.omid.create("guarded")
    guarded = site.orphan("guarded")
    site.omid.add_commit_entry(begun := site.omid.begin(), site.omid.begin())
    site.omid.put("orders", b"committed", b"a", b"q", begun, b"its client died before the shadow cell")
    site.omid.advance_watermark()
    follow_only(site.dags, "watermark_collection", "commit_table_pruning")

    form = {"tables": ["orders", "guarded"], "execute": True}
    with site.airflow.driver.real():
        (run,) = site.over(site.dags.trigger("orphan_cleanup", form))
        collected = site.expect("watermark_collection", "asset_triggered")
        pruned = site.expect("commit_table_pruning", "asset_triggered")
    assert run.state == "failed"
    good, bad = site.task(run, "clean", "orders"), site.task(run, "clean", "guarded")
    assert (good.state, good.tries) == ("success", 1)
    assert (bad.state, bad.tries) == ("failed", 2)
    assert "orphan_cleanup left 1 problem(s):" in (log := site.dags.log(run, bad))
    assert f"--run-id {site.summary(run, bad)['run']} " in log
    assert site.left("guarded") == set(guarded)
    assert begun in site.left("orders")
    assert not site.left("orders") & set(site.orphans[-1])
    # Both tables' regions are counted: the one that failed holds the bound, and that is said.
    assert (collected.state, collected.interval) == ("success", None)
    summary = site.summary(collected, site.task(collected, "collect"))
    assert {blocker["table"] for blocker in summary["blockers"]} == {"guarded"}
    assert pruned.state == "success"
    assert begun in site.omid.commit_table()
    for follower in ("watermark_collection", "commit_table_pruning"):
        assert site.dags.runs(follower, "scheduled") == []
        site.dags.pause(follower)  # that they follow has been seen
    (name,) = {
        call.argv[call.argv.index("--run-id") + 1] for call in site.airflow.driver.calls() if "guarded" in call.argv
    }
    assert site.submitted(name) == [True, True]
    for follower in (collected, pruned):
        jobs = [t for t in site.dags.tasks(follower) if t.task_id in ("collect", "prune")]
        assert [f"{SUBMITTED}{follower.dag_id}" in site.dags.log(follower, job) for job in jobs] == [True]


def test_a_dry_run_changes_nothing_and_hands_nothing_on(site: Site) -> None:
    """As the trigger form stands when it is opened; on the master that a connection names, where there is one."""
    connection = {"connection_id": "spark_lowtide", "conn_type": "spark", "host": "local[1]"}
    site.airflow.rest.post("connections", body=connection)
    before = site.left("guarded")
    with site.airflow.driver.real():
        (run,) = site.over(site.dags.trigger("orphan_cleanup", {"tables": ["guarded"], "budget_rows": 100}))
    summary = site.summary(run, site.task(run, "clean"))
    assert (run.state, summary["execute"], summary["totals"]["deleted"]) == ("success", False, 3)
    assert site.left("guarded") == before
    assert site.task(run, "hand_over").state == "skipped"
    assert site.dags.asset_events(run) == []
    log = site.dags.log(run, site.task(run, "clean"))
    assert "spark-submit --master local[1] " in log
    assert site.submitted(summary["run"]) == [True]
    assert f"{SUBMITTED}orphan_cleanup" in log
    # What comes after is submitted as the driver that is up wants it.
    site.airflow.rest.patch("connections", "spark_lowtide", body={**connection, "host": site.config.spark.master})


#: What is filled in where a person is to approve the plan.
ASKING = {"tables": ["orders"], "execute": True, "approval": True}


@pytest.fixture(scope="module")
def unanswered(site: Site) -> Run:
    """A run that waits for an approval which nobody gives."""
    follow_only(site.dags, "history_gc")
    return site.dags.trigger("history_gc", ASKING)


def test_a_person_approves_a_plan_or_it_is_not_done(site: Site, unanswered: Run) -> None:
    """Refused: nothing is done and the run is over. Approved: that plan is done."""
    left = set(site.orphan("orders"))
    site.omid.advance_watermark()
    refused = site.dags.trigger("orphan_cleanup", ASKING)
    shown = site.asked(refused)
    assert "**3** cells of " in shown
    assert "| `orders` | 3 |" in shown
    site.airflow.rest.patch(*site.question(refused), body={"chosen_options": ["Reject"], "params_input": {}})
    (refused,) = site.over(refused)
    states = {t.task_id: t.state for t in site.dags.tasks(refused)}
    assert refused.state == "success"
    assert {states[t] for t in ("clean", "hand_over", "all_cleaned")} == {"skipped"}
    assert "refused the plan; nothing was done" in site.dags.log(refused, site.task(refused, APPROVE))
    assert left <= site.left("orders")

    approved = site.dags.trigger("orphan_cleanup", ASKING)
    assert "| `orders` | 3 |" in site.asked(approved)
    site.airflow.rest.patch(*site.question(approved), body={"chosen_options": ["Approve"], "params_input": {}})
    done_as_approved(site, approved, left)

    # Who clears the plan alone, and then the job, has a new plan done that nobody was shown.
    young = set(site.orphan("orders"))
    site.omid.advance_watermark()
    site.cleared_alone(approved, PLAN)
    assert site.task(approved, PLAN).state == "success"
    site.cleared_alone(approved, "clean")
    assert site.task(approved, "clean").state == "failed"
    log = site.dags.log(approved, site.task(approved, "clean"))
    assert "is not one that was approved: the task plan made it anew after that; nothing was done" in log
    assert young <= site.left("orders")
    # Shown and approved, it is done.
    site.airflow.rest.post("dags", approved.dag_id, "clearTaskInstances", body=clearing(approved, APPROVE, after=True))
    assert "| `orders` | 3 |" in site.asked(approved)
    site.airflow.rest.patch(*site.question(approved), body={"chosen_options": ["Approve"], "params_input": {}})
    site.over(approved)
    assert not young & site.left("orders")


def clearing(run: Run, task_id: str, *, after: bool = False) -> dict[str, Any]:
    """What Airflow's page asks for when somebody clears a task; *after*: and those after it."""
    return {
        "dag_run_id": run.run_id,
        "task_ids": [task_id],
        "include_downstream": after,
        "only_failed": False,
        "reset_dag_runs": True,
        "dry_run": False,
    }


@pytest.mark.needs("browser")
def test_a_person_triggers_and_approves_in_a_browser(site: Site) -> None:
    """By Airflow's form, and by its page with the question, where the plan is to be read: that plan is done."""
    left = set(site.orphan("orders"))
    site.omid.advance_watermark()
    with browser() as running:
        page = tab(running)
        log_in(page, site.airflow)
        before = {run.run_id for run in site.dags.runs("orphan_cleanup")}
        fill_in_form(page, site, "orphan_cleanup", "orders", "execute", "approval")
        while not (made := [run for run in site.dags.runs("orphan_cleanup") if run.run_id not in before]):
            page.wait_for_timeout(500)
        (approved,) = made
        assert "| `orders` | 3 |" in site.asked(approved)
        address = f"dags/{approved.dag_id}/runs/{quote(approved.run_id)}/tasks/{APPROVE}/required_actions"
        page.goto(f"{site.airflow.config.url}/{address}")
        expect(page.get_by_text("cells of").first).to_be_visible()
        page.get_by_role("button", name="Approve", exact=True).click()
        done_as_approved(site, approved, left)


def done_as_approved(site: Site, run: Run, left: set[int]) -> None:
    """The run ends well, and has deleted the three cells that its plan named."""
    (run,) = site.over(run)
    assert run.state == "success"
    assert not left & site.left("orders")
    assert "approved the plan" in site.dags.log(run, site.task(run, APPROVE))
    assert "--approved " in site.dags.log(run, site.task(run, "clean"))
    (event,) = site.dags.asset_events(run)
    assert event["extra"]["totals"]["deleted"] == 3


def fill_in_form(page: Page, site: Site, dag_id: str, tables: str, *ticked: str) -> None:
    """Trigger a run as a person does: the button, the section *What to do*, its fields, the button below."""
    page.goto(f"{site.airflow.config.url}/dags/{dag_id}")
    page.get_by_test_id("trigger-dag-button").click()
    page.get_by_role("dialog").get_by_role("button", name="What to do").click()
    page.locator("#element_tables").fill(tables)
    # By it Airflow's form marks a field that must not be left empty.
    expect(page.get_by_role("dialog").get_by_text("*", exact=True)).to_have_count(0)
    for name in ticked:
        page.locator("label", has=page.locator(f"[name=element_{name}]")).click()
    page.get_by_test_id("trigger-dag-submit").click()


def test_a_worker_that_is_killed_costs_a_retry(site: Site) -> None:
    """All of a task is killed at its work, Spark's driver included, and so is the gateway: the retry has the same name
    and ends the work.
    """
    site.omid.create("shaken")
    shaken = site.orphan("shaken")
    site.omid.advance_watermark()
    with site.airflow.driver.real():
        run = site.dags.trigger("orphan_cleanup", {"tables": ["shaken"], "execute": True})
        driver = site.driver_at_work(run)
        scheduler = next(part.pid for part in site.airflow.status() if part.name == "scheduler")
        worker = next(process for process in (driver, *driver.parents()) if process.ppid() == scheduler)
        for process in (worker, *worker.children(recursive=True)):
            process.kill()
    site.stack.kill("thrift")
    site.stack.up()
    (run,) = site.over(run)
    task = site.task(run, "clean")
    assert (run.state, task.state, task.tries) == ("success", "success", 2)
    name = site.summary(run, task)["run"]
    assert f"--run-id {name} " in site.dags.log(run, task)
    # Only what was killed had to be a process of its own.
    assert site.submitted(name) == [True, False]
    assert not set(shaken) & site.left("shaken")


def test_a_plan_that_nobody_approves_is_not_done(site: Site, unanswered: Run) -> None:
    """The time to answer over, the run fails, once."""
    (run,) = site.over(unanswered)
    assert (run.state, site.task(run, "remove").state) == ("failed", "upstream_failed")
    asked = site.task(run, APPROVE)
    assert (asked.state, asked.tries) == ("failed", 1)
    assert f"nobody approved the plan within {timedelta(seconds=ANSWER)}; nothing was done" in site.dags.log(run, asked)


@pytest.mark.needs("browser")
def test_the_page_shows_the_stores_numbers(site: Site) -> None:
    """In the tab of Airflow's navigation, with links into Airflow, and nothing comes from another host."""
    address = site.airflow.config.url
    data = site.shown()
    with browser() as running:
        page = tab(running)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        log_in(page, site.airflow)
        page.goto(f"{address}/plugin/lowtide")
        inside = page.frame_locator("iframe")
        expect(inside.locator("body[data-ready]")).to_be_visible()
        expect(inside.locator("#daglist tr").nth(3)).to_be_visible()
        expect(inside.locator("#health")).to_have_class(data["health"]["level"])
        expect(inside.locator("#numbers")).to_contain_text(f"{data['bound']['x']:,}")
        expect(inside.locator("#runs tbody tr")).to_have_count(len(data["runs"]))
        expect(inside.locator("#regions-chart svg").first).to_be_visible()
        sections = [section["title"] for section in data["sections"]]
        assert "History" in sections
        expect(inside.locator("#sections h2")).to_have_text(sections)
        link = inside.locator("#runs a").first
        log = link.evaluate("link => link.href")
        link.click()
        page.wait_for_url(lambda url: url == log)
        assert {urlsplit(url).netloc for url in asked if url.startswith("http")} == {urlsplit(address).netloc}


@pytest.mark.needs("prometheus")
def test_prometheus_scrapes_airflow_by_its_token(site: Site, tmp_path: Path) -> None:
    """With the token alone, and it opens nothing else; a wrong one gets nothing. The numbers are the store's, and the
    rules call somebody for the table whose runs fail.
    """
    token = site.airflow.config.home.parent / TOKEN
    wrong = tmp_path / "wrong"
    wrong.write_text("guessed")
    jobs = [
        {
            "job_name": name,
            "metrics_path": "/lowtide/metrics",
            "authorization": {"credentials_file": str(file)},
            "static_configs": [{"targets": [urlsplit(site.airflow.config.url).netloc]}],
        }
        for name, file in (("right", token), ("wrong", wrong))
    ]
    with server(tmp_path, jobs, [RULES]) as prometheus:
        prometheus.wait_for('lowtide_up{job="right"} == 1')
        prometheus.wait_for('up{job="wrong"} == 0')
        assert prometheus.query('lowtide_up{job="wrong"}') == []
        with opened(site.config) as state:
            counts = {table: len(found["regions"]) for table, found in state.watermarks().items()}
        regions = prometheus.query("lowtide_regions")
        assert {r["metric"]["table"]: int(r["value"][1]) for r in regions} == counts
        prometheus.wait_for('ALERTS{alertname="LowtideAlarm", cause="failed", table="guarded"}')
    for path, code in (("metrics", 200), ("data", 403)):
        answer = httpx.get(
            f"{site.airflow.config.url}/lowtide/{path}",
            headers={"Authorization": f"Bearer {token.read_text()}"},
            trust_env=False,
        )
        assert answer.status_code == code


def test_the_page_has_the_stores_numbers(site: Site) -> None:
    """With Airflow's login; without, nothing. What was read is told at once when the store is away."""
    address = site.airflow.config.url
    for path in ("", "data", "page.js", "plotly.js", "metrics"):
        with pytest.raises(HTTPError) as refused:
            build_opener(ProxyHandler({})).open(f"{address}/lowtide/{path}")
        assert refused.value.code == 401
    with opened(site.config) as state:
        bound, runs, published = state.bounds(1)[0], state.runs(60), state.watermarks()
    data = site.shown()
    assert data["bound"]["x"] == bound.value
    assert data["low_watermark"]["x"] == site.omid.watermark()
    assert {t["table"]: t["regions"] for t in data["tables"]} == {t: len(w["regions"]) for t, w in published.items()}
    assert [r["run"] for r in data["runs"]] == [r["run"] for r in runs]
    # The table that may lose nothing has failed by now.
    assert {f["cause"] for f in data["health"]["findings"] if "guarded" in f["tables"]} >= {"failed"}
    run = site.dags.runs("orphan_cleanup")[0]
    links = site.airflow.rest.get(
        "dags", run.dag_id, "dagRuns", run.run_id, "taskInstances", "clean", "links", map_index=0
    )
    assert links["extra_links"]["Lowtide"] == f"{address}/plugin/lowtide"

    # A store that is away costs the server nothing: what was read is shown at once, and that it is old.
    site.stack.kill("thrift")
    deadline = time.monotonic() + 60
    while data["health"]["level"] != "unknown":
        assert time.monotonic() < deadline
        asked = time.monotonic()
        data = site.airflow.rest.below("lowtide/data")
        assert time.monotonic() - asked < 3
        time.sleep(0.2)
    assert f"127.0.0.1:{site.stack.config.thrift_port}" in data["health"]["sentence"]
    assert (data["known"], data["bound"]["x"]) == (True, bound.value)


def test_airflow_comes_up_again_and_goes_down_whole(site: Site) -> None:
    """A part that was killed is seen and started anew; after the end nothing runs that belonged to it."""
    scheduler = next(part.pid for part in site.airflow.status() if part.name == "scheduler")
    Process(scheduler, start_time(scheduler)).kill()
    assert [part.name for part in site.airflow.status() if part.state == "killed"] == ["scheduler"]
    site.airflow.up()
    assert {part.state for part in site.airflow.status()} == {"running"}
    site.airflow.down()
    assert {part.state for part in site.airflow.status()} == {"stopped"}
    home = f"AIRFLOW_HOME={site.airflow.config.home}".encode()
    left = [file.parent.name for file in Path("/proc").glob("[0-9]*/environ") if home in read(file)]
    assert left == []


def read(file: Path) -> bytes:
    """What a file of a process holds; nothing where the process is gone or another user's."""
    try:
        return file.read_bytes()
    except OSError:
        return b""
