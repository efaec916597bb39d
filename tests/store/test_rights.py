"""What each job needs to be allowed in HBase: with a right less than that it does nothing, and names the right."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import Outcome
from guarded import ALL, ANOTHERS, acting_as, grant, guarded_store, settings_of
from lowtide_spark.frames.store import Store
from pyspark.sql import SparkSession
from scene import Scene, staged

from lowtide.config import Config, load
from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from lowtide.ledger import init
from lowtide.ledger.model import Table
from lowtide.values.formats import commit_key, encode_long

Job = Callable[..., Outcome]
Configured = Callable[..., Path]
#: What a job is run with here, after the name of the table and of the run that removed something.
ACTING: tuple[tuple[str, ...], ...] = (
    ("orphan_cleanup", "--table", "{table}"),
    ("watermark_collection",),
    ("commit_table_pruning", "--grace", "0s"),
    ("history_gc", "--table", "{table}"),
    ("sideline_restore", "--restore", "{run}"),
    ("journal_replay", "--from", "2020-01-01T00:00:00Z"),
)
#: Those by which commit entries go, in their order.
PRUNING = ACTING[:3]
#: What these leave in the state, by the beginning of its rows.
FACTS = (b"table/", b"watermarks/", b"bound/")
LOOKING = (("survey",), ("verify", "--table", "{table}"), ("why", "--table", "{table}", "--row", "late"))
#: Of a row of the journal.
ENTRY = b"C"
DEFAULTS = {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A store whose HBase checks permissions."""
    with guarded_store(tmp_path_factory.mktemp("guarded")) as store:
        yield store


@pytest.fixture(scope="module")
def omid(guarded: Stack) -> Iterator[OmidClient]:
    """Its client, who may do everything."""
    with OmidClient(guarded) as client:
        yield client


@pytest.fixture
def scene(omid: OmidClient) -> Iterator[Scene]:
    """Its tables."""
    yield from staged(omid)


@pytest.fixture
def configured(configure: Callable[..., Path], guarded: Stack) -> Configured:
    """A configuration of a user, with other sections."""
    return lambda user, **more: configure(**settings_of(guarded, user), defaults=DEFAULTS, **more)


@pytest.fixture
def table(job: Job, scene: Scene, omid: OmidClient, configured: Configured) -> str:
    """One in which each job has something to do, and that the run *first* has cleaned of something before."""
    table = scene.table()
    scene.orphan(table)
    omid.advance_watermark()
    first = job("orphan_cleanup", "--table", table, "--execute", "--run-id", f"of-{table}", config=configured("root"))
    assert first.code == 0, first.problems
    scene.orphan(table, row=b"another")
    scene.crashed_after_commit(table, row=b"late")
    for _ in range(3):
        scene.committed(table, row=b"old")
    omid.advance_watermark()
    return table


@dataclass(frozen=True)
class Users:
    """Jobs as users of the guarded store run them, on a table."""

    job: Job
    spark: SparkSession
    configured: Configured
    table: str

    def each(self, user: str, jobs: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, bool, Outcome]]:
        """Job after job: its name, whether it acts, how it ended."""
        for name, *arguments in jobs:
            given = [a.format(table=self.table, run=f"of-{self.table}") for a in arguments]
            acts = name in [job for job, *_ in ACTING]
            with acting_as(self.spark, user):
                done = self.job(name, *given, *(["--execute"] if acts else []), config=self.configured(user))
            yield name, acts, done

    def do_all(self, user: str) -> None:
        """The whole chain, which does its work."""
        totals = {}
        for name, _, done in self.each(user, (*LOOKING, *ACTING)):
            assert done.code == 0, (name, done.problems)
            totals[name] = done.totals
        assert (totals["orphan_cleanup"]["deleted"], totals["orphan_cleanup"]["healed"]) == (1, 1)
        assert totals["sideline_restore"]["restored"] == 1


def facts(omid: OmidClient, table: str) -> tuple[object, ...]:
    """What nothing may change that does not see all of it: cells, commit entries, what is recorded."""
    state = [cell for cell in omid.raw(Config().state.table) if cell.row.startswith(FACTS)]
    return omid.raw(table), omid.commit_table(), state


