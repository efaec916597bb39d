"""The lines of Spark that Lowtide runs on; a line is a major and a minor version. Whatever asks, asks here.

Below the least nothing starts. Beyond the newest a run goes on and says so: what it relies on is pinned
(:mod:`lowtide.run.pins`), and what has changed there is not known.
"""

from __future__ import annotations

import re

Line = tuple[int, int]

#: Those that were tried, in their order; docs/clusters.md tells what ran on which.
TRIED: tuple[Line, ...] = ((3, 5), (4, 0), (4, 1), (4, 2), (4, 3))
LEAST, NEWEST = TRIED[0], TRIED[-1]


def name(line: Line) -> str:
    """As people write it."""
    return f"{line[0]}.{line[1]}"


def supported() -> str:
    """All of them, for messages."""
    *others, last = map(name, TRIED)
    return f"{', '.join(others)} and {last}"


def line_of(version: str) -> Line | None:
    """The line of a version, also of a vendor's (``3.5.4.7.3.1.0-197``, ``3.5.5-amzn-0``); None where it tells none."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


def refusal(version: str, where: str) -> str | None:
    """Why nothing runs on that Spark; None: it may. *where* it is: follows the version in the message."""
    line = line_of(version)
    if line is None:
        return f"{where} has a Spark that does not tell its version ({version!r}); Lowtide runs on {supported()}"
    if line < LEAST:
        return f"{where} has Spark {version}, and Lowtide needs {name(LEAST)} or newer; it was tried with {supported()}"
    return None


def note(version: str) -> str | None:
    """What to know before a run goes on with a Spark beyond those that were tried."""
    line = line_of(version)
    if line is None or line <= NEWEST:
        return None
    return f"Spark {version} is newer than those that Lowtide was tried with ({supported()})"
