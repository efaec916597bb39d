"""Tables that HBase does not list, as a gateway answers for them."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from thriftpy2.thrift import TApplicationException

NOT_FOUND = "TableNotFoundException: there is none"
DENIED = "security.AccessDeniedException: Insufficient permissions (user=alice, scope=x, action=READ)"


@dataclass(frozen=True)
class Unlisted:
    """As much of a happybase connection as tells of tables of which none but *listed* is listed; asked for a row, all
    of the others answer as *said*. Those that are *there* have a row in hbase:meta, which everybody may read.
    """

    said: str
    listed: tuple[str, ...] = ()
    there: tuple[str, ...] = ()

    def tables(self) -> list[bytes]:
        return [name.encode() for name in self.listed]

    def table(self, _: str) -> Any:
        there = [(name.encode(), {}) for name in self.there]
        return SimpleNamespace(row=self.refuse, rows=self.refuse, scan=lambda **_: there)

    def refuse(self, *_: Any, **__: Any) -> None:
        """As HBase's own error comes through the gateway."""
        raise TApplicationException(0, f"org.apache.hadoop.hbase.{self.said}\n\tat org.apache.hadoop.hbase.client")
