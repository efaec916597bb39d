"""The mutations of ``tests/mutations.toml``, and a rotating share of them."""

from __future__ import annotations

import hashlib
import random
import re
import subprocess
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.chaos import plan, worlds
from tests.chaos.worlds import WORLDS, World

CONNECTOR_TESTS = "connector/src/test/"
#: Names the plans that chaos carries out, in their order, as :class:`breaking.reach.Part` writes them, where it is not
#: the commit that gives one.
CHAOS_SEEDS = "LOWTIDE_CHAOS_SEEDS"
#: After how many seconds no seed of them begins any more.
CHAOS_SECONDS = "LOWTIDE_CHAOS_SECONDS"
#: Names a folder, where several stores deal them out: which of them are taken.
CHAOS_TAKEN = "LOWTIDE_CHAOS_TAKEN"
#: Names a file; once it is there the seeds are broken off: another store has noticed.
CHAOS_OVER = "LOWTIDE_CHAOS_OVER"
#: Names a folder, where it is to be told which lines the scenes of each plan run.
CHAOS_LINES = "LOWTIDE_CHAOS_LINES"
#: What is in the names of files that a world is about.
_ABOUT = {
    World.LEDGER: ("ledger",),
    World.HISTORY: ("history", "undo", "sideline"),
    World.SWEPT: ("journal",),
    World.ORACLE: ("oracle",),
}
#: Worlds that are about no others, of long plans.
_APART = (World.LEDGER, World.HISTORY)
#: What tells people of a ledger, and other programs, or makes its tables quick, begins with one of these.
_TELLING = ("lowtide/cli/", "lowtide/config.py", "lowtide/health/", "lowtide/store/gateway.py", "plugins/")


@dataclass(frozen=True)
class Mutation:
    """One way to break a rule.

    *fails*: a piece of the assertion that must fail, or of the text of the error that must be raised; empty where
    nobody has said yet. *data*: whether in its tests data, what proves their commit, or the records come out wrong by
    it. *unseen*: where they do, why the verifier cannot notice; empty: it does. *unmet*: what it takes to notice that
    never happens in a plan of chaos; empty: all of it may.
    """

    name: str
    breaks: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    fails: str
    data: bool = False
    unseen: str = ""
    unmet: str = ""

    @property
    def folders(self) -> set[str]:
        """Where its tests lie: ``unit``, ``spark``, ``store``, ``airflow``, or ``connector``."""
        return {folder(test) for test in self.tests}

    @property
    def of_money(self) -> bool:
        """Whether it breaks a rule of the ledger by which money moves, or is judged; not one of what is told of it, or
        of how fast it is.
        """
        return self.name.startswith("L") and not self.file.startswith(_TELLING)

    @property
    def in_java(self) -> bool:
        """Whether it breaks the connector."""
        return self.file.startswith("connector/")

    def broken(self, text: str) -> str:
        """The file's *text* with the mutation made.

        Raises:
            ValueError: what is to be broken does not stand there exactly once.
        """
        if text.count(self.old) != 1:
            msg = f"{self.file} holds {text.count(self.old)} times, not once: {self.old}"
            raise ValueError(msg)
        return text.replace(self.old, self.new)


def folder(test: str) -> str:
    """The folder of a test, by its name."""
    return "connector" if test.startswith(CONNECTOR_TESTS) else test.split("/")[1]


def read(file: Path) -> dict[str, Mutation]:
    """All mutations, in the order of the file."""
    return {
        name: Mutation(name, **{"fails": ""} | {**found, "tests": tuple(found["tests"].split())})
        for name, found in tomllib.loads(file.read_text()).items()
    }


def by_chaos(mutation: Mutation) -> Mutation:
    """The same, to be noticed by chaos instead of its own tests."""
    test = "tests/store/test_chaos.py::test_whatever_meets_nothing_is_wrong"
    return replace(mutation, tests=(test,), fails="assert report.wrong == []")


def by_chaos_in_memory(mutation: Mutation) -> Mutation | None:
    """The same, to be noticed by the plans of the ledger that need no store; None where they do not run what it
    breaks.
    """
    if not (mutation.of_money and mutation.file.startswith("lowtide/ledger/")):
        return None
    test = "tests/unit/test_chaos_ledger.py::test_hundreds_of_plans_in_memory"
    return replace(mutation, tests=(test,), fails="assert judge.wrong == []")


def seeds_for(mutation: Mutation, count: int) -> list[int]:
    """The seeds from 1 on, so many, those of the world first that is about what the mutation breaks. The longest plans
    are about a part of Lowtide each, and come last for whatever is broken elsewhere. Of others all worlds come before
    one does again, the shortest plan first: whoever has little time has begun as many as can be.
    """

    def place(seed: int) -> tuple[int, int, int]:
        world = worlds.of(seed)
        about = any(word in mutation.file for word in _ABOUT.get(world, ()))
        return 0 if about else 2 if world in _APART else 1, (seed - 1) // len(WORLDS), plan.made(seed).jobs()

    return sorted(range(1, count + 1), key=place)


def drawn(mutations: Mapping[str, Mutation], of: int, number: int) -> dict[str, Mutation]:
    """So many of them, or all where there are no more, as the number draws them; in the order of their names."""
    taken = random.Random(f"mutations/{number}").sample(sorted(mutations), min(of, len(mutations)))
    return {name: mutations[name] for name in sorted(taken)}


def share(mutations: Mapping[str, Mutation], of: int, number: int) -> dict[str, Mutation]:
    """One of *of* shares: numbers that follow each other take all of them in turn, each with its part of what is
    slow.
    """

    def place(name: str) -> tuple[object, ...]:
        found = mutations[name]
        return sorted(found.folders), found.in_java, hashlib.sha256(name.encode()).hexdigest()

    taken = set(sorted(mutations, key=place)[number % of :: of])
    return {name: mutation for name, mutation in mutations.items() if name in taken}


def number_of_today(root: Path) -> int:
    """How many commits lie below this one, so that those that follow each other take every share in turn; the day,
    where there is no history.
    """
    count = ["git", "rev-list", "--count", "--first-parent", "HEAD"]
    try:
        done = subprocess.run(count, cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        done = None
    if done is not None and re.fullmatch(r"\d+\n", done.stdout):
        return int(done.stdout)
    return int(time.time()) // 86400
