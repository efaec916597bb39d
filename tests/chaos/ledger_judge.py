"""What must be true of the ledger (8): judged from what its clients asked for and were told, and from its cells.

Own code: the standard library alone, as in :mod:`judge`. One thing moves at a time, and the cells are looked at after
each write, so that "then" is exact: what a user had when something was decided is known, and whatever a client was told
can be held against every later look.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from tests.chaos.ledger_alarms import Alarms, parsed

Cells = Mapping[str, str]

_ORDER = {None: 0, "initial": 1, "in progress": 2, "committed": 3, "finished": 4, "dropped": 4}
_AFTER = {
    None: {"initial"},
    "initial": {"in progress", "dropped"},
    "in progress": {"committed"},
    "committed": {"finished"},
    "finished": set(),
    "dropped": set(),
}
OVER = ("finished", "dropped")
_SETTLED = "settled"
#: The tables of :class:`Rows`.
_NAMES = ("transactions", "user_transactions", "open_transactions")
#: By how much the clocks of HBase's servers may be apart, ms, for whoever goes by a time that one of them has written.
_APART = 120_000


def user(nickname: str) -> str:
    """A user's id."""
    return hashlib.sha1(nickname.encode(), usedforsecurity=False).hexdigest()


class Asked(NamedTuple):
    """What a client was asked for; users by id."""

    sender: str
    recipient: str
    amount: int


@dataclass(frozen=True)
class Rows:
    """The ledger's tables at one moment, by row and column."""

    transactions: Mapping[str, Cells] = field(default_factory=dict)
    records: Mapping[str, Cells] = field(default_factory=dict)
    open: Mapping[str, Cells] = field(default_factory=dict)

    def requests(self) -> dict[str, Mapping[str, Any]]:
        """What was claimed, by transaction."""
        return {id: _parsed(row["request"]) for id, row in self.transactions.items() if "request" in row}

    def finished(self) -> list[Asked]:
        """The transfers that count."""
        return self._finished

    @cached_property
    def _finished(self) -> list[Asked]:
        return [
            Asked(row["sender"], row["recipient"], int(row["amount"]))
            for row in self.transactions.values()
            if row.get("state") == "finished"
        ]

    def credits(self, of: str) -> int:
        """What a user got that counts."""
        return sum(moved.amount for moved in self.finished() if moved.recipient == of)

    def spent(self, of: str) -> int:
        """What a user has decided to pay."""
        return sum(int(row["amount"]) for _, row in self.of(of) if _runs(row))

    def of(self, sender: str) -> list[tuple[str, Cells]]:
        """A sender's transactions, in order."""
        return [(id, row) for id, row in sorted(self.transactions.items()) if id.startswith(f"{sender}-")]

    def balances(self) -> Counter[str]:
        """By the records, of which those count that are finished and whose transaction is."""
        found: Counter[str] = Counter()
        for record in self.records.values():
            if record.get("state") == self.transactions.get(record["transaction_id"], {}).get("state") == "finished":
                found[record["user_id"]] += int(record["amount"])
        return found


@dataclass
class Call:
    """A transfer from when it is asked for until its client is told, or will never be."""

    asked: Asked
    #: What the sender had that counted when it was asked for.
    had: int
    #: The least that was left to the sender to pay at any time since.
    least: int


