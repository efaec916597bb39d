"""One cluster and one store on it for all tests here, and a workload whose clients crashed in it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from secured_site import SecuredSite, booted
from yarn_kit import Site, tell

from lowtide.lab.cluster import Cluster, free_ports_cluster
from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """YARN and HDFS, up and well."""
    cluster = Cluster(free_ports_cluster(tmp_path_factory.mktemp("cluster")))
    try:
        cluster.up(tell)
        yield cluster
    finally:
        cluster.down()


@pytest.fixture(scope="session")
def stack(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A store whose files lie on the cluster's HDFS, with an incremental oracle whose low watermark moves quickly."""
    extra = {"hbase.rootdir": f"{cluster.hdfs}/hbase", "hbase.thrift.server.socket.read.timeout": "900000"}
    config = free_ports_config(
        tmp_path_factory.mktemp("store"), timestamps="incremental", conflict_map_size=64, extra_hbase=extra
    )
    store = Stack(config)
    try:
        store.up(tell)
        yield store
    finally:
        store.down()


@pytest.fixture(scope="session")
def omid(stack: Stack) -> Iterator[OmidClient]:
    """The real Omid client, and HBase's administration."""
    with OmidClient(stack) as client:
        yield client


@pytest.fixture(scope="session")
def site(cluster: Cluster, stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The jobs' way to both, by the documented recipe."""
    site = Site(cluster, stack, tmp_path_factory.mktemp("site"))
    site.make_archives()
    return site


@pytest.fixture(scope="session")
def secured_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredSite]:
    """Another cluster and another store, which ask for logins, the recipe for them, and Lowtide's own tables."""
    with booted(tmp_path_factory.mktemp("secured")) as (cluster, stack):
        site = SecuredSite(cluster, stack, tmp_path_factory.mktemp("secured-site"))
        site.make_archives()
        site.make_own_tables()
        yield site


@pytest.fixture(scope="session")
def secured_omid(secured_site: SecuredSite) -> Iterator[OmidClient]:
    """Omid's client, which logs in by a keytab of its own."""
    with OmidClient(secured_site.stack) as client:
        yield client


@pytest.fixture(autouse=True)
def timed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Say how long each test took."""
    began = time.monotonic()
    tell(f"\n{request.node.name}")
    yield
    tell(f"{request.node.name}: {time.monotonic() - began:.0f} s")
