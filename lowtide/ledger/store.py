"""The ledger's tables in HBase: one operation at a time through the Thrift gateway, or those of many programs at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lowtide.errors import LedgerError, LowtideError, StoreError, TableError, UsageError
from lowtide.ledger import keeping, steps
from lowtide.ledger.model import FAMILY, ISSUER_ROW, Table, key_bytes, key_text
from lowtide.ledger.steps import CheckAndPut, Operation, Program, Put, Read, Scan, Write
from lowtide.store.connections import renew
from lowtide.store.gateway import FAMILY_SETTINGS, check_and_put, failures, has_table, kept_for, no_answer, pool

if TYPE_CHECKING:
    from lowtide.config import Config

T = TypeVar("T")
K = TypeVar("K")

#: Rows of one call, after which another is made.
_ROWS_A_CALL = 10_000
_END: Any = object()
_PREFIX = FAMILY.encode() + b":"


class Moment(Enum):
    """Where a hook is called: just before a write is sent, or just after it was acknowledged."""

    BEFORE = auto()
    AFTER = auto()


Hook = Callable[[Write, Moment], None]

#: Answers operations that are asked at the same time: each with its answer, or the exception, in the order asked. It
#: takes no scans, and puts several cells by one check, which :class:`Tables` does not. It may repeat a check that had
#: no answer, as the gateway may too, and then says "refused" of one that held. So it is for programs that read again
#: after a refusal, before they conclude anything from it: all but the one that adds a user.
AtOnce = Callable[[Sequence[Read | Write]], list[Any]]


class Tables:
    """Carries out operations on one happybase connection. Not thread-safe, as happybase is not.

    Args:
        connection: of happybase.
        prefix: before the tables' names.
        hook: called before and after each write; for tests, which stop there.
    """

    def __init__(self, connection: Any, prefix: str, hook: Hook | None = None) -> None:
        self._connection = connection
        self._prefix = prefix
        self._hook = hook

    def __call__(self, operation: Operation) -> Any:
        """The answer of HBase to *operation*."""
        if isinstance(operation, Read):
            return self._read(operation)
        if isinstance(operation, Scan):
            return list(self.scan(operation))
        if self._hook:
            self._hook(operation, Moment.BEFORE)
        answer = self._write(operation)
        if self._hook:
            self._hook(operation, Moment.AFTER)
        return answer

    def scan(self, operation: Scan) -> Iterator[tuple[str, dict[str, str]]]:
        """The rows of a scan, one after the other."""
        rows = self._table(operation.table).scan(
            row_start=key_bytes(operation.start),
            row_stop=key_bytes(operation.stop),
            limit=operation.limit,
            reverse=operation.reverse,
            batch_size=min(operation.limit or 1000, 1000),
        )
        return ((key_text(row), _cells(cells)) for row, cells in rows)

    def create(self) -> list[str]:
        """Make the tables that are not there; the names of those made."""
        there = self._connection.tables()
        missing = [name for name in map(self.name, Table) if name.encode() not in there]
        for name in missing:
            self._connection.create_table(name, {FAMILY: FAMILY_SETTINGS})
        return missing

    def check(self, issuer: str) -> None:
        """Refuse to work where the ledger was never made, was made with another *issuer* (nickname), or loses rows.

        Raises:
            TableError: a table is missing.
            StoreError: a table has a TTL; or nobody is written down as the issuer: the index of open transactions was
                emptied or made anew.
            UsageError: the issuer is another.
        """
        self.check_there()
        self.check_kept()
        (row,) = self(Read(Table.OPEN, (ISSUER_ROW,)))
        made_with = row.get("nickname")
        if made_with is None:
            # `lowtide ledger init` writes it before there is a user, and nobody removes it.
            msg = (
                f"{self.name(Table.OPEN)} has no row {ISSUER_ROW!r}: the ledger was never made to its end, or the "
                "table was emptied or made anew, and with it went which transactions are open. See that ledger.issuer "
                f"is the one that all money came from (it is {issuer!r}), then: lowtide ledger init; then lowtide run "
                "transaction_repair --full --execute, before any client works"
            )
            raise StoreError(msg)
        if made_with != issuer:
            msg = (
                f"the ledger was made with the issuer {made_with!r}, ledger.issuer is {issuer!r}; set it to "
                f"{made_with!r} on every node"
            )
            raise UsageError(msg)

    def check_there(self) -> None:
        """Refuse a ledger that was never made, or is looked for under another prefix.

        Raises:
            TableError: a table is missing.
        """
        there = self._connection.tables()
        missing = [name for name in map(self.name, Table) if not has_table(self._connection, name, there)]
        if missing:
            msg = (
                f"the ledger has no table {', '.join(missing)}; make it with: lowtide ledger init (or set "
                "ledger.prefix; an Airflow connection's extra has it as table_prefix)"
            )
            raise TableError(msg)

    def check_kept(self) -> None:
        """Refuse to go by rows that vanish by themselves. One question a table; it does not tell of durability.

        Raises:
            StoreError: a table has a TTL.
        """
        names = map(self.name, Table)
        expiring = [why for name in names if (why := keeping.expiring(name, kept_for(self._connection, name)))]
        if expiring:
            raise StoreError("; ".join(expiring))

    def name(self, table: Table) -> str:
        """The table's name in HBase."""
        return f"{self._prefix}{table}"

    def _read(self, operation: Read) -> list[dict[str, str]]:
        found = self._table(operation.table).rows([key_bytes(row) for row in operation.rows])
        cells = {key_text(row): _cells(cells) for row, cells in found}
        return [cells.get(row, {}) for row in operation.rows]

    def _write(self, operation: Write) -> Any:
        row = key_bytes(operation.row)
        if isinstance(operation, CheckAndPut):
            if operation.along:
                msg = (
                    f"a check of {row!r} is to put {', '.join(operation.cells)}: the Thrift gateway puts one cell by it"
                )
                raise ValueError(msg)
            column = _PREFIX + operation.column.encode()
            expected = None if operation.expected is None else operation.expected.encode()
            put = (column, operation.value.encode())
            return check_and_put(self._connection, self.name(operation.table), row, (column, expected), put)
        if isinstance(operation, Put):
            cells = {_PREFIX + name.encode(): value.encode() for name, value in operation.cells.items()}
            return self._table(operation.table).put(row, cells)
        return self._table(operation.table).delete(row)

    def _table(self, table: Table) -> Any:
        return self._connection.table(self.name(table))


