"""Consent: whether anything may be written to a table now. Pure.

Two can say no. A table's owner does it in the table's own descriptor, ``LOWTIDE => 'off'``: for good, and no
configuration and no argument outranks it. Whoever runs the store *pauses* a table, or all of it, until a time, with a
reason. Either way nothing of Lowtide's is written to the table and it is not compacted; it is read, for proofs of other
tables' cells, and what it lacks keeps the prune bound back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from lowtide.errors import UsageError
from lowtide.values.clock import from_millis, millis
from lowtide.values.durations import duration_text
from lowtide.values.text import moment_text, plain

#: Of a table's descriptor, not of its families.
ATTRIBUTE = "LOWTIDE"
#: What permits, as if nothing were said. Anything else forbids: a misspelt no is a no.
_YES = "on"
#: No pause is longer: one that was forgotten ends, and the commit table is pruned again.
LONGEST = timedelta(days=92)


@dataclass(frozen=True, slots=True)
class Pause:
    """That nothing is written to *table* (None: to any) *until* a time, exclusive, by HBase's clock. *owner* and
    *reason* are as :func:`lowtide.values.text.plain` has them.
    """

    id: str
    table: str | None
    owner: str
    reason: str
    since: datetime
    until: datetime

    def __post_init__(self) -> None:
        for name in ("owner", "reason"):
            object.__setattr__(self, name, plain(getattr(self, name)))

    def lasts(self, now: datetime) -> bool:
        """Whether it forbids anything at *now*, HBase's time."""
        return now < self.until

    @property
    def sentence(self) -> str:
        """What is paused, until when, by whom and why; without a full stop."""
        what = f"table {self.table}" if self.table else "the store"
        return f"{what} is paused until {moment_text(self.until)} by {self.owner}: {self.reason}"

    @property
    def ended_by(self) -> str:
        """The command that ends it before."""
        return f"lowtide resume {self.id}"

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; times in ms since 1970."""
        return asdict(self) | {"since": millis(self.since), "until": millis(self.until)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Pause:
        """The pause of :meth:`to_json`."""
        times = {name: from_millis(value[name]) for name in ("since", "until")}
        return cls(**{**value, **times})


def check_pause(pause: Pause) -> None:
    """Refuse a pause that cannot be meant.

    Raises:
        UsageError: it has no reason or no owner, is over before it begins, or lasts longer than :data:`LONGEST`.
    """
    if not pause.reason.strip() or not pause.owner.strip():
        msg = "a pause needs a reason and an owner: whoever finds the jobs waiting must know why, and whom to ask"
        raise UsageError(msg)
    lasting = pause.until - pause.since
    if lasting <= timedelta():
        msg = (
            f"--until {moment_text(pause.until)} is over already (HBase has {moment_text(pause.since)}); give a time "
            "to come, or a span such as 2h"
        )
        raise UsageError(msg)
    if lasting > LONGEST:
        msg = (
            f"--until {moment_text(pause.until)} is more than {duration_text(LONGEST)} away; pause again when that is "
            f"over, or have the table say no itself: {forbid(pause.table or 'TABLE')}"
        )
        raise UsageError(msg)


def veto(attributes: Mapping[str, str]) -> str:
    """What a descriptor says against being written to: the value of :data:`ATTRIBUTE`, as it can be told; empty:
    nothing.
    """
    value = attributes.get(ATTRIBUTE, _YES)
    return "" if value.strip().lower() == _YES else plain(value.strip()) or "(empty)"


def vetoed(table: str, value: str) -> str:
    """What a :func:`veto` of *value* says, in a sentence without a full stop."""
    return f"table {table} says no itself: its descriptor has {ATTRIBUTE} => '{value}'"


def forbid(table: str) -> str:
    """The statement for HBase's shell that has a table say no."""
    return f"alter '{table}', METADATA => {{'{ATTRIBUTE}' => 'off'}}"


def permit(table: str) -> str:
    """The statement for HBase's shell that takes it back."""
    return f"alter '{table}', METHOD => 'table_att_unset', NAME => '{ATTRIBUTE}'"


def objection(table: str, value: str, pauses: Iterable[Pause], now: datetime) -> tuple[str, str]:
    """What stands against a write to *table* at *now*, and what takes it away; empty texts: nothing does.

    Args:
        table: name.
        value: its :func:`veto`.
        pauses: of it and of the whole store, over or not.
        now: HBase's time.
    """
    if value:
        return vetoed(table, value), f"its owner takes that back in HBase's shell: {permit(table)}"
    lasting = [p for p in pauses if p.lasts(now)]
    if not lasting:
        return "", ""
    last = max(lasting, key=lambda p: p.until)
    others = f", and {len(lasting) - 1} more" if len(lasting) > 1 else ""
    return f"{last.sentence}{others}", f"`{last.ended_by}` ends it before"
