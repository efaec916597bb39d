"""One long-lived client of Apache Phoenix in Java, driven from Python."""

from __future__ import annotations

import time
from typing import Any

from lowtide.lab.stack import Stack, StackError
from lowtide.lab.stack.config import LOOPBACK
from lowtide.lab.workload.program import Program, WorkloadError

__all__ = ["PhoenixClient", "SqlError"]

#: Phoenix's client keeps the catalog and its caches.
_HEAP = "384m"


class SqlError(WorkloadError):
    """Phoenix refused a statement or a commit."""


class PhoenixClient(Program):
    """SQL through Phoenix's own driver. Use as a context manager.

    Statements run in named sessions, each a connection without auto-commit: the first statement begins a transaction,
    ``commit`` or ``rollback`` ends it. Values are numbers, texts and None. Errors of the Java side arrive as SqlError.

    The first statement ever on a store makes Phoenix's own tables, which takes some twenty seconds.
    """

    def __init__(self, stack: Stack, heap: str = _HEAP, log: str = "phoenix", tenant: str = "") -> None:
        """*tenant*: whose views and rows of multi-tenant tables its sessions see; none: those of all."""
        if not stack.config.phoenix:
            raise StackError("the store has no Phoenix; start it with `lowtide stack up --phoenix`")
        address = f"jdbc:phoenix:{LOOPBACK}:{stack.config.zookeeper_port}"
        address += f";TenantId={tenant}" if tenant else ""
        super().__init__(stack, "lowtide.workload.Sql", address, heap=heap, log=log)
        self.stack = stack

    def again(self) -> PhoenixClient:
        """A new client like this one, for the place of one that was killed."""
        return PhoenixClient(self.stack)

    def execute(self, sql: str, *values: Any, session: str = "main") -> int:
        """Carry out a statement that gives no rows; how many it changed."""
        return int(self._do("sql", sql=sql, values=list(values), session=session))

    def query(self, sql: str, *values: Any, session: str = "main") -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return [tuple(row) for row in self._do("sql", sql=sql, values=list(values), session=session)]

    def commit(self, session: str = "main", *, point: int | None = None) -> bool:
        """Commit what the session did since its last commit or rollback.

        With *point* the client stops for ever at that point of Omid's commit, as a dead one does (see ``CrashPoints``:
        1, 4, 5; 6, 7 and 8 end in other ways), and the session begins anew. Whether it stopped.
        """
        return bool(self._do("commit", session=session, **({} if point is None else {"point": point})))

    def commit_and_die(self, session: str, seconds: float) -> None:
        """Ask for the commit and be killed so many seconds later, wherever it is by then."""
        self._send("commit", session=session)
        time.sleep(seconds)
        self.kill()

    def start(self, session: str = "main") -> int:
        """The start timestamp of the transaction that the session's last statement is in."""
        return int(self._do("start", session=session))

    def committed(self, start: int) -> int | None:
        """The commit timestamp of a transaction of this client's that it saw commit; None: of any other."""
        answer = self._do("committed", start=start)
        return None if answer is None else int(answer)

    def rollback(self, session: str = "main") -> None:
        """Take it back."""
        self._do("rollback", session=session)

    def _receive(self, command: str) -> Any:
        try:
            return super()._receive(command)
        except WorkloadError as error:
            raise SqlError(str(error)) from None
