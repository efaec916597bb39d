"""Jobs where HBase asks who one is: by keytab and ticket cache, in the driver and on executors; refused otherwise."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from job_site import Site
from ledger_kit import Books
from lowtide_spark.frames.audit_log import FOLDER
from scene import Scene, staged
from secured_kit import of_kind

from lowtide.config import load
from lowtide.health.conditions import TransactionsStuck, check
from lowtide.health.reader import read
from lowtide.lab.stack import Stack, secured
from lowtide.lab.workload import OmidClient
from lowtide.run import submit

pytestmark = pytest.mark.needs("kerberos")

#: A user's program: configuration, table, read point.
READING = """
import sys

from pyspark.sql import SparkSession

from lowtide.config import load
from lowtide.history import read_options

config, table, point = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
read = spark.read.format("lowtide").options(**read_options(load(config), table)).option("table", table)
for cell in read.option("asOf", point).option("hold", "true").load().collect():
    print("READ", bytes(cell.row).decode(), cell.timestamp, cell.commit_ts, bytes(cell.value).decode())
"""


@pytest.fixture(scope="module")
def site(store: Stack, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Where jobs are started. The gateway encrypts."""
    folder = tmp_path_factory.mktemp("site")
    return Site(of_kind(store, "auth-conf", folder), folder)


@pytest.fixture(scope="module")
def omid(store: Stack) -> Iterator[OmidClient]:
    """Omid's client, which logs in as lowtide."""
    with OmidClient(store) as client:
        yield client


@pytest.fixture
def scene(omid: OmidClient) -> Iterator[Scene]:
    """Tables of the test."""
    yield from staged(omid)


def test_the_whole_chain_by_a_keytab(site: Site, scene: Scene, omid: OmidClient) -> None:
    """Check, survey, cleanup, watermarks, pruning, history, verification and a restore, as one principal, who is named
    in every summary and in the audit log; what Spark needs of the cluster's files it finds by ``hbase.conf_dir``.
    """
    table = scene.table()
    orphan = scene.orphan(table)
    healed, _ = scene.crashed_after_commit(table, row=b"late")
    old = [scene.committed(table, row=b"old")[0] for _ in range(3)]
    omid.advance_watermark()
    config = site.configuration()
    checked = site.lowtide("check", "--config", str(config))
    assert checked.code == 0, checked.output
    me = f"lowtide@{secured.REALM}"
    ran = [
        site.run("survey", config=config),
        clean := site.run("orphan_cleanup", "--execute", "--full", "--run-id", "one", config=config),
        site.run("watermark_collection", "--execute", config=config),
        pruned := site.run("commit_table_pruning", "--grace", "0s", "--execute", "--yes", config=config),
        history := site.run("history_gc", "--execute", config=config),
        site.run("verify", "--table", table, config=config),  # others on this store put aside elsewhere
        restored := site.run("sideline_restore", "--restore", "one", "--execute", config=config),
    ]
    for each in ran:
        assert each.code == 0, each.problems
        assert each.summary["by"]["principal"] == me
    assert (clean.totals["deleted"], clean.totals["healed"]) == (1, 1)
    assert scene.healed(table, healed, row=b"late")
    assert pruned.totals["pruned"] >= 1
    assert history.totals["deleted"] >= 2
    assert [scene.has(table, start, row=b"old") for start in old] == [False, False, True]
    assert restored.totals["restored"] == 1
    assert scene.has(table, orphan)
    entries = [json.loads(file.read_text()) for file in sorted((site.sideline / FOLDER).glob("*/*.jsonl"))]
    assert {entry["by"]["principal"] for entry in entries} == {me}
    assert [e["job"] for e in entries if e["event"] == "ended"] == [
        "orphan_cleanup",
        "watermark_collection",
        "commit_table_pruning",
        "history_gc",
        "sideline_restore",
    ]