def refused(users: Users, omid: OmidClient, user: str, hidden: str, jobs: Iterable[tuple[str, ...]]) -> list[str]:
    """Each of these jobs does nothing, and names the table that HBase may hide a part of, with the grant; what each
    said.
    """
    before = facts(omid, users.table)
    told = []
    for name, _, done in users.each(user, jobs):
        assert facts(omid, users.table) == before, name
        assert done.code != 0, name
        for words in ("the right READ is missing on ", f"{hidden} as a whole", f"grant '{user}', 'RW', '{hidden}'"):
            assert words in done.problems, (name, done.problems)
        told.append(done.problems)
    return told


def half_seen(scene: Scene, omid: OmidClient) -> str:
    """A table of two families: what one holds lacks the shadow cell that only the other one's reader would put."""
    table = scene.table(("a", "b"))
    scene.committed(table, row=b"whole")
    scene.crashed_after_commit(table, row=b"late", family=b"b")
    omid.advance_watermark()
    return table


@contextmanager
def another_store(
    folder: Path, configure: Callable[..., Path], job: Job, spark: SparkSession, **settings: str
) -> Iterator[tuple[Stack, OmidClient, Users]]:
    """A store of its own with such a table, and Lowtide's own tables; it checks permissions by *settings*."""
    with guarded_store(folder, **settings) as stack, OmidClient(stack) as omid:

        def configured(user: str) -> Path:
            return configure(**settings_of(stack, user), defaults=DEFAULTS)

        for scene in staged(omid):
            users = Users(job, spark, configured, half_seen(scene, omid))
            for name, _, done in users.each("root", [("commit_table_pruning", "--grace", "0s")]):  # makes the journal
                assert done.code == 0, (name, done.problems)
            yield stack, omid, users


@pytest.fixture
def users(job: Job, spark: SparkSession, configured: Configured, table: str) -> Users:
    """Of the table in which each job has something to do."""
    return Users(job, spark, configured, table)


@pytest.mark.turns(2, group="a right less")
@pytest.mark.parametrize("missing", ["READ", "WRITE"])
def test_with_a_right_less_a_job_does_nothing_and_names_it(
    users: Users, omid: OmidClient, guarded: Stack, spark: SparkSession, table: str, missing: str
) -> None:
    """Every job that acts needs READ and WRITE; those that only look need READ. The problem has the grant that mends
    it, and nothing of Java's.
    """
    user = f"without-{missing.lower()}"
    grant(spark, guarded, user, [action for action in ALL if action != missing])
    before = (omid.raw(table), omid.commit_table())
    for name, acts, done in users.each(user, (*ACTING, *LOOKING)):
        if missing == "WRITE" and not acts:
            assert done.code == 0, (name, done.problems)
            continue
        assert done.code != 0, name
        assert f"the right {missing} is missing on " in done.problems, name
        assert f"grant '{user}', '{'RW' if missing == 'READ' else 'W'}', '" in done.problems, name
        for word in ("unexpected", "org.apache", "no answer"):
            assert word not in done.problems, name
        assert (omid.raw(table), omid.commit_table()) == before, name


@pytest.mark.turns(2, group="one of two rights")
@pytest.mark.parametrize("missing", ["CREATE", "ADMIN"])
def test_one_of_two_rights_is_enough_to_see_tables(
    users: Users, guarded: Stack, spark: SparkSession, missing: str
) -> None:
    """Where Lowtide's own tables are there, and nothing is read from HBase snapshots or compacted: the whole chain
    does its work.
    """
    user = f"without-{missing.lower()}"
    grant(spark, guarded, user, [action for action in ALL if action != missing])
    users.do_all(user)


@pytest.mark.turns(2)
@pytest.mark.parametrize("seen", ["CREATE", "ADMIN"])
def test_rights_on_tables_do_where_they_are_given_on_each(
    users: Users, omid: OmidClient, guarded: Stack, spark: SparkSession, table: str, seen: str
) -> None:
    """Nothing globally: the whole chain does its work. With one table that was left out it does nothing, and names
    that table.
    """
    for name, _, done in users.each("root", [("commit_table_pruning", "--grace", "0s")]):  # which makes the journal
        assert done.code == 0, (name, done.problems)
    user = f"tables-{seen.lower()}"
    left_out = f"left_out_{seen.lower()}"
    grant(spark, guarded, user, ["READ", "WRITE", seen], omid.tables())
    users.do_all(user)
    omid.create(left_out)
    try:
        before = (omid.raw(table), omid.commit_table())
        # A replay puts entries back, by which no table loses anything.
        for name, _, done in users.each(user, [each for each in (*LOOKING, *ACTING) if each[0] != "journal_replay"]):
            assert done.code != 0, name
            assert f"it does not list to the user {user}: [{left_out}]" in done.problems, name
            assert f"grant '{user}', 'A', '{left_out}'" in done.problems, name
            assert (omid.raw(table), omid.commit_table()) == before, name
    finally:
        omid.drop(left_out)


