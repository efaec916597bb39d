"""What monitoring is told: the metrics of a reading, their text, and ``lowtide status --prometheus``."""

from __future__ import annotations

import re
import stat
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from lowtide.cleaning.commit_count import CommitCount
from lowtide.cleaning.facts import NEVER, PARTLY
from lowtide.cli.app import app
from lowtide.config import Config
from lowtide.errors import UsageError
from lowtide.health import RECURRING, Cause, Reading, assess, last_runs
from lowtide.monitoring.metrics import GAUGES, UP, Observation
from lowtide.monitoring.text import exposition, write
from lowtide.run.jobs import JOBS
from lowtide.run.summary import Counts, Summary, TableReport
from lowtide.store.records import Bound, History
from lowtide.tables.consent import Pause
from lowtide.values.clock import millis
from tests.unit.test_health import ACTING, DAY, HOUR, NOW, a_run, blocker, healthy
from tests.unit.test_health_history import gc_run, hold, mark, store
from tests.unit.test_health_ledger import ledger, repair, stuck

NAMED = Config.model_validate({"store": "orders-prod", "defaults": {"mode": "execute"}})
DOWN = Reading(NOW, unreachable="nobody answers at h:1")
UNITS = 1_000_000


def parsed(*seen: Observation) -> dict[str, dict[tuple[str, ...], float]]:
    """By name: the values, by those of the labels but ``store``, which has to be there."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(exposition(seen)[0].decode()):
        for s in family.samples:
            if s.name == "lowtide_build_info":
                continue
            own = tuple(value for name, value in sorted(s.labels.items()) if name != "store")
            assert s.labels["store"] in {each.config.store for each in seen}
            assert own not in found.setdefault(s.name, {})
            found[s.name][own] = s.value
    return found


def of(reading: Reading, config: Config = NAMED) -> dict[str, dict[tuple[str, ...], float]]:
    return parsed(Observation(reading, config))


def whole() -> Reading:
    """A store with everything that there is to tell of."""
    runs = (
        gc_run(HOUR, deleted=70, bytes_removed=7168),
        gc_run(DAY, execute=False, deleted=7, bytes_removed=9),
        repair(HOUR, wrong=2),
        *healthy().runs,
    )
    held = (blocker("users", NEVER, regions=3), blocker("orders", PARTLY))
    seen = store(
        holds=(hold(), replace(hold(), id="h2", expires=NOW - HOUR)),
        runs=runs,
        ledger=ledger(HOUR, full_at=millis(NOW - DAY), **stuck(3, DAY)),
        histories=(mark("orders"), mark("users", None)),
    )
    low = millis(NOW - timedelta(minutes=1)) * UNITS
    old = millis(NOW - DAY) * UNITS
    regions = {
        name: {
            "at": millis(NOW - HOUR),
            "low_watermark": low,
            "regions": [{"region": str(n), "start": "", "stop": "", "watermark": w} for n, w in enumerate(marks)],
        }
        for name, marks in {"orders": (low, old), "users": (0, low, low)}.items()
    }
    return replace(
        seen,
        state_format=3,
        low_watermark=low,
        bounds=(Bound(NOW - HOUR, old, held, NOW - 2 * DAY),),
        watermarks=regions,
        commit_counts=(CommitCount(NOW - DAY, 1, 2), CommitCount(NOW - HOUR, 84, 37)),
        uncompacted={"orders": 512},
        pauses=(pause(HOUR), pause(2 * HOUR), pause(-HOUR, table="users"), pause(DAY, table=None)),
    )


def pause(until: timedelta, table: str | None = "orders") -> Pause:
    return Pause("p1", table, "ada", "a migration", NOW - DAY, NOW + until)


# -- what is told


def test_every_metric_has_a_value_in_a_store_that_has_everything() -> None:
    """A metric that no store could have would be one to be waited for in vain."""
    told = of(whole())
    reclaimable = of(replace(whole(), runs=(gc_run(HOUR, execute=False, deleted=7, bytes_removed=9), *whole().runs)))
    assert {g.name for g in GAUGES} == set(told) | set(reclaimable)
    assert reclaimable["lowtide_history_reclaimable_bytes"] == {("orders",): 9}


def test_the_marks_are_told_with_their_age_and_distance() -> None:
    """In seconds as of the reading, and in timestamps; of a region that was never cleaned there is no age."""
    told = of(whole())
    assert told["lowtide_up"] == {(): 1}
    assert told["lowtide_read_timestamp_seconds"] == {(): NOW.timestamp()}
    assert told["lowtide_state_format"] == {(): 3}
    assert told["lowtide_low_watermark_age_seconds"] == {(): 60}
    assert told["lowtide_prune_bound_age_seconds"] == {(): 86400}
    assert told["lowtide_prune_bound_behind"] == {(): 86340 * 1000 * UNITS}
    assert told["lowtide_prune_bound_since_timestamp_seconds"] == {(): (NOW - 2 * DAY).timestamp()}
    assert told["lowtide_prune_bound_collected_timestamp_seconds"] == {(): (NOW - HOUR).timestamp()}
    assert told["lowtide_region_watermark_age_seconds"] == {("orders",): 86400}
    assert told["lowtide_regions"] == {("orders",): 2, ("users",): 3}
    assert told["lowtide_regions_never_cleaned"] == {("orders",): 0, ("users",): 1}
    assert told["lowtide_table_execute"] == {("orders",): 1, ("users",): 1}
    assert told["lowtide_prune_bound_blockers"] == {("behind", "orders"): 1, ("never-cleaned", "users"): 1}
    assert (told["lowtide_commit_table_entries"], told["lowtide_commit_table_marks"]) == ({(): 84}, {(): 37})
    assert told["lowtide_commit_table_counted_timestamp_seconds"] == {(): (NOW - HOUR).timestamp()}


def test_a_pause_is_told_with_its_end() -> None:
    """Of several the one that ends last, of one that is over nothing; without a table that of the store."""
    told = of(whole())["lowtide_paused_until_timestamp_seconds"]
    assert told == {("orders",): (NOW + 2 * HOUR).timestamp(), ("",): (NOW + DAY).timestamp()}


def test_history_and_ledger_are_told() -> None:
    """A hold that has expired does not count."""
    told = of(whole())
    assert told["lowtide_history_holds"] == {("orders",): 1, ("users",): 0}
    assert told["lowtide_history_uncompacted_bytes"] == {("orders",): 512, ("users",): 0}
    assert told["lowtide_history_mark_applied_timestamp_seconds"] == {("orders",): (NOW - HOUR).timestamp()}
    assert set(told["lowtide_history_mark_age_seconds"]) == {("orders",)}
    assert told["lowtide_ledger_settled_age_seconds"] == {(): 3600}
    assert told["lowtide_ledger_unfinished_transactions"] == {(): 3}
    assert told["lowtide_ledger_oldest_unfinished_timestamp_seconds"] == {(): (NOW - DAY).timestamp()}
    assert told["lowtide_ledger_wrong_transactions"] == {(): 2}
    assert told["lowtide_ledger_full_check_timestamp_seconds"] == {(): (NOW - DAY).timestamp()}
    assert not {name for name in of(healthy()) if name.startswith("lowtide_ledger")}


def test_a_counters_marks_have_a_distance_and_no_age() -> None:
    """Nothing is known of their time."""
    told = of(replace(healthy(), histories=(History("orders", 49),)))
    assert not {name for name in told if name.endswith("_age_seconds")}
    assert told["lowtide_prune_bound_behind"] == {(): 50}
    assert told["lowtide_region_watermark_behind"] == {("orders",): 50, ("users",): 50}
    assert told["lowtide_history_mark_behind"] == {("orders",): 1000}


def test_findings_are_those_of_explain() -> None:
    """By severity, zeros too, and one by one with cause and table."""
    reading = replace(whole(), oracle_problem="does not answer at h:1")
    told, health = of(reading), assess(reading, NAMED)
    assert told["lowtide_oracle_up"] == {(): 0}
    counts = Counter(f.severity.value for f in health.findings)
    assert told["lowtide_findings"] == {(s,): counts[s] for s in ("note", "warning", "alarm")}
    assert set(told["lowtide_finding"]) == {
        (f.cause.value, f.severity.value, t) for f in health.findings for t in f.tables or ("",)
    }
    assert (Cause.ORACLE.value, "alarm", "") in told["lowtide_finding"]
    assert "lowtide_oracle_up" not in of(reading, Config.model_validate({"omid": {"oracle": []}}))


def test_a_store_that_cannot_be_read_says_so_and_nothing_else() -> None:
    """0, why, and when it was tried: no number of before stays."""
    told = of(DOWN)
    assert set(told) == {"lowtide_up", "lowtide_read_timestamp_seconds", "lowtide_findings", "lowtide_finding"}
    assert told["lowtide_up"] == {(): 0}
    assert told["lowtide_finding"] == {("gateway-down", "alarm", ""): 1}
    newer = of(Reading(NOW, unreachable="the records have format 9", newer=True))
    assert newer["lowtide_finding"] == {("newer-records", "alarm", ""): 1}


def test_the_last_run_of_each_job_is_told_with_what_it_did() -> None:
    """Those that acted and dry runs apart."""
    told = of(whole())
    acted, planned = ("history_gc", "execute"), ("history_gc", "dry-run")
    assert told["lowtide_last_run_done"][acted] == 1
    assert told["lowtide_last_run_started_timestamp_seconds"][acted] == (NOW - HOUR).timestamp()
    assert told["lowtide_last_run_changes"][(*acted, "deleted")] == 70
    assert told["lowtide_last_run_changes"][(*planned, "deleted")] == 7
    assert told["lowtide_last_run_removed_bytes"] == {
        (job, mode): {acted: 7168, planned: 9}.get((job, mode), 0) for job, mode in told["lowtide_last_run_done"]
    }
    assert {job for job, _ in told["lowtide_last_run_done"]} == {*RECURRING, "history_gc", "transaction_repair"}


def tried(dag_run: str, task: str, before: timedelta, *problems: str, index: str = "-1") -> dict[str, object]:
    run = a_run("orphan_cleanup", before, *problems, orders=None)
    return {**run, "context": {"dag_id": "d", "run_id": dag_run, "task_id": task, "map_index": index}}


def test_tasks_of_one_dag_run_are_one_run() -> None:
    """It is done if each is; it began with the first and ended with the last. Of a task that was tried again the last
    try counts.
    """
    mapped = (tried("tue", "clean", HOUR, index="1"), tried("tue", "clean", 2 * HOUR, "over budget", index="0"))
    before = tried("mon", "clean", DAY)
    [last] = last_runs(healthy(runs=(*mapped, before)))
    assert (last.done, last.started, last.ended, len(last.summaries)) == (False, NOW - 2 * HOUR, NOW - HOUR, 2)
    again = tried("tue", "clean", HOUR / 2, index="0")
    [last] = last_runs(healthy(runs=(again, *mapped, before)))
    assert (last.done, last.started, len(last.summaries)) == (True, NOW - HOUR, 2)
    assert Cause.FAILED not in {f.cause for f in assess(healthy(runs=(again, *mapped, before)), ACTING).findings}
    assert Cause.FAILED in {f.cause for f in assess(healthy(runs=(*mapped, before)), ACTING).findings}


@pytest.mark.parametrize(("execute", "left"), [(True, 1 + 4), (False, 1 + 4 + 2 + 3)])
def test_leftovers_are_what_the_last_cleanup_did_not_mend(execute: bool, left: int) -> None:
    """What failed and what was left alone; of a dry run also its plan. Older runs, dropped tables and those of the
    oracle do not count.
    """
    counts = Counts(healed=2, deleted=3, failed=1, skipped=Counter(odd=4))
    tables = [TableReport(name, counts, execute=execute) for name in ("orders", "dropped", "OMID_COMMIT_TABLE")]
    run = Summary("orphan_cleanup", "r", execute, millis(NOW - HOUR), tables=tables).to_json()
    older = Summary("orphan_cleanup", "q", True, millis(NOW - DAY), tables=[TableReport("orders", Counts(failed=9))])
    assert of(healthy(runs=(run, older.to_json())))["lowtide_leftover_cells"] == {("orders",): left}
    for told in ({"left_alone": True, "notes": ["paused"]}, {"execute": True, "problems": ["it is disabled"]}):
        refused = Summary("orphan_cleanup", "s", True, millis(NOW), tables=[TableReport("orders", **told)]).to_json()
        found = of(healthy(runs=(refused, run, older.to_json())))["lowtide_leftover_cells"]
        assert found == {("orders",): left}, "nobody looked at it since"


# -- names, labels, text


def test_names_and_labels_keep_to_the_conventions() -> None:
    """Units last and in base units; no label is one that Prometheus sets itself; nothing counts as a counter."""
    assert len({g.name for g in GAUGES}) == len(GAUGES) > 30
    for gauge in GAUGES:
        assert re.fullmatch(r"lowtide_[a-z]+(_[a-z]+)*", gauge.name)
        assert not re.search(r"_(total|count|sum|bucket|info|ms|millis|minutes|hours|days|kb|mb)$", gauge.name)
        assert ("timestamp" not in gauge.name) or gauge.name.endswith("_timestamp_seconds")
        assert not {"job", "instance", "store", "le", "quantile", "run"} & set(gauge.labels)
        assert not gauge.help.endswith(".")
    with pytest.raises(ValueError, match="lowtide_up has the labels"):
        UP.of(1, "orders")


def test_the_number_of_series_follows_tables_and_jobs_alone() -> None:
    """However many runs, regions and keys there are, and whatever their names."""
    many = healthy(
        watermarks={
            "orders": {
                "at": 0,
                "low_watermark": 1,
                "regions": [{"region": f"r{n}", "start": "", "stop": "", "watermark": n} for n in range(5000)],
            }
        },
        bounds=(Bound(NOW, 9, tuple(blocker("orders", f"reason {n}", region=f"r{n}") for n in range(50)), NOW),),
        runs=tuple(a_run(job, n * HOUR, orders=None) for n in range(200) for job in (*JOBS, f"by-hand-{n}")),
    )
    text = exposition([Observation(many, NAMED)])[0].decode()
    assert len(text.splitlines()) < 500
    assert "by-hand" not in text
    assert "reason" not in text


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_no_name_of_a_table_breaks_the_text(name: str) -> None:
    """Whoever made the table: quotes, backslashes and line breaks are escaped."""
    published = {name: {"at": 0, "low_watermark": 9, "regions": []}}
    told = of(healthy(watermarks=published))
    assert told["lowtide_regions"] == {(name,): 0}


def test_several_stores_are_one_text() -> None:
    """What a metric is stands once; the store is a label."""
    other = Config.model_validate({"store": "users-test"})
    text = exposition([Observation(whole(), NAMED), Observation(DOWN, other)])[0].decode()
    assert text.count("# TYPE lowtide_up gauge") == 1
    assert 'lowtide_up{store="orders-prod"} 1.0\nlowtide_up{store="users-test"} 0.0\n' in text


def test_the_text_is_in_the_format_that_is_asked_for() -> None:
    """Prometheus gets OpenMetrics, who does not ask gets the older text."""
    seen = [Observation(whole(), NAMED)]
    text, kind = exposition(seen)
    assert kind.startswith("text/plain; version=0.0.4")
    assert b"# EOF" not in text
    text, kind = exposition(seen, "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2")
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    assert text.endswith(b"# EOF\n")


@pytest.mark.parametrize("name", ["", "a b", 'a"b', "-x", "x" * 64])
def test_a_store_has_a_name_that_fits_everywhere(name: str) -> None:
    """In a label, in a file's name, in an address."""
    with pytest.raises(ValueError, match="store"):
        Config.model_validate({"store": name})
    assert Config().store == "default"


