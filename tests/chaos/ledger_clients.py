"""The ledger's clients in a plan: each is the real program of a transfer, over the real gateway, a step at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from unittest.mock import patch

from thriftpy2.thrift import TClient

from lowtide.config import Config
from lowtide.errors import UsageError
from lowtide.ledger import init, steps
from lowtide.ledger.model import FAMILY, Request, Table, user_id
from lowtide.ledger.steps import CheckAndPut, Operation, Program, Put, Read, Scan
from lowtide.ledger.store import Tables, node
from lowtide.store.gateway import connect
from lowtide.values.clock import now_millis
from tests.chaos import ledger_judge, ledger_plan
from tests.chaos.ledger_judge import Asked, LedgerJudge, Rows
from tests.chaos.ledger_plan import ISSUER, USERS, End, Wanted

#: What the judge sees of it: whatever decides anything.
_SEEN = (Table.TRANSACTIONS, Table.RECORDS, Table.OPEN)


#: No transfer has so many steps.
_ALL = 10_000
#: What is aged was done so many ms ago, by all clocks.
AGO = 3_600_000
_PREFIX = f"{FAMILY}:".encode()


@dataclass
class Client:
    """A client in the middle of a transfer: its program, and the answer that it has not been given yet."""

    wanted: Wanted
    program: Program[steps.Outcome]
    answer: Any = None


#: Carries out one operation, as :class:`lowtide.ledger.store.Tables` does.
Store = Callable[[Operation], Any]


class BrokenOffError(BaseException):
    """What comes from outside, whatever is under way."""


class Line:
    """A connection to the gateway, which carries out operations and can be had anew: a gateway that was killed has cut
    the one that there was.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._held = ExitStack()
        self.renew()

    def renew(self) -> None:
        """Have another in its place."""
        self.close()
        self._connection = self._held.enter_context(connect(self._config.hbase.thrift))
        self._tables = Tables(self._connection, self._config.ledger.prefix)

    def close(self) -> None:
        """Let go of it."""
        with suppress(Exception):  # it may be cut
            self._held.close()
        self._held = ExitStack()

    def __call__(self, operation: Operation) -> Any:
        return self._tables(operation)

    def balances(self, first: str, second: str) -> int:
        """The balance of the *second* user, over the connections of a node over which somebody asked for the *first*
        one's, who was broken off when the gateway had the question.
        """
        with node(self._config, size=1) as over:
            broken_off = patch.object(TClient, "_recv", side_effect=BrokenOffError)
            with suppress(BrokenOffError), broken_off:
                over.run(partial(steps.balance, user_id(first)), "a balance")
            return over.run(partial(steps.balance, user_id(second)), "another balance")

    def put_at(self, table: str, row: str, cells: Mapping[str, str], at: int | None) -> None:
        """Cells of a time that the writer says, ms; None: of now."""
        data = {_PREFIX + name.encode(): value.encode() for name, value in cells.items()}
        self._table(table).put(row.encode(), data, timestamp=at)

    def remove_at(self, table: str, row: str, at: int) -> None:
        """All of a row that is not later than a time."""
        self._table(table).delete(row.encode(), timestamp=at)

    def times(self, table: str, row: str) -> dict[str, int]:
        """The times of a row's cells, by column."""
        found = self._table(table).row(row.encode(), include_timestamp=True)
        return {name.removeprefix(_PREFIX).decode(): at for name, (_, at) in found.items()}

    def _table(self, table: str) -> Any:
        return self._connection.table(f"{self._config.ledger.prefix}{table}")


