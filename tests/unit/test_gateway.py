"""What the gateway's answers mean."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from happybase.batch import Batch
from Hbase_thrift import IOError as HBaseError
from thriftpy2.thrift import TApplicationException
from thriftpy2.transport import TTransportException

from lowtide import cli
from lowtide.check import records
from lowtide.config import Config
from lowtide.errors import GatewayError, StoreError, WatermarkError
from lowtide.health import reader
from lowtide.journal import life
from lowtide.store.gateway import check_and_put, connect, described, expiring_entries, parse_low_watermark, tables_there
from lowtide.store.state import StateStore
from tests.unit.unlisted import DENIED, NOT_FOUND, Unlisted


def test_low_watermark_is_eight_bytes() -> None:
    """The low watermark is a big-endian number of eight bytes."""
    assert parse_low_watermark(bytes.fromhex("17979cfe362a0000"), "T") == 1_700_000_000 * 10**9
    assert parse_low_watermark(bytes(8), "T") == 0


def test_missing_low_watermark_stops() -> None:
    """No row is not 0: it stops the run, with the table's name and the remedy."""
    with pytest.raises(WatermarkError, match=r"OMID has no low watermark.*start the oracle"):
        parse_low_watermark(None, "OMID")


@pytest.mark.parametrize("value", [b"", b"123", bytes(9)])
def test_malformed_low_watermark_stops(value: bytes) -> None:
    """Another length stops the run, with the table's name and the bytes' number."""
    with pytest.raises(WatermarkError, match=f"OMID is malformed.*found {len(value)}"):
        parse_low_watermark(value, "OMID")


class CommitTable:
    """As a gateway tells of its families."""

    def __init__(self, **ttls: int) -> None:
        self.ttls = ttls

    def tables(self) -> list[bytes]:
        return [b"OMID_COMMIT_TABLE"]

    def table(self, _: str) -> Any:
        return SimpleNamespace(
            families=lambda: {name.encode(): {"time_to_live": ttl} for name, ttl in self.ttls.items()},
            row=lambda *_, **__: {b"LWF:LWC": bytes(8)},
        )


@pytest.mark.parametrize(
    ("ttls", "said"),
    [
        ({"F": 60, "LWF": 2**31 - 1}, ["F for 1m", "{NAME => 'F', TTL => 'FOREVER'}; then say what became"]),
        ({"F": 2**31 - 1, "LWF": 3600}, ["LWF for 1h", "alter 'OMID_COMMIT_TABLE', {NAME => 'LWF'", "then run again"]),
        ({"F": 60, "LWF": 60}, ["F for 1m and LWF for 1m", "{NAME => 'F', TTL => 'FOREVER'}, {NAME => 'LWF'"]),
    ],
)
def test_a_commit_table_that_loses_entries_or_the_low_watermark_is_refused(
    ttls: dict[str, int], said: list[str]
) -> None:
    """By ``lowtide check`` too; with each of the families, the statement that mends them, and what is to be said."""
    with pytest.raises(StoreError) as refused:
        records.commit_table(CommitTable(**ttls), Config())
    for words in said:
        assert words in str(refused.value)


def test_a_commit_table_that_keeps_all_is_in_order() -> None:
    """So it is where another of its families has a TTL; and of one that is not there nothing is said here."""
    kept = CommitTable(F=2**31 - 1, LWF=2**31 - 1, OTHER=60)
    assert records.commit_table(kept, Config()) == "OMID_COMMIT_TABLE has the low watermark 0"
    assert expiring_entries(Unlisted(NOT_FOUND), Config()) == {}


def test_a_gateway_that_is_not_there_is_told_with_the_remedy_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """For who shows the remedy beside it; whatever the system's words for it are."""
    thrift = Config().hbase.thrift

    def nobody(**_: object) -> None:
        raise ConnectionRefusedError("refused; nobody there")

    monkeypatch.setattr("happybase.Connection", nobody)
    with pytest.raises(GatewayError) as refused, connect(thrift, attempts=1):
        pass
    where = f"the Thrift gateway at {thrift.host}:{thrift.port} does not answer"
    assert refused.value.fact == f"{where} (ConnectionRefusedError: refused; nobody there)"
    assert str(refused.value) == f"{refused.value.fact}; start it, or set hbase.thrift in the configuration"
    assert reader.read(Config(), attempts=1).unreachable == refused.value.fact
    assert pickle.loads(pickle.dumps(refused.value)).remedy == refused.value.remedy