def test_the_first_run_makes_tables(
    job: Job, configured: Configured, guarded: Stack, spark: SparkSession, table: str
) -> None:
    """Lowtide's own: without CREATE and ADMIN it names the right that is missing."""
    grant(spark, guarded, "newcomer", ["READ", "WRITE"])
    own = {"state": {"table": "NEW_STATE", "journal_table": "NEW_JOURNAL"}}
    with acting_as(spark, "newcomer"):
        done = job("orphan_cleanup", "--table", table, "--execute", config=configured("newcomer", **own))
    assert done.code != 0
    assert "the right CREATE is missing" in done.problems
    assert "grant 'newcomer', 'C'" in done.problems


def test_who_does_not_see_every_snapshot_removes_nothing_from_the_journal(
    job: Job, omid: OmidClient, configured: Configured, guarded: Stack, spark: SparkSession, table: str
) -> None:
    """HBase lists HBase snapshots of others to who is ADMIN globally, and says nothing of them to anybody else: what
    such a snapshot brings back would lack its proof.
    """
    journal = Config().state.journal_table
    assert job("commit_table_pruning", "--grace", "0s", "--execute", config=configured("root")).code == 0
    start = omid.begin()
    old = int((time.time() - timedelta(days=60).total_seconds()) * 1000)
    omid.put(journal, commit_key(start), b"j", ENTRY, old, encode_long(start + 50))
    omid.advance_watermark()
    for name in ("orphan_cleanup", "watermark_collection"):
        assert job(name, "--execute", config=configured("root")).code == 0
    grant(spark, guarded, "half", ["READ", "WRITE", "CREATE"])
    keep = {"state": {"journal_keep": "30d"}}
    prune = ("commit_table_pruning", "--grace", "0s", "--execute")

    def kept() -> bool:
        return {cell.kind for cell in omid.raw(journal) if cell.row == commit_key(start)} == {"put"}

    with acting_as(spark, "half"):
        done = job(*prune, config=configured("half", **keep))
    assert done.code == 0, done.problems
    notes = [note for each in done.summary["tables"] for note in each["notes"]]
    assert any("HBase shows half, who is not ADMIN globally, only HBase snapshots of their own" in n for n in notes)
    assert kept()
    assert job(*prune, config=configured("root", **keep)).code == 0
    assert not kept(), "who sees that there is none removes it"


@pytest.mark.parametrize("qualifier", [None, b"q"])
def test_a_part_of_a_table_is_not_enough(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    configured: Configured,
    guarded: Stack,
    spark: SparkSession,
    qualifier: bytes | None,
) -> None:
    """HBase shows who may read a family, or a column, just that, and answers as if the rest were not there: every job
    is refused before it judges by that.
    """
    users = Users(job, spark, configured, half_seen(scene, omid))
    scene.orphan(users.table, row=b"orphan", family=b"b")
    omid.advance_watermark()
    first = ("orphan_cleanup", "--table", "{table}", "--run-id", "of-{table}")
    for name, _, done in users.each("root", [first, ("commit_table_pruning", "--grace", "0s")]):  # makes the journal
        assert done.code == 0, (name, done.problems)
    scene.crashed_after_commit(users.table, row=b"later", family=b"b")
    omid.advance_watermark()
    user = f"half-{'family' if qualifier is None else 'column'}"
    grant(spark, guarded, user, ["READ", "WRITE", "ADMIN"], [t for t in omid.tables() if t != users.table])
    grant(spark, guarded, user, ["WRITE", "ADMIN"], [users.table])
    for family in (b"a", b"b") if qualifier else (b"a",):
        grant(spark, guarded, user, ["READ"], [users.table], family=family, qualifier=qualifier)
    refused(users, omid, user, users.table, [*ACTING[:5], ("verify", "--table", "{table}")])
    grant(spark, guarded, user, ["READ", "WRITE", "ADMIN"], [users.table])
    for name, _, done in users.each(user, [("orphan_cleanup", "--table", "{table}")]):
        assert (done.code, done.totals["healed"]) == (0, 1), (name, done.problems)