@dataclass
class LedgerJudge:
    """What it finds wrong it says in ``wrong``."""

    issuer: str
    users: frozenset[str]
    wrong: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    calls: dict[str, Call] = field(default_factory=dict)
    #: What clients were told, by nonce: the transaction and its state.
    told: dict[str, tuple[str, str]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    #: Claims without an index entry: a repair without grace took it for one of a client that is gone, which it was when
    #: the repair looked. The full check gives it back.
    unlisted: set[str] = field(default_factory=set)
    _pending: set[str] = field(default_factory=set)
    _rows: Rows = field(default_factory=Rows)
    #: What was in the index when a repair began, and after how many looks that was; the same of claims.
    _began: dict[str, tuple[set[str], int]] = field(default_factory=dict)
    _claims: dict[str, int] = field(default_factory=dict)
    #: Every entry that was ever there.
    _entered: set[str] = field(default_factory=set)
    #: The right time, ms, where the judge is to go by it; how long a client may take from its entry to its claim; who
    #: has a clock that is off, by nonce.
    clock: Callable[[], int] | None = None
    grace: int = 0
    off: set[str] = field(default_factory=set)
    #: Tables to which no run may write: their owners say no.
    silent: set[str] = field(default_factory=set)
    #: Whether a state may be hidden beneath the one before, as it may where a server's clock is behind.
    hides: bool = False
    #: How many were finished when a full check began that went well.
    counted: int = 0
    _entered_at: dict[str, int] = field(default_factory=dict)
    #: Who asks for a balance, while others go on, and what it has been since.
    _asking: dict[str, tuple[str, set[int]]] = field(default_factory=dict)
    #: All of the tables, with what was forged.
    _all: Rows = field(default_factory=Rows)

    def __post_init__(self) -> None:
        self.alarms = Alarms(self._say)

    def _say(self, where: str, what: str) -> None:
        self.wrong.append(f"{where}: {what} (8)")

    def _now(self) -> int:
        return self.clock() if self.clock else time.time_ns() // 1_000_000

    # -- what clients and runs tell

    def asks(self, nonce: str, asked: Asked) -> None:
        """A client was asked for a transfer."""
        left = self._rows.credits(asked.sender) - self._rows.spent(asked.sender)
        self.calls[nonce] = Call(asked, self._rows.credits(asked.sender), left)
        self._pending.add(nonce)

    def is_told(self, where: str, nonce: str, id: str, state: str) -> None:
        """It was told how its transaction ended."""
        self.told[nonce] = id, state
        self._pending.discard(nonce)
        if state not in OVER:
            self._say(where, f"the client of {id} was told that it is {state}")
        self._promises(where, self._rows)

    def is_refused(self, where: str, nonce: str) -> None:
        """It was told that nothing was written: because users are unknown, or because the sender had too little at some
        time since it was asked.
        """
        self.refused.add(nonce)
        self._pending.discard(nonce)
        call = self.calls[nonce]
        known = {call.asked.sender, call.asked.recipient} <= self.users
        if known and (call.asked.sender == self.issuer or call.least >= call.asked.amount):
            self._say(where, f"{call.asked} was refused, and {call.least} were there all the time")
        self._promises(where, self._rows)

    def is_gone(self, nonce: str) -> None:
        """Its client died: it will never be told anything."""
        self._pending.discard(nonce)

    def is_told_balance(self, where: str, of: str, balance: int) -> None:
        """Somebody was told a balance, with nothing else going on."""
        self.counts["balances told"] += 1
        if balance != (due := self._rows.balances()[of]):
            self._say(where, f"the balance of {of} is {due}, and {balance} was told")

    def is_told_nothing(self, where: str, of: str, error: str) -> None:
        """Somebody who asked for a balance had an error, and everything was there."""
        self._say(where, f"who asked for the balance of {of} had {error}")

    def asks_balance(self, name: str, of: str) -> None:
        """Somebody begins to ask for one, while others go on."""
        self._asking[name] = of, {self._rows.balances()[of]}

    def is_told_a_balance(self, where: str, name: str, balance: int) -> None:
        """He was told one, which it must have been at some moment since."""
        self.counts["balances told while others went on"] += 1
        of, since = self._asking.pop(name)
        if balance not in since:
            self._say(where, f"the balance of {of} was one of {sorted(since)}, and {balance} was told")

    def is_told_total(self, where: str, total: int) -> None:
        """Somebody was told what all users but the issuer have together."""
        if total != (due := -self._rows.balances()[self.issuer]):
            self._say(where, f"all have {due} together, and {total} was told")

    def is_told_all(self, where: str, names: Sequence[str], told: Sequence[Sequence[str]]) -> None:
        """Somebody was given a table of all balances, as whoever reads CSV has it; these are all users' names."""
        self.counts["tables of balances"] += 1
        has = self._rows.balances()
        due = [["user", "nickname", "balance"], *sorted([user(name), name, str(has[user(name)])] for name in names)]
        if [*told] != due:
            wrong = [row for row in told if row not in due]
            self._say(where, f"the table of balances has {wrong or 'too few rows'}, and was to have {due[1:]}")

    def begins(self, run: str, words: Sequence[str] = ("--execute",), grace: int = 0) -> None:
        """A repair begins, with its arguments, where the ledger has so much grace, ms."""
        self._began[run] = set(self._rows.open), self.counts["looks at the ledger"]
        rows = self._rows
        mark = json.loads(rows.open.get(_SETTLED, {}).get("mark", '{"mark": 0}'))["mark"]
        is_open = {
            id: request
            for id, request in rows.requests().items()
            if rows.transactions[id].get("state") not in OVER and id not in self.unlisted
        }
        below = frozenset(id for id, request in is_open.items() if request["timestamp"] < mark)
        unlisted = frozenset(id for id in self.unlisted if rows.transactions[id].get("state") not in OVER)
        self.alarms.begins(run, self._now(), words, len(self._all.finished()), grace, (below, unlisted))

    def loses(self, id: str) -> None:
        """Another program takes the entry of an open transaction."""
        self.unlisted.add(id)

    def repaired(self, where: str, run: str, code: int, problems: Sequence[str], notes: Sequence[str]) -> None:
        """A repair has ended, with what it says: what was forged it says, and what nobody has forged it does not. After
        a full check that ended well, every open claim that it found has its entry.
        """
        looks = self._began[run][1]
        full = self.alarms.is_full(run)
        if not self.alarms.forged_since(run):
            self.ended(where, iter(problems))
        self.alarms.ended(where, run, code, problems, notes, len(self._all.finished()))
        for id in sorted(self.unlisted) if full and not code else ():
            if self._claims.get(id, looks + 1) <= looks and self._rows.transactions[id].get("state") not in OVER:
                self._say(where, f"{id} is open, a full check ended well, and there is no entry")

    def ended(self, where: str, problems: Iterator[str]) -> None:
        """A repair ended: nobody has forged anything, and whoever says so is wrong."""
        for problem in problems:
            if "does not add up" in problem or "contradict" in problem:
                self._say(where, f"{problem!r}, and nobody has touched the money")

    def ends_full(self, where: str, finished: int, *, refused: bool) -> None:
        """A full check ended that met so many finished transactions: fewer than an earlier one are a loss."""
        if (lost := finished < self.counted) and not refused:
            self._say(where, f"{self.counted} were finished, {finished} are, and nobody said so")
        if refused and not lost:
            self._say(where, f"all {finished} are there, and some were said to be gone")
        if not refused:
            self.counted = finished

    def is_left(self, where: str, id: str, row: str, before: Rows, now: Rows) -> None:
        """Others have met a transaction in one *row* of which somebody forged a cell: the row stays as it is, nothing
        is paid by it, and its entry stays. Where no record was needed, it may have been dropped.
        """
        self.counts["forged"] += 1
        was, state = (rows.transactions.get(id, {}).get("state") for rows in (before, now))
        there, stays = ({**rows.transactions, **rows.records}.get(row) for rows in (before, now))
        if there != stays:
            self._say(where, f"{row} was forged as {there}, and others made {stays} of it")
        if was != state and state in ("committed", "finished"):
            self._say(where, f"{id} has a row that was forged, and it is {state}")
        entry = entry_of(id, before.requests()[id])
        if (was == state or state not in OVER) and entry in before.open and entry not in now.open:
            self._say(where, f"{id} has a row that was forged, and its entry is gone")

    def is_marked(self, where: str) -> None:
        """A run left its mark: all before it is over, which nobody knows of a time to come."""
        mark = json.loads(self._rows.open.get(_SETTLED, {}).get("mark", '{"mark": 0}'))["mark"]
        if self.clock and mark > self.clock() + _APART:
            self._say(where, f"the settled mark is at {mark}, and it is {self.clock()}")

    def is_given(self, rows: Rows, *, came_back: bool = False) -> None:
        """What there is now is of somebody who is not judged, as a mark is that another version moved. Where the tables
        *came back* from backups, no client is under way, and what clients were told may be undone.
        """
        self._rows = rows
        if came_back:
            self._pending.clear()
            self._asking.clear()
            self.told.clear()
            self.unlisted.clear()
            self._claims.clear()
            self._entered |= {entry_of(id, request) for id, request in rows.requests().items()}
            self.counted = 0

    # -- one look

    def look(self, where: str, rows: Rows, run: str = "") -> None:
        """Judge what there is now, after one write of a client or of a *run*, against what there was.

        A request and a decision stay what they are; a state goes on, one after the other; numbers leave no gap.
        Whoever decides that a sender pays knows that he can: all before it is decided, and what is left of what counts
        suffices. Money moves once: a finished transaction has two finished records of its amount and no other, one
        that never runs has none. What a client was told stays so. A claimed transaction that is not over has its entry,
        and no settled mark passes one.
        """
        of_all, self._all = self._all, rows
        for name, was, now in zip(_NAMES, _tables(of_all), _tables(rows), strict=True):
            if run and name in self.silent and was != now:
                self._say(where, f"{name} was written to, and its owner has said no")
        self.alarms.looked(run, _tables(of_all), _tables(rows))
        rows = Rows(
            self.alarms.genuine("transactions", rows.transactions),
            self.alarms.genuine("user_transactions", rows.records),
            rows.open,
        )
        before, self._rows = self._rows, rows
        self.counts["looks at the ledger"] += 1
        requests = rows.requests()
        for id in sorted(before.transactions.keys() | rows.transactions.keys()):
            self._transaction(where, id, before, rows, requests)
        self._once(where, requests)
        self._records(where, rows)
        self._entries(where, run, before, rows, requests)
        self._mark(where, before, rows)
        self._promises(where, rows)
        for of, since in self._asking.values():
            since.add(rows.balances()[of])
        waiting = {self.calls[nonce].asked.sender for nonce in self._pending}
        left = {of: rows.credits(of) - rows.spent(of) for of in waiting}
        for nonce in self._pending:
            call = self.calls[nonce]
            call.least = min(call.least, left[call.asked.sender])

    def _transaction(
        self, where: str, id: str, before: Rows, rows: Rows, requests: Mapping[str, Mapping[str, Any]]
    ) -> None:
        was, now = before.transactions.get(id, {}), rows.transactions.get(id, {})
        if was is now or was == now:
            return
        for name in was:
            if name != "state" and now.get(name) != was[name]:
                self._say(where, f"{name} of {id} was {was[name]} and is {now.get(name)}")
        if was.get("state") != now.get("state"):
            self.counts["states of transfers"] += 1
            if not _reachable(was.get("state"), now.get("state")):
                self._say(where, f"{id} was {was.get('state')} and is {now.get('state')}")
        if "request" in now and "request" not in was:
            self._claimed(where, id, rows, requests[id])
        if "decision" in now and "decision" not in was:
            self._decided(where, id, before, requests[id], _parsed(now["decision"]))
        state = now.get("state")
        if _ORDER[state] > 1 and _runs(now) is not (state != "dropped"):
            self._say(where, f"{id} is {state}, and its decision is {now.get('decision')}")

    def _claimed(self, where: str, id: str, rows: Rows, request: Mapping[str, Any]) -> None:
        sender, number = id[:40], int(id[41:])
        call = self.calls.get(request["nonce"])
        if call is None or call.asked != Asked(request["sender"], request["recipient"], request["amount"]):
            self._say(where, f"{id} is a transfer that nobody asked for: {request}")
        if sender != request["sender"] or (number > 1 and f"{sender}-{number - 1:012d}" not in rows.transactions):
            self._say(where, f"{id} is not the next number of its sender")

    def _decided(
        self, where: str, id: str, before: Rows, request: Mapping[str, Any], decision: Mapping[str, Any]
    ) -> None:
        self.counts["decisions"] += 1
        if self.alarms.forged:
            return  # who decides by what was forged is not to blame
        sender, amount = request["sender"], request["amount"]
        earlier = [(other, row) for other, row in before.of(sender) if other < id]
        if undecided := [other for other, row in earlier if "decision" not in row]:
            self._say(where, f"{id} is decided, and {undecided} are not")
        spent = sum(int(row["amount"]) for _, row in earlier if _runs(row))
        had = before.credits(sender)
        runs = not decision["reason"]
        if sender != self.issuer and runs and had - spent < amount:
            self._say(where, f"{id} pays {amount} of {had} with {spent} spent")
        call = self.calls.get(request["nonce"])
        if not runs and call is not None and (sender == self.issuer or call.had - spent >= amount):
            self._say(where, f"{id} is not to pay {amount} of {call.had} with {spent} spent: {decision['reason']}")

    def _once(self, where: str, requests: Mapping[str, Mapping[str, Any]]) -> None:
        for nonce, times in Counter(request["nonce"] for request in requests.values()).items():
            if times > 1:
                self._say(where, f"the request {nonce} was claimed {times} times")

    def _records(self, where: str, rows: Rows) -> None:
        finished: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for key, record in rows.records.items():
            of, _, id = key.partition("/")
            state, its_own = rows.transactions.get(id, {}).get("state"), record.get("state")
            may = ("committed", "finished") if its_own == "finished" else ("in progress", "committed", "finished")
            if self.hides and its_own != "finished" and state == "initial" and _runs(rows.transactions[id]):
                continue
            if state not in may:
                self._say(where, f"the record {key} is there, {its_own}, and its transaction is {state}")
            if its_own == "finished":
                finished[id].append((of, int(record["amount"])))
        for id, row in rows.transactions.items():
            if row.get("state") == "finished":
                due = [(row["recipient"], int(row["amount"])), (row["sender"], -int(row["amount"]))]
                if sorted(finished[id]) != sorted(due):
                    self._say(where, f"{id} is finished and has moved {finished[id]}")
        for of, balance in rows.balances().items():
            if balance < 0 and of != self.issuer:
                self._say(where, f"{of} has {balance}")

    def _entries(
        self, where: str, run: str, before: Rows, rows: Rows, requests: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self.alarms.entries(where, run, before.open, rows.transactions, rows.open, self._now())
        if self.clock:
            self._entered_at |= dict.fromkeys(rows.open.keys() - self._entered, self.clock())
        self._entered |= rows.open.keys()
        looks = self.counts["looks at the ledger"]
        _, began = self._began.get(run, (set(), looks))
        for id, request in requests.items():
            first = id not in self._claims
            claimed = self._claims.setdefault(id, looks)
            if first and entry_of(id, request) not in self._entered:
                self._say(where, f"{id} was claimed, and there was never an entry")
            if first:
                self._in_time(where, id, request, rows)
            if rows.transactions[id].get("state") in OVER:
                continue
            if entry_of(id, request) in rows.open:
                self.unlisted.discard(id)
            elif first or claimed > began:
                self.unlisted.add(id)
            elif id not in self.unlisted:
                self._say(where, f"{id} is not over, and its entry is gone")

    def _in_time(self, where: str, id: str, request: Mapping[str, Any], rows: Rows) -> None:
        """Who claims within the grace, by a clock that is right, does so above the mark: others wait for the mark."""
        entered = self._entered_at.get(entry_of(id, request))
        if self.clock is None or entered is None or request["nonce"] in self.off:
            return
        mark = json.loads(rows.open.get(_SETTLED, {}).get("mark", '{"mark": 0, "run": ""}'))
        late = self.clock() - entered > self.grace - _APART
        if not late and mark["run"] in self._began and request["timestamp"] < mark["mark"]:
            self._say(where, f"{id} was claimed in time, at {request['timestamp']}, and the mark is at {mark['mark']}")

    def _mark(self, where: str, before: Rows, rows: Rows) -> None:
        """A mark that moves on passes nothing that is open and was listed when its run began, or that a full check has
        listed since.
        """
        cells = [parsed(r.open.get(_SETTLED, {}).get("mark")) for r in (before, rows)]
        if cells[0] != cells[1]:
            self.alarms.marked(where, cells[0], cells[1], self._now())
        was, now = (json.loads(r.open.get(_SETTLED, {}).get("mark", '{"mark": 0}')) for r in (before, rows))
        if now["mark"] <= was["mark"]:
            return
        self.counts["settled marks"] += 1
        if now["run"] not in self._began:
            self._say(where, f"the settled mark was moved by {now['run']}, which nobody began")
        listed, _ = self._began.get(now["run"], (set(), 0))
        for id, request in rows.requests().items():
            entry = entry_of(id, request)
            if rows.transactions[id].get("state") in OVER or entry not in rows.open:
                continue
            if entry not in listed and not self.alarms.restored(entry):
                continue
            if was["mark"] <= request["timestamp"] < now["mark"]:
                self._say(where, f"the settled mark went from {was['mark']} to {now['mark']} over {id}")

    def _promises(self, where: str, rows: Rows) -> None:
        for nonce, (id, state) in self.told.items():
            row = rows.transactions.get(id, {})
            if row.get("state") != state or _parsed(row["request"])["nonce"] != nonce:
                self._say(where, f"a client was told that {id} is {state}, and it is {row.get('state')}")
        for id, request in rows.requests().items():
            if request["nonce"] in self.refused:
                self._say(where, f"a client was told that nothing was written of {request['nonce']}, and there is {id}")

    # -- the end

    def at_the_end(self, rows: Rows) -> None:
        """Everything is over and no entry is left; what everybody has is what the decisions come to, in their order."""
        self.look("at the end", rows)
        for id, row in rows.transactions.items():
            if row.get("state") not in OVER:
                self._say("at the end", f"{id} is {row.get('state')}")
        for entry in rows.open:
            if entry[0].isdigit():
                self._say("at the end", f"the entry {entry} is left")
        due: Counter[str] = Counter()
        for row in rows.transactions.values():
            if _runs(row):
                due[row["sender"]] -= int(row["amount"])
                due[row["recipient"]] += int(row["amount"])
        self.counts["transfers at the end"] += len(rows.transactions)
        if {u: n for u, n in due.items() if n} != {u: n for u, n in rows.balances().items() if n}:
            self._say("at the end", f"the decisions come to {dict(due)}, and the users have {dict(rows.balances())}")


def _tables(rows: Rows) -> list[Mapping[str, Cells]]:
    return [rows.transactions, rows.records, rows.open]


@lru_cache(10_000)
def _parsed(text: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(text)
    return found


def _runs(row: Cells) -> bool:
    return "decision" in row and not _parsed(row["decision"])["reason"]


def _reachable(was: str | None, now: str | None) -> bool:
    return was == now or any(_reachable(after, now) for after in _AFTER.get(was, ()))


def entry_of(id: str, request: Mapping[str, Any]) -> str:
    """The row of the index that a claimed transaction has until it is over."""
    return f"{request['timestamp']:015d}/{id}/{request['nonce']}"
