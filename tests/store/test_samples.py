"""What the pages show of the terminal is what it prints.

In the pages a comment stands before each such text: ``<!-- sample: NAME -->``. After a change of what is printed,
``LOWTIDE_WRITE_SAMPLES=1 .venv/bin/python -m pytest tests/store/test_samples.py`` writes the texts anew.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import booted
from job_kit import Outcome, settings_for
from scene import Scene

from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient
from lowtide.run.summary import myself

ROOT = Path(__file__).resolve().parents[2]
LOWTIDE = Path(sys.executable).with_name("lowtide")
WRITE = bool(os.environ.get("LOWTIDE_WRITE_SAMPLES"))
SAMPLE = re.compile(r"<!-- sample: (?P<name>[a-z -]+) -->\n(?P<fence>```[a-z]*\n)(?P<text>.*?\n)```\n", re.DOTALL)
#: What differs from run to run, longest first.
PASSING = (
    (r"\d{4}-\d\d-\d\d", "DAY"),
    (r"\b\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?", "HOUR"),
    (r"\d{8}T\d{6}\.\d+Z", "RUN"),
    (r"\b\d{13,19}\b", "STAMP"),
    (r"\b[0-9a-f]{32}\b", "REGION"),
    (r"\d+(\.\d+)? (ms|s|min|minutes?|seconds?)\b", "TAKEN"),
    (r"\b\d+\.\d+(?=[ ,}\n])", "TAKEN"),
    (r'OMID_COMMIT_TABLE ".*?" F:IT', "MARK"),
    (r"[━─┏┳┓┡╇┩└┴┘]+", "-"),
    (r"[ \n]+", " "),
)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A store of its own, whose oracle has the world's clock, as a reader's has."""
    home = tmp_path_factory.mktemp("store")
    with booted(free_ports_config(home, timestamps="world", conflict_map_size=64)) as store:
        yield store


@pytest.fixture(scope="module")
def omid(stack: Stack) -> Iterator[OmidClient]:
    with OmidClient(stack) as client:
        yield client


@dataclass
class Terminal:
    """What somebody types, and what is printed."""

    config: Path
    shown: list[tuple[str, str]]  # what of this machine is shown as what a reader has
    texts: dict[str, str] = field(default_factory=dict)

    def keep(self, name: str, command: str, printed: str) -> None:
        """Of the command, as typed, its text."""
        for here, there in self.shown:
            printed = printed.replace(here, there)
        printed = re.sub(r"[a-z_]+: \d+ of \d+ parts .*\n", "", printed)  # of a slow machine alone
        lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", printed).strip().splitlines()]
        self.texts[name] = "\n".join((f"$ {command}", *lines)) + "\n"

    def type(self, name: str, *words: str) -> None:
        """A command that needs no Spark."""
        done = subprocess.run((LOWTIDE, *words, "--config", self.config), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self.keep(name, " ".join(("lowtide", *words)), done.stdout)


def samples() -> dict[str, tuple[Path, str]]:
    """Every sample of the pages: its page, and what stands there."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return {m["name"]: (page, m["text"]) for page in pages for m in SAMPLE.finditer(page.read_text("utf-8"))}


def lasting(text: str) -> str:
    """The text without what differs from run to run."""
    for what, name in PASSING:
        text = re.sub(what, name, text)
    return text.strip()


def written(page: Path, name: str, text: str) -> None:
    """Put *text* there instead."""
    there = page.read_text("utf-8")
    page.write_text(SAMPLE.sub(lambda m: m[0].replace(m["text"], text) if m["name"] == name else m[0], there), "utf-8")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where somebody works: with a name so short that no line is broken within it."""
    with tempfile.TemporaryDirectory(prefix="lowtide-") as made:
        yield Path(made)


@pytest.mark.turns(2)
def test_the_pages_show_what_is_printed(
    job: Callable[..., Outcome],
    stack: Stack,
    scene: Scene,
    omid: OmidClient,
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A newcomer's first hour, command by command: survey, dry run, list, run, status, and what became of a row."""
    config = folder / "lowtide.yaml"
    config.write_text(yaml.safe_dump(settings_for(stack, folder, grace="0s", allow_no_grace=True)))
    # Of the same length here, so that the tables which are written stay in line.
    theirs = [
        (str(folder), "/home/ann/maintenance"),
        (myself(), "ann@db1"),
        (json.dumps(getpass.getuser()), '"ann"'),
        (json.dumps(socket.gethostname()), '"db1"'),
    ]
    terminal = Terminal(config, theirs)
    crash_clients(scene, omid)

    def run(name: str, command: str, *words: str, **of_the_command: Any) -> Outcome:
        capfd.readouterr()
        outcome = job(*words, config=config, **of_the_command)
        assert outcome.code == 0, outcome.problems
        terminal.keep(name, command, capfd.readouterr().out)
        return outcome

    cleanup = ("orphan_cleanup", "--table", "orders")
    run("survey", "lowtide survey", "survey")
    run("dry run", "lowtide run orphan_cleanup --table orders", *cleanup)
    run("list", "lowtide run orphan_cleanup --table orders --list", *cleanup, "--list")
    done = run("execute", "lowtide run orphan_cleanup --table orders --execute", *cleanup, "--execute")
    terminal.texts["summary"] = summary(done.summary, terminal.shown)
    monkeypatch.setenv("LOWTIDE_TERMINAL", "110")  # else a table is as wide as it is; the jobs draw bars there
    terminal.type("runs", "runs")
    monkeypatch.delenv("LOWTIDE_TERMINAL")
    job("orphan_cleanup", "--execute", config=config)
    job("watermark_collection", "--execute", config=config)
    monkeypatch.setenv("LOWTIDE_TERMINAL", "110")
    terminal.type("status", "status")
    run("why", "lowtide why orders order-1003", "why", "--table", "orders", "--row=order-1003")

    told = samples()
    assert set(told) == set(terminal.texts)
    for name, text in terminal.texts.items():
        page, there = told[name]
        if WRITE:
            written(page, name, text)
        else:
            assert lasting(there) == lasting(text), f"{page.name}: {name}"


def crash_clients(scene: Scene, omid: OmidClient) -> None:
    """Orders and customers, most of them well; some clients died before their commit, two after it."""
    omid.create("orders", splits=(b"order-1005",))
    omid.create("customers")
    for n in range(1001, 1011):
        scene.committed("orders", row=b"order-%d" % n, qualifier=b"state", value=b"paid")
        scene.committed("customers", row=b"customer-%d" % (n % 17), qualifier=b"name", value=b"Ann")
    for n in (1003, 1004, 1008):
        scene.orphan("orders", row=b"order-%d" % n, qualifier=b"state", value=b"sent")
    for n in (1002, 1009):
        scene.crashed_after_commit("orders", row=b"order-%d" % n, qualifier=b"state", value=b"sent")
    scene.orphan("customers", row=b"customer-3", qualifier=b"name", value=b"Bob")
    omid.advance_watermark()


def summary(content: dict[str, Any], shown: list[tuple[str, str]]) -> str:
    """A summary as JSON, a line for each key of it."""
    text = "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in content.items()) + "\n}\n"
    for here, there in shown:
        text = text.replace(here, there)
    return text
