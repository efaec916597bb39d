"""The ledger's tables in HBase, through the Thrift gateway: one operation at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, TypeVar

from lowtide.errors import GatewayError, LedgerError, LowtideError, TableError
from lowtide.gateway import check_and_put, pool
from lowtide.ledger import steps
from lowtide.ledger.model import FAMILY, Table
from lowtide.ledger.steps import CheckAndPut, Operation, Program, Put, Read, Scan, Write

if TYPE_CHECKING:
    from lowtide.config import Config

T = TypeVar("T")

_PREFIX = FAMILY.encode() + b":"


class Moment(Enum):
    """Where a hook is called: just before a write is sent, or just after it was acknowledged."""

    BEFORE = auto()
    AFTER = auto()


Hook = Callable[[Write, Moment], None]


class Tables:
    """Works off operations on one happybase connection. Not thread-safe, as happybase is not.

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
            row_start=operation.start.encode(),
            row_stop=operation.stop.encode(),
            limit=operation.limit,
            reverse=operation.reverse,
            batch_size=min(operation.limit or 1000, 1000),
        )
        return ((row.decode(errors="backslashreplace"), _cells(cells)) for row, cells in rows)

    def create(self) -> list[str]:
        """Make the tables that are not there; the names of those made."""
        there = self._connection.tables()
        missing = [name for name in map(self.name, Table) if name.encode() not in there]
        for name in missing:
            self._connection.create_table(name, {FAMILY: {"max_versions": 1}})
        return missing

    def check(self) -> None:
        """Refuse to work where the ledger was never made.

        Raises:
            TableError: a table is missing.
        """
        there = self._connection.tables()
        missing = [name for name in map(self.name, Table) if name.encode() not in there]
        if missing:
            msg = f"the ledger has no table {', '.join(missing)}; make it with: lowtide ledger init (or set ledger.prefix)"
            raise TableError(msg)

    def name(self, table: Table) -> str:
        """The table's name in HBase."""
        return f"{self._prefix}{table}"

    def _read(self, operation: Read) -> list[dict[str, str]]:
        found = self._table(operation.table).rows([row.encode() for row in operation.rows])
        cells = {row.decode(errors="backslashreplace"): _cells(cells) for row, cells in found}
        return [cells.get(row, {}) for row in operation.rows]

    def _write(self, operation: Write) -> Any:
        row = operation.row.encode()
        if isinstance(operation, CheckAndPut):
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

    def __init__(self, config: Config, connections: Any, hook: Hook | None = None) -> None:
        self.config = config
        self._pool = connections
        self._hook = hook

    def run(self, program: Callable[[], Program[T]], what: str) -> T:
        """Run a program on a connection of the pool.

        A read that a broken connection cut off (the gateway closes idle ones) is asked again on a new one, twice. A write is sent
        once: whether one without an answer was done is for :func:`lowtide.ledger.steps.repair` to find out.

        Args:
            program: makes it.
            what: names it in the error: "transfer of ...".

        Raises:
            LedgerError: a write had no answer; whatever it belongs to was left as it is.
            GatewayError: a read had none.
            LowtideError: as the program says.
        """
        from thriftpy2.thrift import TException

        with self._pool.connection() as connection:
            store = _Patient(
                connection, Tables(connection, self.config.ledger.prefix, self._hook), (TException, OSError)
            )
            try:
                return steps.run(program(), store)
            except LowtideError:
                raise
            except (TException, OSError) as error:
                _renew(connection)
                said = f"{type(error).__name__}: {str(error).strip() or 'no text'}".splitlines()[0]
                if store.written:
                    msg = f"{what}: no answer from the store ({said}); it was left as it is, a repair brings it to its end"
                    raise LedgerError(msg) from error
                msg = f"{what}: no answer from the store ({said}); nothing was written"
                raise GatewayError(msg) from error

    def tables(self, work: Callable[[Tables], T]) -> T:
        """What *work* makes of the tables, on a connection of the pool."""
        with self._pool.connection() as connection:
            return work(Tables(connection, self.config.ledger.prefix, self._hook))


class _Patient:
    """Repeats reads on a new connection. *written*: whether a write was sent."""

    def __init__(self, connection: Any, tables: Tables, retried: tuple[type[Exception], ...]) -> None:
        self._connection = connection
        self._tables = tables
        self._retried = retried
        self.written = False

    def __call__(self, operation: Operation) -> Any:
        if not isinstance(operation, Read | Scan):
            self.written = True
            return self._tables(operation)
        for attempt in range(3):
            try:
                return self._tables(operation)
            except self._retried:
                if attempt == 2:
                    raise
                _renew(self._connection)
                self._connection.open()
        raise AssertionError


def _renew(connection: Any) -> None:
    """As happybase's pool does with a connection of which nobody knows what is still under way on it."""
    connection.close()
    connection._refresh_thrift_client()


@contextmanager
def node(config: Config, hook: Hook | None = None, size: int | None = None) -> Iterator[Node]:
    """An application node on the configured gateway, its pool closed at the end.

    Raises:
        GatewayError: the gateway does not answer.
        TableError: the ledger was never made.
    """
    with pool(config.hbase.thrift, size or config.ledger.pool) as connections:
        found = Node(config, connections, hook)
        found.tables(lambda tables: tables.check())
        yield found
