"""The style of what commands answer: ``--output``, and what stands beside it."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from lowtide.cli import configuration, job_rows, jobs
from lowtide.cli.app import app
from lowtide.cli.output import Output, answer
from lowtide.config import CONFIG_VARIABLE
from lowtide.errors import UnnamedStoreError
from lowtide.run.jobs import INSPECTIONS, JOBS
from lowtide.run.summary import Counts, Summary, TableReport
from lowtide.sources import site
from tests.unit.test_health import healthy
from tests.unit.test_health_terminal import ask

#: Commands that answer with no rows: a page, a path, or a sentence on what was done.
WITHOUT = {
    *("report", "path", "resolve", "confirm", "forget", "journal lost", "journal whole", "state reset", "resume"),
    *("commit-table whole", "hold release", "demo", "stack up", "stack down", "airflow up", "airflow down"),
}


def commands(group: Any, before: str = "") -> dict[str, Any]:
    """Every command by its words."""
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        words = f"{before}{name}"
        found |= commands(command, f"{words} ") if hasattr(command, "commands") else {words: command}
    return found


def test_every_command_that_answers_with_rows_has_one_switch_for_their_style() -> None:
    """Of the same name, with the same values; which do not is a list that one adds to with a reason."""
    found = commands(get_command(app))
    with_output = {words for words, command in found.items() if any("--output" in p.opts for p in command.params)}
    assert set(found) - with_output == WITHOUT
    assert with_output > {"status", "runs", "hold list", "run orphan_cleanup", "ledger balance", "stack status"}


@pytest.mark.parametrize("rows", [[], [{"a": 1, "b": "x,y", "c": 5}, {"a": True, "b": ["p", "q"]}]])
def test_csv_has_a_header_always_and_its_columns_alone(
    rows: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Lists are JSON in their cell, and so is what is true or false."""
    answer(Output.CSV, lambda: pytest.fail("not asked for"), ("a", "b"), lambda: rows, lambda: None)
    found = list(csv.reader(StringIO(capsys.readouterr().out)))
    assert found == [["a", "b"], *([["1", "x,y"], ["true", '["p", "q"]']] if rows else [])]


def test_status_and_explain_are_rows_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A line for each table, and for each finding; `--json` is still understood."""
    file = tmp_path / "lowtide.yaml"
    file.write_text("")
    tables = list(csv.DictReader(StringIO(ask(monkeypatch, file, healthy(), "status", "--output", "csv").stdout)))
    assert {row["table"] for row in tables} == {"orders", "users"} or len(tables) > 0
    found = ask(monkeypatch, file, healthy(), "status", "--output", "json").stdout
    assert json.loads(found) == json.loads(ask(monkeypatch, file, healthy(), "status", "--json").stdout)
    assert [t["table"] for t in json.loads(found)["tables"]] == [row["table"] for row in tables]
    explained = ask(monkeypatch, file, healthy(), "explain", "--output=csv").stdout
    assert explained.splitlines()[0].startswith("severity,cause,what,why")


def test_a_style_that_there_is_not_is_refused() -> None:
    """With those that there are."""
    refused = CliRunner().invoke(app, ["runs", "--output", "xml"])
    assert refused.exit_code == 2
    assert all(word in refused.output for word in ("xml", "table", "json", "csv"))


def a_summary(job: str = "orphan_cleanup") -> dict[str, Any]:
    counts = Counts(deleted=3, bytes_removed=90)
    counts.skipped["too young"] = 2
    return Summary(job, "r1", False, tables=[TableReport("orders", counts, problems=["p"])]).to_json()


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """A driver that writes what it is told to and prints; nothing of Spark starts."""
    (tmp_path / "lowtide.yaml").write_text("spark: {connector_class_path: [one.jar]}\n")
    monkeypatch.chdir(tmp_path)
    about: dict[str, Any] = {"code": 1, "answer": a_summary()}

    def run(command: list[str], env: dict[str, str], *, stdout: Any = None, **_: Any) -> int:
        about.update(stdout=stdout, argv=command, env=env)
        for word in command:
            if about["answer"] and word.startswith(("--summary=", "--json=")):
                Path(word.partition("=")[2]).write_text(json.dumps(about["answer"]))
        return int(about["code"])

    monkeypatch.setattr(jobs.child, "run", run)
    return about


def test_a_jobs_summary_stands_alone_on_stdout(driver: dict[str, Any]) -> None:
    """What the driver prints goes to stderr; the exit code is the job's."""
    done = CliRunner().invoke(app, ["run", "orphan_cleanup", "--output", "json"])
    assert (done.exit_code, json.loads(done.stdout)) == (1, driver["answer"])
    assert driver["stdout"] is not None
    assert "store 127.0.0.1:2181/hbase, gateway 127.0.0.1:9090; configuration " in done.stderr
    done = CliRunner().invoke(app, ["restore", "r0", "--output", "csv"])
    (row,) = csv.DictReader(StringIO(done.stdout))
    assert (row["table"], row["deleted"], row["bytes_removed"]) == ("orders", "3", "90")
    assert (json.loads(row["skipped"]), json.loads(row["problems"])) == ({"too young": 2}, ["p"])


