"""What happened, in a folder that can be judged again: ``history.jsonl``, and the clients' own logs in ``clients/``.

Lines are only ever added, each with ``what`` it is and its time by this machine's clock, ``from`` its beginning ``to``
its end, in ms. Bytes are texts of one character a byte. What the store had is recorded as what came and went since the
look before.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.chaos.judge import Cell, Raw


def now() -> int:
    """This machine's clock, in ms."""
    return time.time_ns() // 1_000_000


def text(raw: bytes) -> str:
    """Bytes as they stand in a line."""
    return raw.decode("iso-8859-1")


def cell_fields(cell: Cell) -> list[Any]:
    """A cell as it stands in a line."""
    row, family, qualifier, timestamp, kind, value = cell
    return [text(row), text(family), text(qualifier), timestamp, kind, text(value)]


class Recorder:
    """Adds lines, from whatever thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "clients").mkdir(parents=True, exist_ok=True)
        self._lines = (folder / "history.jsonl").open("a")
        self._lock = threading.Lock()
        self._had: dict[str, Raw] = {}

    def line(self, what: str, begun: int, **fields: Any) -> None:
        """One that began then and ends now."""
        line = json.dumps({"what": what, "from": begun, "to": now(), **fields})
        with self._lock:
            self._lines.write(line + "\n")
            self._lines.flush()

    @contextmanager
    def during(self, what: str, **fields: Any) -> Any:
        """A line when the block ends, with whatever the block adds to what it is given; of one that fails, its error,
        which goes no further.
        """
        begun, more = now(), dict(fields)
        try:
            yield more
        except Exception as error:
            lines = f"{type(error).__name__}: {error}".splitlines()
            causes = [line for line in lines[1:] if line.startswith("Caused by")]
            more["error"] = "\n".join([*lines[:8], *causes])[:4000]
        self.line(what, begun, **more)

    def look(self, number: int, looked: Iterable[tuple[str, Raw, int]]) -> None:
        """What there was, in the order in which it was read, and when each was begun to be."""
        for name, raw, begun in looked:
            had = self._had.get(name, frozenset())
            came, went = (sorted(map(cell_fields, cells)) for cells in (raw - had, had - raw))
            self._had[name] = raw
            self.line("sample", begun, look=number, of=name, came=came, went=went)

    def aside(self, run: str, keys: Mapping[str, Iterable[tuple[bytes, bytes, bytes, int]]]) -> None:
        """What a run's sideline has."""
        for table, of in keys.items():
            if fields := [[text(r), text(f), text(q), t] for r, f, q, t in of]:
                self.line("aside", now(), run=run, table=table, keys=fields)

    def close(self) -> None:
        """No more lines."""
        self._lines.close()
