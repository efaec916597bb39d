"""The jobs on a YARN that asks for logins, with an HBase that does, on HDFS that does: what executors are let in by.

A keytab, or a ticket, is the driver's alone. In the order of the file: the days of one store.
"""

from __future__ import annotations

import subprocess

import pytest
from days_kit import Days, entries_are_pruned, history_goes, left
from ledger_kit import Books
from secured_site import ME, USER, SecuredSite
from shown import check_snapshots
from yarn_kit import PATIENCE, tell

from lowtide.config import load
from lowtide.health.conditions import TransactionsStuck, check
from lowtide.lab.workload import OmidClient, Shape, run
from lowtide.ledger import init
from lowtide.ledger.model import Table, user_id
from lowtide.run import submit

pytestmark = pytest.mark.needs("kerberos")

SHAPE = Shape(tables=("orders", "stock"))
TRANSACTIONS = 150
POINTS = 15
#: History may go as soon as it is history; read from region servers: HBase's files are its user's alone.
YOUNG = {"budget": {"share": 1.0}, "read": "rpc", "history_max_age": "0s", "min_history_age": "0s"}
#: Nobody else is to read what driver and executors say to each other, tokens among it.
ENCRYPTED = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
#: A user's program: configuration, table, read point.
READING = """
import sys

from pyspark.sql import SparkSession

from lowtide.config import load
from lowtide.history import read_options, spark_settings

file, table, point = sys.argv[1:]
config = load(file)
spark = SparkSession.builder.config(map=spark_settings(config)).getOrCreate()
read = spark.read.format("lowtide").options(**read_options(config, table)).option("table", table)
cells = read.option("asOf", point).option("hold", "true").load()
for cell in cells.collect():
    print("READ", bytes(cell.row).hex(), bytes(cell.family).hex(), bytes(cell.qualifier).hex(), bytes(cell.value).hex())
"""


@pytest.fixture(scope="module")
def days(secured_site: SecuredSite, secured_omid: OmidClient, tmp_path_factory: pytest.TempPathFactory) -> Days:
    """A workload whose clients crashed, and a user who has READ, WRITE and ADMIN on each table, none globally."""
    out = tmp_path_factory.mktemp("history") / "history"
    result = run(secured_site.stack, 17, TRANSACTIONS, out, shape=SHAPE, kills=1, halts=1, regions=3, omid=secured_omid)
    watermark = secured_omid.watermark()
    secured_site.grant(USER, secured_omid.tables())
    return Days(result.model, watermark, secured_site.configuration(ENCRYPTED, defaults=YOUNG))


def test_the_way_is_right_from_end_to_end(secured_site: SecuredSite, days: Days) -> None:
    """``lowtide check`` finds nothing wrong on it, gateway, HBase, executors, sideline; and says that this user has no
    right globally: tables that are made tomorrow are none of his.
    """
    checked = secured_site.lowtide("check", "--config", str(days.config))
    wrong = [line for line in checked.output.splitlines() if line.startswith("✗")]
    tell(checked.output)
    assert wrong == []
    assert "globally it needs a grant on each table that is made" in checked.output
    assert "Connector on executors: they read" in checked.output


def test_a_cleanup_by_tokens(secured_site: SecuredSite, secured_omid: OmidClient, days: Days) -> None:
    """Executors have no keytab and no ticket, and a token of HBase's and of HDFS's; they read, put aside and delete by
    these, as the driver's principal. Nothing unproved is left, and every read point shows what the model says.
    """
    seen: list[dict[str, str]] = []

    def look() -> None:
        secured_site.await_executors(2)
        seen.extend(dict(executor.environment) for executor in secured_site.executors())

    surveyed = secured_site.run("survey", "--config", str(days.config))
    assert surveyed.code == 0, surveyed.output
    done = secured_site.run("orphan_cleanup", "--config", str(days.config), "--full", "--execute", meanwhile=look)
    assert (done.code, done.summary["state"]) == (0, "done"), done.output
    days.first = done.summary["run"]
    assert done.summary["by"]["principal"] == ME
    assert done.totals["deleted"] > 0
    assert left(secured_omid, days) == 0
    check_snapshots(secured_omid, days.model, days.model.read_timestamps(POINTS))
    application = secured_site.applications("lowtide orphan_cleanup")[-1]
    assert application["user"] == USER
    for environment in seen:
        assert environment["SPARK_USER"] == USER
        assert not {"KRB5PRINCIPAL", "KRB5KEYTAB"} & set(environment)
        assert environment["HADOOP_TOKEN_FILE_LOCATION"]
    for log in secured_site.containers(application["id"]):
        said = log.read_text("utf-8", "replace")
        assert "Updating delegation tokens for current user" in said
        assert "keytab" not in said
    listed = secured_site.cluster.fs("-ls", "-R", "/lowtide/sideline").splitlines()
    assert any(line.endswith(".parquet") and f" {USER} " in line for line in listed), listed


