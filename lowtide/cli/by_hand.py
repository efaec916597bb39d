"""What commands do to the records by hand: kept among the runs, with who did it; of what was asked about alone."""

from __future__ import annotations

from pathlib import Path

from lowtide.config import Config, source
from lowtide.errors import StoreError
from lowtide.run.summary import by_hand
from lowtide.store.kerberos import whom
from lowtide.store.state import StateStore


def keep(state: StateStore, config: Config, file: Path | None, what: str, note: str) -> None:
    """Keep that *what* was done, *note* says it in a sentence. *file*: the configuration's, as it was given."""
    state.add_run(by_hand(what, note, source(file), whom(config.hbase.thrift)).to_json())


def check_same(before: object, now: object, what: str) -> None:
    """Refuse to act on an answer that was given to a question about something else.

    Raises:
        StoreError: what was read *before* the question is not what there is *now*.
    """
    if now != before:
        msg = f"{what} changed before the answer came; nothing was recorded. Give the command again: it asks anew"
        raise StoreError(msg)
