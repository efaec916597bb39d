"""What every job's program is told, and what it books."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from lowtide_spark.run import job as program
from typer.testing import CliRunner

from lowtide.cli.app import app
from lowtide.errors import GatewayError
from lowtide.run import deploy
from lowtide.run.submit import INSPECTIONS, JOBS, TAKEN_BY

#: What an option that wants a value is given.
VALUES = {
    "--table": "orders",
    "--from": "2026-01-01T00:00:00Z",
    "--to": "2026-01-02T00:00:00Z",
    "--grace": "1h",
    "--budget-rows": "5",
    "--budget-share": "0.5",
    "--approved": "plan.json",
    "--output": "folder",
    "--restore": "r1",
    "--since-snapshot": "s1",
    "--as-committed": "50=100",
    "--sample": "0.1",
    "--rate": "20MB",
    "--show": "r1",
    "--first": "5",
    "--row": "r",
}


@pytest.mark.parametrize("option", TAKEN_BY)
def test_an_option_is_offered_to_the_jobs_that_have_a_use_for_it(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any other refuses it by name, instead of doing without."""
    argv = [option, *([VALUES[option]] if option in VALUES else [])]
    for job in JOBS:
        if job in TAKEN_BY[option]:
            program.arguments(job, argv)
            continue
        with pytest.raises(SystemExit) as refused:
            program.arguments(job, argv)
        assert refused.value.code == 2
        assert f"unrecognized arguments: {option}" in capsys.readouterr().err


@pytest.mark.parametrize("job", [name for name in JOBS if name not in INSPECTIONS])
def test_what_a_run_reads_of_its_options_is_always_there(job: str) -> None:
    """Also where its job does not offer them."""
    options = program.arguments(job, [])
    for name in ("discovered", "start", "end", "full", "grace", "budget_rows", "budget_share"):
        assert not getattr(options, name)
    assert options.rate == 0


@pytest.mark.parametrize("job", [name for name in JOBS if name not in INSPECTIONS])
def test_every_option_of_a_job_is_explained(
    job: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the help of its program, to which that of `lowtide run` points."""
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        program.arguments(job, ["--help"])
    lines = [line.split("  ") for line in capsys.readouterr().out.splitlines() if line.startswith("  -")]
    assert len(lines) > 6
    assert [line for line in lines if not line[-1].strip() or line[-1].startswith("-")] == []
    assert "lowtide run history_gc -- --help" in " ".join(CliRunner().invoke(app, ["run", "--help"]).output.split())


@pytest.fixture
def nothing_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Neither store nor Spark: what a job's frame does around its body. The arguments that every job needs."""
    file = tmp_path / "lowtide.yaml"
    file.write_text("")
    monkeypatch.setattr(program, "check_place", lambda: None)
    monkeypatch.setattr(program, "nobody_answers", lambda *_: False)
    for check in ("check_cluster", "check_clock", "note_hbase"):
        monkeypatch.setattr(program.Run, check, lambda _: None)
    monkeypatch.setattr(program, "session", lambda _: time.sleep(0.2))
    monkeypatch.setattr(program, "Store", lambda *_: None)
    return ["--config", str(file)]


def test_sparks_start_is_booked(nothing_there: list[str]) -> None:
    """It is what a small run takes longest for."""
    phases: dict[str, float] = {}
    code = program.run_job("balances", lambda run: phases.update(run.summary.phases), nothing_there, read_only=True)
    assert code == 0
    assert 0.2 <= phases["start"] < 5


@pytest.mark.parametrize("error", [GatewayError("HBase does not answer"), ConnectionError("HBase does not answer")])
def test_a_run_whose_summary_is_not_kept_ends_red(
    nothing_there: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception
) -> None:
    """Though its work went well: nobody finds it in the store. Its exit code says what its summary does."""

    def unreachable(_: program.Run) -> None:
        raise error

    monkeypatch.setattr(program.Run, "state", unreachable)
    file = tmp_path / "summary.json"
    assert program.run_job("balances", lambda _: None, [*nothing_there, "--summary", str(file)]) == 1
    assert json.loads(file.read_text())["problems"] == ["the summary is not in the state table: HBase does not answer"]


def test_a_driver_in_the_cluster_reads_nothing(
    nothing_there: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It refuses with the exit code of bad arguments before it looks for a configuration: in a container without one,
    that for this machine would count.
    """

    def refuse() -> None:
        deploy.check_driver({deploy.SETTING: "cluster"})

    monkeypatch.setattr(program, "check_place", refuse)
    monkeypatch.setattr(program, "load", lambda _: pytest.fail("a configuration is read"))
    monkeypatch.setattr(program, "nobody_answers", lambda *_: pytest.fail("the store is looked for"))
    file = tmp_path / "summary.json"
    assert program.run_job("balances", lambda _: None, [*nothing_there, "--summary", str(file)]) == 2
    (problem,) = json.loads(file.read_text())["problems"]
    assert "this driver runs in the cluster" in problem


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            "calling o9.save.\n: SparkException: [CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] Checkpoint block rdd_3 not found",
            "an executor was lost, and with it what this run had planned; what was done until then is safe. Run again",
        ),
        (
            "calling o59.collectToPython.\n: java.lang.ClassNotFoundException: lowtide.connector.Piece",
            "an executor lacks the connector",
        ),
        (
            "calling o59.collectToPython.\n: java.io.IOException: no room",
            "unexpected RuntimeError: : java.io.IOException",
        ),
    ],
)
def test_what_executors_say_is_told_by_what_it_means(
    nothing_there: list[str], tmp_path: Path, error: str, says: str
) -> None:
    """Not by the number of a call; of other errors by what Java says."""

    def fail(_: program.Run) -> None:
        raise RuntimeError(error)

    file = tmp_path / "summary.json"
    assert program.run_job("survey", fail, [*nothing_there, "--summary", str(file)], read_only=True) == 1
    (problem,) = json.loads(file.read_text())["problems"]
    assert problem.startswith(says)


def test_a_zookeeper_that_does_not_answer_is_named_before_spark_starts(
    nothing_there: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """HBase's client would look for it for minutes."""
    monkeypatch.setattr(program, "nobody_answers", lambda addresses, _: addresses == ["127.0.0.1:2181"])
    monkeypatch.setattr(program, "session", lambda _: pytest.fail("Spark is started"))
    file = tmp_path / "summary.json"
    assert program.run_job("balances", lambda _: None, [*nothing_there, "--summary", str(file)]) == 1
    (problem,) = json.loads(file.read_text())["problems"]
    assert "ZooKeeper does not answer at 127.0.0.1:2181" in problem
    assert "hbase.zookeeper_quorum" in problem