def test_where_a_part_may_be_written_nothing_is(
    job: Job, scene: Scene, omid: OmidClient, configured: Configured, guarded: Stack, spark: SparkSession
) -> None:
    """It is named with the grant before anything is put anywhere, and other tables are cleaned."""
    users = Users(job, spark, configured, half_seen(scene, omid))
    for name, _, done in users.each("root", [("commit_table_pruning", "--grace", "0s")]):  # makes Lowtide's own tables
        assert done.code == 0, (name, done.problems)
    scene.crashed_after_commit(users.table, row=b"late")
    other = scene.table()
    scene.orphan(other)
    omid.advance_watermark()
    grant(spark, guarded, "half-writer", ["READ", "ADMIN"], [users.table])
    grant(spark, guarded, "half-writer", ["READ", "WRITE", "ADMIN"], [t for t in omid.tables() if t != users.table])
    grant(spark, guarded, "half-writer", ["WRITE"], [users.table], family=b"a")
    before = omid.raw(users.table)
    with acting_as(spark, "half-writer"):
        done = job("orphan_cleanup", "--execute", config=configured("half-writer"))
    assert done.code != 0
    assert f"the right WRITE is missing on {users.table} as a whole" in done.problems
    assert f"grant 'half-writer', 'RW', '{users.table}'" in done.problems
    assert omid.raw(users.table) == before
    assert done.totals["deleted"] == 1, "of the other table"


def test_a_store_that_answers_what_is_not_allowed_with_nothing(
    tmp_path: Path, configure: Callable[..., Path], job: Job, spark: SparkSession
) -> None:
    """Where HBase is told not to refuse reads (``early_out``), an empty table, commit table, state or journal is
    believed only of who may read all of it.
    """
    own = Config()
    with another_store(tmp_path / "store", configure, job, spark, hbase__security__access__early_out="false") as (
        stack,
        omid,
        users,
    ):
        for n, hidden in enumerate((users.table, own.omid.commit_table, own.state.table, own.state.journal_table)):
            user = f"blind-{n}"
            grant(spark, stack, user, ["READ", "WRITE", "ADMIN"], [t for t in omid.tables() if t != hidden])
            grant(spark, stack, user, ["WRITE", "ADMIN"], [hidden])
            refused(users, omid, user, hidden, [*PRUNING, ("verify", "--table", "{table}")])
        init(load(users.configured("root")))
        hidden = f"{own.ledger.prefix}{Table.TRANSACTIONS}"
        grant(spark, stack, "teller", ["READ", "WRITE", "ADMIN"], [t for t in omid.tables() if t != hidden])
        grant(spark, stack, "teller", ["WRITE", "ADMIN"], [hidden])
        refused(users, omid, "teller", hidden, [("balances",), ("transaction_repair",)])


def test_families_are_tried_where_another_product_decides(
    tmp_path: Path, configure: Callable[..., Path], job: Job, spark: SparkSession
) -> None:
    """HBase's master would answer by grants that nobody goes by. So each family is read by itself: one that is refused
    is named, and who is refused none does all the work.
    """
    with another_store(tmp_path / "store", configure, job, spark, checking=ANOTHERS) as (stack, omid, users):
        with acting_as(spark, "half"):
            assert Store(spark, load(users.configured("half"))).cluster().lacks is None, "nobody knows"
        others = [t for t in omid.tables() if t != users.table]
        grant(spark, stack, "half", ["READ", "WRITE", "ADMIN"], others)
        grant(spark, stack, "half", ["WRITE", "ADMIN"], [users.table])
        grant(spark, stack, "half", ["READ"], [users.table], family=b"a")
        told = refused(users, omid, "half", users.table, [*PRUNING, ("verify", "--table", "{table}")])
        assert all(f"of {users.table} it refused b" in text for text in told), told
        grant(spark, stack, "half", ["READ"], [users.table], family=b"b")
        for name, _, done in users.each("half", PRUNING):
            assert done.code == 0, (name, done.problems)
        assert omid.commit_table() == {}
