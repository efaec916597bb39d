"""The demo's workload on a store elsewhere: how its clients are started, and that it fills a store once."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lowtide.lab.demo.elsewhere import app
from lowtide.lab.stack.machine import java
from lowtide.lab.workload import RemoteStore


def test_clients_take_the_stores_configuration_and_a_log_of_their_own(tmp_path: Path):
    """The logging set-up stands before the store's folder, the jars behind it; the log is named for the program."""
    store = RemoteStore(tmp_path / "conf", ("a.jar", "lib/*"), "oracle:24758", tmp_path / "logs")
    command = store.java_command("some.Main", "word", heap="64m", log="client")
    assert command[0] == java()
    assert command[-3:] == [f"{tmp_path}/logs:{tmp_path}/conf:a.jar:lib/*", "some.Main", "word"]
    assert {"-Xmx64m", f"-Dlowtide.log={tmp_path}/logs/client.log"} <= set(command)
    assert (tmp_path / "logs" / "log4j2.properties").exists()


def test_a_store_is_filled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where the record of a finished workload lies, nothing is started."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    config = tmp_path / "lowtide.yaml"
    config.write_text("omid: {oracle: ['oracle:24758']}\n", "utf-8")
    (tmp_path / "history.jsonl").write_text("", "utf-8")
    place = ["--config", str(config), "--home", str(tmp_path), "--conf", str(tmp_path), "--jars", "x.jar"]
    done = CliRunner().invoke(app, [*place, "fill"])
    assert (done.exit_code, done.output) == (0, "The store was filled before.\n")