# -- the file


def test_a_file_is_written_whole_for_another_user_to_read(tmp_path: Path) -> None:
    """node_exporter runs as somebody else, and reads whenever it likes; nothing else is left in its folder."""
    file = tmp_path / "lowtide.prom"
    file.write_text("of before")
    write([Observation(whole(), NAMED)], file)
    assert file.read_bytes() == exposition([Observation(whole(), NAMED)])[0]
    assert stat.S_IMODE(file.stat().st_mode) & 0o044 == 0o044
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """With the reason and the remedy, and what stood there stays."""
    with pytest.raises(UsageError, match="No such file or directory; give a file in a folder that is there"):
        write([Observation(whole(), NAMED)], tmp_path / "gone" / "lowtide.prom")
    folder = tmp_path / "lowtide.prom"
    folder.mkdir()
    with pytest.raises(UsageError, match="Is a directory"):
        write([Observation(whole(), NAMED)], folder)
    assert list(tmp_path.iterdir()) == [folder]


# -- the command


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Asker:
    return Asker(monkeypatch, tmp_path)


class Asker:
    """Gives the command with a configuration of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._patch = monkeypatch
        self.config = folder / "lowtide.yaml"
        self.config.write_text("store: orders-prod\n")

    def __call__(self, seen: Reading, *arguments: str) -> Result:
        self._patch.setattr("lowtide.cli.health.read", lambda _: seen)
        return CliRunner().invoke(app, ["status", *arguments, "--config", str(self.config)])


@pytest.mark.parametrize("seen", [healthy(), healthy(oracle_problem="down"), DOWN], ids=["fine", "alarm", "unknown"])
def test_the_command_tells_metrics_and_ends_well_however_the_store_is(ask: Asker, seen: Reading) -> None:
    """A file that is moved only after a success would never tell of an alarm."""
    done = ask(seen, "--prometheus")
    assert done.exit_code == 0
    assert f'lowtide_up{{store="orders-prod"}} {float(not seen.unreachable)}' in done.stdout.splitlines()
    assert done.stdout.endswith("\n")
    assert not done.stdout.endswith("\n\n")


def test_the_command_writes_a_file(ask: Asker, tmp_path: Path) -> None:
    """And prints nothing then: cron would send it to somebody."""
    file = tmp_path / "lowtide.prom"
    done = ask(healthy(), "--prometheus", "--to", str(file))
    assert (done.exit_code, done.output) == (0, "")
    assert 'lowtide_up{store="orders-prod"} 1.0\n' in file.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--to", "x.prom"], "--to x.prom is where metrics go, and none are asked for; add --prometheus"),
        (["--prometheus", "--json"], "--prometheus and --output json are two forms of one answer; ask for one"),
        (["--prometheus", "--tables"], "--prometheus and --tables are two forms of one answer; ask for one"),
    ],
)
def test_options_that_do_not_go_together_are_named(ask: Asker, arguments: list[str], words: str) -> None:
    """Before the store is read."""
    done = ask(healthy(), *arguments)
    assert isinstance(done.exception, UsageError)
    assert words in str(done.exception)
