"""What commands do to the records by hand is kept among the runs, with who did it."""

from __future__ import annotations

from pathlib import Path

from lowtide.config import Config, source
from lowtide.run.summary import by_hand
from lowtide.store.kerberos import whom
from lowtide.store.state import StateStore


def keep(state: StateStore, config: Config, file: Path | None, what: str, note: str) -> None:
    """Keep that *what* was done, *note* says it in a sentence. *file*: the configuration's, as it was given."""
    state.add_run(by_hand(what, note, source(file), whom(config.hbase.thrift)).to_json())
