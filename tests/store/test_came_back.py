"""Tables that come back from an HBase snapshot: no committed cell is hidden for good or deleted, and nothing is
stuck.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import Result
from conftest import Outcome
from lowtide_spark.cleaning import orphans, proofs
from pyspark.sql import SparkSession
from scene import Scene
from typer.testing import CliRunner

from lowtide.cleaning.facts import DROPPING, VOID
from lowtide.cli.app import app
from lowtide.config import Config, load
from lowtide.history.holding import read_options
from lowtide.lab.workload import OmidClient
from lowtide.store.gateway import connect, table_state
from lowtide.store.state import StateStore
from lowtide.tables.inventory import without_compactor
from lowtide.values.formats import shadow_qualifier

pytestmark = [pytest.mark.usefixtures("swept", "no_snapshots"), pytest.mark.turns(2, group="came back")]
Job = Callable[..., Outcome]
ENTRIES, JOURNAL, STATE = Config().omid.commit_table, Config().state.journal_table, Config().state.table
FOREVER = {"TTL": str(2**31 - 1)}


@pytest.fixture
def as_of(spark: SparkSession, configure: Callable[..., Path]) -> Callable[[str], set[bytes]]:
    """The rows that a table shows now."""
    options = read_options(load(configure()))

    def read(table: str) -> set[bytes]:
        reader = spark.read.format("lowtide").options(**options)
        return {bytes(r.row) for r in reader.option("table", table).option("asOf", "latest").load().collect()}

    return read


@pytest.fixture
def said(configure: Callable[..., Path]) -> Callable[..., str]:
    """What a command of ``lowtide`` says, its refusal too."""

    def say(*command: str) -> str:
        result = CliRunner().invoke(app, [*command, "--yes", "--config", str(configure())])
        return f"{result.output}{result.exception or ''}"

    return say


@pytest.fixture
def journal(job: Job, omid: OmidClient, said: Callable[..., str]) -> Iterator[str]:
    """Lowtide's journal, which has been pruned into, and which the tests after this one can go by whatever became of
    it.
    """
    assert job("commit_table_pruning", "--grace", "0s", "--execute").code == 0
    yield JOURNAL
    omid.set(JOURNAL, families=FOREVER)
    if "lowtide journal lost" in job("commit_table_pruning").problems:
        said("journal", "lost")


def clean_and_prune(job: Job, *tables: str, config: Path | None = None) -> tuple[Outcome, Outcome]:
    """The cleanup of *tables*, without ``--full``, and the pruning of whatever it allows."""
    named = [part for table in tables for part in ("--table", table)]
    cleaned = job("orphan_cleanup", *named, "--execute", config=config)
    return cleaned, job("commit_table_pruning", "--grace", "0s", "--execute", config=config)


def load_anew(omid: OmidClient, scene: Scene, table: str, cells: Mapping[bytes, int]) -> None:
    """Rows and start timestamps as they were before the cleanup, without shadow cells, as by a bulk load, of which
    HBase tells nothing.
    """
    for row, start in cells.items():
        omid.delete_version(table, row, b"a", shadow_qualifier(b"q"), start)
    omid.flush(table)
    omid.compact(table, major=True)  # or what is put would lie behind the markers of what was deleted
    for row, start in cells.items():
        scene.cell(table, start, row=row)


def decide(config: Path, *said: str) -> Result:
    """What a person says with ``lowtide resolve``."""
    return CliRunner().invoke(app, ["resolve", *said, "--yes", "--config", str(config)])


def write(folder: Path, text: str) -> Path:
    """A list of decisions, filled in."""
    file = folder / "decisions"
    file.write_text(text)
    return file


@pytest.mark.turns(2)
@pytest.mark.parametrize("way", ["cloned", "restored"])
def test_what_comes_back_is_cleaned_again_by_the_next_run(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    snapshot: Callable[[str], str],
    as_of: Callable[[str], set[bytes]],
    configure: Callable[..., Path],
    way: str,
) -> None:
    """Under its old name, or restored in place: the regions bear their old ids, and the records do not count any more.

    Every read point shows then what it showed before. Until then the prune bound is 0, and its blocker says why. The
    commit is proved by the journal, to a read at a read point too; a transaction without proof is an orphan.
    """
    table = scene.table(splits=(b"m",))
    start, commit = scene.crashed_after_commit(table, row=b"healed")
    orphan = scene.orphan(table, row=b"orphan")
    kept, later = scene.committed(table, row=b"z")
    points = (start - 50, commit, kept, later, omid.begin())
    shown = {point: omid.read(table, point) for point in points}
    omid.advance_watermark()
    name = snapshot(table)
    for outcome in clean_and_prune(job, table):
        assert outcome.code == 0, outcome.problems
    assert start not in omid.commit_table()
    if way == "cloned":
        omid.drop(table)
        omid.clone(name, table)
    else:
        omid.restore(name)
    assert scene.healed(table, start, row=b"healed") is None
    assert as_of(table) == {b"healed", b"z"}
    collected = job("watermark_collection", "--execute")
    assert (collected.summary["bound"], {b["reason"] for b in collected.summary["blockers"]}) == (0, {VOID})
    said = CliRunner().invoke(app, ["explain", table, "--config", str(configure())])
    assert f"regions: {VOID}" in said.output
    omid.advance_watermark()
    cleaned, pruned = clean_and_prune(job, table)
    assert (cleaned.code, pruned.code) == (0, 0), cleaned.problems + pruned.problems
    assert scene.healed(table, start, row=b"healed") == commit
    assert not scene.has(table, orphan, row=b"orphan")
    assert scene.has(table, kept, row=b"z")
    assert {point: omid.read(table, point) for point in points} == shown
    assert pruned.summary["bound"] == pruned.summary["low_watermark"]


def test_readers_see_all_of_a_table_that_comes_back_after_a_replay(
    job: Job, scene: Scene, omid: OmidClient, snapshot: Callable[[str], str]
) -> None:
    """Of Omid's client every read point, before any cleanup: an entry that was pruned since the HBase snapshot is there
    again, also a second time; what is marked since stays aborted. A dry run puts nothing. The cleanup heals by them,
    and pruning takes them again.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table, row=b"healed")
    orphan = scene.orphan(table, row=b"orphan")
    omid.advance_watermark()
    name = snapshot(table)
    everything = {(b"healed", b"a", b"q"): b"v"}
    at = omid.begin()
    for _ in range(2):
        for outcome in clean_and_prune(job, table):
            assert outcome.code == 0, outcome.problems
        assert start not in omid.commit_table(), "pruning takes it, also where it was put back"
        omid.restore(name)
        assert omid.read(table, at) == {}
        planned = job("journal_replay", "--since-snapshot", name)
        found = planned.totals["restored"]  # with those that other tests left to be pruned
        assert (planned.code, found > 0) == (0, True), planned.problems
        assert start not in omid.commit_table()
        replayed = job("journal_replay", "--since-snapshot", name, "--execute")
        assert (replayed.code, replayed.totals["restored"]) == (0, found), replayed.problems
        assert start in omid.commit_table()
        again = job("journal_replay", "--since-snapshot", name, "--execute")
        assert again.totals["restored"] == 0
        assert omid.read(table, at) == everything
        assert omid.read(table, commit) == {}
    for outcome in clean_and_prune(job, table):
        assert outcome.code == 0, outcome.problems
    assert scene.healed(table, start, row=b"healed") == commit
    assert not {start, orphan} & set(omid.commit_table())
    assert omid.read(table, at) == everything
    unknown = job("journal_replay", "--since-snapshot", "nobody")
    assert (unknown.code, "there is no HBase snapshot nobody" in unknown.problems) == (2, True)


