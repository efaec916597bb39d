"""The ledger's tables as DataFrames: a row a transaction, a row a record.

What is money, and what contradicts what, are column expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lowtide.errors import StoreError
from lowtide.ledger import keeping
from lowtide.ledger.model import FAMILY, MAX_AMOUNT, RecordState, State, Table, entry_bound, key_bytes
from lowtide.ledger.steps import CheckAndPut, Put, Read, Write
from lowtide_spark.frames.functions import try_cast, valid_utf8
from lowtide_spark.frames.store import Store

#: Sums are exact: 38 digits, and an amount has at most 19.
MONEY = "decimal(38,0)"
_USER_LENGTH = 40
_AMOUNT = r"^-?[1-9][0-9]{0,18}\z"
_KEY = r"^[0-9a-f]{40}-(?!0{12})[0-9]{12}\z"
#: As clients encode them (:class:`lowtide.ledger.model.Request`, ``Decision``); what is encoded otherwise is looked
#: at one by one.
_REQUEST = (
    r'^\{"amount":([1-9][0-9]{0,18}),"nonce":"[0-9a-f]{16}","recipient":"([0-9a-f]{40})",'
    r'"sender":"([0-9a-f]{40})","timestamp":(0|[1-9][0-9]{0,14})\}\z'
)
_DECISION = r'^\{"credited":(?:0|[1-9][0-9]{0,37}),"reason":"%s","spent":(?:0|[1-9][0-9]{0,37})\}\z'

TRANSACTION_COLUMNS = ("id", "sender", "recipient", "amount", "timestamp", "request", "decision", "state")
RECORD_COLUMNS = ("id", "user_id", "transaction_id", "amount", "timestamp", "state")


class LedgerFrames:
    """Reads the ledger's tables through the connector. Nothing is read before an action; tables change meanwhile."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._prefix = store.config.ledger.prefix

    def name(self, table: Table) -> str:
        """The table's name in HBase."""
        return f"{self._prefix}{table}"

    def check_readable(self) -> None:
        """Refuse books of which HBase may leave something out, or take back what it acknowledged. That none of it
        expires is asked when the node is made (:func:`lowtide.ledger.store.node_on`).

        Raises:
            StoreError: this user may not read all of one of the ledger's tables, or HBase does not tell; or a table
                loses acknowledged writes.
        """
        names = [self.name(table) for table in Table]
        self._store.check_readable({name: (FAMILY,) for name in names})
        if lost := [why for name in names if (why := keeping.losing(name, self._store.durability(name)))]:
            raise StoreError("; ".join(lost))

    def transactions(self, columns: Sequence[str] = TRANSACTION_COLUMNS, since: int = 0) -> DataFrame:
        """``key`` and the *columns* of transactions, as text, null where absent.

        Only cells that the servers wrote at or after *since* (ms).
        """
        return self._rows(Table.TRANSACTIONS, columns, since)

    def records(self, columns: Sequence[str] = RECORD_COLUMNS, since: int = 0, until: int | None = None) -> DataFrame:
        """``key``, ``user`` and ``transaction`` (of the key), and the *columns* of records.

        Only cells that the servers wrote at or after *since*, and, where it is given, before *until* (ms).
        """
        rows = self._rows(Table.RECORDS, columns, since, until)
        return rows.withColumn("user", F.substring("key", 1, _USER_LENGTH)).withColumn(
            "transaction", F.expr(f"substring(key, {_USER_LENGTH + 2})")
        )

    def users(self) -> DataFrame:
        """``key`` and ``nickname``."""
        return self._rows(Table.USERS, ("nickname",), 0)

    def open_rows(self, start: int, stop: int | None = None) -> DataFrame:
        """``key`` of the index's rows for timestamps in [start, stop), ms of the clients' clocks.

        ``written`` is in ms of the servers'. Without *stop* to the end of the index, the last time that an entry can
        bear included.
        """
        bounds = (entry_bound(start), ":" if stop is None else entry_bound(stop))  # the colon comes after the digits
        low, high = (F.lit(bound.encode()) for bound in bounds)
        cells = self._store.cells(self.name(Table.OPEN)).where((F.col("row") >= low) & (F.col("row") < high))
        return cells.select(_text("row").alias("key"), F.col("timestamp").alias("written"))

    def _rows(self, table: Table, columns: Sequence[str], since: int, until: int | None = None) -> DataFrame:
        cells = self._store.cells(self.name(table)).where(
            (F.col("family") == F.lit(FAMILY.encode()))
            & F.col("qualifier").isin([bytearray(name.encode()) for name in columns])
        )
        if since > 0:
            cells = cells.where(F.col("timestamp") >= since)
        if until is not None:
            cells = cells.where(F.col("timestamp") < until)
        # Grouped by region too, which the rows come in: no shuffle.
        wide = cells.groupBy("region", "row").agg(
            *(F.max(F.when(F.col("qualifier") == F.lit(name.encode()), _text("value"))).alias(name) for name in columns)
        )
        return wide.select(_text("row").alias("key"), *columns)