def _cells(cells: dict[bytes, bytes]) -> dict[str, str]:
    """Columns by name. What is no UTF-8 becomes text that no rule knows."""
    return {
        column.removeprefix(_PREFIX).decode(errors="backslashreplace"): value.decode(errors="backslashreplace")
        for column, value in cells.items()
    }


class Node:
    """An application node: a pool of connections, shared by its threads. Nodes know nothing of each other."""

    def __init__(self, config: Config, connections: Any, size: int, hook: Hook | None = None) -> None:
        self.config = config
        self.size = size
        self._pool = connections
        self._hook = hook

    def run(self, program: Callable[[], Program[T]], what: str) -> T:
        """Run a program on a connection of the pool.

        A read that a broken connection cut off (the gateway closes idle ones) is asked again on a new one, twice. A
        write is sent to the gateway once: whether one without an answer was done is for
        :func:`lowtide.ledger.steps.repair` to find out.

        Args:
            program: makes it.
            what: names it in the error: "transfer of ...".

        Raises:
            LedgerError: a write had no answer; whatever it belongs to was left as it is.
            GatewayError: a read had none.
            LowtideError: as the program says.
        """
        store: _Patient | None = None
        try:
            with self._pool.connection() as connection:
                store = _Patient(connection, self._tables(connection))
                return steps.run(program(), store)
        except failures() as error:
            raise _left(what, error, store is not None and store.written) from error

    def run_many(
        self,
        items: Iterable[K],
        program: Callable[[K], Program[T]],
        what: Callable[[K], str],
        at_once: AtOnce,
        window: int = 5000,
    ) -> Iterator[tuple[K, T | LowtideError]]:
        """Run a program an item side by side; each item with its result, or with what went wrong, as they end.

        Up to *window* programs are under way. What they ask for at the same time is asked *at_once*, each operation by
        itself atomic; only scans go over the connections of the pool. A program waits for each of its answers before it
        goes on, as if it ran alone.
        """
        with ThreadPoolExecutor(self.size) as threads:
            yield from _SideBySide(self, at_once, threads, window).run(items, program, what)

    def answers_at_once(self, operations: Sequence[Read | Write], at_once: AtOnce) -> list[Any]:
        """The answer to each of *operations*, or the exception, of one call."""
        found: list[Any] = [None if isinstance(o, Read) else self._hooked(o, Moment.BEFORE) for o in operations]
        sent = [at for at, stopped in enumerate(found) if stopped is None]
        answers = at_once([operations[at] for at in sent]) if sent else []
        for at, answer in zip(sent, answers, strict=True):
            operation = operations[at]
            found[at] = answer
            if not isinstance(operation, Read) and not isinstance(answer, Exception):
                found[at] = self._hooked(operation, Moment.AFTER) or answer
        return found

    def answers(self, operations: Sequence[Operation]) -> list[Any]:
        """The answer to each of *operations*, or the exception; those after a failed one are carried out all the
        same.
        """
        found: list[Any] = []
        while len(found) < len(operations):
            try:
                with self._pool.connection() as connection:
                    store = _Patient(connection, self._tables(connection))
                    for operation in operations[len(found) :]:
                        found.append(store(operation))
            except failures(LowtideError) as error:  # the next ones on a connection that the pool has renewed
                found.append(error)
        return found

    def _hooked(self, write: Write, moment: Moment) -> Exception | None:
        try:
            if self._hook:
                self._hook(write, moment)
        except failures() as error:
            return error
        return None

    def _tables(self, connection: Any) -> Tables:
        return Tables(connection, self.config.ledger.prefix, self._hook)

    def tables(self, work: Callable[[Tables], T]) -> T:
        """What *work* makes of the tables, on a connection of the pool."""
        with self._pool.connection() as connection:
            return work(self._tables(connection))


