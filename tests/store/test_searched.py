"""A table is read once where that tells that it proves nothing, and searched for proofs wherever it does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from lowtide_spark.cleaning import orphans, suspects
from lowtide_spark.frames import reading
from lowtide_spark.frames.store import MET, Source, Store, TableRead
from scene import Scene

from lowtide.cleaning.planning import WorkRange
from lowtide.lab.workload import OmidClient
from lowtide.store.state import StateStore
from lowtide.values.keyranges import KeyRange

pytestmark = pytest.mark.usefixtures("swept")
Job = Callable[..., Outcome]


def clean(job: Job, *tables: str, extra: Sequence[str] = (), **options: Any) -> Outcome:
    """Run orphan_cleanup for these tables, acting."""
    named = (part for table in tables for part in ("--table", table))
    return job("orphan_cleanup", *named, "--execute", *extra, **options)


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that were searched for proofs, in that order."""
    found: list[str] = []
    proofs, proofs_of = Store.proofs, Store.proofs_of

    def one(self: Store, read: TableRead, *arguments: Any) -> Any:
        found.append(read.table)
        return proofs(self, read, *arguments)

    def some(self: Store, reads: Sequence[TableRead], *arguments: Any) -> Any:
        found.extend(read.table for read in reads)
        return proofs_of(self, reads, *arguments)

    monkeypatch.setattr(Store, "proofs", one)
    monkeypatch.setattr(Store, "proofs_of", some)
    return found


@pytest.mark.parametrize("source", ["rpc", "snapshot"])
def test_tables_that_were_read_whole_and_have_no_proof_are_not_searched(
    job: Job, scene: Scene, omid: OmidClient, searched: list[str], configure: Callable[..., Path], source: str
) -> None:
    """Their orphans go by what the first read met, over several regions and families; others are searched."""
    table, other, idle = scene.table(("a", "b"), splits=(b"g", b"s")), scene.table(), scene.table()
    places = [(row, family) for row in (b"a", b"m", b"z") for family in (b"a", b"b")]
    orphans = [scene.orphan(table, row=row, family=family) for row, family in places]
    scene.committed(table, row=b"m", family=b"b")
    gone = scene.orphan(other)
    omid.advance_watermark()
    outcome = clean(job, table, other, config=configure(tables={table: {"read": source}}))
    assert outcome.code == 0
    assert outcome.table(table)["read"] == source
    assert outcome.table(table)["counts"]["deleted"] == len(orphans)
    assert not any(scene.has(table, start, row=r, family=f) for start, (r, f) in zip(orphans, places, strict=True))
    assert not scene.has(other, gone)
    assert idle in searched
    assert not {table, other} & set(searched)


@pytest.mark.parametrize("source", ["rpc", "snapshot"])
@pytest.mark.parametrize("together", [1, 50])
def test_only_a_table_that_met_a_proof_is_searched_for_what_it_says(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    searched: list[str],
    configure: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    together: int,
    source: str,
) -> None:
    """A torn transaction, whose commit entry is gone, has its proof in one table of the run: its cell in another is
    healed by it, whether they are read at once or one by one.
    """
    monkeypatch.setattr(suspects, "READ_TOGETHER", together)
    table, other, third = scene.table(), scene.table(("x", "y"), splits=(b"m",)), scene.table()
    start, commit = scene.committed(other, row=b"r", family=b"y")
    scene.cell(table, start)
    scene.cell(other, start, row=b"a", family=b"x")
    gone = scene.orphan(third)
    omid.advance_watermark()
    assert clean(job, table, other, third, config=configure(tables={other: {"read": source}})).code == 0
    assert scene.healed(table, start) == commit
    assert scene.healed(other, start, row=b"a", family=b"x") == commit
    assert not scene.has(third, gone)
    assert other in searched
    assert not {table, third} & set(searched)


def test_a_table_of_which_less_was_read_is_searched(
    job: Job, scene: Scene, omid: OmidClient, searched: list[str]
) -> None:
    """One that was cleaned before is read from its watermark on: what lies below it may prove a cell of another, which
    came back.
    """
    table, other = scene.table(), scene.table()
    start, commit = scene.committed(other)
    omid.advance_watermark()
    assert clean(job, other).code == 0
    scene.cell(table, start)  # as of a table that was brought in: none of it is recorded
    gone = scene.orphan(other)
    omid.advance_watermark()
    searched.clear()
    assert clean(job, table, other).code == 0
    assert scene.healed(table, start) == commit
    assert not scene.has(other, gone)
    assert other in searched
    assert table not in searched


