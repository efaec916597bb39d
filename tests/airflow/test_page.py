"""The page's data, its cache, and who gets them; that Airflow shows the page is seen in test_runs.py."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path

import pytest
from airflow.api_fastapi.core_api.security import get_user
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from lowtide_airflow import web
from lowtide_airflow.cached import Cached
from lowtide_airflow.links import PageLink
from lowtide_airflow.operator import LowtideSparkOperator
from lowtide_airflow.plugin import LowtidePlugin
from lowtide_airflow.stores import Store
from lowtide_airflow.view import Latest, Reader, hurried, log_link, marks, view
from lowtide_airflow.web import application
from test_dag_files import in_a_new_python

from lowtide.cleaning.commit_count import CommitCount
from lowtide.config import Config, load
from lowtide.health import LedgerReading, Reading
from lowtide.history.mark import Hold
from lowtide.lab.stack import free_ports_config
from lowtide.ledger.settled import Settled, money_figure
from lowtide.run.summary import Counts, Summary, TableReport
from lowtide.store.records import Bound, History
from lowtide.tables.consent import Pause
from lowtide.tables.inventory import Entry, Kind
from lowtide.values.clock import millis
from lowtide.values.formats import UNITS_PER_MILLI

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
ROUTES = ("/", "/data", "/page.js", "/page.css", "/icon.svg", "/icon-dark.svg", "/plotly.js")


def seen(tables: int = 2, regions: int = 3, world: bool = False) -> Reading:
    """A store of so many tables and regions, each region with a watermark of its own."""
    unit = millis(NOW) * 1_000_000 if world else 100_000
    published = {
        f"t{n:02}": {
            "at": millis(NOW),
            "low_watermark": unit,
            "regions": [{"region": "r", "start": "", "stop": "", "watermark": unit - 50 * i} for i in range(regions)],
        }
        for n in range(tables)
    }
    report = TableReport("t00", Counts(healed=3, deleted=2), problems=["p1", "p2", "p3", "p4"])
    context = {"dag_id": "orphan_cleanup", "run_id": "manual__2026-01-01T00:00:00+00:00", "task_id": "clean"}
    run = Summary("orphan_cleanup", "r1", True, millis(NOW - timedelta(hours=1)), tables=[report], context=context)
    return Reading(
        NOW,
        low_watermark=unit,
        recorded=(unit - 50, NOW),
        bounds=(Bound(NOW, unit - 100, since=NOW), Bound(NOW - timedelta(days=1), unit - 200)),
        watermarks=published,
        runs=(run.to_json(),),
    )


# -- the data


def test_the_page_has_the_numbers_of_the_store() -> None:
    """Marks, tables, bounds oldest first, runs newest first, and the judgement."""
    data = view(Latest(seen(), Config()))
    assert (data["low_watermark"]["x"], data["bound"]["x"]) == (100_000, 99_900)
    assert [(t["table"], t["regions"], t["lowest"]["x"]) for t in data["tables"]] == [
        ("t00", 3, 99_900),
        ("t01", 3, 99_900),
    ]
    assert [(m["x"], m["regions"]) for m in data["tables"][0]["marks"]] == [(99_900, 1), (99_950, 1), (100_000, 1)]
    assert [b["x"] for b in data["bounds"]] == [99_800, 99_900]
    [run] = data["runs"]
    assert (run["counts"]["healed"], run["problems"], run["more_problems"]) == (3, ["t00: p1", "t00: p2", "t00: p3"], 1)
    assert data["health"]["level"] == "alarm"


def test_a_card_has_a_few_words_and_the_date_beneath() -> None:
    """Of a world clock how long ago a mark was; of a counter the number, with the time where a sample tells it."""
    low = (millis(NOW) - 90 * 60_000) * UNITS_PER_MILLI
    data = view(Latest(replace(seen(), low_watermark=low, bounds=(Bound(NOW, 0, ()),)), Config()))
    assert (data["low_watermark"]["short"], data["low_watermark"]["date"]) == ("1 hour ago", "2026-03-10 10:30 UTC")
    assert (data["bound"]["short"], data["bound"]["date"]) == ("0", "")
    counted = view(Latest(replace(seen(), samples=((NOW - timedelta(days=1), 99_000),)), Config()))["bound"]
    assert (counted["short"], counted["date"]) == ("99,900", "about 2026-03-09 12:00 UTC")
    assert view(Latest(replace(seen(), bounds=()), Config()))["bound"] is None


def test_notes_of_one_cause_are_one() -> None:
    """What is no note stands by itself, though its cause be the same; nothing is lost, and the order stays."""
    notes = [Pause(f"p{n}", f"t{n}", "ann", "a reason", NOW, NOW + timedelta(hours=n)) for n in (1, 2, 3)]
    data = view(Latest(replace(seen(), pauses=tuple(notes)), Config()))
    causes = [[f["cause"] for f in group] for group in data["findings"]]
    assert ["paused"] * 3 in causes
    assert len(causes) > 1
    assert {len(group) for group in causes if group[0] != "paused"} == {1}
    assert sorted(map(str, chain.from_iterable(data["findings"]))) == sorted(map(str, data["health"]["findings"]))


def test_the_page_has_the_counts_of_the_commit_table() -> None:
    """Oldest first, each with its time; none where none is recorded, as on stores that an earlier version worked on."""
    counts = (CommitCount(NOW - timedelta(days=1), 84, 37), CommitCount(NOW, 0, 1))
    assert view(Latest(replace(seen(), commit_counts=counts), Config()))["commits"] == [
        {"at": "2026-03-09T12:00:00.000+00:00", "entries": 84, "marks": 37},
        {"at": "2026-03-10T12:00:00.000+00:00", "entries": 0, "marks": 1},
    ]
    assert view(Latest(seen(), Config()))["commits"] == []


def test_the_page_has_a_part_for_history_where_there_is_some() -> None:
    """The mark of each table with what keeps it back, the holds with their owners, and what was removed by run."""
    assert view(Latest(seen(), Config()))["sections"] == []
    low = millis(NOW) * 1_000_000
    held = Hold("h1", "t00", 0, "ann", "month end", NOW, NOW + timedelta(hours=2))
    report = TableReport("t00", Counts(deleted=12, markers=3, bytes_removed=2048), execute=True)
    run = Summary("history_gc", "gc", True, millis(NOW - timedelta(hours=1)), tables=[report])
    about = {"at": millis(NOW - timedelta(hours=1)), "run": "gc"}
    store = replace(
        seen(world=True),
        inventory=(Entry("t00", Kind.TRANSACTIONAL, True), Entry("t01", Kind.TRANSACTIONAL, True)),
        histories=(History("t00", low - 50, about=about),),
        holds=(held,),
        runs=(run.to_json(),),
    )
    history, holds, removed = view(Latest(store, Config()))["sections"]
    assert [(r[0], r[3], r[5]) for r in history["rows"]] == [
        ("t00", "1 hour ago", "2.0 KiB in 12 cells"),
        ("t01", "", ""),
    ]
    assert "hold h1 of ann: month end" in history["rows"][0][4]
    assert history["rows"][1][2] == "never"
    assert holds["rows"] == [
        ["t00", "h1", "0", "ann", "month end", "2026-03-10 12:00 UTC", "2026-03-10 14:00 UTC"],
    ]
    assert removed["rows"] == [["2026-03-10 11:00 UTC", "t00", "removed", 12, 3, "2.0 KiB"]]
    assert all(len(r) == len(s["columns"]) for s in (history, holds, removed) for r in s["rows"])


def test_the_page_has_a_part_for_the_ledger_where_there_is_one() -> None:
    """Its marks in words, and the repairs by run."""
    report = TableReport("ledger_transactions", Counts(finished=4, dropped=1), execute=True)
    run = Summary("transaction_repair", "r", True, millis(NOW - timedelta(hours=1)), tables=[report])
    run.figures = dict.fromkeys(money_figure("after"), 7)
    mark = Settled(millis(NOW - timedelta(hours=1)), "r", millis(NOW))
    store = replace(seen(), ledger=LedgerReading(mark, 2, False, NOW), runs=(run.to_json(),))
    ledger, repairs = view(Latest(store, Config()))["sections"]
    assert ledger["rows"][0] == ["all transactions are over that began before", "2026-03-10 11:00 UTC, 1 hour ago"]
    assert repairs["rows"] == [["2026-03-10 11:00 UTC", "acted", 4, 1, 7, 7, "done"]]


def test_world_clock_timestamps_leave_as_times() -> None:
    """A browser's numbers are exact to 2^53 only."""
    data = view(Latest(seen(world=True), Config()))
    assert data["low_watermark"]["x"] == "2026-03-10T12:00:00.000+00:00"
    numbers = [m["x"] for t in data["tables"] for m in t["marks"]]
    assert all(isinstance(x, str) for x in numbers)


