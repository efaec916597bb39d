"""The dead man's switch of the kill tests: it knows every way to change the store, and a dead run changes nothing."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import deadman
import happybase  # noqa: F401, it makes the gateway's module
import pytest
from conftest import Outcome
from deadman import Cut, Die, Effect, Killed, Moment
from lowtide_spark.frames.computed import frozen, frozen_with
from lowtide_spark.frames.store import Store
from pyspark.sql import DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from scene import Scene

from lowtide.config import Config, load
from lowtide.history import holding
from lowtide.lab.workload import OmidClient
from lowtide.store import direct
from lowtide.store.state import StateStore, opened

ROOT = Path(__file__).resolve().parents[2]
SOURCES = "\n".join(file.read_text() for file in sorted((ROOT / "spark_apps").rglob("*.py")))


# -- the list of effects


def test_every_call_of_the_gateway_is_an_effect_or_a_read() -> None:
    """Thrift's own list of its methods: each is in exactly one of the two lists."""
    from Hbase_thrift import Hbase

    calls = {*Hbase.thrift_services, *direct.BEYOND}
    assert calls == deadman.GATEWAY_EFFECTS | deadman.GATEWAY_READS
    assert not deadman.GATEWAY_EFFECTS & deadman.GATEWAY_READS


def test_every_way_from_python_to_java_is_an_effect_or_a_read(spark: SparkSession) -> None:
    """The classes that the jobs call, their public static methods, the methods of file systems and writers: no list
    lacks one.
    """
    called = re.findall(r"\bjvm(?:\(run\))?\.((?:\w+\.)+\w+)", SOURCES.replace("_jvm", "jvm"))
    # A path is a name, rights are a value, and the other reads a stream to its end. The connector's classes are asked
    # for in one place.
    assert {n for n in called if not n.startswith("java.")} == {
        "org.apache.hadoop.fs.Path",
        "org.apache.hadoop.fs.permission.FsPermission",
        "org.apache.commons.io.IOUtils.toString",
        "lowtide.connector",
        # Which version the jar is of, and whether there is one.
        "lowtide.connector.Contract",
        "lowtide.connector.LowtideSource",
        # Looked at before there is a session; it tells who is logged in.
        "lowtide.connector.Logins",
        # Names of tables become a list by it.
        "com.fasterxml.jackson.databind.ObjectMapper",
        # A column's expression is made of these.
        "org.apache.spark.sql",
        "scala.Option.empty",
    }
    assert called.count("lowtide.connector") == 1
    ours = set(re.findall(r"\b_java\(\)\.(\w+)", SOURCES))
    assert ours == set(deadman.JAVA_EFFECTS)
    assert SOURCES.count("IOUtils.") == SOURCES.count("IOUtils.toString(")
    for name in ours:
        owner = getattr(spark._jvm.lowtide.connector, name)  # type: ignore[union-attr]
        public = {m.getName() for m in owner._java_lang_class.getDeclaredMethods() if _is_public_static(spark, m)}
        assert public == deadman.JAVA_EFFECTS[name] | deadman.JAVA_READS[name], name
        assert not deadman.JAVA_EFFECTS[name] & deadman.JAVA_READS[name]
    used = set(re.findall(r"\bfiles\.(\w+)\(", SOURCES))
    assert used <= deadman.FILE_EFFECTS | deadman.FILE_READS, used
    assert {n for n in dir(DataFrameWriter) if not n.startswith("_")} == (
        deadman.WRITER_EFFECTS | deadman.WRITER_SETTINGS
    )
    other_ways = (
        r"\.writeTo\(|\.writeStream\b|\.foreach(Partition)?\(|saveAs\w+File"
        r"|\bsubprocess\b|\bos\.(remove|unlink|rename)|\bshutil\b"
    )
    assert re.findall(other_ways, SOURCES) == []


def _is_public_static(spark: SparkSession, method: Any) -> bool:
    modifier = spark._jvm.java.lang.reflect.Modifier  # type: ignore[union-attr]
    return bool(modifier.isPublic(method.getModifiers()) and modifier.isStatic(method.getModifiers()))


# -- what it does with a run


