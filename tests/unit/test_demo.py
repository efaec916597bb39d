"""What a demo needs before it starts, and what it must never do to a folder."""

from __future__ import annotations

import socket
from datetime import timedelta
from pathlib import Path

import pytest

from lowtide.config import Mode, load
from lowtide.lab.demo import DemoError, DemoSettings
from lowtide.lab.demo.settings import missing, start_afresh
from lowtide.paths import data


@pytest.fixture
def taken():
    """Two ports on which this test listens."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    yield [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()


def test_a_folder_with_other_content_is_refused(tmp_path: Path):
    """A folder that no demo made is neither emptied nor used."""
    precious = tmp_path / "thesis.txt"
    precious.write_text("two years of work")
    with pytest.raises(DemoError, match="--home"):
        start_afresh(DemoSettings(home=tmp_path), lambda _: None)
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]
    assert precious.read_text() == "two years of work"


def test_all_that_is_missing_is_said_at_once(tmp_path: Path, taken: list[int]):
    """Every port that is in use is named, each with the option that changes it."""
    found = "\n".join(missing(DemoSettings(home=tmp_path, thrift_port=taken[0], airflow_port=taken[1])))
    for port, option in zip(taken, ("--thrift-port", "--airflow-port"), strict=True):
        assert f"port {port} is held by another program: end it, or give another one with {option}" in found


def test_nothing_is_made_where_something_is_missing(tmp_path: Path, taken: list[int]):
    """A demo that cannot start leaves no folder behind."""
    home = tmp_path / "demo"
    with pytest.raises(DemoError, match=f"port {taken[0]}"):
        start_afresh(DemoSettings(home=home, tso_port=taken[0]), lambda _: None)
    assert not home.exists()


def test_the_configuration_is_one_that_jobs_accept(tmp_path: Path):
    """The demo's file is loaded by the jobs' own loader: its ports, acting by default, no grace."""
    settings = DemoSettings(home=tmp_path, zookeeper_port=22001, thrift_port=22002, tso_port=22003)
    settings.write_config(settings.stack())
    config = load(settings.config_file)
    assert config.hbase.zookeeper_port == 22001
    assert config.hbase.thrift.port == 22002
    assert config.omid.oracle == ["127.0.0.1:22003"]
    assert config.defaults.mode is Mode.EXECUTE
    assert config.grace == timedelta(0)
    assert config.hbase.client_properties()["hbase.rootdir"] == (tmp_path / "store" / "hbase").as_uri()


def test_paths_are_shown_as_one_types_them():
    """Inside the checkout without its path; and the command that ends a demo names its home where that is not the usual
    one.
    """
    assert DemoSettings.shown(data() / "x") == ".lowtide/x"
    assert DemoSettings.shown(Path("/elsewhere/x")) == "/elsewhere/x"
    assert DemoSettings().end_command == ".venv/bin/lowtide demo --down"
    assert DemoSettings(home=Path("/elsewhere")).end_command == ".venv/bin/lowtide demo --down --home /elsewhere"
