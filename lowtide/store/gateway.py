"""The Thrift gateway, through happybase: for small reads and single-row writes with a check.

happybase is imported when a connection is made (:mod:`lowtide.store.connections`), not before, so that DAG files and
the plugin load without it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from tenacity import retry, retry_if_not_exception_type, stop_after_attempt, wait_exponential

from lowtide.errors import GatewayError, StoreError, TableError, WatermarkError
from lowtide.store import connections
from lowtide.store.kerberos import HandshakeError
from lowtide.store.logins import refusal
from lowtide.store.permissions import denial
from lowtide.tables.settings import FOREVER
from lowtide.values.clock import from_millis
from lowtide.values.durations import duration_text
from lowtide.values.formats import (
    ALLOTTED_QUALIFIER,
    ALLOTTED_ROW,
    LOW_WATERMARK_QUALIFIER,
    LOW_WATERMARK_ROW,
    decode_long,
)
from lowtide.values.skew import Allotted

if TYPE_CHECKING:
    from lowtide.config import Config, Thrift

#: How Lowtide's own tables keep a family. Given in full: of what Thrift is not given it makes three versions, no bloom
#: filter and no block cache.
FAMILY_SETTINGS = {"max_versions": 1, "bloom_filter_type": "ROW", "block_cache_enabled": True}

_META = "hbase:meta"
#: A row that no table here has.
_NO_ROW = b"\x00"
#: Names of tables that one answer has.
_NAMES = 10_000
_STATE = b"table:state"
#: HBase's ``TableState`` of an enabled table.
_ENABLED = b"\x08\x00"


@contextmanager
def connect(thrift: Thrift, attempts: int = 4) -> Iterator[Any]:
    """A happybase connection, closed at the end; the first contact is tried *attempts* times, with growing pauses.

    Raises:
        GatewayError: nothing answers at the gateway's address, or who is who was not settled: that is not tried again.
    """

    @retry(
        retry=retry_if_not_exception_type(HandshakeError),
        stop=stop_after_attempt(attempts),
        wait=wait_exponential(multiplier=0.5, max=8),
        reraise=True,
    )
    def opened() -> Any:
        connection = connections.connection(thrift)
        try:
            connection.tables()  # the first real answer: a gateway that lost its HBase accepts connections all the same
        except Exception:
            connection.close()
            raise
        return connection

    try:
        connection = opened()
    except HandshakeError as error:
        raise GatewayError(error.fact, error.remedy) from error
    except Exception as error:
        said = f"{type(error).__name__}: {text_of(error)}"
        fact = f"the Thrift gateway at {thrift.host}:{thrift.port} does not answer ({said})"
        raise GatewayError(fact, "start it, or set hbase.thrift in the configuration") from error
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def pool(thrift: Thrift, size: int, attempts: int = 4) -> Iterator[Any]:
    """A happybase connection pool, its connections closed at the end.

    Raises:
        GatewayError: nothing answers at the gateway's address (tried as in :func:`connect`).
    """
    with connect(thrift, attempts):
        pass
    made = connections.pool(thrift, size)
    try:
        yield made
    finally:
        while not made._queue.empty():
            made._queue.get().close()


def failures(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """What a call through the gateway raises whose answer is missing: Thrift's errors, those that HBase sends among
    them, and the socket's; and *more*. For a block that asks the gateway and does nothing else; see
    :func:`is_failure`.
    """
    from thriftpy2.thrift import TException

    return (TException, OSError, *more)


def is_failure(error: Exception) -> bool:
    """Whether *error*, of which nobody knows what raised it, is one of :func:`failures`: of the system's errors only
    those of a connection, for others may be a file's.
    """
    if isinstance(error, OSError):
        return isinstance(error, ConnectionError | TimeoutError)
    return isinstance(error, failures())


def described(error: Exception) -> str:
    """Type and first line of *error*: what HBase sends has a Java stack trace for its text."""
    return f"{type(error).__name__}: {text_of(error).strip() or 'no text'}".splitlines()[0]


def text_of(error: Exception) -> str:
    """What *error* says. thriftpy2 has a server's refusal of a call as bytes, of which ``str`` makes another error; and
    what HBase's gateway says ``str`` gives as it is written in Python, with all of Java's lines in one.
    """
    message = getattr(error, "message", None)
    if isinstance(message, bytes):
        return message.decode(errors="replace")
    return message if isinstance(message, str) and message else str(error)


def no_answer(what: str, error: Exception, then: str) -> GatewayError:
    """The error that one of :func:`failures` becomes.

    Args:
        what: had no answer.
        error: what was raised.
        then: what is to be known, or to be done. Where HBase has answered, that a right is missing, the remedy is that
            right; where nobody was let in, what lets in.
    """
    if denied := denial(text_of(error)):
        return GatewayError(f"{what}: {denied}")
    if refused := refusal(text_of(error)):
        return GatewayError(f"{what}: {refused}")
    return GatewayError(f"{what}: no answer from the store ({described(error)}); {then}")


#: A row, the column to check with the value that it must have (None: none), and the column to put with its value.
CheckedPut: TypeAlias = tuple[bytes, tuple[bytes, bytes | None], tuple[bytes, bytes]]


def check_and_put(
    connection: Any, table: str, row: bytes, check: tuple[bytes, bytes | None], put: tuple[bytes, bytes]
) -> bool:
    """Put one cell if, atomically, another of the same row has the expected value.

    Args:
        connection: of :func:`connect`.
        table: name of an HBase table.
        row: the row of both cells.
        check: column (``family:qualifier``) and the value it must have; None: it must be absent.
        put: column and value to write.

    Returns:
        Whether the check held and the cell was written.
    """
    from happybase.util import ensure_bytes
    from Hbase_thrift import Mutation

    return bool(
        connection.client.checkAndPut(
            ensure_bytes(table), row, check[0], check[1], Mutation(isDelete=False, column=put[0], value=put[1]), {}
        )
    )


def without_bloom_or_cache(connection: Any, table: str) -> list[str]:
    """The families of *table* that have no bloom filter or are kept out of the block cache: each read of a row looks
    into every file then.

    Thrift tells of it, and cannot alter it.
    """
    families = connection.table(table).families()
    return sorted(
        name.decode()
        for name, settings in families.items()
        if settings["bloom_filter_type"] in ("NONE", b"NONE") or not settings["block_cache_enabled"]
    )


def kept_for(connection: Any, table: str) -> timedelta | None:
    """How long *table* keeps a cell, by the least TTL of its families; None: for ever."""
    return min(expiring(connection, table).values(), default=None)


def expiring(connection: Any, table: str) -> dict[str, timedelta]:
    """The families of *table* that keep a cell for a time only, and for how long."""
    ttls = {name.decode().rstrip(":"): f["time_to_live"] for name, f in connection.table(table).families().items()}
    return {name: timedelta(seconds=ttl) for name, ttl in ttls.items() if 0 < ttl < FOREVER}


def expiring_entries(connection: Any, config: Config) -> dict[str, timedelta]:
    """The families of the commit table that lose entries and marks, or the low watermark, by themselves; none where
    there is no such table.
    """
    name = config.omid.commit_table
    if not has_table(connection, name):
        return {}
    found = expiring(connection, name)
    return {f: found[f] for f in (config.omid.commit_family, config.omid.watermark_family) if f in found}


def check_entries_kept(expired: Mapping[str, timedelta], config: Config) -> None:
    """Refuse a commit table of which :func:`expiring_entries` gave *expired*.

    Raises:
        StoreError: one of its families has a TTL.
    """
    if not expired:
        return
    name, entries = config.omid.commit_table, config.omid.commit_family
    families = " and ".join(f"{family} for {duration_text(ttl)}" for family, ttl in expired.items())
    mended = ", ".join(f"{{NAME => '{family}', TTL => 'FOREVER'}}" for family in expired)
    lost = ": lowtide commit-table whole, or, where entries may be gone: lowtide state reset --same-oracle"
    msg = (
        f"the commit table {name} keeps cells for a time only (TTL: {families}): commit entries, marks and the low "
        "watermark vanish, entries at once where the oracle counts, and what they proved would be taken for aborted. "
        f"In HBase's shell: alter '{name}', {mended}; then "
        f"{f'say what became of its entries{lost}' if entries in expired else 'run again'}"
    )
    raise StoreError(msg)


def table_state(connection: Any, table: str) -> tuple[bool, int]:
    """Whether *table* is enabled, and since when it is so, ms: HBase writes that anew when a table is made, enabled or
    restored. 0: it does not tell.
    """
    found = connection.table(_META).row(table.encode(), [_STATE], include_timestamp=True).get(_STATE)
    value, at = found or (_ENABLED, 0)
    return value == _ENABLED, at


def tables_there(connection: Any) -> frozenset[bytes]:
    """The names of all tables but HBase's own, by hbase:meta, which everybody may read. ``tables()`` of a connection
    has only those on which its user has some right.
    """
    names = (row for row, _ in connection.table(_META).scan(columns=[_STATE], batch_size=_NAMES))
    return frozenset(name for name in names if not name.startswith(b"hbase:"))


def has_table(connection: Any, table: str, listed: Collection[bytes] | None = None) -> bool:
    """Whether HBase has *table*. To a user with no right at all on a table HBase does not list it: one that is not
    listed is asked for a row.

    Args:
        connection: of :func:`connect`.
        table: its name.
        listed: the tables of HBase, where they are known already.

    Raises:
        IOError: HBase's, with the right that is missing: it has the table.
    """
    if table.encode() in (connection.tables() if listed is None else listed):
        return True
    try:
        connection.table(table).row(_NO_ROW)
    except failures() as error:
        if "TableNotFound" in text_of(error):
            return False
        raise
    return True


def allotted(connection: Any, config: Config, listed: Collection[bytes] | None = None) -> Allotted | None:
    """The highest timestamp that the oracle has allotted to itself, as it stored it in HBase; None where it stores it
    elsewhere, or this user may not know.

    Args:
        connection: of :func:`connect`.
        config: names the oracle's timestamp table.
        listed: the tables of HBase, where they are known already.
    """
    name = config.omid.timestamp_table
    if name.encode() not in (connection.tables() if listed is None else listed):
        return None
    from Hbase_thrift import IOError as HBaseError

    try:
        cells = connection.table(name).row(ALLOTTED_ROW, include_timestamp=True)
    except HBaseError as error:
        if "AccessDenied" not in str(error):
            raise
        return None
    found = [(value, at) for column, (value, at) in cells.items() if column.partition(b":")[2] == ALLOTTED_QUALIFIER]
    if not found or len(found[0][0]) != 8:
        return None
    (value, at), *_ = found
    return Allotted(decode_long(value), from_millis(at))


def low_watermark(connection: Any, config: Config, listed: Collection[bytes] | None = None) -> int:
    """The low watermark, inclusive, as the oracle stored it in the commit table.

    Args:
        connection: of :func:`connect`.
        config: names the commit table.
        listed: the tables of HBase, where they are known already.

    Raises:
        TableError: there is no commit table.
        IOError: HBase's, with the right on it that is missing.
        WatermarkError: the row is missing or no eight-byte number.
    """
    name = config.omid.commit_table
    if not has_table(connection, name, listed):
        remedy = "create it with Omid's OmidTableManager, or set omid.commit_table"
        raise TableError(f"there is no commit table {name}", remedy)
    column = config.omid.watermark_family.encode() + b":" + LOW_WATERMARK_QUALIFIER
    value = connection.table(name).row(LOW_WATERMARK_ROW, columns=[column]).get(column)
    return parse_low_watermark(value, name)


def parse_low_watermark(value: bytes | None, table: str) -> int:
    """The low watermark in the cell's *value*.

    Raises:
        WatermarkError: it is missing or malformed.
    """
    if value is None:
        msg = (
            f"{table} has no low watermark: the oracle has never started on it, or the row was removed; "
            "start the oracle (it writes the row) and run again"
        )
        raise WatermarkError(msg)
    try:
        return decode_long(value)
    except ValueError as error:
        msg = (
            f"the low watermark in {table} is malformed ({error}): another program wrote it, or omid.commit_table "
            "or omid.watermark_family is another's; nothing is judged by it; restart the oracle, which writes it anew"
        )
        raise WatermarkError(msg) from error
