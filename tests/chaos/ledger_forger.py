"""Another program, which writes into a ledger's tables behind its back, and a person who has them set right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from lowtide.ledger.model import Table, record_row, user_id
from lowtide.ledger.steps import Remove
from lowtide.values.clock import now_millis
from tests.chaos.ledger_alarms import Cells, Forged, Place
from tests.chaos.ledger_clients import AGO, Bank, Line
from tests.chaos.ledger_judge import OVER, Rows, entry_of
from tests.chaos.ledger_plan import USERS, Forge, Forgery

#: By which repairs and balances notice: what was written since the last check shows it, and balances do.
_RECENT = frozenset({Forgery.AMOUNT, Forgery.OTHER, Forgery.THIRD})
_SHOWN = _RECENT | {Forgery.MISSING}
#: Of users who have no part in a transaction the issuer comes last: others' total is without what he has.
_THIRDS = (*USERS[1:], USERS[0])


@dataclass
class Forger:
    """Writes to the ledger of a *bank*, and knows what was there before."""

    bank: Bank
    line: Line
    _done: list[Forged] = field(default_factory=list)
    #: The last time that it has given what is to look old.
    _then: int = field(default_factory=lambda: now_millis() - AGO // 2)
    #: When rows that it has removed were removed, by the times of their cells.
    _gone: dict[Place, int] = field(default_factory=dict)

    def forge(self, step: Forge) -> str:
        """One forgery, of the first transaction in its order that shows it: what was written later hides it."""
        rows = self.bank.rows()
        taken = {row for one in self._done for _, row in one.now}
        finished = [
            id
            for id, row in sorted(rows.transactions.items())
            if row.get("state") == "finished"
            and (not step.aged or id in self.bank.aged)
            and not any(id in row for row in taken)
        ]
        first = step.pick % len(finished) if finished else 0
        # Of what a user still has: who lacks it has less than nothing by it, and all others' total shows the issuer's.
        has = rows.balances()
        ordered = sorted(
            finished[first:] + finished[:first],
            key=lambda id: has[rows.transactions[id]["recipient"]] < int(rows.transactions[id]["amount"]),
        )
        for some in [ordered] if step.forgery is Forgery.LOST else [[id] for id in ordered]:
            if done := self._forged(step, some, rows):
                self._done.append(done)
                self.bank.judge.alarms.forges(done)
                self.bank.look(f"step {step.number}")
                return done.what
        return "nothing shows it"

    def _forged(self, step: Forge, ids: list[str], rows: Rows) -> Forged | None:
        wanted = dict(change for id in ids for change in _changes(step.forgery, id, rows))
        was = {place: _cells(rows, place) for place in wanted}
        self._then += 1
        for place, cells in wanted.items():
            if cells:
                self.line.put_at(*place, cells, self._then if step.stamped else None)
            else:
                self._remove(place)
        found = self.bank.rows()
        now = {place: _cells(found, place) for place in wanted}
        due = {place: {**was[place], **cells} if cells else {} for place, cells in wanted.items()}
        if not wanted or now != due:
            return None
        recent = step.forgery in _RECENT and not step.stamped
        what = f"{step.forgery}: {', '.join(row for _, row in wanted)}"
        return Forged(
            what,
            was,
            now,
            now_millis(),
            money=step.forgery is not Forgery.DECISION,
            recent=recent,
            balances=step.forgery in _SHOWN,
            gone=step.forgery is Forgery.LOST,
        )

    def undo(self) -> str:
        """All of it is taken back: cells are as they were, by times just after those that they had."""
        for one in reversed(self._done):
            for place, was in one.was.items():
                if not was:
                    self._remove(place)
                    continue
                changed = {name: was[name] for name, value in one.cells()[place].items() if value is not None}
                times = [*self.line.times(*place).values(), self._gone.get(place, 0)]
                self.line.put_at(*place, changed, max(times) + 1)
        done = len(self._done)
        self._done.clear()
        self.bank.judge.alarms.undone()
        self.bank.look("what was forged is taken back")
        return f"{done} are taken back"

    def mended(self) -> None:
        """A person had it set right."""
        self._done.clear()
        self.bank.judge.alarms.mended()
        self.bank.look("what was forged is mended")

    def lose(self) -> str:
        """The entry goes of what was claimed last and is not over."""
        rows = self.bank.rows()
        found = {
            entry_of(id, request): id
            for id, request in rows.requests().items()
            if rows.transactions[id].get("state") not in OVER
        }
        there = sorted(found.keys() & rows.open.keys())
        if not there:
            return "nothing is open"
        self.bank.judge.loses(found[there[-1]])
        self.line(Remove(Table.OPEN, there[-1]))
        self.bank.look("an entry is lost")
        return found[there[-1]]

    def _remove(self, place: Place) -> None:
        """As of the time of its latest cell, so that it can be put back as old as it was."""
        if times := self.line.times(*place).values():
            self._gone[place] = max(times)
            self.line.remove_at(*place, max(times))


def _cells(rows: Rows, place: Place) -> Cells:
    table, row = place
    return (rows.transactions if table == Table.TRANSACTIONS else rows.records).get(row, {})


def _changes(forgery: Forgery, id: str, rows: Rows) -> Iterator[tuple[Place, dict[str, str]]]:
    """What is written to which row; {}: it is removed."""
    transaction = rows.transactions[id]
    sender, recipient = transaction["sender"], transaction["recipient"]
    credit, debit = record_row(recipient, id), record_row(sender, id)
    third = next(user_id(name) for name in _THIRDS if user_id(name) not in (sender, recipient))
    foreign = (str(Table.RECORDS), record_row(third, id))
    theirs = {**rows.records[credit], "id": foreign[1], "user_id": third}
    match forgery:
        case Forgery.AMOUNT:
            yield (str(Table.RECORDS), credit), {"amount": str(int(transaction["amount"]) + 1)}
        case Forgery.OTHER:
            yield (str(Table.RECORDS), credit), {}
            yield foreign, theirs
        case Forgery.THIRD:
            yield foreign, {**theirs, "amount": "5"}
        case Forgery.MISSING:
            yield (str(Table.RECORDS), debit), {}
        case Forgery.LOST:
            yield (str(Table.TRANSACTIONS), id), {}
            yield (str(Table.RECORDS), credit), {}
            yield (str(Table.RECORDS), debit), {}
        case Forgery.DECISION:
            decision = json.loads(transaction["decision"]) | {"reason": "the balance is 0"}
            text = json.dumps(decision, separators=(",", ":"), sort_keys=True)
            yield (str(Table.TRANSACTIONS), id), {"decision": text}