def test_a_hold_of_no_time_at_all_does_not_end_the_page() -> None:
    """Whatever somebody wrote there."""
    held = Hold("h1", "orders", 99999999999999999999999, "ann", "a slip", NOW, NOW + timedelta(hours=1))
    sections = view(Latest(replace(seen(world=True), holds=(held,)), Config()))["sections"]
    assert "99,999,999,999,999,999,999,999" in str(sections)


def test_commands_of_a_store_with_a_name_act_on_that_store() -> None:
    """Copied from the page into a shell: by its configuration; what is unpaused is its DAG. The nameless store's say
    neither.
    """
    long_ago = replace(seen(), at=NOW + timedelta(days=30))
    store = Store("east", Path("/etc/low tide/east.yaml"))
    for latest, config, dag in (
        (Latest(long_ago, Config(), store=store), " --config '/etc/low tide/east.yaml'", "east.orphan_cleanup"),
        (Latest(long_ago, Config()), "", "orphan_cleanup"),
    ):
        found = [finding for group in view(latest)["findings"] for finding in group]
        (overdue,) = (finding for finding in found if finding["what"] == "Nothing cleans")
        assert overdue["commands"] == [f"lowtide run orphan_cleanup --execute{config}"]
        assert f"(airflow dags unpause {dag})" in overdue["remedy"]


