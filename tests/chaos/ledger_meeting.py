"""What a seed lets the ledger's clients and repairs meet, over rows in memory: each other, standing still and dying
between any two steps, and what operators, other programs, other versions and clocks do to a ledger.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from lowtide.errors import StoreError, UsageError
from lowtide.ledger import mending, settled, steps, store
from lowtide.ledger.model import (
    ISSUER_ROW,
    SETTLED_ROW,
    ContradictionError,
    Decision,
    Entry,
    Request,
    Table,
    parse_transaction,
    transaction_cells,
    user_id,
)
from lowtide.ledger.rehearsal import End as Foretold
from lowtide.ledger.rehearsal import foreseen
from lowtide.ledger.settled import Settled
from lowtide.ledger.steps import CheckAndPut, Program, Put
from tests.chaos import ledger_plan
from tests.chaos.ledger_clients import Bank, Client, judge_of
from tests.chaos.ledger_job import GRACE, Job
from tests.chaos.ledger_judge import OVER, Asked, Cells, LedgerJudge, Rows, user
from tests.chaos.ledger_memory import MOST_BEHIND, Copy, Gateway, Memory
from tests.chaos.ledger_plan import ISSUER, USERS, End, Wanted

_SECOND, _HOUR = 1_000, 3_600_000
#: How long nothing happens, ms.
_WAITS = (_SECOND, 20 * _SECOND, 2 * GRACE, 26 * _HOUR)


@dataclass
class Clients(Bank):
    """The clients of a plan, by the clock of the memory. *forged*: the transaction of which somebody forged a row, its
    row, and what the judge is shown in its place.
    """

    forged: tuple[str, str, Cells] | None = None
    memory: Memory = field(init=False)
    #: Whether the judge does not look.
    away: bool = False

    def __post_init__(self) -> None:
        assert isinstance(self.store, Memory)
        self.memory = self.store

    def look(self, where: str, run: str = "") -> None:
        """Have the judge look."""
        if not self.away:
            super().look(where, run)

    def rows(self) -> Rows:
        """What there is; but for what was forged."""
        found = self.truly()
        if self.forged:
            _, row, honest = self.forged
            for table in (found.transactions, found.records):
                if row in table:
                    table.pop(row)
                    table.update({row: honest} if honest else {})
        return found

    def truly(self) -> Rows:
        """What there is."""
        tables = self.memory.tables
        return Rows(dict(tables[Table.TRANSACTIONS]), dict(tables[Table.RECORDS]), dict(tables[Table.OPEN]))

    def failed(self, where: str, error: Exception) -> None:
        """Somebody ended in an error: only what was forged may be one."""
        if self.forged and isinstance(error, ContradictionError) and self.forged[0][:40] in str(error):
            return
        self.judge.wrong.append(f"{where}: ended in an error of its own: {error!r}")

    def begin(self, where: str, wanted: Wanted, most: int, end: End = End.WAIT, issuer: str = ISSUER) -> None:
        """A client is asked, and takes so many steps; by a node that has an issuer of its own."""
        client = self._asked(wanted)
        if issuer != ISSUER:
            request = Request(user_id(wanted.sender), user_id(wanted.recipient), wanted.amount, 0, wanted.nonce)
            client.program = steps.transfer(request, user_id(issuer), self._clock(wanted.offset))
        if self._move(where, client, most, end) == End.WAIT:
            self.waiting.append(client)

    def _asked(self, wanted: Wanted) -> Client:
        """A client that was asked: its request is made then, as programs make it."""
        sender, recipient = user_id(wanted.sender), user_id(wanted.recipient)
        self.judge.asks(wanted.nonce, Asked(sender, recipient, wanted.amount))
        if wanted.offset:
            self.judge.off.add(wanted.nonce)
        now = self._clock(wanted.offset)
        request = Request(sender, recipient, wanted.amount, now(), wanted.nonce)
        return Client(wanted, steps.transfer(request, user_id(ISSUER), now))

    def _clock(self, offset: int) -> Callable[[], int]:
        return lambda: self.memory.now + offset

    def _move(self, where: str, client: Client, number: int, end: End) -> str:
        try:
            said = super()._move(where, client, number, end)
        except Exception as error:
            self.failed(where, error)
            said = End.DIE
        if said in (End.DIE, End.LOSE):
            self.judge.is_gone(client.wanted.nonce)
        return said


@dataclass
class Running:
    """A repair under way, and the answer that it has not been given yet. *job*: None for one of a single entry."""

    name: str
    program: Program[Any]
    job: Job | None = None
    answer: Any = None
    result: Any = None


class InMemory:
    """One plan, carried out.

    *patient*: whether operators wait, before and after they mend a ledger and after they remove its mark, for as long
    as the clock of a server may be behind.
    """

    patient = True

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(f"memory/{seed}")
        users = [user(name) for name in USERS]
        self.memory = Memory(users, random.Random(f"pace/{seed}"))
        self.memory(Put(Table.OPEN, ISSUER_ROW, {"nickname": ISSUER}))
        self.judge = judge_of([], Counter())
        self.judge.clock, self.judge.grace = (lambda: self.memory.now), GRACE
        self.clients = Clients(self.memory, self.judge)
        self.running: list[Running] = []
        self.backups: list[dict[Table, Copy]] = []
        self.judge.hides = self.chance.random() < 0.5
        self.page = self.chance.choice((1, 2, 3, steps.RECORDS_A_PAGE))
        self.numbers = count()
        first = list(ledger_plan.begun(self.chance, lambda: next(self.numbers), seed))
        self.steps = [*first, *(ledger_plan.step(self.chance, next(self.numbers), seed) for _ in range(30))]

    def carried_out(self) -> LedgerJudge:
        """All of it; then the faults end, and a repair is whole."""
        with paged(self.page):
            for step in self.steps:
                self.where = f"step {step.number}"
                self._safely(partial(self._step, step))
                self._safely(self._meet)
                if self.judge.wrong:
                    return self.judge
            self.where = "at the end"
            self._safely(self._end)
        return self.judge

    def _safely(self, happening: Callable[[], object]) -> None:
        try:
            happening()
        except Exception as error:
            self.clients.failed(self.where, error)

    def _step(self, step: ledger_plan.LedgerStep) -> None:
        take: dict[type, Callable[[Any], str]] = {
            ledger_plan.Transfers: self.clients.transfers,
            ledger_plan.Send: self.clients.send,
            ledger_plan.Move: self.clients.move,
            ledger_plan.Balance: self.clients.balance,
        }
        take[type(step)](step)

    def _meet(self) -> None:
        """What else happens after a step."""
        happenings: dict[Callable[[], object], float] = {
            self.one_is_repaired: 0.3,
            self.two_meet: 0.3,
            self.one_is_listed: 0.1,
            self.a_balance_is_asked_for: 0.25,
            self.many_want_the_same: 0.2,
            self.a_job_begins: 0.12,
            self.a_repair_goes_on: 0.5,
            self.time_passes: 0.15,
            self.a_table_moves: 0.3 if self.judge.hides else 0,
            self.a_backup_is_made: 0.15,
            self.tables_come_back: 0.03,
            self.somebody_forges: 0.2,
            self.a_node_has_another_issuer: 0.04,
            self.a_table_expires: 0.03,
            self.the_mark_is_removed: 0.02,
            self.a_fast_machine_moves_the_mark: 0.03,
            self.some_are_lost: 0.05,
        }
        for happening, often in happenings.items():
            if self.chance.random() < often:
                happening()

    # -- repairs

    def one_is_repaired(self) -> None:
        """Somebody repairs an entry of the index, however young."""
        if entries := self._entries():
            self._go_on(self._repair(self.chance.choice(entries)), self.chance.randint(1, 20))

    def two_meet(self) -> None:
        """Two repairs of one entry take turns, at random, of a step or some; clients take steps between theirs."""
        if not (entries := self._entries()):
            return
        entry = self.chance.choice(entries)
        both = [self._repair(entry), self._repair(entry)]
        for _ in range(50):
            if not both:
                return
            under_way = len(self.running)
            self._go_on(both.pop(self.chance.randrange(len(both))), self.chance.choice((1, 4)))
            if len(self.running) > under_way:
                both.append(self.running.pop())
            if self.chance.random() < 0.2:
                self.clients.move(ledger_plan.Move(next(self.numbers), self.chance.randrange(100), 1, End.WAIT))
        self.running += both

    def one_is_listed(self) -> None:
        """What a repair would make of an entry is what it makes of it, with nothing between."""
        if entries := self._entries():
            entry = Entry.parse(self.chance.choice(entries))
            told = steps.run(foreseen(entry, user(ISSUER)), self.memory)
            one = self._repair(entry.row)
            self._go_on(one)
            due = {"finished": Foretold.FINISH, "dropped": Foretold.DROP}.get(str(one.result and one.result.state))
            if told.end is not (due or Foretold.REMOVE):
                self.judge.wrong.append(f"{self.where}: it was told that a repair would {told.end}, and it is {due}")

    def a_balance_is_asked_for(self) -> None:
        """While others go on: it is read for as long as it changes."""
        of, name = user(self.chance.choice(USERS)), f"balance {next(self.numbers)}"
        self.judge.asks_balance(name, of)
        self._go_on(Running(name, steps.balance(of)), self.chance.randint(1, 10))

    def a_job_begins(self) -> None:
        """With a grace, or with none; with the full check, or without."""
        self._go_on(self._job(self.chance.choice((0, GRACE)), full=self.chance.random() < 0.3), self._some())

    def a_repair_goes_on(self) -> None:
        """One that stood still, or somebody who waits for a balance."""
        if self.running:
            self._go_on(self.running.pop(self.chance.randrange(len(self.running))), self._some())

    def _some(self) -> int:
        """How many steps, before it stands still."""
        return self.chance.choice((3, 10, 30, 100, 1000))

    def _entries(self) -> list[str]:
        return sorted(row for row in self.memory.tables[Table.OPEN] if row[0].isdigit())

    def _repair(self, entry: str) -> Running:
        name = f"repair {next(self.numbers)} of {entry}"
        self.judge.begins(name)
        return Running(name, steps.repair(Entry.parse(entry), user(ISSUER), at_once=self.chance.random() < 0.5))

    def _job(self, grace: int = GRACE, *, full: bool = False) -> Running:
        name = f"job {next(self.numbers)}"
        self.judge.counts["jobs"] += 1
        self.judge.begins(name)
        job = Job(name, user(ISSUER), self.memory.now, grace, full)
        return Running(name, job.steps(), job)

    def _go_on(self, one: Running, most: int = 1_000_000) -> bool:
        """So many steps of a repair; it stands still where it is not over. Whether it refused to go on."""
        for _ in range(most):
            try:
                operation = one.program.send(one.answer)
            except StopIteration as end:
                one.result = end.value
                self._ended(one)
                return False
            except ContradictionError as error:
                self.clients.failed(self.where, error)
                return True
            except StoreError as error:
                if not self.clients.away and not self.clients.forged:
                    self.clients.failed(self.where, error)
                return True
            one.answer = self.memory(operation)
            if isinstance(operation, Put | CheckAndPut | steps.Remove) and one.answer is not False:
                self.clients.look(f"{self.where}, {one.name}", one.name)
        self.running.append(one)
        return False

    def _ended(self, one: Running) -> None:
        if one.name.startswith("balance"):
            self.judge.is_told_a_balance(self.where, one.name, one.result)
        if one.job:
            forged = self.clients.forged
            told = [told for told in one.job.problems if not forged or forged[0][:40] not in told]
            self.judge.ended(f"{self.where}, {one.name}", iter(told))
            self.judge.is_marked(f"{self.where}, {one.name}")

    # -- clocks

    def time_passes(self) -> None:
        """Nobody does anything for a while."""
        self.memory.now += self.chance.choice(_WAITS)

    def a_table_moves(self) -> None:
        """To a server whose clock is behind, or right; where the other died, what was left open is repaired."""
        table = self.chance.choice((*Table, Table.TRANSACTIONS))
        self.memory.behind[table] = self.chance.choice((0, self.chance.randint(1, MOST_BEHIND)))
        if self.chance.random() < 0.4:
            self._go_on(self._job(0), self._some())

    # -- backups

    def a_backup_is_made(self) -> None:
        """Of all tables, at one moment."""
        self.backups.append({table: self.memory.copy(table) for table in Table})

    def tables_come_back(self) -> None:
        """Each of a moment of its own, or as it is now; they are mended, and checked as a whole, before anybody works
        with them.
        """
        if not self.backups:
            return
        self._all_die()
        now = {table: self.memory.copy(table) for table in Table}
        for table in (Table.TRANSACTIONS, Table.RECORDS, Table.OPEN):
            self.memory.restore(table, self.chance.choice([*self.backups, now])[table])
        self.backups.clear()
        self.judge.counts["came back"] += 1
        self._wait_for_clocks()
        steps.run(mending.begin_anew(), self.memory)
        for fault in steps.run(mending.survey(user(ISSUER)), self.memory).faults:
            steps.run(mending.mend(fault.id, fault.user), self.memory)
        found = steps.run(mending.survey(user(ISSUER)), self.memory)
        if found.faults or found.left or not found.balanced:
            self.judge.wrong.append(f"{self.where}: what was mended contradicts itself: {found}")
        self.judge.is_given(self.clients.rows(), came_back=True)
        self.judge.look(f"{self.where}, mended", self.clients.rows())
        self._wait_for_clocks()
        self._go_on(self._job(0, full=True))

    def _wait_for_clocks(self) -> None:
        """Whatever is written from now on has a later stamp than what there is, and what was removed, by any server's
        clock. Where one is behind, and nobody waits, a mending may be refused, and has to be made again; who claims the
        number of a record that was removed may put his beneath the removal, and has to have it mended; and a mark may
        be put beneath the removal of the one before.
        """
        if self.patient:
            self.memory.now += MOST_BEHIND + 1

    def _all_die(self) -> None:
        for one in (*self.clients.waiting, *self.running):
            one.program.close()
        self.clients.waiting.clear()
        self.running.clear()

    # -- other programs, other versions, other nodes

    def somebody_forges(self) -> None:
        """Another program writes a row of an open transaction, as no client does. Repairs and clients that begin now,
        or when it is old, leave it alone; then it is taken back.
        """
        found = self.clients.truly()
        open_ones = [id for id in sorted(found.transactions) if self._may_be_forged(found, id)]
        if not open_ones:
            return
        id = self.chance.choice(open_ones)
        table, row, cells = self._forgery(found, id)
        kept = self.memory.copy(table)
        self.clients.forged = id, row, self.memory.tables[table].get(row, {})
        self.memory.restore(table, Copy({**kept.rows, row: cells}, _stamped(kept, row, cells), kept.gone))
        forged = self.clients.truly()
        self.memory.now += self.chance.choice((0, 2 * GRACE))
        for happening in self.chance.choices(
            (partial(self._entry_of, id), lambda: self._go_on(self._job(0)), self._transfer), (4, 2, 1), k=2
        ):
            self._safely(happening)
        self.judge.is_left(self.where, id, row, forged, self.clients.truly())
        after = self.memory.copy(table)
        rows, stamps = dict(after.rows), dict(after.stamps)
        for now, before in ((rows, kept.rows), (stamps, kept.stamps)):
            now.pop(row, None)
            now.update({row: before[row]} if row in before else {})  # type: ignore[call-overload]
        self.memory.restore(table, Copy(rows, stamps, after.gone))
        self.clients.forged = None

    @staticmethod
    def _may_be_forged(found: Rows, id: str) -> bool:
        """Not where whoever goes on need not read what is forged: its records are finished unread."""
        return found.transactions[id].get("state") not in ("committed", *OVER)

    def _forgery(self, found: Rows, id: str) -> tuple[Table, str, dict[str, str]]:
        """A row that disagrees with its transaction, or a state that nothing has led to."""
        cells = found.transactions[id]
        request = Request.decode(cells["request"])
        runs = Decision.decode(cells["decision"]).runs if "decision" in cells else False
        if self.chance.random() < 0.5:
            state = "dropped" if runs else self.chance.choice(("in progress", "committed", "finished"))
            return Table.TRANSACTIONS, id, {**cells, **transaction_cells(id, request), "state": state}
        side = self.chance.choice(parse_transaction(id, cells).records)
        there = found.records.get(side.row, side.cells)
        return Table.RECORDS, side.row, {**there, "amount": str(side.amount + request.amount + 1)}

    def _entry_of(self, id: str) -> None:
        request = Request.decode(self.memory.tables[Table.TRANSACTIONS][id]["request"])
        self._go_on(self._repair(Entry(request.timestamp, id, request.nonce).row))

    def _transfer(self) -> None:
        number = next(self.numbers)
        self.clients.transfers(ledger_plan.Transfers(number, f"meets/{self.seed}.{number}", 1))

    def many_want_the_same(self) -> None:
        """Some clients ask at once for all that a user has, or is about to get, and stand still before they have got
        far. The server that has the transactions may die then: another, whose clock is behind, has them when what was
        left is repaired.
        """
        sender, rows = self.chance.choice(USERS[1:]), self.clients.rows()
        left = rows.credits(user(sender)) - rows.spent(user(sender))
        if self.chance.random() < 0.4:
            paying = self._wanted(ISSUER, sender, self.chance.randint(1, 40))
            # Whose claim is asked for twice; or whose records are finished, or about to be, and whose transfer is not.
            most, end = self.chance.choice(((3, End.TWICE), (18, End.WAIT), (19, End.WAIT)))
            self.clients.begin(self.where, paying, most, end)
            left += paying.amount
        for _ in range(self.chance.randint(2, 3) if left > 0 else 0):
            recipient = self.chance.choice([name for name in USERS if name != sender])
            wanted = self._wanted(sender, recipient, left)
            end = End.TWICE if self.chance.random() < 0.4 else End.WAIT
            self.clients.begin(self.where, wanted, self.chance.randint(3, 7 if end is End.TWICE else 12), end)
        if self.judge.hides and left > 0 and self.chance.random() < 0.5:
            self.memory.behind[Table.TRANSACTIONS] = self.chance.randint(1, MOST_BEHIND)
            self._go_on(self._job(0))

    def _wanted(self, sender: str, recipient: str, amount: int) -> Wanted:
        return Wanted(sender, recipient, amount, f"{self.chance.getrandbits(64):016x}", 0)

    def a_node_has_another_issuer(self) -> None:
        """Somebody configured it so, and lets that user pay; where the node refuses to begin, it is set right."""
        other = self.chance.choice(USERS[1:])
        try:
            store.Tables(Gateway(self.memory), "").check(other)
        except UsageError:
            return
        wanted = self._wanted(other, ISSUER, self.chance.randint(1, 400))
        self.clients.begin(self.where, wanted, 1_000, issuer=other)

    def a_table_expires(self) -> None:
        """Somebody gave one a TTL; where a node that begins does not refuse, what is old goes while it works."""
        try:
            store.Tables(Gateway(self.memory, self.chance.choice(list(Table))), "").check(ISSUER)
        except StoreError:
            return
        old = [id for id, row in self.clients.rows().transactions.items() if row.get("state") in OVER]
        self.memory.lose(Table.TRANSACTIONS, old)
        self.memory.lose(Table.RECORDS, [row for row in self.memory.tables[Table.RECORDS] if row[41:] in old])
        self._transfer()

    def the_mark_is_removed(self) -> None:
        """As whoever has one that nobody can read is told to do."""
        self.memory(steps.Remove(Table.OPEN, SETTLED_ROW))
        self.judge.counted = 0
        self.clients.look(self.where)
        self._wait_for_clocks()

    def a_fast_machine_moves_the_mark(self) -> None:
        """A run of a version that took the time from there; the next one comes, by HBase's clock."""
        mark, _ = steps.run(settled.read_settled(), self.memory)
        ahead = self.memory.now + self.chance.randint(1, 72) * _HOUR
        at = {"mark": ahead, "at": ahead, "checked_at": ahead, "full_at": ahead if self.chance.random() < 0.5 else 0}
        moved = Settled(**{**{name: getattr(mark, name) for name in Settled.__slots__}, **at, "run": "fast"})
        self.memory(Put(Table.OPEN, SETTLED_ROW, {"mark": moved.encode()}))
        self.judge.is_given(self.clients.rows())
        self._go_on(self._job())

    def some_are_lost(self) -> None:
        """A full check, then finished transactions expire with their records, and another; they are restored."""
        self._full()
        self.memory.now += _HOUR
        kept = {table: self.memory.copy(table) for table in (Table.TRANSACTIONS, Table.RECORDS)}
        over = [id for id, row in self.clients.rows().transactions.items() if row.get("state") == "finished"]
        gone = set(self.chance.sample(sorted(over), min(len(over), self.chance.randint(1, 4))))
        if len(over) - len(gone) >= self.judge.counted:
            return
        self.judge.counts["lost"] += 1
        self.memory.lose(Table.TRANSACTIONS, gone)
        self.memory.lose(Table.RECORDS, [row for row in self.memory.tables[Table.RECORDS] if row[41:] in gone])
        self.clients.away = True
        self._full()
        self.clients.away = False
        for table, copy in kept.items():
            self.memory.restore(table, copy)
        self.judge.is_given(self.clients.rows())

    def _full(self) -> None:
        finished = len(self.clients.truly().finished())
        refused = self._go_on(self._job(full=True))
        self.judge.ends_full(self.where, finished, refused=refused)

    # -- the end

    def _end(self) -> None:
        self.memory.behind = dict.fromkeys(Table, 0)
        self.memory.now += 2 * _HOUR
        for under_way in self.running[:]:
            self._go_on(under_way)
        self.running.clear()
        self._full()
        self.clients.at_the_end()


def _stamped(copy: Copy, row: str, cells: Cells) -> dict[str, Any]:
    stamps = copy.stamps.get(row, {})
    return {**copy.stamps, row: {**dict.fromkeys(cells, max(stamps.values(), default=0)), **stamps}}


@contextmanager
def paged(records: int) -> Iterator[None]:
    """So many records of a user are read at once, and rows of a ledger that is surveyed."""
    before = steps.RECORDS_A_PAGE, mending._PAGE
    steps.RECORDS_A_PAGE = mending._PAGE = records
    try:
        yield
    finally:
        steps.RECORDS_A_PAGE, mending._PAGE = before