class LedgerRows:
    """Carries out the ledger's operations through the connector, all that are asked at the same time in one call.

    Each has its answer. See :data:`lowtide.ledger.store.AtOnce` for whom it is for. An operation without an answer
    gets a :class:`ConnectionError`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._prefix = store.config.ledger.prefix

    def __call__(self, operations: Sequence[Read | Write]) -> list[Any]:
        written = sorted({self._name(o) for o in operations if not isinstance(o, Read)})
        try:
            self._store.check_consent(*written)
            found = self._store.work_rows(FAMILY, [self._as_json(operation) for operation in operations])
        except StoreError as error:
            return [ConnectionError(str(error))] * len(operations)
        return [_answer(operation, answer) for operation, answer in zip(operations, found, strict=True)]

    def _name(self, operation: Read | Write) -> str:
        return f"{self._prefix}{operation.table}"

    def _as_json(self, operation: Read | Write) -> list[Any]:
        table = self._name(operation)
        if isinstance(operation, Read):
            return ["read", table, [_to_bytes(row) for row in operation.rows]]
        row = _to_bytes(operation.row)
        if isinstance(operation, Put):
            return ["put", table, row, _cells(operation.cells)]
        if isinstance(operation, CheckAndPut):
            expected = None if operation.expected is None else _to_bytes(operation.expected)
            return ["check", table, row, _to_bytes(operation.column), expected, _cells(operation.cells)]
        return ["remove", table, row]


def _answer(operation: Read | Write, answer: Any) -> Any:
    if isinstance(answer, str):
        return ConnectionError(answer)
    if isinstance(operation, Read):
        return [{_from_bytes(name): _from_bytes(value) for name, value in row.items()} for row in answer]
    return answer if isinstance(operation, CheckAndPut) else None


def _cells(cells: Mapping[str, str]) -> dict[str, str]:
    return {_to_bytes(name): _to_bytes(value) for name, value in cells.items()}


def _to_bytes(text: str) -> str:
    """The bytes of *text*, each as a character, as the connector takes them."""
    return text if text.isascii() else key_bytes(text).decode("latin-1")


def _from_bytes(text: str) -> str:
    """Back. What is no UTF-8 becomes text that no rule knows."""
    return text if text.isascii() else text.encode("latin-1").decode(errors="backslashreplace")


def _text(column: str) -> Column:
    # What is no UTF-8 becomes text that no rule knows, and is named.
    return valid_utf8(F.col(column))


def money(column: str) -> Column:
    """An amount as an exact number; null where it is none."""
    return F.when(F.col(column).rlike(_AMOUNT), F.col(column).cast(MONEY))


def finished(frame: DataFrame) -> DataFrame:
    """Rows in state ``finished``: transactions or records."""
    return frame.where(F.col("state") == RecordState.FINISHED.value)


def worth() -> Column:
    """What a transaction moves: its amount. One with a sign is worth null, and no record is a side of it."""
    return F.when(~F.col("amount").startswith("-"), money("amount"))


def sides() -> tuple[Column, Column]:
    """Whether a record (``user``, ``moved``) is the debit, or the credit, that its transaction asks for.

    The transaction's columns: ``sender``, ``recipient``, ``money``.
    """
    debit = (F.col("user") == F.col("sender")) & (F.col("moved") == -F.col("money"))
    credit = (F.col("user") == F.col("recipient")) & (F.col("moved") == F.col("money"))
    return F.coalesce(debit, F.lit(False)), F.coalesce(credit, F.lit(False))


def paid_in(issuer: str) -> Column:
    """What a finished transaction adds to what all users but the *issuer* have; null for nothing.

    The transaction's columns: ``sender``, ``recipient``, ``money``.
    """
    paying = F.lit(issuer)
    return F.when(F.col("sender") == paying, F.col("money")).when(F.col("recipient") == paying, -F.col("money"))


def settled_sides(transactions: DataFrame, records: DataFrame) -> DataFrame:
    """One row a finished transaction with what its finished records say.

    ``key, sender, recipient, money`` and ``debits, credits, foreign``: how many finished records are the debit and
    the credit that it asks for, and how many are of users that have no part in it.
    """
    t = transactions.select("key", "sender", "recipient", worth().alias("money"))
    r = finished(records).select(F.col("transaction").alias("key"), "user", money("amount").alias("moved"))
    is_debit, is_credit = sides()
    foreign = (F.col("user") != F.col("sender")) & (F.col("user") != F.col("recipient"))
    # Aggregated after the join only: what a transaction is worth stands on its own side.
    return (
        t.join(r, "key", "left")
        .groupBy("key", "sender", "recipient", "money")
        .agg(
            F.count(F.when(is_debit, 1)).alias("debits"),
            F.count(F.when(is_credit, 1)).alias("credits"),
            F.count(F.when(foreign, 1)).alias("foreign"),
        )
    )


def balanced() -> Column:
    """Whether a row of :func:`settled_sides` has exactly one debit and one credit."""
    return (F.col("debits") == 1) & (F.col("credits") == 1) & (F.col("foreign") == 0)


def orderly() -> Column:
    """Whether a transaction's row is one that clients leave, as far as columns can tell.

    The others are checked one by one. Whatever this clears, :func:`lowtide.ledger.model.parse_transaction` takes too.
    """
    amount, recipient, sender, timestamp = (F.regexp_extract("request", _REQUEST, group) for group in range(1, 5))
    state, decision = F.col("state"), F.col("decision")
    runs, dropped = (decision.rlike(_DECISION % reason) for reason in ("", r"[ !#-\[\]-~]+"))
    order = (
        (state.isin(State.IN_PROGRESS.value, State.COMMITTED.value, State.FINISHED.value) & runs)
        | ((state == State.DROPPED.value) & dropped)
        | ((state == State.INITIAL.value) & (decision.isNull() | runs | dropped))
        | (state.isNull() & decision.isNull())
    )
    due = {"id": F.col("key"), "sender": sender, "recipient": recipient, "amount": amount, "timestamp": timestamp}
    # A transaction that was only claimed may lack columns.
    agree = [F.coalesce(F.col(name) == value, state.isNull() & F.col(name).isNull()) for name, value in due.items()]
    request = (sender != recipient) & (try_cast(amount, MONEY) <= MAX_AMOUNT)
    key = F.col("key").rlike(_KEY) & F.col("key").startswith(F.concat(sender, F.lit("-")))
    return F.coalesce(reduce(Column.__and__, [key, request, order, *agree]), F.lit(False))


def is_over() -> Column:
    """Whether a transaction's state is a last one; of a row without state: no."""
    return F.coalesce(F.col("state").isin(State.FINISHED.value, State.DROPPED.value), F.lit(False))