def test_history_goes_that_no_reader_needs(secured_site: SecuredSite, secured_omid: OmidClient, days: Days) -> None:
    """Watermarks are collected, and history GC deletes; at the marks and now every table shows what the model says."""
    history_goes(secured_site, secured_omid, days, SHAPE.tables, more_than=50)


def test_commit_entries_are_pruned(secured_site: SecuredSite, secured_omid: OmidClient, days: Days) -> None:
    """No entry is left at or below the bound, and what the commit table proved is still shown."""
    entries_are_pruned(secured_site, secured_omid, days)


def test_a_ledger_is_repaired_by_tokens(secured_site: SecuredSite, days: Days) -> None:
    """Executors read and end by tokens what its client left half-way, as a user who has rights on the ledger's tables
    alone; then the money adds up, and sensors see it.
    """
    ledger = {"prefix": "cluster_", "grace": "0s", "allow_short_grace": True}
    books = Books(secured_site.configuration(keytab="lowtide", ledger=ledger))  # who may make tables
    init(books.config)
    with books.open() as book:
        for nickname in ("ann", "bob"):
            book.add_user(nickname)
        book.transfer("issuer", "ann", 50)
    secured_site.grant(USER, [f"cluster_{table}" for table in Table])
    assert books.stopped(lambda book: book.transfer("ann", "bob", 7), at=4, how="after")
    config = secured_site.configuration(ENCRYPTED, ledger=ledger)
    stuck, own = TransactionsStuck(older_than="0s"), load(config)
    assert check(stuck, own).met
    repaired = secured_site.run("transaction_repair", "--config", str(config), "--execute")
    assert (repaired.code, repaired.summary["by"]["principal"]) == (0, ME), repaired.output
    assert books.entries() == []
    assert not check(stuck, own).met
    balances = books.balances()
    assert (sum(balances.values()), balances[user_id("ann")] + balances.get(user_id("bob"), 0)) == (0, 50)


def test_hbases_files_are_hbases_alone(secured_site: SecuredSite, secured_omid: OmidClient, days: Days) -> None:
    """``read: snapshot`` is refused in a sentence that names what is closed, and no cell is changed."""
    before = {table: secured_omid.raw(table) for table in days.model.tables}
    hbase = {"properties": {"hbase.rootdir": f"{secured_site.cluster.hdfs}/hbase"}}
    config = secured_site.configuration(hbase=hbase, defaults={**YOUNG, "read": "snapshot"})
    refused = secured_site.run("orphan_cleanup", "--config", str(config), "--full", "--execute", "--table", "orders")
    assert "read: rpc" in refused.problems[0]
    assert "Permission denied: user=alice" in refused.problems[0]
    assert {table: secured_omid.raw(table) for table in days.model.tables} == before


def test_a_program_of_ones_own_reads_at_a_read_point(
    secured_site: SecuredSite, secured_omid: OmidClient, days: Days
) -> None:
    """With the settings that the configuration gives for its session: its executors are let in, and are shown what the
    model says.
    """
    point = secured_omid.watermark()
    program = secured_site.folder / "reading.py"
    program.write_text(READING)
    asked = submit.command(load(days.config), "reading", [str(days.config), "orders", str(point)], program)
    done = subprocess.run(
        asked,
        env={**submit.environment(load(days.config)), **secured_site.environment},
        cwd=secured_site.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    read = [line.split(" ")[1:] for line in done.stdout.splitlines() if line.startswith("READ ")]
    shown = {tuple(bytes.fromhex(part) for part in parts[:3]): bytes.fromhex(parts[3]) for parts in read}
    assert shown == days.model.shown_at("orders", point)
    assert shown


def test_a_restore_and_a_verification_by_a_ticket(
    secured_site: SecuredSite, secured_omid: OmidClient, days: Days
) -> None:
    """By a ticket cache in place of the keytab, which is in no setting: what was deleted comes back, and the verifier
    finds nothing wrong with it.
    """
    config = secured_site.configuration(keytab=None, defaults=YOUNG)
    with secured_site.ticket(3600) as cache:
        for name in (days.history, days.first):  # the last first: a tombstone may have hidden what an earlier one took
            ended = secured_site.lowtide("restore", name, "--config", str(config), "--execute", KRB5CCNAME=cache)
            assert ended.code == 0, ended.output
        check_snapshots(secured_omid, days.model, [secured_omid.begin()])
        assert left(secured_omid, days) > 0
        again = secured_site.run("orphan_cleanup", "--config", str(config), "--full", "--execute", KRB5CCNAME=cache)
        assert (again.code, again.summary["by"]["principal"]) == (0, ME), again.output
        assert left(secured_omid, days) == 0
        verified = secured_site.run("verify", "--config", str(config), KRB5CCNAME=cache)
        assert verified.code == 0, verified.output
    check_snapshots(secured_omid, days.model, [secured_omid.begin()])