class Past:
    """Carries out operations as of a time that is past, each write a bit later than the one before."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._at = now_millis() - AGO

    def __call__(self, operation: Operation) -> Any:
        match operation:
            case CheckAndPut(table, row, column, expected):
                (found,) = self._line(Read(table, (row,)))
                if found.get(column) != expected:
                    return False
                return self._put(table, row, operation.cells)
            case Put(table, row, cells):
                return self._put(table, row, cells)
            case _:
                return self._line(operation)

    def _put(self, table: str, row: str, cells: Mapping[str, str]) -> bool:
        self._at += 1
        self._line.put_at(table, row, cells, self._at)
        return True


@contextmanager
def opened(config: Config) -> Iterator[Line]:
    """The ledger of a configuration, made anew with the users of a plan, over one connection to the gateway."""
    init(config)
    line = Line(config)
    try:
        for name in USERS:
            steps.run(steps.add_user(name), line)
        yield line
    finally:
        line.close()


def tables(config: Config) -> list[str]:
    """The names of its tables."""
    return [f"{config.ledger.prefix}{table}" for table in Table]


def judge_of(wrong: list[str], counts: dict[str, int]) -> LedgerJudge:
    """A judge of the users of a plan, who says what is wrong where others do."""
    users = [ledger_judge.user(name) for name in USERS]
    return LedgerJudge(ledger_judge.user(ISSUER), frozenset(users), wrong, counts)


@dataclass
class Bank:
    """The ledger of one plan, and its clients."""

    store: Store
    judge: LedgerJudge
    waiting: list[Client] = field(default_factory=list)
    #: What was done an hour ago.
    aged: set[str] = field(default_factory=set)
    _last: int = 0

    def look(self, where: str, run: str = "") -> None:
        """Have the judge look at what there is now, after a write of a client or of a *run*."""
        self.judge.look(where, self.rows(), run)

    def rows(self) -> Rows:
        """What there is now."""
        return Rows(*(dict(self.store(Scan(table, "", "~"))) for table in _SEEN))

    def decided(self) -> list[tuple[str, ...]]:
        """What became of each transfer, without times."""
        rows = self.rows()
        parts = ("sender", "recipient", "amount", "state", "decision")
        return [(id, *(row.get(part, "") for part in parts)) for id, row in sorted(rows.transactions.items())]

    # -- steps

    def transfers(self, step: ledger_plan.Transfers) -> str:
        """Some, from begin to end."""
        wanted = ledger_plan.paid(step.seed) if step.after else []
        wanted += [ledger_plan.wanted(f"{step.seed}.{number}") for number in range(step.transfers)]
        if step.aged:
            # The last of whom have what they got, whoever spends what he has.
            wanted += [ledger_plan.surely(f"{step.seed}.last.{number}", slow=False) for number in range(3)]
            return self._aged(f"step {step.number}", wanted)
        said = [self._move(f"step {step.number}", self._asked(each), _ALL, End.WAIT) for each in wanted]
        return ", ".join(said)

    def _aged(self, where: str, wanted: list[Wanted]) -> str:
        """Transfers as they were an hour ago."""
        now, before = self.store, self.rows().transactions.keys()
        assert isinstance(now, Line)
        self.store = Past(now)
        try:
            said = [self._move(where, self._asked(replace(each, offset=-AGO)), _ALL, End.WAIT) for each in wanted]
        finally:
            self.store = now
        self.aged |= self.rows().transactions.keys() - before
        return ", ".join(said)

    def send(self, step: ledger_plan.Send) -> str:
        """A client is asked."""
        sure = ledger_plan.surely(step.seed, slow=step.slow)
        client = self._asked(sure if step.sure else ledger_plan.wanted(step.seed))
        self.waiting.append(client)
        return str(client.wanted)

    def move(self, step: ledger_plan.Move) -> str:
        """One that was asked takes its steps."""
        if not self.waiting:
            return "nobody is there"
        client = self.waiting.pop(step.pick % len(self.waiting))
        said = self._move(f"step {step.number}", client, step.steps, step.end)
        if said == End.WAIT:
            self.waiting.append(client)
        return said

    def balance(self, step: ledger_plan.Balance) -> str:
        """Somebody asks for one."""
        return self._told_balance(f"step {step.number}", USERS[step.pick % len(USERS)])

    def break_off(self, step: ledger_plan.BreakOff) -> str:
        """Somebody asks for a balance and is broken off; who asks next is told another's."""
        assert isinstance(self.store, Line)
        where = f"step {step.number}"
        first, second = (USERS[(step.pick + more) % len(USERS)] for more in (0, 1))
        try:
            balance = self.store.balances(first, second)
        except Exception as error:  # an answer that is no answer to what was asked
            self.judge.is_told_nothing(where, user_id(second), f"{type(error).__name__}: {error}")
            return type(error).__name__
        self.judge.is_told_balance(where, user_id(second), balance)
        return str(balance)

    def at_the_end(self) -> None:
        """Everybody asks for theirs, and nothing is left to do."""
        for name in USERS:
            self._told_balance("at the end", name)
        self.judge.at_the_end(self.rows())

    def _told_balance(self, where: str, name: str) -> str:
        balance = steps.run(steps.balance(user_id(name)), self.store)
        self.judge.is_told_balance(where, user_id(name), balance)
        return str(balance)

    def _asked(self, wanted: Wanted) -> Client:
        """A client that was asked."""
        sender, recipient = user_id(wanted.sender), user_id(wanted.recipient)
        self.judge.asks(wanted.nonce, Asked(sender, recipient, wanted.amount))
        request = Request(sender, recipient, wanted.amount, 0, wanted.nonce)
        return Client(wanted, steps.transfer(request, user_id(ISSUER), self._clock(wanted.offset)))

    def _clock(self, offset: int) -> Callable[[], int]:
        """A client's, off by so many ms. No two readings are the same: entries lie in the order of their claims."""

        def now() -> int:
            self._last = max(self._last + 1, now_millis())
            return self._last + offset

        return now

    def _move(self, where: str, client: Client, number: int, end: End) -> str:
        """Some steps of a client; what it says then. One that dies says nothing ever."""
        try:
            for _ in range(number):
                self._step(where, client)
            if end is End.DIE:
                client.program.close()
            elif end in (End.LOSE, End.TWICE, End.WRITE):
                while not self._step(where, client, twice=end is End.TWICE):
                    pass
                if end is End.LOSE:
                    client.program.close()
                else:
                    return End.WAIT
        except StopIteration as done:
            found: steps.Outcome = done.value
            assert found.state is not None
            self.judge.is_told(where, client.wanted.nonce, found.id, str(found.state))
            return f"{found.state} {found.reason}".strip()
        except UsageError as error:
            self.judge.is_refused(where, client.wanted.nonce)
            return f"refused: {error}"
        return end

    def _step(self, where: str, client: Client, *, twice: bool = False) -> bool:
        """One read or write of a client; whether it was a write."""
        operation = client.program.send(client.answer)
        client.answer = self.store(operation)
        if isinstance(operation, Read | Scan):
            return False
        if twice:
            client.answer = self.store(operation)
        self.look(where)
        return True