def test_what_was_seen_stays_while_the_gateway_is_down() -> None:
    """With its time beside it; without anything seen before there is only the judgement."""
    down = Reading(NOW + timedelta(hours=1), unreachable="the gateway at h:9090 does not answer")
    data = view(Latest(down, Config(), seen()))
    assert (data["health"]["level"], data["known"], data["as_of"]) == ("unknown", True, NOW.isoformat())
    assert len(data["tables"]) == 2
    assert "h:9090" in data["health"]["sentence"]
    first = view(Latest(down, Config()))
    assert (first["known"], first["tables"]) == (False, [])
    assert view(None) == {"waiting": True}


def test_fifty_tables_with_ten_thousand_regions_stay_small() -> None:
    """The answer is bounded by the number of tables, not of regions."""
    assert len(json.dumps(view(Latest(seen(50, 200), Config())))) < 400_000


def test_of_many_tables_those_furthest_behind_are_drawn() -> None:
    """A hundred of them; the others are told, by name like these, without their marks."""
    reading = seen(500, 30)
    for n, value in enumerate(reading.watermarks.values()):
        for region in value["regions"]:
            region["watermark"] -= (n * 7919) % 500 * 10  # each table another
    tables = view(Latest(reading, Config()))["tables"]
    assert [t["table"] for t in tables] == sorted(reading.watermarks)
    drawn = [t["lowest"]["x"] for t in tables if t["marks"] is not None]
    assert sorted(drawn) == sorted(t["lowest"]["x"] for t in tables)[:100]
    assert all(t["marks"] for t in tables if t["marks"] is not None)
    assert [len(t["marks"]) for t in view(Latest(seen(2), Config()))["tables"]] == [3, 3], "of few all are"


@given(
    st.one_of(
        st.lists(st.integers(0, 3)),
        # More than are drawn one by one.
        st.sets(st.integers(0, 10**4), min_size=80, max_size=150).map(list),
        st.integers(0, 10**19).map(lambda first: [first + n * n for n in range(200)]),
    )
)
def test_marks_drawn_together_hide_nothing(watermarks: list[int]) -> None:
    """Every region is counted once; none is drawn higher than it is; the lowest is drawn where it is."""
    drawn = marks(watermarks)
    assert len(drawn) <= 61
    assert sum(n for _, n in drawn) == len(watermarks)
    assert [m for m, _ in drawn] == sorted({m for m, _ in drawn})
    assert {m for m, _ in drawn} <= set(watermarks)
    if watermarks:
        assert drawn[0][0] == min(watermarks)
        reached = 0
        for mark, regions in drawn:  # the regions of a step are the next ones in order, and none lies below its mark
            step = sorted(watermarks)[reached : reached + regions]
            assert mark == step[0]
            reached += regions


def test_links_lead_to_the_try_of_a_task() -> None:
    """Also of a mapped one, and with names that need quoting; a run by hand has none."""
    about = {"dag_id": "d", "run_id": "manual__2026-01-01T00:00:00+00:00", "task_id": "clean"}
    plain = log_link(about)
    assert plain == "dags/d/runs/manual__2026-01-01T00%3A00%3A00%2B00%3A00/tasks/clean?try_number=1"
    assert log_link(about | {"map_index": "3", "try": "2"}) == plain.replace(
        "clean?try_number=1", "clean/mapped/3?try_number=2"
    )
    assert log_link({"dag_id": "d"}) is None