def test_a_shadow_cell_that_lies_apart_is_rewritten_with_its_data_when_it_comes_back(
    job: Job, scene: Scene, omid: OmidClient, snapshot: Callable[[str], str]
) -> None:
    """A reader wrote it, into another file than its data's, and the commit entry was pruned after the HBase snapshot:
    the journal tells which they are, so that Omid's compactor, put on the table when it is clean, takes neither. So too
    where the first run goes a part of the way only.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table)
    omid.advance_watermark()
    assert job("watermark_collection", "--execute").code == 0
    between = datetime.now(UTC)
    later, later_commit = scene.crashed_after_commit(table, row=b"later")
    scene.flush_a_large_file(table)
    scene.shadow(table, start, commit)
    scene.shadow(table, later, later_commit, row=b"later")
    omid.flush(table)
    at = omid.begin()
    omid.advance_watermark()
    name = snapshot(table)
    for outcome in clean_and_prune(job, table):
        assert outcome.code == 0, outcome.problems
    assert not {start, later} & set(omid.commit_table())
    omid.restore(name)
    part = job("orphan_cleanup", "--table", table, "--to", between.isoformat(), "--execute")
    rest, pruned = clean_and_prune(job, table)
    assert (part.code, rest.code, pruned.code) == (0, 0, 0), part.problems + rest.problems + pruned.problems
    scene.compacted_by_omid(table)
    shown = {row: omid.read(table, at).get((row, b"a", b"q")) for row in (b"r", b"later")}
    assert shown[b"r"] == b"v", "the run read it from 0"
    assert shown[b"later"] == b"v", "the run went on from where the first one ended"
    assert scene.healed(table, start) == commit
    assert scene.healed(table, later, row=b"later") == later_commit


def test_omids_compactor_on_a_table_that_comes_back_is_named_until_it_is_clean(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path], snapshot: Callable[[str], str]
) -> None:
    """By the collection, by ``explain`` and by the cleanup, with the statement that takes it off. Who cleans at once is
    through with it, too.
    """
    table = scene.table()
    omid.attach_omid_compactor(table)
    start, commit = scene.crashed_after_commit(table)
    at = omid.begin()
    omid.advance_watermark()
    name = snapshot(table)
    for outcome in clean_and_prune(job, table):
        assert outcome.code == 0, outcome.problems
    omid.restore(name)

    def explained() -> dict[str, dict[str, Any]]:
        collected = job("watermark_collection", "--execute")
        assert collected.code == 0, collected.problems
        said = CliRunner().invoke(app, ["explain", table, "--json", "--config", str(configure())])
        return {f["cause"]: f for f in json.loads(said.stdout)["findings"] if table in f["tables"]}

    off = without_compactor(table)
    found = explained()["records-void"]
    assert off in found["commands"][0]
    assert DROPPING in found["why"]
    cleaned, pruned = clean_and_prune(job, table)
    assert (cleaned.code, pruned.code) == (0, 0), cleaned.problems + pruned.problems
    assert any(off in note for note in cleaned.table(table)["notes"])
    assert "records-void" not in explained()
    again = job("orphan_cleanup", "--table", table, "--full", "--execute")
    assert (again.code, [note for note in again.table(table)["notes"] if off in note]) == (0, [])
    assert scene.healed(table, start) == commit
    assert omid.read(table, at) == {(b"r", b"a", b"q"): b"v"}


def test_without_its_proof_a_cell_that_came_back_is_left_alone_until_somebody_decides(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    configure: Callable[..., Path],
    said: Callable[..., str],
    as_of: Callable[[str], set[bytes]],
    tmp_path: Path,
) -> None:
    """Old bytes are loaded when the journal has let go of the entry and the commit table is compacted: even a full pass
    deletes no committed cell.

    Nor does a read at a read point leave it out. What they say to do leads to green, both ways, for all of them at
    once: the run lists them in a file. A table that was under watch all the time loses its orphans as ever.
    """
    table, watched = scene.table(), scene.table()
    start, commit = scene.crashed_after_commit(table, row=b"healed")
    orphan = scene.orphan(table, row=b"orphan")
    others = {scene.orphan(table, row=b"other%d" % i): b"other%d" % i for i in range(5)}
    late = omid.begin()
    omid.advance_watermark()
    short = configure(state={"journal_keep": "0s"}, defaults={"full_pass_every": "0s", "budget": {"share": 1.0}})
    for outcome in clean_and_prune(job, table, watched, config=short):
        assert outcome.code == 0, outcome.problems
    assert job("commit_table_pruning", "--grace", "0s", "--execute", config=short).code == 0
    load_anew(omid, scene, table, {b"healed": start, b"orphan": orphan} | {row: each for each, row in others.items()})
    said("forget", table)
    for compacted in (ENTRIES, JOURNAL):
        omid.flush(compacted)
        omid.compact(compacted, major=True)
    with pytest.raises(
        Exception,
        match=f"{table} cannot be read with asOf: nothing tells whether .* at "
        f"({'|'.join(map(str, (start, orphan, *others)))}) committed.* orphan_cleanup",
    ):
        as_of(table)
    scene.cell(watched, late, row=b"late")  # of a client that was paused
    outcome = job("orphan_cleanup", "--table", table, "--table", watched, "--full", "--execute", config=short)
    assert outcome.code == 1
    assert "the journal has let go of what it held of its time" in outcome.problems
    assert any(
        f"lowtide resolve {each} --aborted, or --committed" in outcome.problems for each in (start, orphan, *others)
    )
    told = {name for name in (table, watched) if f"major_compact '{name}'" in str(outcome.table(name)["notes"])}
    assert told == {table}, "the journal does not tell which of its shadow cells lie apart"
    assert scene.has(table, start, row=b"healed")
    assert scene.has(table, orphan, row=b"orphan")
    assert not scene.has(watched, late, row=b"late")
    assert "7 transactions wait for somebody to decide" in outcome.problems
    listed = Path(next(part for part in outcome.problems.split() if "lowtide-undecided-" in part).rstrip(":"))
    text = listed.read_text()
    wrong = text.replace(f"{start} undecided", f"{start} committed {start}").replace("undecided", "aborted")
    refused = decide(short, "--from", str(write(tmp_path, wrong)))
    assert f"{start} is no commit timestamp of it" in str(refused.exception)
    still = decide(short, str(orphan), "--committed", str(orphan + 50))  # a slip: nothing has acted on it yet
    assert (still.exit_code, "replaces" in still.output) == (0, False), "what is refused has recorded nothing of any"
    right = text.replace(f"{start} undecided", f"{start} committed {commit}").replace("undecided", "aborted")
    done = decide(short, "--from", str(write(tmp_path, right)))
    assert done.exit_code == 0, done.output
    assert f"transaction {orphan} committed at {orphan + 50}" in " ".join(done.output.split()), "the slip is told"
    outcome = job("orphan_cleanup", "--table", table, "--execute", config=short)
    assert outcome.code == 0, outcome.problems
    assert scene.healed(table, start, row=b"healed") == commit
    assert not scene.has(table, orphan, row=b"orphan")
    assert not any(scene.has(table, each, row=row) for each, row in others.items())
    assert as_of(table) == {b"healed"}


@pytest.mark.turns(8)
@pytest.mark.parametrize(
    "way",
    [
        "restored",
        "cleaned in part",
        "renamed",
        "named again",
        "never collected",
        "forgotten",
        "met by a reader",
        "met by a compaction when it was back before",
    ],
    ids=lambda way: way.replace(" ", "-"),
)
def test_what_its_client_completed_after_the_snapshot_is_left_to_a_person(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    snapshot: Callable[[str], str],
    said: Callable[..., str],
    way: str,
) -> None:
    """The HBase snapshot has a committed cell without its shadow cell; then its client writes that, and takes its
    commit entry away, of which no journal knows. When the table comes back nothing proves the commit, and nothing is
    proof of an abort: what had never committed was marked when the table was cleaned before. So it is where it comes
    back under a name that is new, or that another table had which was cleaned less far; where only pruning has passed
    its time, and no collection; and where somebody has its records forgotten, while another table holds the bound. Nor
    is the mark a proof that a reader of Omid's puts who meets the cell then, as those of an oracle with a successor do;
    nor one that Omid's compactor put when it took the cell away, and that was pruned, since nothing held it any more,
    before the table came back once more.
    """
    table = scene.table(splits=(b"m",))
    another = scene.table()
    assert job("orphan_cleanup", "--table", another, "--execute").code == 0
    omid.drop(another)
    assert job("watermark_collection", "--execute").code == 0
    between = datetime.now(UTC)
    paused = omid.begin()
    start, commit = scene.crashed_after_commit(table, row=b"cut")
    orphan = scene.orphan(table, row=b"orphan")
    name = snapshot(table)
    scene.shadow(table, start, commit, row=b"cut")
    omid.delete_commit_entry(start)
    omid.flush(ENTRIES)
    omid.compact(ENTRIES, major=True)
    omid.advance_watermark()
    assert job("orphan_cleanup", "--table", table, "--execute").code == 0
    if way != "forgotten":
        assert job("commit_table_pruning", "--grace", "0s", "--execute").summary["bound"] > start
        assert way == "never collected" or job("watermark_collection", "--execute").summary["bound"] > start
    back = table
    if way in ("renamed", "named again", "never collected"):
        back = another if way == "named again" else f"{table}copy"
        omid.drop(table)  # whose shadow cell would be proof
        omid.clone(name, back)
        scene.tables.append(back)
        said("confirm", back)
    else:
        omid.restore(name)
    if way.startswith("met by"):
        assert omid.invalidate(start)
    if way == "met by a compaction when it was back before":
        omid.delete_version(back, b"cut", b"a", b"q", start)
        cleaned, pruned = clean_and_prune(job, back)
        assert (cleaned.code, pruned.code) == (0, 0), cleaned.problems + pruned.problems
        assert start not in omid.commit_table()
        omid.restore(name)
    if way == "forgotten":
        assert "2 key ranges" in said("forget", back)
    if way == "cleaned in part":
        part = job("orphan_cleanup", "--table", back, "--to", between.isoformat(), "--execute")
        assert part.code == 0, part.problems
    for _ in range(2):  # the first has recorded the other region
        outcome = job("orphan_cleanup", "--table", back, "--execute")
        assert scene.has(back, start, row=b"cut"), "a committed cell is deleted"
        assert (outcome.code, "no proof is no proof of an abort" in outcome.problems) == (1, True), outcome.problems
        assert f"lowtide resolve {start} --aborted" in outcome.problems
        assert (start in omid.commit_table()) == (way == "met by a reader"), "the run puts no mark"
    said("resolve", str(start), "--committed", str(commit))
    cleaned, pruned = clean_and_prune(job, back)
    assert (cleaned.code, pruned.code) == (0, 0), cleaned.problems + pruned.problems
    assert scene.healed(back, start, row=b"cut") == commit
    assert not scene.has(back, orphan, row=b"orphan"), "its mark is proof"
    scene.cell(back, paused, row=b"late")
    full = job("orphan_cleanup", "--table", back, "--full", "--execute")
    assert (full.code, scene.has(back, paused, row=b"late")) == (0, False), "it is under watch again"


def test_a_mark_of_lowtides_own_decides_what_comes_back(
    job: Job, scene: Scene, omid: OmidClient, snapshot: Callable[[str], str]
) -> None:
    """Whoever put it had looked for every proof while the cell lay under watch; it need not have been pruned."""
    table = scene.table()
    orphan = scene.orphan(table)
    name = snapshot(table)
    omid.advance_watermark()
    assert job("orphan_cleanup", "--table", table, "--execute").code == 0
    assert omid.commit_table()[orphan].invalid
    omid.restore(name)
    assert scene.has(table, orphan)
    again = job("orphan_cleanup", "--table", table, "--execute")
    assert again.code == 0, again.problems
    assert not scene.has(table, orphan)


def test_the_journal_keeps_what_a_table_that_came_back_waits_for(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path], snapshot: Callable[[str], str]
) -> None:
    """The table holds the bound until it is clean, and nothing above the bound is let go of, however short the journal
    is to be kept; also where it is disabled, so that nobody can read it to see.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table, row=b"healed")
    name = snapshot(table)
    omid.advance_watermark()
    short = configure(state={"journal_keep": "0s"}, defaults={"full_pass_every": "0s", "budget": {"share": 1.0}})
    for outcome in clean_and_prune(job, table, config=short):
        assert outcome.code == 0, outcome.problems
    omid.restore(name)
    omid.delete_snapshot(name)
    omid.disable(table)
    pruned = job("commit_table_pruning", "--grace", "0s", "--execute", config=short)
    omid.enable(table)
    assert pruned.code == 0, pruned.problems
    cleaned = job("orphan_cleanup", "--table", table, "--execute", config=short)
    assert scene.healed(table, start, row=b"healed") == commit, "its proof is gone"
    assert cleaned.code == 0, cleaned.problems