def test_for_people_the_driver_prints_itself(driver: dict[str, Any]) -> None:
    """To this process's own output."""
    done = CliRunner().invoke(app, ["run", "orphan_cleanup", "--summary", "s.json"])
    assert (done.exit_code, done.stdout, driver["stdout"]) == (1, "", None)
    done = CliRunner().invoke(app, ["run", "orphan_cleanup", "--summary", "s.json", "--output", "json"])
    assert json.loads(done.stdout) == json.loads(Path("s.json").read_text())


@pytest.mark.parametrize("own", ["", "INFO"])
def test_on_a_terminal_spark_tells_of_what_is_wrong_alone(
    driver: dict[str, Any], monkeypatch: pytest.MonkeyPatch, own: str
) -> None:
    """Unless the configuration says how much it is to tell; and the driver is told of the terminal. A log has all."""
    if own:
        Path("lowtide.yaml").write_text(
            f"spark: {{connector_class_path: [one.jar], conf: {{spark.log.level: {own}}}}}\n"
        )
    for terminal, level in ({"LOWTIDE_TERMINAL": "80"}, own or "WARN"), ({}, own):
        monkeypatch.setattr(jobs, "for_children", lambda terminal=terminal: terminal)
        CliRunner().invoke(app, ["run", "orphan_cleanup"])
        assert [w for w in driver["argv"] if w.startswith("spark.log.level")] == (
            [f"spark.log.level={level}"] if level else []
        )
        assert driver["env"].get("LOWTIDE_TERMINAL") == terminal.get("LOWTIDE_TERMINAL")


def test_a_driver_that_does_not_start_answers_nothing(driver: dict[str, Any]) -> None:
    """And its exit code says so."""
    driver |= {"code": 13, "answer": None}
    Path("old.json").write_text("{}")  # of a run before it
    for named in ([], ["--json", "old.json"], ["--json", "nowhere.json"]):
        done = CliRunner().invoke(app, ["run", "survey", "--output", "json", *named])
        assert (done.exit_code, done.stdout) == (13, "")


def test_what_an_inspection_found_is_its_answer() -> None:
    """Of a survey its tables, with the ends of what was estimated; of the verifier what is broken; of a sideline, and
    of what is asked of a row, each cell.
    """
    estimate = {"value": 5, "low": 4, "high": 6}
    names = ("cells", "orphans", "orphan_bytes", "heals", "heal_bytes")
    columns, (row,) = job_rows.of("survey", {"tables": [{"table": "orders", **dict.fromkeys(names, estimate)}]})
    assert (row["orphans"], row["orphans_low"], row["orphans_high"]) == (5, 4, 6)
    assert {"table", "orphans", "orphans_low", "heal_bytes_high", "others", "problems"} <= set(columns)
    broken = {"invariant": "V1", "table": "orders", "what": "w"}
    assert job_rows.of("verify", {"violations": [broken]})[1] == [broken]
    there, gone = {"qualifier": "q"}, {"qualifier": "p"}
    rows = job_rows.of("why", {"cells": [there], "removed": [gone]})[1]
    assert [(row["qualifier"], row["there"]) for row in rows] == [("q", True), ("p", False)]
    assert job_rows.of("sideline", {"cells": [there]})[1] == [there]
    assert job_rows.of("sideline", {"runs": [{"run": "r1"}]})[1] == [{"run": "r1"}]
    for job in JOBS:
        if job not in INSPECTIONS:
            assert job_rows.of(job, a_summary(job))[1][0]["table"] == "orders"


