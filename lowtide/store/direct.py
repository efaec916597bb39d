"""HBase past the gateway, behind happybase's interface: what reads and writes Lowtide's records works over either.

A job's driver holds HBase's own client already (the connector), so a job needs no gateway. happybase makes of each
operation a call of Thrift's; here the call goes to the connector's ``GatewayCalls`` instead of a socket.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

from lowtide.store.gateway import CheckedPut

#: Calls that the gateway does not have.
BEYOND = frozenset({"checkAndPutAll"})
#: Carries out a call of the gateway's: its name and its arguments as JSON; gives JSON. See ``GatewayCalls.call``.
Call = Callable[[str, str], str]


class DirectConnections:
    """Connections of happybase whose calls are answered by *call*, as a pool gives them. They hold nothing open, and
    may be used by several threads at once.

    The errors are those of the gateway (:func:`lowtide.store.gateway.failures`); *call* may raise an OSError besides.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    def one(self) -> Any:
        """One of them."""
        return _connection_type()(self._call)

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """One of them, for a block, as a pool gives it."""
        yield self.one()


@cache
def _connection_type() -> Any:
    """happybase is imported here, as in :mod:`lowtide.store.gateway`."""
    import happybase

    class DirectConnection(happybase.Connection):  # type: ignore[misc]  # happybase has no types
        """A connection without a socket."""

        def __init__(self, call: Call) -> None:
            self._answered_by = call
            super().__init__(autoconnect=False)

        def _refresh_thrift_client(self) -> None:
            self.client = _Client(self._answered_by)

        def check_and_put_all(self, table: str, asked: Sequence[CheckedPut]) -> list[bool]:
            """What :func:`lowtide.store.gateway.check_and_put` does of each, sent together; which were done."""
            asked_of = [[row, *check, {"column": put[0], "value": put[1]}] for row, check, put in asked]
            done: list[bool] = self.client.checkAndPutAll(table, asked_of)
            return done

        def open(self) -> None:
            """Nothing is to be opened."""

        def close(self) -> None:
            """Nothing is open."""

    return DirectConnection


class _Client:
    """What happybase calls, as thriftpy2's client has it: a method for each call of the gateway's."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Any:
        from Hbase_thrift import Hbase

        if name not in Hbase.thrift_services and name not in BEYOND:
            raise AttributeError(name)
        return partial(self._ask, name)

    def _ask(self, name: str, *arguments: Any) -> Any:
        import Hbase_thrift

        answer = json.loads(self._call(name, json.dumps(_plain(arguments))))
        if "error" in answer:
            raise getattr(Hbase_thrift, answer["error"])(answer["text"])
        return _RESULTS.get(name, _unchanged)(answer["result"])


def _plain(value: Any) -> Any:
    """*value* as JSON: bytes as text of their values, a structure of Thrift's by the names of its fields."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, str):  # which happybase leaves to Thrift, that writes it so
        return value.encode().decode("latin-1")
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {_plain(key): _plain(each) for key, each in value.items()}
    if hasattr(value, "thrift_spec"):
        return {field: _plain(each) for field, each in vars(value).items()}
    return value


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")


def _unchanged(result: Any) -> Any:
    return result


def _names(result: list[str]) -> list[bytes]:
    return [_bytes(name) for name in result]


def _families(result: Mapping[str, Mapping[str, Any]]) -> dict[bytes, Any]:
    from Hbase_thrift import ColumnDescriptor

    def told(value: Any) -> Any:
        return _bytes(value) if isinstance(value, str) else value

    return {
        _bytes(column): ColumnDescriptor(**{name: told(value) for name, value in family.items()})
        for column, family in result.items()
    }


def _cell(cell: Mapping[str, Any]) -> Any:
    from Hbase_thrift import TCell

    return TCell(value=_bytes(cell["value"]), timestamp=cell["timestamp"])


def _cells(result: list[Mapping[str, Any]]) -> list[Any]:
    return [_cell(cell) for cell in result]


def _rows(result: list[Mapping[str, Any]]) -> list[Any]:
    from Hbase_thrift import TRowResult

    return [
        TRowResult(
            row=_bytes(found["row"]), columns={_bytes(name): _cell(cell) for name, cell in found["columns"].items()}
        )
        for found in result
    ]


#: What becomes of a call's answer; of others it is a number, a truth or nothing.
_RESULTS: Mapping[str, Callable[[Any], Any]] = {
    "getTableNames": _names,
    "getColumnDescriptors": _families,
    "getRowWithColumns": _rows,
    "getRowWithColumnsTs": _rows,
    "getRowsWithColumns": _rows,
    "getRowsWithColumnsTs": _rows,
    "getVer": _cells,
    "getVerTs": _cells,
    "scannerGetList": _rows,
}
