"""What another program did to the ledger's rows, and what runs then have to say (8): a part of the ledger's judge.

Own code, as that: the standard library alone. Times are ms of this machine, which HBase's servers have too; the clock
of a run may be off.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

Cells = Mapping[str, str]
#: A row of a ledger's table, by the table's name.
Place = tuple[str, str]

#: What a repair says that has found wrong money, or finished transactions gone.
_FOUND = ("money does not add up before", "money does not add up after", "finished transactions are gone")
#: A clock that is read may be so much behind one that was read before.
_TICK = 50


@dataclass(frozen=True)
class Forged:
    """Something that another program did, *at* a time: rows as they *were*, and as they are *now* ({}: not there)."""

    what: str
    was: Mapping[Place, Cells]
    now: Mapping[Place, Cells]
    at: int
    #: Whether money is wrong by it; else rows contradict each other.
    money: bool = True
    #: Whether it is among what was written since the last check; else a full check alone has to find it.
    recent: bool = False
    #: Whether balances show that they are wrong.
    balances: bool = True
    #: Whether nothing tells of it but how many transactions are finished.
    gone: bool = False

    def cells(self) -> dict[Place, dict[str, str | None]]:
        """What stood in the cells that are others now; None: nothing."""
        found: dict[Place, dict[str, str | None]] = {}
        for place in self.was.keys() | self.now.keys():
            was, now = self.was.get(place, {}), self.now.get(place, {})
            found[place] = {name: was.get(name) for name in was.keys() | now.keys() if was.get(name) != now.get(name)}
        return found


@dataclass
class _Run:
    """A run from when it began."""

    at: int
    looks: int
    execute: bool
    full: bool
    grace: int
    forged: tuple[Forged, ...]
    alarmed: bool
    finished: int
    #: Tables that may lose what was acknowledged: nothing is to go by them.
    loose: frozenset[str] = frozenset()
    #: Open transactions that lie below the mark, or have no entry: a full check has to say so.
    below: frozenset[str] = frozenset()
    unlisted: frozenset[str] = frozenset()
    #: Whether nobody else has written since.
    alone: bool = True
    #: Whether somebody has forged anything since.
    disturbed: bool = False
    #: What was forged when it repaired on.
    repaired: set[int] = field(default_factory=set)
    #: After how many looks it had written the mark's cell last.
    marked: int = 0


@dataclass
class Alarms:
    """Who has to say what. *say* takes what is wrong, and where."""

    say: Callable[[str, str], None]
    forged: list[Forged] = field(default_factory=list)
    #: Tables that may lose what was acknowledged.
    loose: set[str] = field(default_factory=set)
    _runs: dict[str, _Run] = field(default_factory=dict)
    #: After how many looks a run that acts has said last that money is wrong, and no full check was right since.
    _alarmed: int | None = None
    #: How many finished transactions the last full check counted.
    _counted: int = 0
    _looks: int = 0
    _entered: dict[str, int] = field(default_factory=dict)
    _restored: set[str] = field(default_factory=set)

    # -- what happens

    def forges(self, done: Forged) -> None:
        """Another program did this."""
        self.forged.append(done)
        for run in self._runs.values():
            run.disturbed = True

    def undone(self) -> None:
        """All that was forged is as it was."""
        self.forged.clear()
        for run in self._runs.values():
            run.disturbed = True

    def mended(self) -> None:
        """A person had records set right, and nothing that is known of the ledger is gone by any more."""
        self.undone()
        self._alarmed, self._counted = None, 0

    def genuine(self, table: str, rows: Mapping[str, Cells]) -> dict[str, Cells]:
        """The rows of a table without what was forged: nobody else is charged with that."""
        found = dict(rows)
        for one in self.forged:
            for (its, row), cells in one.cells().items():
                if its == table:
                    merged = {**found.get(row, {}), **cells}
                    found[row] = {name: value for name, value in merged.items() if value is not None}
                    if not found[row]:
                        del found[row]
        return found

    def begins(
        self, run: str, at: int, words: Sequence[str], finished: int, grace: int, behind: tuple[frozenset[str], ...]
    ) -> None:
        """A run begins, with its arguments; so many transactions are finished, and *behind* are those that are open
        and lie below the mark, and those that have no entry.
        """
        for other in self._runs.values():
            other.alone = False
        full, execute = "--full" in words, "--execute" in words
        alone = not self._runs
        alarmed = self._alarmed is not None
        self._runs[run] = _Run(
            at,
            self._looks,
            execute,
            full,
            grace,
            tuple(self.forged),
            alarmed,
            finished,
            frozenset(self.loose),
            *behind,
            alone=alone,
        )

    def looked(self, run: str, before: Sequence[Mapping[str, Cells]], now: Sequence[Mapping[str, Cells]]) -> None:
        """Somebody has written: a *run*, or a client. Transactions, records and the index, before and now."""
        self._looks += 1
        for name, other in self._runs.items():
            other.alone &= name == run
        it = self._runs.get(run)
        if it and (before[0] != now[0] or before[1] != now[1]):
            it.repaired |= {id(one) for one in self.forged if one not in it.forged}

    # -- what a run must say

    def ended(
        self, where: str, run: str, code: int, problems: Collection[str], notes: Collection[str], finished: int
    ) -> None:
        """A repair is over; so many transactions are finished."""
        it = self._runs.pop(run)
        if it.execute and any(words in problem for words in _FOUND for problem in problems):
            self._alarmed = it.marked or self._looks
        if code:
            return
        self._went_by(where, it)
        full = it.full or it.alarmed
        for one in self.forged:
            if one in it.forged and (one.recent or full) and not one.gone:
                self.say(where, f"{one.what}, and it ended well")
            elif one not in it.forged and one.recent and one.money and it.execute and id(one) in it.repaired:
                self.say(where, f"{one.what} while it repaired, and it ended well")
        if full:
            self._checked_everything(where, it, notes, finished)

    def _checked_everything(self, where: str, it: _Run, notes: Collection[str], finished: int) -> None:
        """A full check has ended well."""
        if max(it.finished, finished) < self._counted:
            self.say(where, f"{self._counted} transactions were finished, {finished} are, and it ended well")
        if it.alone and it.below and not any("below the settled mark" in note for note in notes):
            self.say(where, f"{sorted(it.below)} lay below the settled mark, and it does not say so")
        if it.alone and it.unlisted and not any("no index entry" in note for note in notes):
            self.say(where, f"{sorted(it.unlisted)} had no index entry, and it does not say so")
        if it.execute:
            self._counted = max(self._counted, it.finished)
            if self._alarmed is not None and it.looks >= self._alarmed:
                self._alarmed = None

    def balanced(self, where: str, run: str, code: int) -> None:
        """A run that computes balances is over."""
        it = self._runs.pop(run)
        if not code:
            self._went_by(where, it)
        for one in self.forged:
            if not code and one.balances and one in it.forged:
                self.say(where, f"{one.what}, and balances were told")

    def _went_by(self, where: str, it: _Run) -> None:
        """A run has ended well."""
        if it.loose:
            self.say(where, f"{sorted(it.loose)} may lose what was acknowledged, and it ended well")

    def died(self, run: str) -> None:
        """A run is dead."""
        self._runs.pop(run, None)

    def is_full(self, run: str) -> bool:
        """Whether it makes the full check, and acts."""
        it = self._runs[run]
        return it.execute and (it.full or it.alarmed)

    def forged_since(self, run: str) -> bool:
        """Whether anything was forged at any time since it began."""
        it = self._runs.get(run)
        return it is not None and bool(it.disturbed or it.forged)

    # -- the mark

    def marked(self, where: str, was: Mapping[str, object], now: Mapping[str, object], at: int) -> None:
        """The cell of the settled mark is another one; *at* is the time.

        Nothing in it is of a time to come, or passes the grace of the run that wrote it. What it calls checked is
        older than what was forged while that run was at work. While money was found wrong, only a full check that
        began later moves it on, or takes the alarm away.
        """
        told = {name: _number(now, name) for name in ("mark", "at", "checked_at", "full_at")}
        if max(told.values()) > at + _TICK:
            self.say(where, f"the settled mark tells of a time to come: {told}, and it is {at}")
        run = str(now.get("run", ""))
        it = self._runs.get(run)
        if it is None:
            return
        it.marked = self._looks
        on = _number(now, "mark") > _number(was, "mark")
        if on and told["mark"] > at - it.grace + _TICK:
            self.say(where, f"the settled mark is {told['mark']}, within the grace of {it.grace} ms at {at}")
        for one in self.forged:
            if one not in it.forged and told["checked_at"] > max(one.at, _number(was, "checked_at")):
                self.say(where, f"{one.what} at {one.at}, and what was written before {told['checked_at']} is checked")
            if on and one in it.forged and one.money and not one.gone and (one.recent or it.full or it.alarmed):
                self.say(where, f"{one.what}, and the settled mark moved on")
        cleared = _number(was, "wrong_at") and not _number(now, "wrong_at")
        if self._alarmed is not None and it.looks < self._alarmed and (on or cleared):
            self.say(where, "the settled mark moved on though another run had found wrong money")

    # -- entries

    def entries(
        self, where: str, run: str, before: Collection[str], rows: Mapping[str, Cells], now: Collection[str], at: int
    ) -> None:
        """The index is another one; *rows* are transactions. No run takes the entry of who is about to claim within
        the ledger's grace. What a run puts back of a claim it restores.
        """
        it = self._runs.get(run)
        for entry in set(now) - set(before):
            if it and entry in self._entered:
                self._restored.add(entry)
            self._entered.setdefault(entry, at)
        for entry in set(before) - set(now):
            if it and entry[0].isdigit() and entry.split("/")[1] not in rows and at - self._entered[entry] < it.grace:
                self.say(where, f"the entry {entry} is gone, and its client was about to claim")

    def restored(self, entry: str) -> bool:
        """Whether a full check has put it back."""
        return entry in self._restored


def _number(mark: Mapping[str, object], name: str) -> int:
    found = mark.get(name, 0)
    return found if isinstance(found, int) else 0


def parsed(text: str | None) -> dict[str, object]:
    """The cell of the mark."""
    found: dict[str, object] = json.loads(text or "{}")
    return found
