"""From an Airflow run to a job's arguments."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowtide_airflow import arguments
from lowtide_airflow.arguments import Run
from lowtide_airflow.timetable import JobTimetable

from lowtide.errors import UsageError
from lowtide.run.arguments import arguments as program
from lowtide.run.jobs import JOBS
from lowtide.run.options import FOR_PROGRAMS, options_of

DAY = (datetime(2026, 1, 30, tzinfo=UTC), datetime(2026, 1, 31, tzinfo=UTC))
FORM = {"tables": [], "execute": False, "full": False, "from": None, "to": None, "budget_rows": None}


def a_run(kind: str, interval: Any = None, **params: Any) -> Run:
    return Run("orphan_cleanup", f"{kind}__2026-01-31T00:00:00+00:00", kind, interval, params)


def context(
    kind: str,
    conf: dict[str, Any] | None,
    interval: tuple[Any, Any] = (None, None),
    logical: Any = None,
    run_id: str | None = None,
) -> dict[str, Any]:
    """What a task of a run has in its hands; without a logical date Airflow leaves the keys of dates out. *logical* is
    that date where it is not the interval's beginning.
    """
    dag_run = SimpleNamespace(
        dag_id="orphan_cleanup",
        run_id=f"{kind}__r" if run_id is None else run_id,
        run_type=SimpleNamespace(value=kind),
        conf=conf,
        logical_date=logical or interval[0],
        data_interval_start=interval[0],
        data_interval_end=interval[1],
    )
    return {"dag_run": dag_run, "params": {**FORM, **(conf or {})}}


def test_a_scheduled_run_goes_on_from_the_watermarks_to_the_end_of_its_day() -> None:
    """It says no beginning: each region has its own."""
    run = Run.of(context("scheduled", None, DAY))
    assert arguments.interval(run, "orphan_cleanup") == ["--to", "2026-01-31T00:00:00+00:00"]
    assert arguments.how(run) == ["--as-configured"]
    assert arguments.options(run, "orphan_cleanup") == []


def test_a_backfilled_run_cleans_its_own_day() -> None:
    """Both ends are the data interval's."""
    run = Run.of(context("backfill", None, DAY))
    assert arguments.interval(run, "orphan_cleanup") == [
        "--from",
        "2026-01-30T00:00:00+00:00",
        "--to",
        "2026-01-31T00:00:00+00:00",
    ]
    assert arguments.how(run) == ["--as-configured"]


def test_a_backfill_with_a_form_does_what_the_form_says() -> None:
    """Its form's Execute counts, and its empty From and To are no contradiction to its dates."""
    run = Run.of(context("backfill", {**FORM, "execute": True, "full": True}, DAY))
    assert arguments.how(run) == ["--execute"]
    assert arguments.interval(run, "orphan_cleanup")[0] == "--from"
    assert arguments.options(run, "orphan_cleanup") == ["--full"]
    assert arguments.options(Run.of(context("manual", {"compact": True}, DAY)), "history_gc") == ["--compact"]


def test_a_backfill_refuses_another_interval() -> None:
    """Its dates say it already; the message names the field and what was found."""
    run = Run.of(context("backfill", {"from": "2026-01-01T00:00:00Z"}, DAY))
    with pytest.raises(UsageError, match=r"leave from empty .*2026-01-01"):
        arguments.interval(run, "orphan_cleanup")


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        ({"execute": True, "table": ["orders"]}, r"'table' \(tables may be meant\), which"),
        ({"budget-rows": 5, "nothing": 1}, r"'budget-rows' \(budget_rows may be meant\), 'nothing', which"),
    ],
)
def test_a_key_that_the_form_does_not_have_is_refused(conf: dict[str, Any], said: str) -> None:
    """By name, with the nearest that there is: ignored, it would have the run act on every table."""
    with pytest.raises(UsageError, match=said + r".* can have tables, execute, full"):
        arguments.check_conf(conf, FORM, FORM | conf)


def test_a_conf_that_does_not_count_is_refused() -> None:
    """Where Airflow is set to go by the form's own values, a run for one table would be one of all of them."""
    params = {"tables": [], "execute": None, "full": False}
    with pytest.raises(
        UsageError, match=r"conf has tables, and Airflow goes by .*dag_run_conf_overrides_params = True"
    ):
        arguments.check_conf({"tables": ["orders"], "full": False}, FORM, params)


@pytest.mark.parametrize("conf", [None, {}, FORM, {"openlineage": {"parentRunId": "r"}, "airflow/x": 1, "full": True}])
def test_keys_of_the_form_and_of_airflow_itself_pass(conf: dict[str, Any] | None) -> None:
    """Whatever Airflow adds to a run that a task triggered was not misspelt by anybody."""
    arguments.check_conf(conf, FORM, {**FORM, **(conf or {})})


