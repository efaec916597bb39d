"""A ledger whose tables lose rows by themselves is gone by nowhere: what is asked, where, and what is said."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from lowtide_spark.ledger.dataframes import LedgerFrames
from thriftpy2.thrift import TApplicationException

from lowtide.config import Config
from lowtide.errors import StoreError, TableError
from lowtide.health.conditions import TransactionIs
from lowtide.ledger import keeping
from lowtide.ledger.model import Table, transaction_id, user_id
from lowtide.ledger.settled import Settled, lost
from lowtide.ledger.store import Tables
from tests.unit.unlisted import DENIED, NOT_FOUND, Unlisted

FOREVER = 2**31 - 1


class Gateway:
    """A ledger's tables as a gateway tells of them; one has a TTL. Whoever reads a row has gone by it."""

    def __init__(self, expiring: str, ttl: int = 86_400, *, unlisted: str = NOT_FOUND) -> None:
        self.unlisted = unlisted
        self.ttls = {f"p_{table}": ttl if table == expiring else FOREVER for table in Table}

    def tables(self) -> list[bytes]:
        return [name.encode() for name in self.ttls]

    def table(self, name: str) -> Any:
        if name not in self.ttls:
            return Unlisted(self.unlisted).table(name)
        families = {b"l": {"time_to_live": self.ttls[name]}}
        return SimpleNamespace(families=lambda: families, rows=lambda _: [(b"issuer", {b"l:nickname": b"issuer"})])


@pytest.mark.parametrize("table", Table)
def test_a_client_does_not_begin_where_rows_expire(table: Table) -> None:
    """With a TTL on any of the tables the node is not made, and what mends it is said; without one it is."""
    with pytest.raises(StoreError) as refused:
        Tables(Gateway(table), "p_").check("issuer")
    assert f"alter 'p_{table}', {{NAME => 'l', TTL => 'FOREVER'}}" in str(refused.value)
    Tables(Gateway("none"), "p_").check("issuer")


def test_a_sensor_waits_for_nothing_where_rows_expire() -> None:
    """What expired would count as over, or as never there."""
    config = Config.model_validate({"ledger": {"prefix": "p_"}})
    with pytest.raises(StoreError, match="keeps a cell for 1d only"):
        TransactionIs(transaction_id(user_id("ann"), 1)).check(config, Gateway(Table.RECORDS))


def test_a_table_that_this_user_may_not_see_is_not_called_missing() -> None:
    """HBase does not list it: what it says when asked for a row names the right that is missing."""
    with pytest.raises(TApplicationException, match="AccessDenied"):
        Tables(Gateway("none", unlisted=DENIED), "q_").check_there()


def test_a_ledger_that_is_not_there_is_no_fault_of_the_gateway() -> None:
    """Its tables are asked for first: under a wrong prefix, too, a sensor says what is missing."""
    config = Config.model_validate({"ledger": {"prefix": "q_"}})
    with pytest.raises(
        TableError, match=r"no table q_users, .*: lowtide ledger init \(or set ledger\.prefix.*table_pre"
    ):
        TransactionIs(transaction_id(user_id("ann"), 1)).check(config, Gateway("none"))


def test_all_that_expire_are_named_at_once() -> None:
    """Nobody mends one to be told of the next."""
    gateway = Gateway(Table.RECORDS, 60)
    gateway.ttls["p_users"] = 3600
    with pytest.raises(StoreError, match=r"p_users keeps a cell for 1h only.*p_user_transactions keeps a cell for 1m"):
        Tables(gateway, "p_").check_kept()
    assert keeping.expiring("t", None) == ""
    assert "for 30d only" in keeping.expiring("t", timedelta(days=30))


@pytest.mark.parametrize(
    ("durability", "refused"), [("SKIP_WAL", True), ("ASYNC_WAL", True), ("SYNC_WAL", False), ("USE_DEFAULT", False)]
)
def test_books_that_a_server_may_take_back_are_not_read(durability: str, refused: bool) -> None:
    """A job asks for the durability of each of the ledger's own tables, and of no other."""
    asked: list[str] = []

    def told(table: str) -> str:
        asked.append(table)
        return durability if table == "p_transactions" else "USE_DEFAULT"

    config = Config.model_validate({"ledger": {"prefix": "p_"}})
    store: Any = SimpleNamespace(config=config, check_readable=lambda _: None, durability=told)
    said = ""
    try:
        LedgerFrames(store).check_readable()
    except StoreError as error:
        said = str(error)
    assert ("alter 'p_transactions', DURABILITY => 'SYNC_WAL'" in said) is refused
    assert asked == [f"p_{table}" for table in Table]


def test_a_finished_transaction_stays() -> None:
    """As many as the last full check counted, or more; of fewer it is said how many are gone and how that is accepted.
    A mark of before there was such a count asks for none.
    """
    mark = Settled(1, "r", finished=10)
    assert lost(mark, 10, "t") == lost(mark, 11, "t") == lost(Settled(1), 0, "t") == ""
    told = lost(mark, 7, "p_open_transactions")
    assert told.startswith("3 finished transactions are gone: the last full check counted 10, and there are 7")
    assert "deleteall 'p_open_transactions', 'settled'" in told