@pytest.fixture
def edge_node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder without configuration, on a machine that is set up for a cluster."""
    monkeypatch.chdir(tmp_path)
    for name in (CONFIG_VARIABLE, *site.VARIABLES, "LOWTIDE_HBASE__ZOOKEEPER_QUORUM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop/conf")


@pytest.mark.parametrize(
    "command", ["status", "runs", "run orphan_cleanup", "state reset --yes", "hold list", "report"]
)
@pytest.mark.usefixtures("edge_node")
def test_a_store_that_nobody_named_is_not_taken(command: str) -> None:
    """Where nobody can be asked, every command refuses, with exit code 2 and what to do."""
    refused = CliRunner().invoke(app, command.split())
    assert isinstance(refused.exception, UnnamedStoreError)
    assert refused.exception.exit_code == 2
    assert "HADOOP_CONF_DIR is set (/etc/hadoop/conf)" in str(refused.exception)
    assert "set LOWTIDE_HBASE__ZOOKEEPER_QUORUM=127.0.0.1" in str(refused.exception)


@pytest.mark.parametrize(
    "command",
    [
        "pause --until 1h --reason r",
        "resume p1",
        "hold add orders --reason r",
        "hold release orders h1 --yes",
        "state reset --yes",
        "forget orders --yes",
        "resolve 5 --aborted --yes",
        "confirm orders --yes",
        "journal lost --yes",
        "journal whole --yes",
        "commit-table whole --yes",
        "ledger init",
        "ledger user add ann",
        "ledger transfer ann bob 5",
    ],
)
@pytest.mark.usefixtures("edge_node")
def test_nothing_is_written_through_a_gateway_that_nobody_named(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a store on other machines: the gateway on this one may be another store's. Exit code 2, before it is asked."""
    monkeypatch.setenv("LOWTIDE_HBASE__ZOOKEEPER_QUORUM", "zk1,zk2")
    refused = CliRunner().invoke(app, command.split())
    assert isinstance(refused.exception, UnnamedStoreError), refused.output
    assert "no Thrift gateway of it is named" in str(refused.exception)
    assert "set LOWTIDE_HBASE__THRIFT__HOST; 127.0.0.1, if the gateway here is that store's" in str(refused.exception)


@pytest.mark.usefixtures("edge_node")
def test_on_a_terminal_the_store_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """No ends the command; yes takes this machine's, and a job that is submitted then is not asked again."""
    monkeypatch.setattr(configuration, "asks", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: (_ for _ in ()).throw(typer.Abort()))
    with pytest.raises(typer.Abort):
        configuration.configured(None)
    asked: list[str] = []
    monkeypatch.setattr(typer, "confirm", lambda text, **_: asked.append(text))
    monkeypatch.setenv("LOWTIDE_HBASE__ZOOKEEPER_QUORUM", "")  # so that what is set is undone
    monkeypatch.delenv("LOWTIDE_HBASE__ZOOKEEPER_QUORUM")
    assert configuration.configured(None).hbase.zookeeper_quorum == "127.0.0.1"
    assert asked == [
        "There is no configuration here, and HADOOP_CONF_DIR is set (/etc/hadoop/conf): the store on this machine "
        "(127.0.0.1:2181) may not be what is meant. Take it all the same?"
    ]
    configuration.configured(None)
    assert len(asked) == 1