def test_an_effect_that_raises_is_told_of() -> None:
    """It may have taken place all the same, so whoever watches is to look; its error goes on to the run as it was, and
    nobody dies of what the watch says then.
    """
    seen: list[tuple[int, Moment]] = []

    def watch(effect: Effect, moment: Moment) -> Die | None:
        seen.append((effect.number, moment))
        return Die() if moment is Moment.FAILED else None

    def raises() -> None:
        raise ConnectionError("no answer")

    def work() -> str:
        with pytest.raises(ConnectionError, match="no answer"):
            deadman._through("rows", "work", "a row", raises)
        return deadman._through("rows", "work", "a row", lambda: "done")

    life = deadman.run(work, watch)
    assert (life.result, life.killed) == ("done", False)
    assert seen == [(1, Moment.BEFORE), (1, Moment.FAILED), (2, Moment.BEFORE), (2, Moment.AFTER)]


def test_after_the_cut_nothing_of_the_run_takes_effect(
    scene: Scene, state: StateStore, configure: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what stands in ``finally``, nor the renewals of a hold that the run took; the hold itself is left as it
    was.
    """
    monkeypatch.setattr(holding, "RENEWED_FOR", timedelta(seconds=3))
    config, table = load(configure()), scene.table()
    state.create()
    reached: list[str] = []

    def work() -> None:
        with holding.hold(config, table, reason="a run"):
            time.sleep(1.5)  # it is renewed once
            try:
                _publish(config, "first")
            finally:
                reached.append("finally")
                _publish(config, "last")
                reached.append("beyond")

    dead = deadman.run(work, _at("bounds.put_watermarks"))
    assert (dead.killed, reached, set(state.watermarks()) & {"first", "last"}) == (True, ["finally"], set())
    changes = [
        step for step in dead.steps() if step != "rows.passing_row"
    ]  # which writes a row of its own, and removes it
    assert changes == ["history.add_hold", "history.change_hold", "bounds.put_watermarks"]
    (held,) = state.holds(table)
    time.sleep(2.5)
    assert state.holds(table) == [held], "neither renewed nor released"
    state.drop_hold(held)
    reached.clear()
    whole = deadman.run(work)
    assert (whole.killed, reached, state.holds(table)) == (False, ["finally", "beyond"], [])
    assert {"first", "last"} <= set(state.watermarks())
    assert whole.steps().count("bounds.put_watermarks") == 2


def _publish(config: Config, name: str) -> None:
    """A write of a run that means nothing to any job."""
    with opened(config) as state:
        state.put_watermarks(name, {})


def _at(step: str) -> deadman.Watch:
    return lambda effect, _: Die() if effect.step == step else None


@pytest.fixture(autouse=True)
def unpublished(state: StateStore) -> Iterator[None]:
    """A test leaves none of its writes behind."""
    yield
    state.drop_watermarks([name for name in state.watermarks() if name not in ("first", "last", "inner")])


def test_a_write_is_applied_in_part(connector: Store, scene: Scene, omid: OmidClient, spark: SparkSession) -> None:
    """So many of its rows are there as its share says, and which ones the seed says; then the run is dead."""
    table = scene.table()

    def after(name: str, cut: Cut) -> list[int]:
        mutations = spark.sql(
            f"SELECT 'put' AS op, 'r' AS region, X'{name.encode().hex()}' AS row, X'61' AS family, X'71' AS qualifier, "
            "id AS timestamp, X'76' AS value FROM range(50, 60)"
        )
        life = deadman.run(lambda: connector.write(mutations, table), cut)
        there = sorted(timestamp for row, _, _, timestamp in scene.data(table) if row == name.encode())
        assert (life.killed, life.result) == (True, None)
        assert life.applied == (None if cut.moment is Moment.AFTER else (len(there), 10))
        return there

    first = after("a", Cut(1, Moment.PART, 0.3, 1))
    assert len(first) == 3
    assert after("b", Cut(1, Moment.PART, 0.3, 1)) == first != after("c", Cut(1, Moment.PART, 0.3, 2))
    assert len(after("d", Cut(1, Moment.PART, 0.0, 1))) == 1, "something"
    assert len(after("e", Cut(1, Moment.PART, 1.0, 1))) == 9, "not all"
    assert len(after("f", Cut(1, Moment.AFTER))) == 10


def test_what_a_watch_does_is_nobodys_effect(state: StateStore, configure: Callable[..., Path]) -> None:
    """It may write, and run another life, in the middle of a run: that counts for itself, and dies by itself."""
    config = load(configure())
    state.create()
    seen: list[tuple[str, Moment]] = []
    inner: list[deadman.Life[None]] = []

    def watch(effect: Effect, moment: Moment) -> Die | None:
        seen.append((effect.step, moment))
        if moment is Moment.BEFORE:
            _publish(config, "last")
            inner.append(deadman.run(lambda: _publish(config, "inner"), Cut(1)))
        return None

    outer = deadman.run(lambda: _publish(config, "first"), watch)
    assert (outer.killed, len(outer.effects), [life.killed for life in inner]) == (False, 1, [True])
    assert seen == [("bounds.put_watermarks", Moment.BEFORE), ("bounds.put_watermarks", Moment.AFTER)]
    assert {"first", "last", "inner"} & set(state.watermarks()) == {"first", "last"}
    with pytest.raises(Killed, match=r"bounds\.put_watermarks"):
        raise Killed(outer)


def test_what_is_worked_out_once_is_told_when_it_is(spark: SparkSession) -> None:
    """By a seam of its own; where a read works it out, by that read."""
    met: list[tuple[str, str, Moment]] = []

    def watch(effect: Effect, moment: Moment) -> None:
        met.append((effect.seam, effect.name, moment))

    few = spark.range(3)
    life = deadman.run(lambda: (frozen(few), frozen_with(few, (), F.count("*"))), watch, reads=True)
    assert not life.effects, "it changes nothing"
    freeze, read = ("freeze", "localCheckpoint"), ("read", "collectToPython")
    assert met == [(*what, moment) for what in (freeze, read) for moment in (Moment.BEFORE, Moment.AFTER)]


def test_the_cuts_of_a_run() -> None:
    """All: before each effect, in part where that can be, after the last. Few: one before an effect of each seam, those
    wanted first, one in part of each kind.
    """
    effects = [
        Effect(1, "gateway", "checkAndPut", "", "facts.begin", False),
        Effect(2, "connector", "write", "", "acting.act", True),
        Effect(3, "files", "parquet", "", "sideline.put_aside", True),
        Effect(4, "connector", "write", "", "acting.act", True),
        Effect(5, "gateway", "checkAndPut", "", "facts.record", False),
    ]
    every = deadman.cuts(effects, random.Random(1), every=True)
    told = [(cut.number, cut.moment) for cut in every]
    before, part = Moment.BEFORE, Moment.PART
    assert told == [*((n, before) for n in range(1, 6)), (2, part), (3, part), (4, part), (5, Moment.AFTER)]
    for seed in range(20):
        few = deadman.cuts(effects, random.Random(seed), every=False)
        assert {effects[c.number - 1].seam for c in few if c.moment is before} == {"gateway", "connector", "files"}
        assert {effects[c.number - 1].name for c in few if c.moment is part} == {"write", "parquet"}
        assert few[-1] == Cut(5, Moment.AFTER)
        assert len(few) == 6
        told = [
            cut.number
            for cut in deadman.cuts(effects, random.Random(seed), every=False, always=[effects[4], effects[0]])
        ]
        assert told[:2] == [5, 1]
        assert len(told) == 7, "none of the gateway's others"
    assert sorted(c.number for c in deadman.cuts(effects, random.Random(1), every=True, always=[effects[2]])) == sorted(
        cut.number for cut in every
    )


def test_a_job_is_caught_at_every_seam(
    job: Callable[..., Outcome], scene: Scene, configure: Callable[..., Path], omid: OmidClient
) -> None:
    """A cleanup that reads an HBase snapshot and puts aside: what it does is told step by step."""
    table = scene.table()
    scene.orphan(table)
    scene.crashed_after_commit(table, qualifier=b"c")
    omid.advance_watermark()
    config = configure(defaults={"read": "snapshot"})
    life = deadman.run(lambda: job("orphan_cleanup", "--table", table, "--execute", config=config))
    assert life.result is not None
    assert life.result.code == 0, life.result.problems
    steps = [f"{effect.seam} {effect.name} {effect.step}" for effect in life.effects]
    expected = [
        "files create audit_log._enter",
        "gateway checkAndPut oracle.record_low_watermark",
        "gateway checkAndPut facts.begin_all",
        "hbase scratchDir master.snapshot",
        "hbase createSnapshot master.snapshot",
        "connector write marks.put",
        "files mkdirs sideline._own_folder",
        "files setPermission sideline._own_folder",
        "files parquet sideline.put_aside",
        "files rename sideline._moved",
        "files create file_list.write",
        "files write file_list.write",
        "files close file_list.write",
        "files rename file_list.write",
        "connector write acting._act",
        "gateway checkAndPut facts.record_all",
        "hbase dropSnapshot master.snapshot",
        "hbase dropScratchDir master.snapshot",
        "files create audit_log._enter",
        "gateway mutateRows runs.add_run",
    ]
    done = iter(steps)
    assert [step for step in expected if step not in done] == [], steps  # each after the one before it
    assert len(life.named("acting._act")) == 2, "the heals and the deletes"