@pytest.mark.parametrize("row", [b"a", b"m", b"z"])
def test_a_table_with_a_region_that_is_not_read_again_is_searched(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, searched: list[str], row: bytes
) -> None:
    """One that was killed has recorded a region, and is started again under its id: what proves a cell of another table
    lies there.
    """
    table, other = scene.table(), scene.table(splits=(b"g", b"s"))
    start, commit = scene.committed(other, row=row)
    omid.advance_watermark()
    assert clean(job, other, extra=("--run-id", "killed", "--full")).code == 0
    mine = state.read(other)
    for fact in mine.facts:
        if not fact.keys.start <= row or (fact.keys.stop and fact.keys.stop <= row):
            state.forget(mine, fact.keys)
    scene.cell(table, start)
    assert clean(job, table, other, extra=("--run-id", "killed", "--full")).code == 0
    assert scene.healed(table, start) == commit
    assert other in searched
    assert table not in searched


def test_a_part_that_gave_up_has_its_table_searched(
    job: Job, scene: Scene, omid: OmidClient, searched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a part of a table has more transactions than are kept, nothing is said of the table."""
    table = scene.table(splits=(b"m",))
    start, commit = scene.committed(table, row=b"z")
    scene.committed(table, row=b"z")
    scene.cell(table, start, row=b"a")
    gone = scene.orphan(table, row=b"b")
    omid.advance_watermark()
    read = reading.Reading._read

    def little(self: Any, view: str, table: str | None = None, **options: str) -> Any:
        return read(self, view, table, **({"mostShadowStarts": "1"} if view == "versions" else {}), **options)

    monkeypatch.setattr(reading.Reading, "_read", little)
    assert clean(job, table).code == 0
    assert scene.healed(table, start, row=b"a") == commit
    assert not scene.has(table, gone, row=b"b")
    assert searched == [table]


def test_every_part_of_a_region_tells(
    job: Job, scene: Scene, omid: OmidClient, searched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large region is read in parts: what the last one met counts as well."""
    table, other = scene.table(), scene.table()
    start, commit = [scene.committed(other, row=b"%03d" % number) for number in range(100)][-1]
    omid.flush(other)
    scene.cell(table, start)
    omid.advance_watermark()
    read, parts = reading.Reading._read, []

    def in_parts(self: Any, view: str, table: str | None = None, **options: str) -> Any:
        if (view, table) != ("versions", other):
            return read(self, view, table, **options)
        found = read(self, view, table, splitBytes="500", **options)
        parts.append(found.rdd.getNumPartitions())
        return found

    monkeypatch.setattr(suspects, "READ_TOGETHER", 1)
    monkeypatch.setattr(reading.Reading, "_read", in_parts)
    assert clean(job, table, other).code == 0
    assert max(parts) > 3
    assert scene.healed(table, start) == commit
    assert searched == [other]


def test_a_table_that_came_back_has_not_said_what_it_holds_now(
    job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that had no proof when it was read is restored before the run acts, and has one: nothing is done, and the
    next run heals by it.
    """
    table, other = scene.table(), scene.table()
    start, commit = scene.committed(other)
    omid.snapshot(other, f"{other}-before")
    omid.truncate(other)
    scene.cell(table, start)
    gone = scene.orphan(table, row=b"gone")
    omid.advance_watermark()
    decide = orphans.find_and_decide

    def and_restore(*arguments: Any) -> Any:
        found = decide(*arguments)
        omid.restore(f"{other}-before")
        return found

    monkeypatch.setattr(orphans, "find_and_decide", and_restore)
    outcome = clean(job, table, other)
    monkeypatch.undo()
    assert scene.has(table, start), "what proves it has come back"
    assert outcome.code == 1
    assert f"{other} was restored, made anew, or disabled and enabled" in outcome.problems
    assert start not in omid.commit_table()
    assert clean(job, table, other).code == 0
    assert scene.healed(table, start) == commit
    assert not scene.has(table, gone, row=b"gone")
    omid.delete_snapshot(f"{other}-before")


def test_what_a_read_leaves_out_it_does_not_tell_of(connector: Store, scene: Scene) -> None:
    """Whose shadow cells a part met is told with its end, of each family; and not of a read that was narrowed."""
    table = scene.table(("a", "b"))
    scene.committed(table, family=b"a")
    everywhere = [WorkRange("r", KeyRange(b"", b""), 0, 2**62)]
    versions = connector.versions(table, everywhere, ["a", "b"], Source(), met=True)
    ends = versions.where("kind = 'end_of_range'").select("family", MET).collect()
    assert sorted(bytes(end.family) for end in ends) == [b"a", b"b"]
    assert all(end[MET] is not None for end in ends)
    assert len({bytes(end[MET]) for end in ends}) == 2
    narrow = versions.where("start_ts > 100").where("kind = 'end_of_range'").select(MET).collect()
    assert [end[MET] for end in narrow] == [None, None]