def test_a_gateway_that_is_down_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page waits for nobody, and a broken configuration is shown as one."""
    file = tmp_path / "lowtide.yaml"
    file.write_text(f"hbase: {{thrift: {{port: {free_ports_config(tmp_path).thrift_port}}}}}\n")
    monkeypatch.setenv("LOWTIDE_CONFIG", str(file))
    reader = Reader()
    assert "does not answer" in reader().reading.unreachable
    assert hurried(Config()).hbase.thrift.timeout <= timedelta(seconds=5)
    file.write_text("hbaze: {}\n")
    assert "hbaze" in view(reader())["health"]["sentence"]


# -- the cache


class Slow:
    """Something to fetch, one number more each time, that can be made to take its time."""

    def __init__(self) -> None:
        self.calls = 0
        self.now = 0.0
        self.free = threading.Event()
        self.free.set()

    def __call__(self) -> int:
        self.calls += 1
        number = self.calls
        assert self.free.wait(20)
        return number


def settled(cached: Cached[int]) -> None:
    """Wait for a fetch that is under way."""
    if fetching := cached._fetching:
        assert fetching.wait(20)


def test_a_value_is_kept_for_its_time() -> None:
    """Then the old one is given once more while the new one is fetched."""
    slow = Slow()
    cached = Cached(slow, 30, patience=20, clock=lambda: slow.now)
    assert [cached.get() for _ in range(5)] == [1] * 5
    slow.now = 29
    assert (cached.get(), slow.calls) == (1, 1)
    slow.now, _ = 30, slow.free.clear()
    assert [cached.get() for _ in range(5)] == [1] * 5
    assert slow.calls == 2
    slow.free.set()
    settled(cached)
    assert cached.get() == 2


def test_nobody_waits_for_long_and_one_fetch_is_enough() -> None:
    """However many ask while a store hangs: each gets nothing, soon, and one thread waits for the store."""
    slow = Slow()
    slow.free.clear()
    cached = Cached(slow, 30, patience=0.05)
    found: list[int | None] = []
    askers = [threading.Thread(target=lambda: found.append(cached.get())) for _ in range(20)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join(20)
    assert (found, slow.calls) == ([None] * 20, 1)
    slow.free.set()
    settled(cached)
    assert cached.get() == 1


# -- the routes


@pytest.fixture
def app() -> FastAPI:
    (mounted,) = LowtidePlugin.fastapi_apps
    assert mounted["url_prefix"] == "/lowtide"
    return application()


@pytest.mark.parametrize("route", [*ROUTES, "/nosuchfile", "/openapi.json", "/docs"])
def test_nothing_is_given_to_who_is_not_logged_in(app: FastAPI, route: str) -> None:
    """Neither data nor files, and not even whether there is such a file."""
    assert TestClient(app).get(route).status_code == 401


class Manager:
    """An auth manager that knows one user, who may or may not see plugins."""

    def __init__(self, allowed: bool) -> None:
        self.allowed = allowed
        self.asked: list[str] = []

    def is_authorized_view(self, *, access_view: object, user: object) -> bool:
        self.asked.append(f"{getattr(access_view, 'value', access_view)} {user}")
        return self.allowed


@pytest.fixture
def manager(app: FastAPI, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Manager:
    """Somebody is logged in; the store is down."""
    manager = Manager(True)
    monkeypatch.setattr("airflow.api_fastapi.core_api.security.get_auth_manager", lambda: manager)
    file = tmp_path / "lowtide.yaml"
    file.write_text(f"hbase: {{thrift: {{port: {free_ports_config(tmp_path).thrift_port}}}}}\n")
    monkeypatch.setenv("LOWTIDE_CONFIG", str(file))
    app.dependency_overrides[get_user] = lambda: "somebody"
    return manager


def test_who_may_see_plugins_gets_the_page(app: FastAPI, manager: Manager) -> None:
    """Its files, its data, and no other host in its policy; other names are no files."""
    client = TestClient(app)
    for route in ROUTES:
        answer = client.get(route)
        assert answer.status_code == 200, route
        assert answer.content
    assert client.get("/data").json()["health"]["level"] == "unknown"
    assert "default-src 'self'" in client.get("/").headers["content-security-policy"]
    assert client.get("/index.html").status_code == client.get("/..%2Fcached.py").status_code == 404
    assert set(manager.asked) == {"PLUGINS somebody"}


@pytest.mark.usefixtures("manager")
def test_what_the_page_gets_is_made_once_of_a_reading_and_not_on_the_event_loop(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many tabs ask for it: of thousands of tables it takes a second, in which the loop would answer nobody."""
    made_on: list[tuple[Latest | None, bool]] = []

    def slow(latest: Latest | None) -> dict[str, object]:
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            made_on.append((latest, True))
            return {}
        made_on.append((latest, False))
        return {"waiting": False}

    latest = Latest(seen(), Config())
    monkeypatch.setattr(web, "Reader", lambda _: lambda: latest)
    monkeypatch.setattr(web, "view", slow)
    client = TestClient(app)
    assert [client.get("/data").json()["waiting"] for _ in range(3)] == [False] * 3
    assert [on_loop for _, on_loop in made_on] == [False]
    answers = web.Answers()
    for reading in (latest, latest, replace(latest, config=None), None):
        answers.of(reading, "", [""])
    answers.of(None, "", ["", "east"])
    assert len(made_on) == 1 + 4, "another reading, none at all, and another store to choose from are made anew"