def test_a_clone_under_a_new_name_is_left_alone_until_it_is_confirmed(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path], snapshot: Callable[[str], str]
) -> None:
    """Its cells are older than it, like those of a table of another cluster; a table that was made meanwhile raises no
    doubt.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table, row=b"healed")
    orphan = scene.orphan(table, row=b"orphan")
    omid.advance_watermark()
    name = snapshot(table)
    for outcome in clean_and_prune(job, table):
        assert outcome.code == 0, outcome.problems
    assert job("watermark_collection", "--execute").code == 0
    copy, made = f"{table}copy", scene.table()
    omid.clone(name, copy)
    young, _ = scene.crashed_after_commit(made)
    omid.advance_watermark()
    outcome = job("orphan_cleanup", "--table", copy, "--table", made, "--execute")
    assert outcome.code == 1
    assert f"lowtide confirm {copy}" in outcome.problems
    assert f"lowtide confirm {made}" not in outcome.problems
    assert scene.healed(made, young) is not None
    for _ in range(2):  # what a collection has listed it as changes nothing
        collected = job("watermark_collection", "--execute")
        held = {b["table"] for b in collected.summary["blockers"] if "it came from elsewhere" in b["reason"]}
        assert (collected.summary["bound"], held) == (0, {copy})
    assert scene.has(copy, orphan, row=b"orphan")
    assert scene.healed(copy, start, row=b"healed") is None
    said = CliRunner().invoke(app, ["confirm", copy, "--yes", "--config", str(configure())])
    assert said.exit_code == 0, said.output
    assert job("orphan_cleanup", "--table", copy, "--execute").code == 0
    assert scene.healed(copy, start, row=b"healed") == commit
    assert not scene.has(copy, orphan, row=b"orphan")
    collected = job("watermark_collection", "--execute")
    assert [b["table"] for b in collected.summary["blockers"] if "it came from elsewhere" in b["reason"]] == []
    assert collected.summary["bound"] > start
    omid.drop(copy)


@pytest.mark.parametrize("said", ["confirmed", "foreign"])
def test_an_import_that_nobody_confirmed_proves_nothing_of_this_oracles_transactions(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path], said: str
) -> None:
    """Its oracle has given the same number to a transaction that committed: an orphan of here is neither healed by that
    one's shadow cell nor deleted beside it, and the run names the table. Once it is said whose the table is, the orphan
    goes, or is healed. It bears a mark, or none.
    """
    table, other = scene.table(), scene.table()
    orphan, lone = scene.orphan(table), scene.orphan(other)
    omid.advance_watermark()
    assert job("watermark_collection", "--execute").code == 0
    imported = scene.table(omid_enabled=said == "confirmed")
    scene.cell(imported, orphan)
    scene.shadow(imported, orphan, orphan + 50)
    cleanup = ("orphan_cleanup", "--table", table, "--table", other, "--execute")
    outcome = job(*cleanup)
    assert scene.healed(table, orphan) is None, "another oracle's commit is no proof"
    assert scene.has(table, orphan), "it may have committed here"
    assert orphan not in omid.commit_table()
    assert outcome.code == 1
    assert f"lies in table {imported}" in outcome.problems
    assert f"lowtide confirm {imported}" in outcome.problems
    assert "omid.foreign" in outcome.problems
    assert not scene.has(other, lone), "what has no shadow cell there goes as ever"
    if said == "confirmed":
        confirmed = CliRunner().invoke(app, ["confirm", imported, "--yes", "--config", str(configure())])
        assert confirmed.exit_code == 0, confirmed.output
        outcome = job(*cleanup)
        assert scene.healed(table, orphan) == orphan + 50
    else:
        outcome = job(*cleanup, config=configure(omid={"foreign": [imported]}))
        assert not scene.has(table, orphan)
    assert outcome.code == 0, outcome.problems


def test_a_table_that_is_restored_while_a_run_goes_on_is_left_to_the_next(
    job: Job, scene: Scene, omid: OmidClient, snapshot: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its regions were listed, before it is read: what was recorded of it before tells nothing of what the run
    finds.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table, row=b"healed")
    omid.advance_watermark()
    name = snapshot(table)
    for outcome in clean_and_prune(job, table):
        assert outcome.code == 0, outcome.problems
    find_and_decide = orphans.find_and_decide

    def restored(*arguments: Any) -> Any:
        omid.restore(name)
        return find_and_decide(*arguments)

    monkeypatch.setattr(orphans, "find_and_decide", restored)
    red = job("orphan_cleanup", "--table", table, "--full", "--execute")
    monkeypatch.undo()
    assert (red.code, scene.healed(table, start, row=b"healed")) == (1, None)
    assert f"{table} was restored" in red.problems
    green = job("orphan_cleanup", "--table", table, "--execute")
    assert (green.code, scene.healed(table, start, row=b"healed")) == (0, commit), green.problems


@pytest.mark.parametrize(
    ("only", "module", "step"),
    [(True, proofs, "verdicts"), (True, orphans, "find_and_decide"), (False, orphans, "find_and_decide")],
    ids=["searched", "planned", "planned-too"],
)
def test_a_table_that_comes_back_after_it_was_searched_may_prove_now_what_had_no_proof(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    snapshot: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    only: bool,
    module: ModuleType,
    step: str,
) -> None:
    """Whether the run cleans that table too or not, and also where it has only just searched it, nothing is done to any
    table; the next run heals by what came back. One that went meanwhile, and one that came, stop nothing.
    """
    table, other, went = scene.table(), scene.table(), scene.table()
    start, commit = scene.committed(other)
    name = snapshot(other)
    omid.truncate(other)
    scene.cell(table, start)
    gone = scene.orphan(table, row=b"gone")
    omid.advance_watermark()
    done = getattr(module, step)
    cleanup = ("orphan_cleanup", "--table", table, *(() if only else ("--table", other)), "--execute")

    def meanwhile(happens: Callable[[], object]) -> Outcome:
        def found(*arguments: Any) -> Any:
            result = done(*arguments)
            happens()
            return result

        with monkeypatch.context() as patched:
            patched.setattr(module, step, found)
            return job(*cleanup)

    red = meanwhile(lambda: omid.restore(name))
    assert scene.has(table, start), "what proves it has come back"
    assert (red.code, start in omid.commit_table(), scene.has(table, gone, row=b"gone")) == (1, False, True)
    assert f"{other} was restored, made anew, or disabled and enabled" in red.problems
    green = meanwhile(lambda: (omid.drop(went), scene.table()))
    assert (green.code, scene.healed(table, start)) == (0, commit), green.problems
    assert not scene.has(table, gone, row=b"gone")


def test_a_journal_that_is_gone_stops_cleaning_and_pruning(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path]
) -> None:
    """It is not taken for an empty one, nor made anew by a decision; under its right name again all goes on."""
    table = scene.table()
    scene.crashed_after_commit(table)
    omid.advance_watermark()
    for outcome in clean_and_prune(job, table):
        assert outcome.code == 0, outcome.problems
    orphan, elsewhere = scene.orphan(table, row=b"other"), "ANOTHER_JOURNAL"
    omid.advance_watermark()
    renamed = configure(state={"journal_table": elsewhere})
    for outcome in clean_and_prune(job, table, config=renamed):
        assert outcome.code == 1
        assert f"the journal {elsewhere} is gone" in outcome.problems
    refused = decide(renamed, str(orphan), "--aborted")
    assert elsewhere not in omid.tables()
    assert f"the journal {elsewhere} is gone" in str(refused.exception)
    for outcome in clean_and_prune(job, table):
        assert outcome.code == 0, outcome.problems


def decided(
    job: Job, scene: Scene, table: str, said: Callable[..., str], start: int, commit: int, config: Path | None = None
) -> None:
    """The cell that came back without its proof is left alone until somebody says when it committed, and is healed
    then.
    """
    outcome = job("orphan_cleanup", "--table", table, "--full", "--execute", config=config)
    assert scene.has(table, start, row=b"healed"), "a committed cell is deleted"
    assert (outcome.code, "lowtide resolve" in outcome.problems) == (1, True), outcome.problems
    said("resolve", str(start), "--committed", str(commit))
    outcome = job("orphan_cleanup", "--table", table, "--execute", config=config)
    assert (outcome.code, scene.healed(table, start, row=b"healed")) == (0, commit), outcome.problems
    assert job("commit_table_pruning", "--grace", "0s", "--execute", config=config).code == 0


@pytest.mark.turns(3)
@pytest.mark.parametrize("way", ["truncated", "restored", "kept for a second"])
def test_a_journal_that_lost_rows_is_not_gone_by_until_somebody_says_so(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    journal: str,
    snapshot: Callable[[str], str],
    said: Callable[..., str],
    as_of: Callable[[str], set[bytes]],
    way: str,
) -> None:
    """Truncated, restored from an HBase snapshot of before, or with a TTL: what it has no more is not taken for never
    there. Every job that decides stops, reads at a read point do, and all say what is to be done; it leads to green,
    and no committed cell is lost.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table, row=b"healed")
    omid.advance_watermark()
    name, before = snapshot(table), snapshot(journal)
    for outcome in clean_and_prune(job, table):
        assert outcome.code == 0, outcome.problems
    assert start not in omid.commit_table()
    omid.restore(name)
    if way == "truncated":
        omid.truncate(journal)
    elif way == "restored":
        omid.restore(before)
    else:
        omid.set(journal, families={"TTL": "1"})
        time.sleep(2)
    for compacted in (ENTRIES, journal):
        omid.flush(compacted)
        omid.compact(compacted, major=True)
    outcome = job("orphan_cleanup", "--table", table, "--full", "--execute")
    assert scene.has(table, start, row=b"healed"), "its proof is gone, and it is deleted"
    assert (outcome.code, "lowtide journal lost" in outcome.problems) == (1, True), outcome.problems
    if way == "kept for a second":
        assert f"alter '{journal}', {{NAME => 'j', TTL => 'FOREVER'}}" in outcome.problems
        assert "TTL" in said("journal", "lost"), "as long as it goes on losing rows"
        omid.set(journal, families=FOREVER)
    with pytest.raises(Exception, match=f"at {start} committed, for the journal {journal} may have lost its row"):
        as_of(table)
    for name, *options in (("orphan_cleanup",), ("commit_table_pruning", "--grace", "0s"), ("journal_replay",)):
        since = ("--from", "2020-01-01T00:00:00Z") if name == "journal_replay" else ()
        refused = job(name, *options, *since, "--execute")
        assert (refused.code, "lowtide journal lost" in refused.problems) == (1, True), f"{name}: {refused.problems}"
    assert "is not whole" in said("journal", "whole")
    assert "Horizon: " in said("journal", "lost")
    with pytest.raises(Exception, match=f"at {start} committed, for the journal {journal} has let go of its time"):
        as_of(table)
    decided(job, scene, table, said, start, commit)
    assert as_of(table) == {b"healed"}