class _Patient:
    """Repeats reads on a new connection. *written*: whether a write was sent."""

    def __init__(self, connection: Any, tables: Tables) -> None:
        self._connection = connection
        self._tables = tables
        self.written = False

    def __call__(self, operation: Operation) -> Any:
        if not isinstance(operation, Read | Scan):
            self.written = True
            return self._tables(operation)
        for attempt in range(3):
            try:
                return self._tables(operation)
            except failures():
                if attempt == 2:
                    raise
                renew(self._connection)
                self._connection.open()
        raise AssertionError


@dataclass
class _Running(Generic[K]):
    """A program that waits for an answer."""

    item: K
    program: Program[Any]
    operation: Operation
    written: bool = False


class _SideBySide:
    """The programs under way, and what they ask for, in rounds."""

    def __init__(self, node: Node, at_once: AtOnce, threads: ThreadPoolExecutor, window: int) -> None:
        self._node = node
        self._at_once = at_once
        self._threads = threads
        self._window = window

    def run(
        self, items: Iterable[K], program: Callable[[K], Program[T]], what: Callable[[K], str]
    ) -> Iterator[tuple[K, T | LowtideError]]:
        """See :meth:`Node.run_many`."""
        waiting = iter(items)
        running: list[_Running[K]] = []
        while True:
            while len(running) < self._window and (item := next(waiting, _END)) is not _END:
                made = program(item)
                yield from self._go_on(_Running(item, made, Read(Table.OPEN, ())), None, running, what)
            if not running:
                return
            asked, running = running, []
            for each, answer in self._ask(asked):
                yield from self._go_on(each, answer, running, what)

    def _go_on(
        self, each: _Running[K], answer: Any, running: list[_Running[K]], what: Callable[[K], str]
    ) -> Iterator[tuple[K, Any]]:
        """Hand a program its answer; it is over, or waits for the next."""
        try:
            if isinstance(answer, Exception):
                raise answer
            each.operation = each.program.send(answer)
        except StopIteration as end:
            yield each.item, end.value
        except LowtideError as error:
            yield each.item, error
        except failures() as error:
            yield each.item, _left(what(each.item), error, each.written)
        else:
            each.written |= not isinstance(each.operation, Read | Scan)
            running.append(each)

    def _ask(self, asked: Sequence[_Running[K]]) -> Iterator[tuple[_Running[K], Any]]:
        """Each program with its answer, or with the exception."""
        scans = [each for each in asked if isinstance(each.operation, Scan)]
        shares = [scans[start :: self._node.size] for start in range(min(self._node.size, len(scans)))]
        scanned = [self._threads.submit(self._node.answers, [each.operation for each in share]) for share in shares]
        for call in self._calls(each for each in asked if not isinstance(each.operation, Scan)):
            operations: list[Any] = [each.operation for each in call]
            yield from zip(call, self._node.answers_at_once(operations, self._at_once), strict=True)
        for share, answers in zip(shares, scanned, strict=True):
            yield from zip(share, answers.result(), strict=True)

    @staticmethod
    def _calls(asked: Iterable[_Running[K]]) -> Iterator[list[_Running[K]]]:
        """In pieces whose answers are of a bearable size."""
        call: list[_Running[K]] = []
        rows = 0
        for each in asked:
            call.append(each)
            rows += len(each.operation.rows) if isinstance(each.operation, Read) else 1
            if rows >= _ROWS_A_CALL:
                yield call
                call, rows = [], 0
        if call:
            yield call


def _left(what: str, error: Exception, written: bool) -> LowtideError:
    if written:
        return LedgerError(str(no_answer(what, error, "it was left as it is, a repair brings it to its end")))
    return no_answer(what, error, "nothing was written")


@contextmanager
def node(config: Config, hook: Hook | None = None, size: int | None = None) -> Iterator[Node]:
    """An application node on the configured gateway, its pool closed at the end.

    Raises:
        GatewayError: the gateway does not answer.
        TableError, StoreError, UsageError: as :func:`node_on`.
    """
    size = size or config.ledger.pool
    with pool(config.hbase.thrift, size) as connections:
        yield node_on(connections, config, size, hook)


def node_on(connections: Any, config: Config, size: int, hook: Hook | None = None) -> Node:
    """An application node on a pool of *size* connections.

    Raises:
        TableError: the ledger was never made.
        StoreError: one of its tables has a TTL. It is asked here alone: one that comes later, the jobs notice. Or the
            issuer's row is gone.
        UsageError: it was made with another issuer.
    """
    found = Node(config, connections, size, hook)
    found.tables(lambda tables: tables.check(config.ledger.issuer))
    return found