@pytest.mark.usefixtures("manager")
def test_who_reads_again_sees_what_is_there_now(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the reading of before, while the new one comes; of a store that takes its time that one, after a moment."""
    readings = iter([NOW, NOW + timedelta(hours=1)])
    hangs = threading.Event()

    def reader() -> Latest:
        at = next(readings, None)
        if at is None:
            hangs.wait(20)
        return Latest(replace(seen(), at=at or NOW + timedelta(days=1)), Config())

    monkeypatch.setattr(web, "Reader", lambda _: reader)
    monkeypatch.setattr(web, "Cached", partial(Cached, patience=0.5))
    monkeypatch.setenv("AIRFLOW__LOWTIDE__PAGE_SECONDS", "0")
    client = TestClient(app)
    shown = [client.get("/data").json()["at"] for _ in range(3)]
    hangs.set()
    assert shown == [NOW.isoformat(), *[(NOW + timedelta(hours=1)).isoformat()] * 2]


def test_each_store_has_its_data(
    app: FastAPI, manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that is asked for, of those that Airflow serves; the nameless one is among them where there is no other,
    or LOWTIDE_CONFIG leads to it.
    """
    client = TestClient(app)
    data = client.get("/data").json()
    assert (data["store"], data["stores"]) == ("", [""])
    files = {name: tmp_path / f"{name}.yaml" for name in ("west", "east")}
    for name, file in files.items():
        port = free_ports_config(tmp_path / name).thrift_port
        file.write_text(f"hbase: {{zookeeper_quorum: 127.0.0.1, thrift: {{port: {port}}}}}")
    monkeypatch.setenv("AIRFLOW__LOWTIDE__STORES", json.dumps({name: str(file) for name, file in files.items()}))
    assert client.get("/data").json()["stores"] == ["", "east", "west"]
    monkeypatch.delenv("LOWTIDE_CONFIG")
    data = client.get("/data").json()
    assert (data["store"], data["stores"]) == ("east", ["east", "west"])
    for name, file in files.items():
        port = load(file).hbase.thrift.port
        assert f"127.0.0.1:{port}" in client.get("/data", params={"store": name}).json()["health"]["sentence"]
    assert client.get("/data", params={"store": "north"}).status_code == 404
    monkeypatch.setenv("AIRFLOW__LOWTIDE__STORES", "east")
    assert client.get("/data").json()["stores"] == [""]


def test_who_may_not_is_refused(app: FastAPI, manager: Manager) -> None:
    """With Airflow's own permission."""
    manager.allowed = False
    assert {TestClient(app).get(route).status_code for route in ROUTES} == {403}


def test_the_plugin_loads_nothing_heavy(tmp_path: Path) -> None:
    """Every process of Airflow imports it; the page and happybase come with the first request."""
    printed = in_a_new_python(
        """
        import sys
        import lowtide_airflow.plugin
        heavy = {"happybase", "pyspark", "plotly", "lowtide_airflow.web", "lowtide_airflow.view"}
        print(sorted(heavy & set(sys.modules)))
        """,
        tmp_path,
    )
    assert printed.splitlines()[-1] == "[]"


@pytest.mark.parametrize(("store", "end"), [("", "/plugin/lowtide"), ("east", "/plugin/lowtide?store=east")])
def test_a_task_leads_to_its_store(store: str, end: str) -> None:
    """The button on a task that ran a job."""
    operator = LowtideSparkOperator(task_id="clean", job="orphan_cleanup", store=store)
    assert PageLink().get_link(operator, ti_key=None).endswith(end)


def test_a_later_reading_replaces_an_older_one() -> None:
    """The page tells when what it shows was read."""
    later = replace(seen(), at=NOW + timedelta(minutes=5))
    assert view(Latest(later, Config(), seen()))["as_of"] == later.at.isoformat()
