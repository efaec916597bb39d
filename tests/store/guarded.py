"""A store whose HBase checks permissions, and users who have some of them. It takes a name's word for who one is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from conftest import booted
from pyspark.sql import SparkSession

from lowtide.lab.stack import Stack
from tests import warm

#: All that HBase asks for here.
ALL = ("READ", "WRITE", "CREATE", "ADMIN")


#: HBase's own class that decides who may what; and one that does as it does, of which its master does not know that.
OWN = "org.apache.hadoop.hbase.security.access.AccessController"
ANOTHERS = "lowtide.store.AnotherController"


@contextmanager
def guarded_store(folder: Path, checking: str = OWN, **settings: str) -> Iterator[Stack]:
    """One in which who started it may do everything, and whoever else has a name nothing; *checking* decides that.
    With more *settings* of HBase's, with ``__`` for each dot of their names.
    """
    config = warm.store_config(folder)
    extra = {
        **{name.replace("__", "."): value for name, value in settings.items()},
        "hbase.security.authorization": "true",
        **{f"hbase.coprocessor.{kind}.classes": checking for kind in ("master", "region", "regionserver")},
    }
    with booted(replace(config, extra_hbase={**config.extra_hbase, **extra})) as store:
        yield store


@contextmanager
def acting_as(spark: SparkSession, user: str) -> Iterator[None]:
    """Let new connections of the driver be another user's."""
    logins: Any = spark._jvm.org.apache.hadoop.security.UserGroupInformation  # type: ignore[union-attr]
    before = logins.getLoginUser()
    logins.setLoginUser(logins.createRemoteUser(user))
    try:
        yield
    finally:
        logins.setLoginUser(before)


def settings_of(guarded: Stack, user: str, **thrift: Any) -> dict[str, Any]:
    """Sections of a configuration of that store. Connections are kept by their options, so each user has one more."""
    hbase = {
        "zookeeper_port": guarded.config.zookeeper_port,
        "thrift": {"port": guarded.config.thrift_port, **thrift},
        "properties": {"hbase.client.retries.number": "4", "hbase.client.of": user},
    }
    return {"hbase": hbase, "omid": {"oracle": [f"127.0.0.1:{guarded.config.tso_port}"]}}


def grant(
    spark: SparkSession,
    guarded: Stack,
    user: str,
    actions: Sequence[str],
    tables: Sequence[str] = (),
    *,
    family: bytes | None = None,
    qualifier: bytes | None = None,
) -> None:
    """Give a user rights on these tables, on a family or a column of them, or in all of HBase, as whoever started it.
    They have no others in that place then.
    """
    hadoop: Any = spark._jvm.org.apache.hadoop  # type: ignore[union-attr]
    settings = hadoop.hbase.HBaseConfiguration.create()
    for name, value in guarded.hbase_properties().items():
        settings.set(name, value)
    access = hadoop.hbase.security.access
    action = access.Permission.Action
    given = spark._sc._gateway.new_array(action, len(actions))  # type: ignore[union-attr]
    for at, name in enumerate(actions):
        given[at] = action.valueOf(name)
    named = [hadoop.hbase.TableName.valueOf(table) for table in tables]
    builders = [access.Permission.newBuilder(table) for table in named] or [access.Permission.newBuilder()]
    if family is not None:
        builders = [builder.withFamily(family).withQualifier(qualifier) for builder in builders]
    connection = hadoop.hbase.client.ConnectionFactory.createConnection(settings)
    try:
        for builder in builders:
            permission = builder.withActions(given).build()
            connection.getAdmin().grant(access.UserPermission(user, permission), False)
    finally:
        connection.close()