@pytest.mark.parametrize(
    "ask",
    [
        lambda connection: StateStore(connection, "LOWTIDE_STATE").runs(),
        lambda connection: StateStore(connection, "LOWTIDE_STATE").history("orders"),
        lambda connection: reader.read_through(connection, Config(), datetime.now(UTC)),
        lambda connection: life.observe(connection, "LOWTIDE_JOURNAL"),
        lambda connection: expiring_entries(connection, Config()),
    ],
    ids=["runs", "a mark", "the page", "the journal", "the commit table"],
)
def test_a_table_that_this_user_may_not_see_is_not_taken_for_absent(ask: Callable[[Any], object]) -> None:
    """HBase does not list a table to who has no right on it: asked for a row, it says which right is missing, and
    nobody goes on as though nothing were recorded.
    """
    with pytest.raises(TApplicationException, match="AccessDenied"):
        ask(Unlisted(DENIED, there=("LOWTIDE_STATE", "OMID_COMMIT_TABLE")))


def test_tables_that_this_user_may_not_see_are_there() -> None:
    """By hbase:meta, for the page and who chooses tables to clean: else a table whose cleanup fails would count as
    dropped. HBase's own are left out.
    """
    store = Unlisted(DENIED, listed=("orders",), there=("hbase:namespace", "orders", "shop:carts"))
    assert tables_there(store) == {b"orders", b"shop:carts"}


def test_the_gateway_is_asked_to_sync_what_it_writes() -> None:
    """With ``writeToWAL`` the gateway asks HBase for ``SYNC_WAL``, which outranks the durability of the table."""
    sent: list[Any] = []
    client = SimpleNamespace(checkAndPut=lambda *asked: sent.append(asked[4]))
    check_and_put(SimpleNamespace(client=client), "t", b"r", (b"s:a", None), (b"s:a", b"v"))
    batch = Batch(SimpleNamespace(name=b"t", connection=SimpleNamespace(client=client)))
    batch.put(b"r", {b"s:a": b"v"})
    batch.delete(b"r", [b"s:b"])
    sent += batch._mutations[b"r"]
    assert len(sent) == 3
    assert all(mutation.writeToWAL for mutation in sent)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (TTransportException(TTransportException.END_OF_FILE, "read 0 bytes"), "TTransportException: .*read 0 bytes"),
        (HBaseError(message=b"AccessDenied\n\tat java"), "IOError: .*AccessDenied"),
        (ConnectionResetError(104, "reset by peer"), "ConnectionResetError: .*reset by peer"),
        (TimeoutError("timed out"), "TimeoutError: timed out"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_gateway_that_breaks_off_is_one_message(
    error: Exception, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of whichever command, with what to look at; no traceback, and exit code 1."""
    assert _main(error, monkeypatch) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert re.match(f"lowtide: the command broke off: no answer from the store \\({told}.*Thrift gateway", line)


@pytest.mark.parametrize("error", [PermissionError(13, "denied", "page.html"), OSError(28, "full"), KeyError("x")])
def test_what_is_no_failure_of_the_gateway_is_not_taken_for_one(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that cannot be written, a disk that is full, a mistake in the program."""
    with pytest.raises(type(error)):
        _main(error, monkeypatch)


def _main(error: Exception, monkeypatch: pytest.MonkeyPatch) -> object:
    """The exit code of the command line where *error* comes out of its command."""

    def app() -> None:
        raise error

    monkeypatch.setattr(import_module("lowtide.cli.app"), "app", app)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


def test_a_refused_call_is_told_in_its_own_words() -> None:
    """thriftpy2 keeps a server's text as bytes, of which ``str`` makes an error of its own."""
    error = TApplicationException(TApplicationException.UNKNOWN_METHOD, b"Invalid method name: 'getTableNames'")
    assert described(error) == "TApplicationException: Invalid method name: 'getTableNames'"
    assert described(OSError("gone\nmore")) == "OSError: gone"