def test_a_run_that_an_asset_started_has_no_dates_and_needs_none() -> None:
    """It goes up to the low watermark, as configured."""
    run = Run.of(context("asset_triggered", None))
    assert arguments.interval(run, "orphan_cleanup") == []
    assert arguments.how(run) == ["--as-configured"]


def test_a_manual_run_is_dry_unless_execute_is_ticked() -> None:
    """Also when it was triggered with nothing at all."""
    assert arguments.how(Run.of(context("manual", None))) == []
    assert Run.of(context("manual", None)).dry
    assert Run.of(context("manual", {"execute": None})).dry, "a field of the form that was emptied"
    assert arguments.how(Run.of(context("manual", {"execute": True}))) == ["--execute"]


@pytest.mark.parametrize("kind", ["operator_triggered", "asset_materialization", "of_tomorrow"])
def test_a_run_that_somebody_asked_for_in_another_way_is_a_manual_one(kind: str) -> None:
    """From a task of a DAG of theirs, by materialising an asset, in a way that nobody knows yet: dry unless the form
    says otherwise, over what the form or the interval says.
    """
    assert Run.of(context(kind, None)).dry
    assert arguments.how(Run.of(context(kind, {"tables": ["orders"]}))) == []
    assert arguments.how(Run.of(context(kind, {"execute": True}))) == ["--execute"]
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert arguments.interval(Run.of(context(kind, None, (noon, noon), noon)), "orphan_cleanup") == []
    asked = Run.of(context(kind, {"to": "2026-01-02T00:00:00Z"}))
    assert arguments.interval(asked, "orphan_cleanup") == ["--to", "2026-01-02T00:00:00Z"]
    assert arguments.tables(Run.of(context(kind, {"tables": ["t"]})), "orphan_cleanup", ["t"]) == ["--table", "t"]


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("run_id", "interval"),
    [
        ("manual__2026-01-31T12:00:00+00:00", (NOON, NOON)),
        ("manual__2026-01-31T12:00:00+00:00", DAY),
        ("operator_triggered__2026-01-31T12:00:00+00:00", DAY),
        ("the one of ours", DAY),
        ("backfill__2026-01-31T12:00:00+00:00", (NOON, NOON)),
    ],
)
def test_a_backfill_that_took_over_a_run_made_by_hand_does_nothing(run_id: str, interval: Any) -> None:
    """Airflow calls the run a backfill's and leaves it its form and its interval: with Execute and one table it would
    act where the table's mode does not, and leave out the others. What to do is said.
    """
    conf = {"execute": True, "tables": ["orders"]}
    with pytest.raises(UsageError, match=rf"{re.escape(run_id)}, was made by hand; nothing was done\. Delete it"):
        Run.of(context("backfill", conf, interval, NOON, run_id))


@pytest.mark.parametrize("kind", ["scheduled", "backfill"])
def test_a_backfill_may_take_over_what_was_made_by_dates(kind: str) -> None:
    """A day's scheduled run, or an earlier backfill's."""
    run = Run.of(context("backfill", None, DAY, run_id=f"{kind}__2026-01-31T00:00:00+00:00"))
    assert arguments.interval(run, "orphan_cleanup")[0] == "--from"
    assert arguments.how(run) == ["--as-configured"]


def test_a_manual_run_works_on_the_interval_that_somebody_specified() -> None:
    """Where the form's From and To are empty; each of them wins over its end. What the timetable infers for a run with
    a logical date is nobody's choice.
    """
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    inferred = JobTimetable("@daily", "UTC").infer_manual_data_interval(run_after=pendulum.instance(noon))
    unsaid = Run.of(context("manual", None, (inferred.start, inferred.end), noon))
    assert arguments.interval(unsaid, "orphan_cleanup") == []
    specified = Run.of(context("manual", None, DAY, noon))
    start, end = "2026-01-30T00:00:00+00:00", "2026-01-31T00:00:00+00:00"
    assert arguments.interval(specified, "orphan_cleanup") == ["--from", start, "--to", end]
    assert arguments.interval(specified, "transaction_repair") == ["--from", start, "--to", end]
    assert arguments.interval(specified, "history_gc") == ["--to", end]
    assert arguments.interval(specified, "watermark_collection") == []
    given_ends = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
    for run in (context("manual", given_ends, DAY, noon), context("manual", given_ends)):
        found = arguments.interval(Run.of(run), "orphan_cleanup")
        assert found == ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z"]
    half = Run.of(context("manual", {"to": "2026-01-30T06:00:00Z"}, DAY, noon))
    assert arguments.interval(half, "orphan_cleanup") == ["--from", start, "--to", "2026-01-30T06:00:00Z"]


