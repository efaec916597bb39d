"""Servers that outlive the program that started them: which process is whose, and what ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lowtide.lab.servers import Part, Process, Servers, last_words, spawn, start_time
from lowtide.lab.waiting import reached


@pytest.fixture
def servers(tmp_path: Path) -> Servers:
    """Of a home of their own."""
    made = Servers(tmp_path)
    made.folder("run")
    return made


def answers(_: str) -> bool:
    return True


@pytest.mark.parametrize("orphaned", [False, True])
def test_ending_a_process_ends_what_it_started(orphaned: bool) -> None:
    """Grandchildren too, in process groups of their own as Airflow's tasks are, and when their parents are gone."""
    grandchild = "import os, time; os.setpgid(0, 0); print(os.getpid(), flush=True); time.sleep(60)"
    child = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {grandchild!r}]); time.sleep(60)"
    leader = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert leader.stdout
    pid = int(leader.stdout.readline())
    process = Process(leader.pid, start_time(leader.pid) or "")
    if orphaned:
        process.signal(signal.SIGKILL)
        leader.wait()
    process.end(patience=5)
    assert not process.alive
    assert start_time(pid) is None


def test_a_server_is_found_again_by_its_home(servers: Servers) -> None:
    """What one object started, another asks for its state and ends; a crash is told from an end in good order."""
    assert servers.part("sleeper", answers) == Part("sleeper", "stopped", None)
    servers.start("sleeper", [sys.executable, "-c", "import os, time; print(os.getcwd(), flush=True); time.sleep(60)"])
    pid = servers.processes()["sleeper"].pid
    again = Servers(servers.home)
    assert again.part("sleeper", answers) == Part("sleeper", "running", pid)
    assert again.part("sleeper", lambda name: name != "sleeper") == Part("sleeper", "not answering", pid)
    output = servers.output("sleeper")
    assert reached(lambda: last_words([output, output.with_suffix(".none")], 1) == str(servers.home), 20, pause=0.05)
    again.kill("sleeper")
    assert servers.part("sleeper", answers) == Part("sleeper", "killed", pid)
    servers.end("sleeper", patience=5)
    assert servers.part("sleeper", answers) == Part("sleeper", "stopped", None)
    assert start_time(pid) is None


def test_the_ports_on_which_a_server_listens_are_found(servers: Servers) -> None:
    """Those that it chose for itself; none of a server that is not started, or is gone."""
    assert servers.ports("listener") == []
    listens = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)"
    servers.start("listener", [sys.executable, "-c", f"{listens}; time.sleep(60)"])
    assert reached(lambda: servers.ports("listener") != [], 20, pause=0.05)
    output = servers.output("listener")
    assert reached(lambda: last_words([output], 1) != "", 20, pause=0.05)
    assert [str(port) for port in servers.ports("listener")] == [last_words([output], 1)]
    servers.kill("listener")
    assert servers.ports("listener") == []
    servers.end("listener", patience=5)


def test_a_stranger_with_the_id_of_a_server_is_left_alone(servers: Servers) -> None:
    """Process ids come round again: one that was started at another time is another's, with all that it started."""
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    try:
        servers.record("server", Process(stranger.pid, "long ago"))
        assert servers.part("server", answers).state == "killed"
        servers.end("server", patience=1)
        assert servers.processes() == {}
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.skipif(not psutil.LINUX, reason="elsewhere psutil asks the kernel, not the boot and its clock")
def test_a_server_is_the_same_after_the_clock_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server whose start moves with the clock would be taken for dead, and never be ended."""
    before = start_time(os.getpid())
    moved = psutil.boot_time() + 3600
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: moved)
    assert psutil.boot_time() == moved
    assert start_time(os.getpid()) == before


def test_who_does_not_end_when_asked_is_made_to(tmp_path: Path) -> None:
    """After the patience, and no sooner."""
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    )
    process = spawn([sys.executable, "-c", code], tmp_path / "out", tmp_path)
    assert reached(lambda: "deaf" in (tmp_path / "out").read_text(), 20, pause=0.05)
    began = time.monotonic()
    process.end(patience=0.5)
    assert time.monotonic() - began >= 0.5
    assert not process.alive


def test_waiting_looks_at_once_and_gives_up() -> None:
    """A goal that is reached costs no pause; what goes wrong while looking is no reason to look again."""
    looks: list[int] = []
    assert reached(lambda: bool(looks.append(1)) or len(looks) == 3, 20, pause=0.01)
    assert not reached(lambda: False, 0.05, pause=0.01)
    assert reached(lambda: True, 0, pause=60)
    with pytest.raises(ZeroDivisionError):
        reached(lambda: 1 / 0 > 0, 20, pause=60)
