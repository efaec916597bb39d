"""What is said between jobs and HBase's servers, and who could hear it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from job_site import Site
from recorder import Recorder
from scene import Scene, staged
from secured_kit import Gateway, booted

from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from tests.chaos.lying import SOCKS_FACTORY, SOCKS_SERVER, THROUGH_SOCKS

pytestmark = pytest.mark.needs("kerberos")

SECRET = b"nobody's business but ours"


@pytest.fixture(params=["authentication", "privacy"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stack]:
    """A secured store of its own, whose servers protect what is said so."""
    with booted(tmp_path / "store", **{"hbase.rpc.protection": request.param}) as store:
        yield store


@pytest.fixture
def scene(store: Stack) -> Iterator[Scene]:
    """Tables of the test, by Omid's client."""
    with OmidClient(store) as omid:
        yield from staged(omid)


def test_who_listens_between_a_job_and_hbase_reads_no_value(store: Stack, scene: Scene, tmp_path: Path) -> None:
    """With privacy; with authentication alone it is there to read: so this can fail. Driver and tasks speak to master
    and region servers through whoever listens, and the run reads, puts aside, deletes and restores the value.
    """
    table = scene.table()
    orphan = scene.orphan(table, value=SECRET)
    scene.omid.advance_watermark()
    recorder = Recorder()
    listening = {**THROUGH_SOCKS, **SOCKS_FACTORY, SOCKS_SERVER: f"127.0.0.1:{recorder.port}"}
    site = Site(Gateway(store, tmp_path), tmp_path, listening)
    config = site.configuration()
    try:
        cleaned = site.run("orphan_cleanup", "--execute", "--run-id", "one", config=config)
        assert (cleaned.code, cleaned.totals["deleted"]) == (0, 1), cleaned.problems
        assert not scene.has(table, orphan)
        restored = site.run("sideline_restore", "--restore", "one", "--execute", config=config)
        assert (restored.code, restored.totals["restored"]) == (0, 1), restored.problems
        assert scene.has(table, orphan)
        heard = recorder.heard
    finally:
        recorder.close()
    assert heard.count(b"HBas") > 2, "connections to HBase's servers"
    private = store.config.extra_hbase["hbase.rpc.protection"] == "privacy"
    assert ((SECRET in heard), (table.encode() in heard)) == (not private, not private)
