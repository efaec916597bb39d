"""What is refused on YARN: an archive without the connector where it should be, and a driver in the cluster."""

from __future__ import annotations

import subprocess
import tarfile
import time
from collections.abc import Iterator

import pytest
from yarn_kit import Site, tell

from lowtide.config import load
from lowtide.lab.workload import OmidClient
from lowtide.run.submit import command

TABLE = "left_alone"


@pytest.fixture
def orphan(omid: OmidClient) -> Iterator[None]:
    """A table with a cell that a cleanup would delete."""
    omid.create(TABLE, ("a",))
    omid.put(TABLE, b"row", b"a", b"q", omid.begin(), b"never committed")
    omid.advance_watermark()
    yield
    omid.drop(TABLE)


@pytest.mark.usefixtures("orphan")
def test_an_archive_with_a_folder_too_many_is_named(site: Site, omid: OmidClient) -> None:
    """Executors find no class of the connector: one sentence says so and what to do, with the exit code of bad
    configuration, and nothing is done.
    """
    right, wrong = site.folder / "connector.tgz", site.folder / "wrong.tgz"
    unpacked = site.folder / "unpacked"
    with tarfile.open(right) as archive:
        archive.extractall(unpacked, filter="data")
    with tarfile.open(wrong, "w:gz", compresslevel=1) as archive:
        archive.add(unpacked, "connector")
    config = site.configuration({"spark.yarn.dist.archives": f"{wrong}#connector"})
    ended = site.run("orphan_cleanup", "--config", str(config), "--full", "--execute")
    assert ended.code == 2, ended.output
    (problem,) = ended.problems
    tell(problem)
    assert "executors lack the connector (ClassNotFoundException: lowtide.connector." in problem
    assert "lowtide-connector.jar and lib at its root" in problem
    assert [cell.kind for cell in omid.raw(TABLE)] == ["put"]


@pytest.mark.usefixtures("orphan")
def test_a_driver_that_yarn_starts_refuses(site: Site, omid: OmidClient) -> None:
    """Where somebody submits a job's program past ``lowtide run``, in deploy mode cluster: the driver in its container
    says why it does not go on, and nothing is done.
    """
    config = site.configuration({"spark.yarn.maxAppAttempts": "1"})
    submit, *rest = command(load(config), "orphan_cleanup", ["--config", str(config), "--full", "--execute"])
    began = time.monotonic()
    ended = subprocess.run(
        [submit, "--deploy-mode", "cluster", *rest],
        cwd=site.folder,
        env=site.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    tell(f"spark-submit --deploy-mode cluster: exit code {ended.returncode}, {time.monotonic() - began:.0f} s")
    assert ended.returncode == 1, ended.stderr
    application = site.applications("lowtide orphan_cleanup")[-1]
    assert application["finalStatus"] == "FAILED", application
    logs = (site.cluster.config.home / "logs/containers" / application["id"]).glob("container_*/std*")
    said = "".join(log.read_text("utf-8", "replace") for log in logs)
    assert "this driver runs in the cluster: it has spark.submit.deployMode=cluster" in said, said[-3000:]
    assert not site.containers(application["id"]), "it asked for executors"
    assert [cell.kind for cell in omid.raw(TABLE)] == ["put"]