def strays(transactions: DataFrame, records: DataFrame) -> DataFrame:
    """Records that no transaction accounts for: ``key, why``.

    Without a transaction, of one that was dropped, of neither its sender nor its recipient, or finished before it is
    committed.
    """
    t = transactions.select(F.col("key").alias("transaction"), "sender", "recipient", F.col("state").alias("moved"))
    joined = records.join(t, "transaction", "left")
    foreign = ~F.coalesce((F.col("user") == F.col("sender")) | (F.col("user") == F.col("recipient")), F.lit(False))
    early = (F.col("state") == RecordState.FINISHED.value) & F.coalesce(
        F.col("moved").isin(State.INITIAL.value, State.IN_PROGRESS.value), F.lit(True)
    )
    why = (
        F.when(F.col("sender").isNull() & F.col("moved").isNull(), F.lit("it has no transaction"))
        .when(F.col("moved") == State.DROPPED.value, F.lit("its transaction is dropped"))
        .when(F.col("sender").isNotNull() & foreign, F.lit("its user has no part in its transaction"))
        .when(early, F.lit("it is finished, and its transaction is not committed"))
    )
    return joined.select("key", "transaction", why.alias("why")).where("why is not null")


def entry_key() -> Column:
    """Row of the index entry that a transaction should have, from its request; null where that is malformed."""
    part = {name: F.get_json_object("request", f"$.{name}") for name in ("timestamp", "nonce")}
    return F.concat(F.lpad(part["timestamp"], 15, "0"), F.lit("/"), F.col("key"), F.lit("/"), part["nonce"])
