"""What a reader of a workload's tables must be shown at any read point, computed from its history alone.

The rules are Omid's reader's (``SnapshotFilterImpl``), applied to what the clients wrote and to which of them
committed:

- a version is visible at read timestamp R if it was committed before R (Tc < R);
- of a column the visible version with the highest *cell* timestamp counts (start timestamp and checkpoint, not Tc);
- an empty value deletes the column;
- a family tombstone is a cell with the empty qualifier; the visible one with the highest cell timestamp hides every
  cell of its row and family whose timestamp is not above the tombstone's *commit* timestamp.

No healing, shadow cell or commit entry plays a part here: this is what must stay true whatever maintenance does.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

Column = tuple[bytes, bytes, bytes]


class Cell(NamedTuple):
    """One cell that a client sent to HBase."""

    table: str
    row: bytes
    family: bytes
    qualifier: bytes
    checkpoint: int
    kind: str
    """``put``, ``delete`` or ``delete_family`` (a row delete is one family delete for each family with data)."""
    value: bytes

    @property
    def column(self) -> Column:
        return (self.row, self.family, self.qualifier)


@dataclass(frozen=True)
class Transaction:
    """What one transaction did and what became of it."""

    start: int
    commit: int | None
    """The commit timestamp; None if it never committed."""
    outcome: str
    """``committed``, ``read only``, ``rolled back``, ``conflict``, ``watermark`` (refused: T <= W), ``abandoned``."""
    crash: int | None
    """The crash point it was left at, if it was."""
    ended: str | None
    """How its client ended with it: ``halt`` (at its crash point), ``kill`` (SIGKILL, anywhere); None if it lived on.
    """
    id: str
    """The transaction of the script."""
    reason: str
    cells: tuple[Cell, ...]

    @property
    def torn(self) -> bool:
        """Committed, and the proof is lost but for some of its shadow cells (crash point 10).

        Until someone heals it, a reader sees only the cells that happen to lie beside a shadow cell of it.
        """
        return self.crash == 10 and self.commit is not None

    def to_json(self) -> str:
        """One line of a history file."""
        record = {
            "start": self.start,
            "commit": self.commit,
            "outcome": self.outcome,
            "crash": self.crash,
            "ended": self.ended,
            "id": self.id,
            "reason": self.reason,
            "cells": [[text(part) if isinstance(part, bytes) else part for part in cell] for cell in self.cells],
        }
        return json.dumps(record)

    @classmethod
    def from_json(cls, line: str) -> Transaction:
        """The transaction of one line."""
        record = json.loads(line)
        return cls(**{**record, "cells": tuple(map(cell_from_json, record["cells"]))})


def text(raw: bytes) -> str:
    """Bytes as they stand in JSON: one character a byte."""
    return raw.decode("iso-8859-1")


def raw(characters: str) -> bytes:
    """The opposite of ``text``."""
    return characters.encode("iso-8859-1")


def cell_from_json(fields: Sequence[Any]) -> Cell:
    """A cell from its seven fields."""
    table, row, family, qualifier, checkpoint, kind, value = fields
    return Cell(table, raw(row), raw(family), raw(qualifier), checkpoint, kind, raw(value))


class _Version(NamedTuple):
    timestamp: int
    commit: int
    value: bytes


class Model:
    """The history of a workload and what readers must be shown by it."""

    def __init__(self, transactions: Iterable[Transaction]) -> None:
        self.transactions = sorted(transactions, key=lambda transaction: transaction.start)

    @classmethod
    def load(cls, *paths: Path) -> Model:
        """Read one or more history files; together they are one history."""
        return cls(
            Transaction.from_json(line) for path in paths for line in Path(path).read_text("utf-8").splitlines() if line
        )

    def save(self, path: Path) -> None:
        """Write the history, one transaction a line, by start timestamp."""
        Path(path).write_text("".join(each.to_json() + "\n" for each in self.transactions), "utf-8")

    @cached_property
    def committed(self) -> list[Transaction]:
        """By commit timestamp."""
        done = [each for each in self.transactions if each.commit is not None]
        return sorted(done, key=lambda transaction: transaction.commit or 0)

    @property
    def tables(self) -> list[str]:
        """The tables that were written to."""
        return sorted({cell.table for each in self.transactions for cell in each.cells})

    def counts(self) -> Counter[str]:
        """How many transactions had which outcome, and ``crash N`` for each crash point."""
        outcomes = Counter(each.outcome for each in self.transactions)
        outcomes.update(f"crash {each.crash}" for each in self.transactions if each.crash is not None)
        outcomes.update(f"ended by {each.ended}" for each in self.transactions if each.ended is not None)
        return outcomes

    def shown_at(self, table: str, read_timestamp: int) -> dict[Column, bytes]:
        """The cells that a transaction with this read timestamp sees: {(row, family, qualifier): value}."""
        columns = self._columns.get(table, {})
        hidden: dict[tuple[bytes, bytes], int] = {}
        for (row, family, qualifier), versions in columns.items():
            if qualifier == b"":
                tombstone = _seen(versions, read_timestamp)
                if tombstone:
                    hidden[row, family] = tombstone.commit
        shown = {}
        for column, versions in columns.items():
            version = _seen(versions, read_timestamp) if column[2] else None
            if version and version.value and version.timestamp > hidden.get(column[:2], -1):
                shown[column] = version.value
        return shown

    def torn_columns(self, table: str) -> set[Column]:
        """Columns that a reader may show wrongly until the torn transactions are healed."""
        return {cell.column for each in self.transactions if each.torn for cell in each.cells if cell.table == table}

    def read_timestamps(self, count: int, seed: int = 0, upto: int | None = None) -> list[int]:
        """*count* read timestamps at which something changed: each just after a commit, the last commit among them.

        Spread evenly over the commits (not above *upto*), with random ones between.
        """
        commits = [each.commit for each in self.committed if each.commit and (upto is None or each.commit < upto)]
        chosen = set(commits[-1:]) | set(commits[:: max(1, 2 * len(commits) // count)])
        others = [commit for commit in commits if commit not in chosen]
        random.Random(seed).shuffle(others)
        chosen.update(others[: max(0, count - len(chosen))])
        return sorted(commit + 1 for commit in chosen)[-count:]

    @cached_property
    def _columns(self) -> Mapping[str, Mapping[Column, list[_Version]]]:
        """Per table and column the committed versions, highest cell timestamp first."""
        latest: dict[str, dict[Column, dict[int, _Version]]] = {}
        for transaction in self.committed:
            for cell in transaction.cells:
                timestamp = transaction.start + cell.checkpoint
                # Two writes at one timestamp are one cell in HBase: the later one.
                version = _Version(timestamp, transaction.commit or 0, cell.value)
                latest.setdefault(cell.table, {}).setdefault(cell.column, {})[timestamp] = version
        return {
            table: {column: sorted(versions.values(), reverse=True) for column, versions in columns.items()}
            for table, columns in latest.items()
        }

    def __iter__(self) -> Iterator[Transaction]:
        return iter(self.transactions)

    def __len__(self) -> int:
        return len(self.transactions)


def _seen(versions: Sequence[_Version], read_timestamp: int) -> _Version | None:
    return next((version for version in versions if version.commit < read_timestamp), None)
