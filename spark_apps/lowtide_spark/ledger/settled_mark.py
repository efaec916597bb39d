"""The settled mark in the hands of a repair: taken up, moved back, moved on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from lowtide.errors import LedgerError, LowtideError
from lowtide.ledger import settled
from lowtide.ledger.model import Entry, Table
from lowtide.ledger.settled import Settled, trusted
from lowtide.values.clock import from_millis
from lowtide_spark.ledger.books import Books

#: How often a mark that others move is tried.
_MOST_TRIES = 10


def take_up(books: Books) -> Settled:
    """The mark that was found; one of a time to come is reported, and not trusted.

    A run that acts takes it back before anything is done: what goes by it waits then.
    """
    stored, now = books.stored, books.now
    found = trusted(stored, now)
    if found != stored:
        latest = max(stored.mark, stored.at, stored.checked_at, stored.full_at)  # whichever of them it was
        books.report.notes.append(
            f"the settled mark tells of {when(latest)}, and HBase's servers have {when(now)}: a run on a machine whose "
            "clock is fast has moved it; it begins anew, and the full check is due"
        )
        if books.run.summary.execute:
            _move(books, lambda mark: trusted(_back(books, mark, 0), now) if mark == stored else mark)
    return found


def move_back(books: Books, oldest: Entry) -> None:
    """Move the mark back below the *oldest*, before it is repaired.

    The entries come first, and the mark is written also where it stays: a run that read mark and index before the
    entries were there finds it changed, and so does not move it over them.
    """

    def back(mark: Settled) -> Settled:
        mark = _back(books, mark, oldest.timestamp)
        return replace(mark, run=books.run.summary.run, at=books.now)

    _move(books, back)


def doubt(books: Books) -> None:
    """Write beside the mark that this run, which acts, found money that does not add up.

    Every run after it makes the full check first, and no run moves the mark on: until a full check that began later
    finds it right. Where this cannot be written, that is a problem of the run.
    """
    try:
        _move(books, lambda mark: replace(mark, wrong_at=books.now))
    except LowtideError as error:
        books.problem(
            f"that the money does not add up could not be written down for the runs to come: {error}; make the next "
            "one with --full"
        )


def settle(books: Books, start: int, horizon: int, full: bool) -> None:
    """Move the mark to the oldest transaction that is still open, at most to the beginning of the grace.

    It stays where another run has found meanwhile that the money does not add up: this one's own check may have been
    earlier. That is a problem of the run.

    Args:
        books: of the run.
        start: where it began to read the index, ms.
        horizon: the beginning of the grace, ms.
        full: whether it made the full check.
    """
    now = books.now

    def further(mark: Settled) -> Settled:
        if mark.wrong_at and (mark.wrong_at != books.stored.wrong_at or not full):
            books.problem(
                "another run found meanwhile that the money does not add up; the settled mark stays where it is. Look "
                f"at the problems of the run that began at {when(mark.wrong_at)}"
            )
            return mark
        begin = min(start, mark.mark)
        end = max(horizon, mark.mark)
        found = books.node.run(lambda: settled.open_entries(begin, end, limit=1), "the index")
        to = settled.next_mark(mark.mark, horizon, found[0].timestamp if found else None)
        mark = _back(books, mark, to)
        mark = replace(mark, mark=to, run=books.run.summary.run, at=now, checked_at=now)
        if not full:
            return mark
        return replace(mark, full_at=now, finished=max(mark.finished, _counted(books)), wrong_at=0)

    books.run.summary.figures[settled.SETTLED_FIGURE] = _move(books, further).mark
    books.run.phase("record")


def _counted(books: Books) -> int:
    """How many finished transactions the money check of this run counted, before it repaired."""
    return books.run.summary.figures[settled.money_figure("before")[0]]


def _back(books: Books, mark: Settled, to: int) -> Settled:
    """The mark moved back, if *to* lies below it; else as it is."""
    if to >= mark.mark:
        return mark
    before = mark.moved_back_from if mark.moved_back_at == books.now else mark.mark  # where it stood before this run
    return replace(mark, mark=to, moved_back_from=before, moved_back_at=books.now)


def _move(books: Books, change: Callable[[Settled], Settled]) -> Settled:
    """Write the changed mark, again from the beginning if another run has moved it meanwhile."""
    for _ in range(_MOST_TRIES):
        mark, text = books.node.run(settled.read_settled, "the settled mark")
        changed = change(mark)
        books.run.store.check_consent(books.frames.name(Table.OPEN))
        if books.node.run(partial(settled.write_settled, text, changed), "the settled mark"):
            if changed.mark < mark.mark:
                books.report.notes.append(
                    f"the settled mark is moved back from {when(mark.mark)} to {when(changed.mark)}"
                )
            return changed
    msg = (
        f"the settled mark was moved by other runs {_MOST_TRIES} times while this one tried to; what it repaired stays "
        "repaired"
    )
    raise LedgerError(msg)


def when(at: int) -> str:
    """A time in ms, for people."""
    try:
        return from_millis(at).isoformat(timespec="seconds")
    except OverflowError:  # a client's clock may say anything
        return f"{at} ms"