def test_the_ledger_sensors_and_the_page_by_a_keytab(site: Site, scene: Scene, omid: OmidClient) -> None:
    """What is Python alone goes through a gateway that asks who one is, as the same principal: users and transfers, the
    repair of one that its client left, the conditions that sensors wait for, what the page and the report show, and
    what a person changes by hand, which is kept with that principal.
    """
    config = site.configuration(ledger={"prefix": "secured_", "grace": "0s", "allow_short_grace": True})
    named = ("--config", str(config))
    for command in (("init",), ("user", "add", "ann"), ("user", "add", "bob"), ("transfer", "issuer", "ann", "50")):
        done = site.lowtide("ledger", *command, *named)
        assert done.code == 0, done.output
    books = Books(config)
    assert books.stopped(lambda ledger: ledger.transfer("ann", "bob", 7), at=4, how="after")
    stuck = TransactionsStuck(older_than="0s")
    assert check(stuck, books.config).met
    repaired = site.run("transaction_repair", "--execute", config=config)
    assert repaired.code == 0, repaired.problems
    assert repaired.summary["by"]["principal"] == f"lowtide@{secured.REALM}"
    assert not check(stuck, books.config).met
    assert sum(books.balances().values()) == 0
    assert read(books.config).unreachable == ""
    table = scene.table()
    paused = site.lowtide("pause", "--table", table, "--reason", "a test", "--until", "1h", *named)
    assert paused.code == 0, paused.output
    kept = json.loads(site.lowtide("runs", *named, "--output", "json").output)
    assert [run["by"]["principal"] for run in kept if run["job"] == "pause"] == ["lowtide"]
    page = site.folder / "report.html"
    reported = site.lowtide("report", *named, "--out", str(page))
    assert reported.code == 0, reported.output
    assert "transaction_repair" in page.read_text()


def test_a_program_reads_at_a_read_point_by_the_keytab(site: Site, scene: Scene, omid: OmidClient) -> None:
    """One of a user's own, with the options that the configuration gives: from region servers, with a hold. Of HBase's
    files, which belong to HBase's user, nothing is read.
    """
    table = scene.table()
    start, commit = scene.committed(table, row=b"then", value=b"first")
    point = omid.advance_watermark()
    scene.committed(table, row=b"then", value=b"second")
    scene.orphan(table)
    omid.advance_watermark()
    config = site.configuration()
    assert site.run("watermark_collection", "--execute", config=config).code == 0
    program = site.folder / "reading.py"
    program.write_text(READING)
    asked = submit.command(load(config), "reading", [str(config), table, str(point)], program)
    done = subprocess.run(
        asked,
        env=submit.environment(load(config)),
        cwd=site.folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    told = [line for line in (done.stdout + done.stderr).splitlines() if " INFO " not in line]
    assert done.returncode == 0, "\n".join(told)
    assert f"READ then {start} {commit} first" in done.stdout.splitlines()
    assert done.stdout.count("READ ") == 1


def test_a_ticket_cache_serves_as_well(site: Site, scene: Scene, omid: OmidClient) -> None:
    """One that ``kinit`` made, where the environment says: no keytab is in the configuration."""
    table = scene.table()
    scene.orphan(table)
    omid.advance_watermark()
    config = site.configuration(keytab=None)
    with site.gateway.ticket(3600) as cache:
        done = site.run("orphan_cleanup", "--table", table, "--execute", config=config, KRB5CCNAME=str(cache))
    assert done.code == 0, done.problems
    assert done.totals["deleted"] == 1
    assert done.summary["by"]["principal"] == f"lowtide@{secured.REALM}"


def test_executors_of_a_standalone_master_log_in_by_the_keytab(site: Site, scene: Scene, omid: OmidClient) -> None:
    """Such a master gives its executors no tokens, and has each task run as somebody without a ticket: the connector
    logs in as the keytab's principal all the same, reads, puts aside and writes.
    """
    table = scene.table()
    orphan = scene.orphan(table)
    healed, _ = scene.crashed_after_commit(table, row=b"late")
    omid.advance_watermark()
    config = site.configuration(master="local-cluster[1,1,1024]")
    done = site.run("orphan_cleanup", "--table", table, "--execute", config=config, SPARK_WORKER_DIR=str(site.folder))
    assert done.code == 0, done.problems
    assert (done.totals["deleted"], done.totals["healed"]) == (1, 1)
    assert not scene.has(table, orphan)
    assert scene.healed(table, healed, row=b"late")


def test_who_has_no_login_is_told_so(site: Site, tmp_path: Path) -> None:
    """Neither keytab nor ticket: one sentence with a remedy, and the exit code of a job that could do nothing."""
    config = site.configuration(keytab=None)
    done = site.run("orphan_cleanup", "--execute", config=config, KRB5CCNAME=str(tmp_path / "none"))
    assert done.code != 0
    assert "unexpected" not in done.problems
    assert "Kerberos" in done.problems


def test_a_hadoop_that_knows_no_kerberos_is_named(site: Site, tmp_path: Path) -> None:
    """A keytab is of no use where no ``core-site.xml`` says so: the problem names the file and the setting."""
    config = site.configuration()
    empty = tmp_path / "hadoop"
    empty.mkdir()
    done = site.run("survey", config=config, HADOOP_CONF_DIR=str(empty))
    assert done.code != 0
    assert "have a core-site.xml that says hadoop.security.authentication: kerberos" in done.problems
