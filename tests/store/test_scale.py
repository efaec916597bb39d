"""Thousands of regions in a driver of 1 GB."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from conftest import Outcome
from lowtide_spark.frames.store import Store
from pyspark.sql import SparkSession
from scene import Scene

from lowtide.lab.workload import OmidClient
from lowtide.store.state import StateStore
from lowtide.values.keyranges import KeyRange
from tests.prove import PROVE

REGIONS = 10_000 if PROVE else 2_000


def test_thousands_of_regions_are_planned_read_and_recorded(
    job: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    spark: SparkSession,
    connector: Store,
    state: StateStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A table listed as 2,000 regions (where everything is proved, 10,000; key ranges of a real one) is cleaned by a
    driver with a heap of 1 GB, each range recorded.
    """
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    assert runtime.maxMemory() <= 1 << 30
    table = scene.table()
    orphans = [scene.orphan(table, row=number.to_bytes(2, "big") + b"row") for number in range(0, REGIONS, 1000)]
    omid.advance_watermark()
    edges = [b"", *(number.to_bytes(2, "big") for number in range(1, REGIONS)), b""]
    [real] = connector.regions(table)
    listed = [
        replace(real, name=f"region{number:05d}", keys=KeyRange(edges[number], edges[number + 1]))
        for number in range(REGIONS)
    ]
    monkeypatch.setattr(Store, "regions", lambda _, name: listed if name == table else [])
    outcome = job("orphan_cleanup", "--table", table, "--execute")
    assert outcome.code == 0, outcome.problems
    report = outcome.table(table)
    assert (report["regions"], report["regions_recorded"]) == (REGIONS, REGIONS)
    assert outcome.totals["deleted"] == len(orphans)
    assert scene.data(table) == {}
    assert len(state.read(table).facts) == REGIONS
