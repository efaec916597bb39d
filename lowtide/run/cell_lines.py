"""Lines of a list of cells (``--list``), for people. Pure.

A line is a mapping with the fields of :data:`lowtide_spark.frames.cell_list.FIELDS`; bytes in it are text already, in
printable ASCII.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lowtide.values.text import cut

#: So many are printed, and kept in a summary.
FIRST = 100
#: Keys can have megabytes. In a summary, and wherever it goes, a longer text is cut, and says so; the list has it all.
LONGEST = 200


def line(cell: Mapping[str, Any]) -> str:
    """A cell in one line: what becomes of it, where it is, by which rule, and what that goes by."""
    return f"{what(cell)}: {why(cell)}"


def what(cell: Mapping[str, Any]) -> str:
    """What becomes of a cell, and where it is."""
    where = f'{cell["table"]} "{cell["row"]}" {cell["family"]}:{cell["qualifier"]} at {cell["timestamp"]}'
    kind = "" if cell["kind"] == "put" else f" ({cell['kind'].replace('_', ' ')})"
    return f"{cell['action']} {where}{kind}"


def why(cell: Mapping[str, Any]) -> str:
    """By which rule, and what that goes by."""
    return f"{cell['rule']}: {cell['evidence']}"


def shortened(cell: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """The same with texts of bounded length; *sizes* are how many bytes its keys have, of which the text may be the
    beginning alone.
    """
    return {n: _short(value, sizes.get(n, 0)) if isinstance(value, str) else value for n, value in cell.items()}


def _short(text: str, size: int) -> str:
    return f"{text[:LONGEST]}... ({size:,} bytes)" if size > LONGEST else cut(text, LONGEST)
