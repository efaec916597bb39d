"""What the list of a run says (``--list``), read from its files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from conftest import Outcome

from lowtide.values.keyranges import printable


def listed(outcome: Outcome, table: str | None = None) -> list[dict[str, Any]]:
    """The lines of a run's list, of all tables or of one."""
    folder = Path(outcome.summary["listing"]["folder"])
    files = sorted(folder.glob("*/part-*.json.gz"))
    lines = [json.loads(text) for file in files for text in gzip.decompress(file.read_bytes()).splitlines()]
    assert len(lines) == sum(outcome.summary["listing"]["cells"].values())
    return [line for line in lines if table in (None, line["table"])]


def keys(lines: list[dict[str, Any]], action: str) -> set[tuple[str, str, str, int]]:
    """The cells of lines with that action, which stand there once each."""
    found = [(x["row"], x["family"], x["qualifier"], x["timestamp"]) for x in lines if x["action"] == action]
    assert len(found) == len(set(found))
    return set(found)


def texts(cells: Iterable[tuple[bytes, bytes, bytes, int]]) -> set[tuple[str, str, str, int]]:
    """Keys of cells as a list writes them."""
    return {(printable(row), printable(family), printable(name), at) for row, family, name, at in cells}
