"""Another installation of Lowtide on the same HBase: what it has pruned, holds, or was told is not known here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from lowtide.config import State
from lowtide.journal import life
from lowtide.store import rows
from lowtide.store.gateway import failures
from lowtide.tables.inventory import Descriptor, marked_families

#: A table whose only family is this, and the cell that it has if it is Lowtide's: JSON with the key.
_STATE = ("state table", rows.FAMILY, b"format", rows.VALUE, "format")
_JOURNAL = ("journal", life.FAMILY, life.OWN_ROW, f"{life.FAMILY}:value".encode(), "pruned")


def problems(connection: Any, state: State, descriptors: Sequence[Descriptor]) -> list[str]:
    """Why nothing may be judged: tables that are another installation's state table or journal. One on the same
    oracle's tables has proofs and holds that are not known here.

    Args:
        connection: past the gateway or through it.
        state: of the configuration.
        descriptors: of all tables but the own ones and those that are another oracle's by the configuration.

    A table that is disabled, or that this user may not read, is not looked into.
    """
    of = "of another installation of Lowtide"
    found = [f"{d.table} is the {what} {of}" for d in descriptors for what in _is(connection, d)]
    if not found:
        return []
    return [
        f"{' and '.join(found)}, beside {state.table} and {state.journal_table} of this one: neither knows what the "
        "other has pruned, holds, or was told, and nothing is judged. An oracle has one state table and one journal: "
        "where they are this oracle's, correct state.table and state.journal_table. Where they are another oracle's, "
        "or nobody's any more, name them in omid.foreign"
    ]


def _is(connection: Any, descriptor: Descriptor) -> Iterator[str]:
    """What the table is of another installation."""
    for what, family, row, column, key in (_STATE, _JOURNAL):
        if list(descriptor.families) == [family] and descriptor.enabled and not marked_families(descriptor)[1]:
            try:
                raw = connection.table(descriptor.table).row(row, [column]).get(column)
            except failures():
                return
            if raw and _has(raw, key):
                yield what


def _has(raw: bytes, key: str) -> bool:
    try:
        said = json.loads(raw)
    except ValueError:
        return False
    return isinstance(said, dict) and key in said
