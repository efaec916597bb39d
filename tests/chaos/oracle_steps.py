"""What becomes of an oracle and of its commit table, and what another leaves beside it. Pure.

An oracle that is made anew gives numbers a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Event(StrEnum):
    """What becomes of an oracle, or what a person says of it."""

    NOTE = "what the oracle counts is kept"
    ANEW = "the oracle is made anew, with an empty commit table, and counts on from what was kept"
    AGAIN = "a client that dies has a number that the journal knows of another"
    PASS = "the oracle passes all numbers that it ever gave"
    LOSE = "the records are lost"
    RESET = "the records are reset, since the oracle was made anew"
    KEEP = "an HBase snapshot of the commit table is taken"
    BACK = "the commit table is restored from it"
    WHOLE = "a person sees to it that the commit table is whole, and says so"
    OTHER = "another oracle's tables are there"
    COMMITS = "the commit table of another oracle is named"
    NAMED = "all tables of another oracle are named"
    IMPORT = "a table of another oracle is there, without its commit table"
    GONE = "nothing of another oracle is there any more"


@dataclass(frozen=True, slots=True)
class Oracle:
    """One of these."""

    number: int
    event: Event


#: As plans print it.
WORDS: dict[type, Callable[[Oracle], str]] = {Oracle: lambda step: str(step.event)}