def test_tables_that_nobody_named_are_passed_over_when_they_turn_out_plain() -> None:
    """A person's tables are not: what was asked for and cannot be done is said."""
    assert arguments.tables(a_run("scheduled"), "orphan_cleanup", ["t"]) == ["--table", "t", "--discovered"]
    assert arguments.tables(a_run("manual", tables=["t"]), "orphan_cleanup", ["t"]) == ["--table", "t"]
    assert arguments.tables(a_run("scheduled"), "orphan_cleanup", []) == []


def test_limits_of_the_form_reach_the_job() -> None:
    """Budget and grace, also a grace of 0."""
    assert arguments.options(a_run("manual", budget_share=0.25), "history_gc") == ["--budget-share", "0.25"]
    assert arguments.options(a_run("manual", budget_rows=5), "orphan_cleanup") == ["--budget-rows", "5"]
    assert arguments.options(a_run("manual", grace="0s"), "commit_table_pruning") == ["--grace", "0s"]


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_given_only_what_it_takes(job: str) -> None:
    """However much a DAG's dates and form say: its program understands every argument, and a day's history ends where
    the day does.
    """
    form = {
        "full": True,
        "compact": True,
        "budget_rows": 5,
        "budget_share": 0.25,
        "grace": "1h",
        "sample": 0.1,
        "rate": 30_000,
        "write_rate": 2_000,
    }
    run = Run.of(context("backfill", form, DAY))
    given_ = [*arguments.interval(run, job), *arguments.options(run, job), *arguments.tables(run, job, ["t"])]
    program(job, given_)
    asked = {name for name in given_ if name.startswith("--")}
    # Those for programs are the operator's own business, but for this one.
    offered = {o.name for o in options_of(job) if o.panel != FOR_PROGRAMS or o.name == "--discovered"}
    assert asked == offered - {
        "--config",
        "--execute",
        "--approved",
        "--csv",
        "--json",
        "--html",
        "--before",
        "--after",
        "--snapshot",
        "--list",
        "--restore",
        "--show",
        "--first",
        "--row",
        "--since-snapshot",
        "--as-committed",
        "--yes",
    }
    if job == "history_gc":
        assert arguments.interval(run, job) == ["--to", "2026-01-31T00:00:00+00:00"]


def test_the_cells_are_listed_where_a_person_looks_at_a_plan() -> None:
    """Before they approve it, or in a dry run that they asked for; of the jobs that write cells alone."""
    assert arguments.listing(a_run("scheduled"), "orphan_cleanup", plans=True) == ["--list"]
    assert arguments.listing(a_run("manual", execute=False), "commit_table_pruning", plans=False) == ["--list"]
    for run, job in ((a_run("manual", execute=True), "history_gc"), (a_run("scheduled"), "history_gc")):
        assert arguments.listing(run, job, plans=False) == []
    assert arguments.listing(a_run("manual", execute=False), "watermark_collection", plans=False) == []


@given(st.text(max_size=300), st.integers(-1, 400), st.integers(0, 9))
def test_a_run_name_is_safe_for_row_keys_and_paths(run_id: str, map_index: int, cleared: int) -> None:
    """Whatever a person calls a run."""
    name = arguments.run_name(Run("orphan_cleanup", run_id, "manual", None, {}), "clean", map_index, cleared)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", name)


def test_run_names_differ_wherever_runs_do() -> None:
    """Also where the readable part is the same."""
    runs = [
        (Run("d", "a/b", "manual", None, {}), "clean", 0, 0),
        (Run("d", "a b", "manual", None, {}), "clean", 0, 0),
        (Run("d", "a b", "manual", None, {}), "clean", 1, 0),
        (Run("d", "a b", "manual", None, {}), "clean", 1, 3),
        (Run("d", "a b", "manual", None, {}), "other", 1, 3),
        (Run("d", "x" * 400 + "1", "manual", None, {}), "clean", 0, 0),
        (Run("d", "x" * 400 + "2", "manual", None, {}), "clean", 0, 0),
    ]
    assert len({arguments.run_name(*each) for each in runs}) == len(runs)
    assert arguments.run_name(*runs[0]) == arguments.run_name(*runs[0])


def test_the_verifier_is_told_what_to_read_and_never_to_act() -> None:
    """Whatever the kind of run; its program takes what it is given."""
    form = {"tables": ["orders"], "sample": 0.1, "rate": 30_000}
    for run in (a_run("manual", None, **form), a_run("scheduled", DAY, **form), a_run("backfill", DAY)):
        given = [
            *arguments.tables(run, "verify", ()),
            *arguments.how(run, "verify"),
            *arguments.interval(run, "verify"),
            *arguments.options(run, "verify"),
        ]
        wanted = ["--table", "orders", "--sample", "0.1", "--rate", "30000"] if run.params else []
        assert given == wanted
        assert program("verify", given).table == (["orders"] if run.params else [])
