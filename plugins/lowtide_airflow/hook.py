"""The hook for an Airflow connection of type ``hbase``: the Thrift gateway of an HBase, through happybase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import lowtide_airflow.required  # noqa: F401 - before Airflow's names, which a wrong one may lack

# isort: split
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from pydantic import ValidationError

from lowtide.config import Config
from lowtide.errors import UsageError
from lowtide.sources import secrets
from lowtide.store.gateway import connect, pool
from lowtide_airflow import stores

__all__ = [
    "HBaseHook",
]

#: Where a connection's extra goes in the configuration.
_EXTRA = {
    **{
        key: ("hbase", "thrift", key)
        for key in (
            *("transport", "protocol", "timeout"),
            # Names and paths: what is secret lies in the files they name, and never in Airflow.
            *("login", "principal", "keytab", "ticket_cache", "service", "qop", "ca_file", "do_as"),
        )
    },
    "table_prefix": ("ledger", "prefix"),
    "pool_size": ("ledger", "pool"),
}
#: And what says whose configuration that is.
_STORE = "store"


class HBaseHook(BaseHook):
    """HBase by its Thrift gateway, as a connection of type ``hbase`` names it.

    Host and port are the gateway's; the extra may hold ``transport`` (buffered, framed, http, https), ``protocol``
    (binary, compact), ``timeout`` (as in 30s), for a gateway that asks for a login ``login``, ``principal``,
    ``keytab``, ``ticket_cache``, ``service``, ``qop``, ``ca_file`` and ``do_as``, each as in ``hbase.thrift``,
    ``table_prefix`` (of the ledger's tables), ``pool_size``, and ``store``, one of ``stores`` of the section
    ``[lowtide]`` (:mod:`lowtide_airflow.stores`). What the connection leaves open is as in
    that store's configuration. Where the default connection does not exist, all of it is; another name that does not
    exist is an error.

    :param hbase_conn_id: name of the connection
    """

    conn_name_attr = "hbase_conn_id"
    default_conn_name = "hbase_default"
    conn_type = "hbase"
    hook_name = "HBase (Thrift gateway)"

    def __init__(self, hbase_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.hbase_conn_id = hbase_conn_id

    def config(self) -> Config:
        """The store's configuration with the connection laid over it. For tasks; the loop of a triggerer takes
        :meth:`aconfig`.

        Raises:
            UsageError: there is no such connection, or it cannot be meant.
        """
        try:
            connection = self.get_connection(self.hbase_conn_id)
        except AirflowNotFoundException as error:
            return self._without(error)
        return _laid_over(connection)

    async def aconfig(self) -> Config:
        """The same without blocking the loop of a triggerer."""
        try:
            connection = await self.aget_connection(self.hbase_conn_id)
        except AirflowNotFoundException as error:
            return self._without(error)
        return _laid_over(connection)

    def _without(self, error: AirflowNotFoundException) -> Config:
        if self.hbase_conn_id != self.default_conn_name:
            fact = f"hbase_conn_id: Airflow has no connection {self.hbase_conn_id!r}"
            remedy = f"Make one of type {self.conn_type}, or leave hbase_conn_id out for the gateway that is configured"
            raise UsageError(fact, remedy) from error
        self.log.info("no connection %s: the gateway of Lowtide's configuration", self.hbase_conn_id)
        return stores.store().load()

    @contextmanager
    def get_conn(self) -> Iterator[Any]:
        """A happybase connection, closed at the end."""
        with connect(self.config().hbase.thrift) as connection:
            yield connection

    @contextmanager
    def get_pool(self) -> Iterator[Any]:
        """A happybase connection pool of ``pool_size``, its connections closed at the end."""
        config = self.config()
        with pool(config.hbase.thrift, config.ledger.pool) as connections:
            yield connections

    def test_connection(self) -> tuple[bool, str]:
        """For the button *Test* of Airflow's page."""
        try:
            with self.get_conn() as connection:
                return True, f"HBase has {len(connection.tables())} tables"
        except Exception as error:  # whatever it is, the page shows it
            return False, str(error)


def _laid_over(connection: Any) -> Config:
    """The configuration of the store that a connection names, with the connection laid over it."""
    name = (connection.extra_dejson or {}).get(_STORE)
    return merged(stores.store(name).load(store_named=bool(connection.host)), connection, connection.conn_id)


def merged(config: Config, connection: Any, name: str) -> Config:
    """*config* with the settings of an Airflow *connection* laid over it.

    Raises:
        UsageError: its extra has an unknown key or a bad value; names it.
    """
    extra: Mapping[str, Any] = {k: v for k, v in (connection.extra_dejson or {}).items() if v not in (None, "")}
    unknown = sorted(set(extra) - {*_EXTRA, _STORE})
    if unknown:
        msg = f"connection {name}: unknown extra {', '.join(unknown)}; known are {', '.join((*_EXTRA, _STORE))}"
        raise UsageError(msg)
    content = config.model_dump()
    given: dict[tuple[str, ...], Any] = {
        ("hbase", "thrift", "host"): connection.host,
        ("hbase", "thrift", "port"): connection.port,
        **{_EXTRA[key]: value for key, value in extra.items() if key in _EXTRA},
    }
    for path, value in given.items():
        if value not in (None, ""):
            section = content
            for part in path[:-1]:
                section = section[part]
            section[path[-1]] = value
    try:
        return Config.model_validate(content)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, p['loc']))}: {p['msg']} {secrets.found(p['loc'], p['input'])}" for p in error.errors()
        )
        msg = f"connection {name}: {problems}"
        raise UsageError(msg) from None
