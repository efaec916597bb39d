"""The raw records, read by the verifier's own code: what was published, and what the journal let go of. Pure.

Nothing in this package uses ``lowtide.cleaning.facts``, ``lowtide.values.intervals`` or ``lowtide.store.state``: what
they are held against must not be what it is made of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

Records = Mapping[str, Mapping[str, str]]
#: Among the records the row of the journal's table about itself, which has no other home.
JOURNALS_OWN = "journal's own"


@dataclass(frozen=True, slots=True)
class Published:
    """A region watermark as published: of the key range [start, stop), inclusive."""

    table: str
    start: bytes
    stop: bytes
    watermark: int


def published(records: Records) -> list[Published]:
    """The region watermarks published last."""
    return [
        Published(
            row.removeprefix("watermarks/"), bytes.fromhex(r["start"]), bytes.fromhex(r["stop"]), int(r["watermark"])
        )
        for row, columns in sorted(records.items())
        if row.startswith("watermarks/")
        for r in json.loads(columns["value"])["regions"]
    ]


def bound(records: Records) -> int:
    """The prune bound published last, inclusive; 0 where there is none."""
    newest = min((row for row in records if row.startswith("bound/")), default=None)
    return 0 if newest is None else int(json.loads(records[newest]["value"])["value"])


def horizon(records: Records) -> int:
    """The greatest start timestamp that was swept from the journal; 0: none was.

    By the state table or by the journal's row about itself.
    """
    values = (records.get(row, {}).get("value", "{}") for row in ("journal", JOURNALS_OWN))
    return max(int(json.loads(value).get("horizon", 0)) for value in values)


def numbered_anew(records: Records) -> int:
    """When the oracle was last made anew, ms, by HBase's clock; 0: never. It may have given numbers of before again."""
    return int(json.loads(records.get("generation", {}).get("value", "{}")).get("since", 0))


def history_mark(records: Records, table: str) -> int:
    """The ancient history mark that readers of *table* are held to, or are about to be."""
    columns = records.get(f"history/{table}", {})
    return max(
        (int(json.loads(v).get("mark", 0)) for c, v in columns.items() if c in ("mark", "intended") and v), default=0
    )