def test_what_a_promoted_cluster_lacks_is_left_to_a_person(
    job: Job, scene: Scene, omid: OmidClient, journal: str, said: Callable[..., str]
) -> None:
    """It has a committed cell, of after all that was pruned, and its commit entry's delete, which the client sent when
    the shadow cell was written that never came. The journal never had its proof, so that more than what was pruned is
    said to be lost.
    """
    table = scene.table()
    omid.advance_watermark()
    for outcome in clean_and_prune(job, table):
        assert outcome.code == 0, outcome.problems
    start, commit = scene.crashed_after_commit(table, row=b"healed")
    omid.delete_commit_entry(start)
    for compacted in (ENTRIES, journal):
        omid.flush(compacted)
        omid.compact(compacted, major=True)
    omid.advance_watermark()
    omid.disable(table)  # of the other cluster no fact speaks
    omid.enable(table)
    assert f"Horizon: {omid.watermark()}." in " ".join(said("journal", "lost", "--promoted").split())
    decided(job, scene, table, said, start, commit)


def test_a_journal_that_loses_rows_while_a_run_reads_it_is_not_gone_by(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    journal: str,
    snapshot: Callable[[str], str],
    said: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is truncated after the run saw that it was whole, before the run has read it: the run stops before its first
    mark.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table, row=b"healed")
    omid.advance_watermark()
    name = snapshot(table)
    for outcome in clean_and_prune(job, table):
        assert outcome.code == 0, outcome.problems
    omid.restore(name)
    omid.flush(ENTRIES)
    omid.compact(ENTRIES, major=True)
    hidden = proofs._hidden

    def truncated(*arguments: Any) -> Any:
        omid.truncate(journal)
        return hidden(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(proofs, "_hidden", truncated)
        red = job("orphan_cleanup", "--table", table, "--full", "--execute")
    assert scene.has(table, start, row=b"healed"), "what was lost meanwhile is taken for never there"
    assert (red.code, "lowtide journal lost" in red.problems) == (1, True), red.problems
    said("journal", "lost")
    decided(job, scene, table, said, start, commit)


def test_a_journal_that_was_disabled_is_whole_by_somebodys_word(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    journal: str,
    configure: Callable[..., Path],
    state: StateStore,
    snapshot: Callable[[str], str],
    said: Callable[..., str],
) -> None:
    """HBase cannot tell a table that was only disabled and enabled from one that was restored. Its proofs go on proving
    then, and nothing is let go of.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table, row=b"healed")
    omid.advance_watermark()
    name = snapshot(table)
    for outcome in clean_and_prune(job, table):
        assert outcome.code == 0, outcome.problems
    before = state.journal()
    with connect(load(configure()).hbase.thrift) as gateway:
        gateway.disable_table(journal)
        disabled = job("orphan_cleanup", "--table", table, "--full", "--execute")
        gateway.enable_table(journal)
    assert (disabled.code, f"enable '{journal}'" in disabled.problems) == (1, True), disabled.problems
    omid.restore(name)
    outcome = job("orphan_cleanup", "--table", table, "--execute")
    assert (outcome.code, "lowtide journal whole" in outcome.problems) == (1, True), outcome.problems
    assert "is gone by again" in said("journal", "whole")
    assert "Nothing speaks against" in said("journal", "whole")
    assert state.journal().horizon == before.horizon
    for outcome in clean_and_prune(job, table):
        assert outcome.code == 0, outcome.problems
    assert scene.healed(table, start, row=b"healed") == commit


def test_a_commit_table_that_may_have_lost_entries_is_not_gone_by_until_somebody_says_so(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    snapshot: Callable[[str], str],
    said: Callable[..., str],
    spark: SparkSession,
    configure: Callable[..., Path],
) -> None:
    """Restored from an HBase snapshot of before a commit, and all that shows is that it is another life of the table:
    the oracle has raised its low watermark above all. Every job that decides stops before it reads anything else, and
    nothing is read at a read point, until a person says that no entry is missing, or that some are and all is to be
    cleaned again.
    """

    def shown() -> list[bytes]:
        read = spark.read.format("lowtide").options(**read_options(load(configure()), table))
        return [bytes(r.value) for r in read.option("table", table).option("asOf", str(point)).load().collect()]

    assert job("orphan_cleanup", "--execute", "--table", scene.table()).code == 0
    before = snapshot(ENTRIES)
    table = scene.table()
    start, commit = scene.crashed_after_commit(table)
    point = omid.advance_watermark()
    assert shown() == [b"v"]
    omid.restore(before)
    omid.advance_watermark()
    assert start not in omid.commit_table()
    with pytest.raises(Exception, match=f"the commit table {ENTRIES} was disabled and enabled"):
        shown()
    cleanup = ("orphan_cleanup", "--table", table)
    for name, *options in ((*cleanup, "--execute"), cleanup, ("commit_table_pruning", "--grace", "0s", "--execute")):
        refused = job(name, *options)
        assert scene.has(table, start), "its proof is gone, and it is deleted"
        assert (refused.code, f"the commit table {ENTRIES} was" in refused.problems) == (1, True), refused.problems
        assert "lowtide commit-table whole" in refused.problems
        assert "lowtide state reset --same-oracle" in refused.problems
    omid.add_commit_entry(start, commit)  # as from another backup
    assert "is gone by again" in said("commit-table", "whole")
    assert "Nothing speaks against" in said("commit-table", "whole")
    assert shown() == [b"v"]
    assert job(*cleanup, "--execute").code == 0
    assert scene.healed(table, start) == commit


def test_a_commit_table_that_came_back_is_told_from_an_oracle_that_was_made_anew(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    snapshot: Callable[[str], str],
    configure: Callable[..., Path],
) -> None:
    """Its low watermark is that of then, until the oracle starts. Nobody is told to set the oracle beyond anything, nor
    that the journal is another life's: the reset waits for the start. That it was back is remembered all the same, for
    the oracle may have forgotten its timestamps too.
    """
    before = snapshot(ENTRIES)
    table = scene.table()
    orphan = scene.orphan(table)
    omid.advance_watermark()
    assert job("watermark_collection", "--execute").code == 0
    omid.restore(before)
    refused = job("orphan_cleanup", "--table", table, "--execute")
    assert (refused.code, f"the commit table {ENTRIES} was" in refused.problems) == (1, True), refused.problems
    assert "start the oracle again, then lowtide state reset --same-oracle" in refused.problems
    recorded = state.recorded_low_watermark()
    assert recorded is not None
    assert recorded.back is not None, "that it went back is forgotten"
    reset = ["state", "reset", "--same-oracle", "--yes", "--config", str(configure())]
    told = str(CliRunner().invoke(app, reset).exception)
    assert ("Start the oracle again, then reset" in told, "let it begin" in told) == (True, False), told
    omid.advance_watermark()
    assert CliRunner().invoke(app, reset).exit_code == 0
    done = job("orphan_cleanup", "--table", table, "--execute")
    assert (done.code, scene.has(table, orphan)) == (0, False), done.problems


def test_a_ttl_that_the_journal_had_is_not_forgotten_when_it_is_mended(
    job: Job, scene: Scene, omid: OmidClient, journal: str, configure: Callable[..., Path], said: Callable[..., str]
) -> None:
    """What it cost nobody knows but who set it. An alter alone is no other life of the table, so that Lowtide's own are
    not taken for one.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table)
    omid.advance_watermark()
    with connect(load(configure()).hbase.thrift) as gateway:
        before = table_state(gateway, journal)
        omid.set(journal, families={"TTL": "2592000"})
        refused = job("orphan_cleanup", "--table", table, "--execute")
        assert (refused.code, "keeps a row for 30d only" in refused.problems) == (1, True), refused.problems
        omid.set(journal, families=FOREVER)
        assert table_state(gateway, journal) == before
    refused = job("orphan_cleanup", "--table", table, "--execute")
    assert (refused.code, "lowtide journal whole" in refused.problems) == (1, True), refused.problems
    assert "is gone by again" in said("journal", "whole")
    for outcome in clean_and_prune(job, table):
        assert outcome.code == 0, outcome.problems
    assert scene.healed(table, start) == commit


