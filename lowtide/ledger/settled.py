"""The settled mark: every transaction that began before it is over. Pure, but for the programs that read and move it.

It lags behind by the grace, and says what a repair knows: a client whose clock is slow, or that takes longer than the
grace from a transaction's time to its claim, can put one below it. The full check finds such ones and moves the mark
back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace

from lowtide.errors import FormatError
from lowtide.ledger.model import SETTLED_ROW, ContradictionError, Entry, Table, entry_bound
from lowtide.ledger.steps import CheckAndPut, Program, Read, Scan

_COLUMN = "mark"
#: The end of the calendar, ms.
_LAST = 253_402_300_799_999
#: The clocks of HBase's servers may be apart by this much (ms; HBase refuses servers that are off by half a minute).
SKEW = 2 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Settled:
    """The mark and what is known with it. Times are ms: those of transactions by their clients' clocks, those of runs
    by HBase's servers'.

    Args:
        mark: every transaction with a timestamp below it is finished or dropped.
        run: that wrote this.
        at: when that run began; 0: no run is known.
        checked_at: what was written before is covered by a money check.
        full_at: when the last full check began; 0: never.
        moved_back_from: where the mark stood before it was moved back last; 0: never.
        moved_back_at: when that was.
        finished: how many finished transactions the last full check counted. A finished one stays, so that fewer are
            a loss, of which the money alone tells nothing where both records went too.
        wrong_at: when the run began whose check found last that the money does not add up, or that finished
            transactions are gone; 0: no check did, or a full one since found that it does. Until then every run makes
            the full check, whatever it was asked for, and the mark stays.
    """

    mark: int = 0
    run: str = ""
    at: int = 0
    checked_at: int = 0
    full_at: int = 0
    moved_back_from: int = 0
    moved_back_at: int = 0
    finished: int = 0
    wrong_at: int = 0

    def encode(self) -> str:
        """The cell's value."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)

    @classmethod
    def decode(cls, text: str | None) -> Settled:
        """The mark in a cell; a mark of 0 where there is none.

        Raises:
            FormatError: it has parts that this version does not know.
            ContradictionError: the value is malformed.
        """
        if text is None:
            return cls()
        try:
            parts = json.loads(text)
            if newer := sorted(set(parts) - {each.name for each in fields(cls)} if isinstance(parts, dict) else ()):
                fact = f"the settled mark in {Table.OPEN} has {', '.join(newer)}: a newer Lowtide wrote it"
                raise FormatError(fact, "Upgrade it on this machine; nothing was done, and the row is to stay")
            found = cls(**parts)
            for name, value in asdict(found).items():
                if type(value) is not type(getattr(cls(), name)) or (
                    isinstance(value, int) and not 0 <= value <= _LAST
                ):
                    msg = f"{name} is {value!r}"
                    raise ValueError(msg)
        except (ValueError, TypeError) as error:
            msg = (
                f"the settled mark in {Table.OPEN} is malformed ({error}); remove row {SETTLED_ROW!r}, wait two "
                "minutes (a server whose clock is behind would put the new mark beneath that), and the next repair "
                "makes it anew, with a full check. What nobody knows then: how many finished transactions there were "
                "(finished), by which a loss is noticed, and that a repair found wrong money (wrong_at): note what of "
                "that can still be read"
            )
            raise ContradictionError(msg) from None
        return found


def trusted(mark: Settled, now: int) -> Settled:
    """*mark*, or where it tells of times after *now* (ms of HBase's servers) one that knows nothing: then the full
    check is due.

    A run that took the time from a machine whose clock was fast has moved it over transactions that had not begun, and
    left unchecked what was written until the time came.
    """
    if max(mark.mark, mark.at, mark.checked_at, mark.full_at) <= now + SKEW:
        return mark
    return replace(mark, mark=0, at=0, checked_at=0, full_at=0)


#: Under which name a run's summary has what was paid in, where all finished transactions were counted.
PAID_IN_FIGURE = "paid in"
#: Under which name a run's summary has the settled mark that it left, ms.
SETTLED_FIGURE = "settled before, ms"


def money_figure(when: str) -> tuple[str, str]:
    """Under which names a run's summary has its money check ``before`` or ``after`` the repair: how many were checked,
    how many were wrong.
    """
    return f"finished transactions checked {when}", f"of them with wrong money {when}"


def whole(figures: Mapping[str, int]) -> bool:
    """Whether the money check before the repair, in a summary's *figures*, counted all finished transactions, and not
    only those that were written since the last check.
    """
    return PAID_IN_FIGURE in figures


def money_figures(figures: Mapping[str, int]) -> tuple[int | None, int | None]:
    """The last money check in a summary's *figures*: how many finished transactions, and how many of them were wrong;
    None: did not get so far.
    """
    for when in ("after", "before"):
        checked, wrong = money_figure(when)
        if checked in figures:
            return figures[checked], figures.get(wrong)
    return None, None


def lost(mark: Settled, counted: int, table: str) -> str:
    """Why a full check that *counted* so many finished transactions goes by a ledger that has lost some, and what is to
    be done; empty where it has not. *table*: the name of the one that *mark* stands in.
    """
    if counted >= mark.finished:
        return ""
    return (
        f"{mark.finished - counted} finished transactions are gone: the last full check counted {mark.finished}, and "
        f"there are {counted}. They expired (TTL), or somebody removed them with their records, so that the rest adds "
        "up. Restore the ledger's tables, all of them, from a backup that has them (see 'The ledger came back' in "
        "docs/backups.md); where they are lost for good and everybody knows, in HBase's shell: deleteall "
        f"'{table}', '{SETTLED_ROW}'; then wait two minutes (a server whose clock is behind would put the new mark "
        "beneath that), and repair again"
    )


def next_mark(mark: int, horizon: int, oldest: int | None) -> int:
    """Where the mark goes.

    Args:
        mark: where it is.
        horizon: the beginning of the grace; what began later may be under way.
        oldest: the timestamp of the oldest open entry that was found, from the mark on or from further back; None: none
            before the horizon.

    Returns:
        A mark that goes back only to an open transaction that was found.
    """
    reachable = max(mark, horizon)
    return reachable if oldest is None else min(reachable, oldest)


def read_settled() -> Program[tuple[Settled, str | None]]:
    """The mark, and the text that it stands in, for :func:`write_settled`."""
    (cells,) = yield Read(Table.OPEN, (SETTLED_ROW,))
    text = cells.get(_COLUMN)
    return Settled.decode(text), text


def write_settled(before: str | None, after: Settled) -> Program[bool]:
    """Move the mark, unless another run has moved it since *before* was read; whether it was moved."""
    return bool((yield CheckAndPut(Table.OPEN, SETTLED_ROW, _COLUMN, before, after.encode())))


def open_entries(start: int, stop: int, limit: int | None = None) -> Program[list[Entry]]:
    """Index entries with timestamps in [start, stop), oldest first, at most *limit*."""
    rows = yield Scan(Table.OPEN, entry_bound(start), entry_bound(stop), limit=limit)
    return [Entry.parse(row) for row, _ in rows]
