"""Executors run no Python: every job does its work on nodes that have none."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import JOBS, Outcome
from ledger_kit import made
from pyspark.sql import SparkSession
from scene import Scene

from lowtide.config import load
from lowtide.lab.workload import OmidClient
from lowtide.ledger import user_id
from lowtide.run.submit import command, environment

pytestmark = [pytest.mark.usefixtures("swept", "no_snapshots"), pytest.mark.turns(2, group="no Python")]

Job = Callable[..., Outcome]
NOWHERE = "/nonexistent/python3"


@pytest.fixture
def done(job: Job, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    """Run a job where no Python worker can start, and see that all went well; by the end every job has run."""
    monkeypatch.setenv("PYSPARK_PYTHON", NOWHERE)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", NOWHERE)  # what Spark makes of that variable
    with pytest.raises(Exception, match=NOWHERE):
        spark.createDataFrame([], "n int").count()  # a worker that was started here would be noticed
    ran: set[str] = set()

    def run(name: str, *arguments: str, config: Path | None = None) -> Outcome:
        outcome = job(name, *arguments, config=config)
        assert outcome.code == 0, (name, outcome.problems)
        ran.add(name)
        return outcome

    yield run
    assert ran == set(JOBS)


def test_no_job_starts_python_on_an_executor(
    done: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path]
) -> None:
    """With a PYSPARK_PYTHON that does not exist, each of them finds, does and undoes what it should: where there is
    nothing to do, where there is, and where what was decided is overruled.
    """
    table, empty = scene.table(), scene.table()
    named = ("--table", table)
    omid.advance_watermark()
    done("orphan_cleanup", "--table", empty, "--full", "--execute")
    orphan, wronged = scene.orphan(table), scene.orphan(table, row=b"w")
    start, commit = scene.crashed_after_commit(table, row=b"healed")
    later = omid.begin()
    scene.committed(table, row=b"old")
    scene.committed(table, row=b"old", value=b"new")
    omid.advance_watermark()
    assert done("survey", *named).code == 0
    done("orphan_cleanup", *named, "--list")
    cleaned = done("orphan_cleanup", *named, "--list", "--execute")
    assert (cleaned.totals["deleted"], cleaned.totals["healed"]) == (2, 1)
    assert scene.healed(table, start, row=b"healed") == commit
    done("orphan_cleanup", "--full", "--execute")
    done("watermark_collection", "--execute")
    assert start in omid.commit_table()
    done("why", *named, "--row", "healed")
    done("commit_table_pruning", "--grace", "0s", "--list", "--execute")
    assert start not in omid.commit_table()
    done("verify", *named)
    assert done("journal_replay", "--from", "2020-01-01T00:00:00Z", "--execute").totals["restored"] > 0
    assert start in omid.commit_table()

    run = cleaned.summary["run"]
    done("sideline")
    done("sideline", "--show", run)
    restored = done("sideline_restore", "--restore", run, "--as-committed", f"{wronged}={later}", "--execute")
    assert restored.totals["restored"] == 2
    assert scene.has(table, orphan)
    assert scene.healed(table, wronged, row=b"w") == later

    young = configure(defaults={"history_max_age": "0s", "min_history_age": "0s"})
    omid.advance_watermark()
    done("orphan_cleanup", "--full", "--execute", config=young)
    done("watermark_collection", "--execute", config=young)
    assert done("history_gc", *named, "--list", "--execute", config=young).totals["deleted"] > 0

    books = made(configure)
    with books.open() as book:
        book.transfer("issuer", "ann", 5)
        assert books.stopped(lambda b: b.transfer("ann", "bob", 2), 2, "after")
    done("transaction_repair", "--grace", "0s", "--full", "--execute", config=books.at_once)
    assert books.balances()[user_id("bob")] == 2
    done("balances", config=books.file)


def test_a_program_finds_its_own_python_where_that_of_executors_is_nowhere(
    scene: Scene, omid: OmidClient, configure: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``lowtide run`` with a PYSPARK_PYTHON that does not exist: the real ``spark-submit`` starts the driver, and the
    cleanup acts.
    """
    table = scene.table()
    orphan = scene.orphan(table)
    omid.advance_watermark()
    monkeypatch.setenv("PYSPARK_PYTHON", NOWHERE)
    file = configure()
    program = command(load(file), "orphan_cleanup", ["--config", str(file), "--table", table, "--execute"])
    ended = subprocess.run(program, env=environment(), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert not scene.has(table, orphan)