def test_what_the_journal_let_go_of_is_known_without_the_state_table(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    configure: Callable[..., Path],
    said: Callable[..., str],
    as_of: Callable[[str], set[bytes]],
) -> None:
    """The journal was swept, old bytes are loaded, the state table is dropped: the journal itself says up to where
    absence proves nothing.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table, row=b"healed")
    omid.advance_watermark()
    short = configure(state={"journal_keep": "0s"}, defaults={"full_pass_every": "0s", "budget": {"share": 1.0}})
    for outcome in clean_and_prune(job, table, config=short):
        assert outcome.code == 0, outcome.problems
    assert job("commit_table_pruning", "--grace", "0s", "--execute", config=short).code == 0
    load_anew(omid, scene, table, {b"healed": start})
    omid.drop(STATE)
    assert job("watermark_collection", "--execute").code == 0  # makes it anew
    for compacted in (ENTRIES, JOURNAL):
        omid.flush(compacted)
        omid.compact(compacted, major=True)
    with pytest.raises(Exception, match=f"at {start} committed, for the journal {JOURNAL} has let go of its time"):
        as_of(table)
    decided(job, scene, table, said, start, commit, short)
    assert as_of(table) == {b"healed"}


def test_records_that_vanish_by_themselves_are_refused(job: Job, scene: Scene, omid: OmidClient) -> None:
    """With a TTL on the state table marks, holds and what is known of the oracle would go; every job says so, and how
    to mend it.
    """
    table = scene.table()
    assert job("orphan_cleanup", "--table", table, "--execute").code == 0
    orphan = scene.orphan(table)
    omid.advance_watermark()
    omid.set(STATE, families={"TTL": "2592000"})
    told = f"alter '{STATE}', {{NAME => 's', TTL => 'FOREVER'}}"
    try:
        for name in ("orphan_cleanup", "watermark_collection", "commit_table_pruning", "history_gc"):
            refused = job(name, "--execute")
            assert (refused.code, told in refused.problems) == (1, True), name
    finally:
        omid.set(STATE, families=FOREVER)
    assert scene.has(table, orphan)
    assert job("orphan_cleanup", "--table", table, "--execute").code == 0


def test_a_commit_table_that_loses_entries_by_itself_is_not_gone_by(
    job: Job, scene: Scene, omid: OmidClient, said: Callable[..., str]
) -> None:
    """With a TTL on it, every job that decides says so, and how to mend it; and when it is mended, that somebody has to
    say whether entries went meanwhile. (This TTL is longer than any entry is old, so that none goes.)
    """
    table = scene.table()
    assert job("orphan_cleanup", "--table", table, "--execute").code == 0
    start, commit = scene.crashed_after_commit(table)
    omid.advance_watermark()
    omid.set(ENTRIES, families={"TTL": str(2**31 - 2)})
    told = f"alter '{ENTRIES}', {{NAME => 'F', TTL => 'FOREVER'}}, {{NAME => 'LWF', TTL => 'FOREVER'}}"
    try:
        for name in ("orphan_cleanup", "watermark_collection", "commit_table_pruning", "history_gc"):
            refused = job(name, "--execute")
            assert (refused.code, told in refused.problems) == (1, True), name
        assert told in said("commit-table", "whole")
    finally:
        omid.set(ENTRIES, families=FOREVER)
    doubted = job("orphan_cleanup", "--table", table, "--execute")
    assert (doubted.code, "lowtide commit-table whole" in doubted.problems) == (1, True), doubted.problems
    assert "is gone by again" in said("commit-table", "whole")
    assert job("orphan_cleanup", "--table", table, "--execute").code == 0
    assert scene.healed(table, start) == commit


def test_what_is_forgotten_is_read_from_0(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path]
) -> None:
    """A bulk load puts old cells under a table whose records say that it is clean; by hand they are voided. An unknown
    table is named.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table)
    omid.advance_watermark()
    for outcome in clean_and_prune(job, table):
        assert outcome.code == 0, outcome.problems
    scene.cell(table, start, row=b"loaded")
    said = CliRunner().invoke(app, ["forget", table, "--yes", "--config", str(configure())])
    assert said.exit_code == 0, said.output
    assert "1 key ranges" in said.output
    outcome = job("orphan_cleanup", "--table", table, "--execute")
    assert outcome.code == 0, outcome.problems
    assert outcome.table(table)["intervals"][0][0] == 0
    assert scene.healed(table, start, row=b"loaded") == commit
    unknown = CliRunner().invoke(app, ["forget", "no_such_table", "--yes", "--config", str(configure())])
    assert "nothing is recorded of no_such_table" in str(unknown.exception)
