"""What a verification finds: invariants that do not hold, notes, and what could not be checked. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

#: Of one kind of violation so many are named; of the others only how many there are.
NAMED = 20


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold: where, of how many cells or files, what, and what to do."""

    invariant: str
    table: str
    what: str
    remedy: str
    number: int = 1
    row: str = ""
    transaction: int | None = None

    def __str__(self) -> str:
        """One line for people."""
        where = f", row {self.row}" if self.row else ""
        whose = f", transaction {self.transaction}" if self.transaction is not None else ""
        return f"{self.invariant}{where}{whose}: {self.what}. {self.remedy}"


@dataclass
class Verification:
    """What was found, and what could not be checked."""

    run: str
    low_watermark: int = 0
    bound: int = 0
    horizon: int = 0
    #: When the oracle was last made anew, ms; 0: never. What is older in the journal speaks of other transactions.
    numbered_anew: int = 0
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)

    def to_json(self) -> str:
        """For programs."""
        return json.dumps(asdict(self), indent=2) + "\n"
