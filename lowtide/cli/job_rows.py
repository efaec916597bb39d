"""What a job did, or found, as lines of CSV. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lowtide.run.summary import DONE, LOOKED_AT

_WORKED = ("table", "execute", "read", "regions", "regions_recorded", *DONE, *LOOKED_AT, "problems", "notes")
_SURVEYED = ("table", "regions", "regions_read")
_ESTIMATED = ("cells", "orphans", "orphan_bytes", "heals", "heal_bytes")
_ASIDE = ("run", "job", "table", "cells", "bytes", "at", "until", "lost")
_CELLS = ("table", "row", "family", "qualifier", "timestamp", "commit_ts", "kind", "rule", "evidence")
_ASKED = ("there", "family", "qualifier", "timestamp", "transaction", "what", "becomes", "rule", "evidence")
_THERE = (("cells", True), ("removed", False))
_VIOLATED = ("invariant", "table", "row", "transaction", "number", "what", "remedy")


def of(job: str, found: Mapping[str, Any]) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Columns and lines of what *job* answered as JSON: of the verifier a line for each violation, of an answer about a
    row, and of a run's sideline, one for each cell, of any other one for each table.
    """
    if job == "verify":
        return _VIOLATED, found["violations"]
    if job == "survey":
        estimated = [f"{name}{bound}" for name in _ESTIMATED for bound in ("", "_low", "_high")]
        return (*_SURVEYED, *estimated, "others", "problems"), [_surveyed(table) for table in found["tables"]]
    if job == "sideline":
        return (_CELLS, found["cells"]) if "cells" in found else (_ASIDE, found["runs"])
    if job == "why":
        return _ASKED, [{**cell, "there": there} for name, there in _THERE for cell in found[name]]
    return _WORKED, [{**table, **table["counts"]} for table in found["tables"]]


def _surveyed(table: Mapping[str, Any]) -> dict[str, Any]:
    numbers = {
        f"{name}{ending}": table[name][part]
        for name in _ESTIMATED
        for ending, part in (("", "value"), ("_low", "low"), ("_high", "high"))
    }
    return {**table, **numbers}
