"""What must be true of processes that ran at the same time: own code, from what was recorded of them.

As :mod:`tests.chaos.judge`, whose parts it is made of, it imports nothing of Lowtide.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from tests.chaos.judge import Raw, Records, Seen, commit_entries


def generation(records: Records) -> int:
    """How often the records were reset."""
    row = records.rows.get(b"generation", {})
    return int(json.loads(row[b"value"])["generation"]) if b"value" in row else 0


def resumed(
    where: str,
    seen: tuple[Seen, Seen],
    records: tuple[Raw, Raw, Raw],
    *,
    by_epoch: bool,
    came_back: Collection[str],
    writing: bool,
) -> list[str]:
    """What a run did after it had stood still that was no longer its to do.

    Args:
        where: begins each line.
        seen: before it went on, and when it had ended; nothing else happened between.
        records: the state table when it stood still, before it went on, and when it had ended.
        by_epoch: whether its writes are under the epoch of their table, as a cleanup's are.
        came_back: tables that came back, or came anew, while it stood still.
        writing: whether it had stood still in the middle of writing: then one batch may have been on its way.
    """
    before, after = seen
    stop, then, now = (Records.of(raw) for raw in records)
    reset = generation(stop) != generation(then)
    epochs = (stop.epochs(), then.epochs())
    taken = {t for t in epochs[1] if epochs[0].get(t) != epochs[1][t]} if by_epoch else set()
    others = set(before.tables) if reset else {*came_back, *taken}
    why = "the records were reset" if reset else "it had another owner or was another"
    wrong = []
    if not writing:
        wrong += [f"{t} was written to, and {why}" for t in sorted(others) if before.tables[t] != after.tables[t]]
        if reset and commit_entries(before.commit_table) != commit_entries(after.commit_table):
            wrong.append("the commit table was written to, and the records were reset")
        if reset and before.journal != after.journal:
            wrong.append("the journal was written to, and the records were reset")
    own = (b"table/", b"history/", b"bound/", b"watermarks/", b"journal")
    rows = {row for row in then.rows.keys() | now.rows.keys() if then.rows.get(row) != now.rows.get(row)}
    for row in sorted(rows):
        kind, _, table = row.decode().partition("/")
        if (reset and row.startswith(own)) or (kind in ("table", "history") and table in others):
            wrong.append(f"the record {row.decode()} was written, and {why}")
    return [f"{where}: {line} (6)" for line in wrong]
