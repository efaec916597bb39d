"""Seeds of the random tests: new ones in every run, printed; taken back by ``LOWTIDE_SEED``; kept once they have
failed.

A test that fails by a seed that was drawn names it in its parameters, and the run's own number stands in its first
lines::

    LOWTIDE_SEED=1234 python -m pytest tests/store/test_end_to_end.py

draws the same seeds again. Then the seed belongs into ``tests/seeds.toml``, with what it found.
"""

from __future__ import annotations

import os
import random
import tomllib
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from tests.prove import PROVE

#: The run's number, from which all its seeds follow. Processes that share the tests out have it from the environment.
RUN = int(os.environ.setdefault("LOWTIDE_SEED", str(random.SystemRandom().getrandbits(32))))
#: Seconds that kept seeds may take together, unless everything is proved.
BUDGET = 180


@dataclass(frozen=True)
class Kept:
    """A seed that failed once, in the test that is called *test* in :func:`each`."""

    test: str
    seed: int
    found: date
    what: str
    seconds: float


def drawn(name: str) -> int:
    """A new seed for *name*, the same everywhere in this run; printed, so that pytest shows it where the test fails."""
    seed = RUN ^ zlib.crc32(name.encode())
    print(f"seed of {name}: {seed} (LOWTIDE_SEED={RUN})")
    return seed


def of(name: str, count: int = 1, always: Iterable[int] = ()) -> list[int]:
    """The seeds of the test *name*: *count* new ones, those that failed before, and *always* where everything is
    proved.
    """
    fresh = [drawn(f"{name} {number}" if number else name) for number in range(count)]
    old = [kept.seed for kept in chosen(_read(), everything=PROVE) if kept.test == name]
    return list(dict.fromkeys([*fresh, *old, *(always if PROVE else ())]))


def kept() -> frozenset[int]:
    """The seeds of this run that are kept, of whichever test."""
    return frozenset(one.seed for one in chosen(_read(), everything=PROVE))


def each(name: str, count: int = 1, always: Iterable[int] = ()) -> pytest.MarkDecorator:
    """Run a test, which takes ``seed``, with each of :func:`of`."""
    return pytest.mark.parametrize("seed", of(name, count, always))


def chosen(kept: Sequence[Kept], *, everything: bool) -> list[Kept]:
    """The kept seeds of this run: all, or the newest that fit into the budget together."""
    newest = sorted(kept, key=lambda one: one.found, reverse=True)
    if everything:
        return newest
    taken, seconds = list[Kept](), 0.0
    for one in newest:
        seconds += one.seconds
        if seconds > BUDGET:
            break
        taken.append(one)
    return taken


def _read() -> list[Kept]:
    file = Path(__file__).with_name("seeds.toml")
    return [Kept(**entry) for entry in tomllib.loads(file.read_text()).get("kept", [])]
