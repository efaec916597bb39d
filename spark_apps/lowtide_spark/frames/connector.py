"""How the connector is asked: its options, its views, its class ``Admin``; and what its errors say."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lowtide.config import Config, Rate
from lowtide.errors import NAMES_OF_TABLES, StoreError, TableError
from lowtide.run.rate import READS, WRITES
from lowtide.store.direct import DirectConnections
from lowtide.store.logins import refusal
from lowtide.store.permissions import denial
from lowtide.store.state import StateStore
from lowtide_spark.frames.jars import JARS
from lowtide_spark.frames.remembered import Remembered

FORMAT = "lowtide"
AS_CONFIGURED = Rate()
#: What the errors of executors have in them somewhere, and what that means for a run.
_MEANINGS = {
    # What a run has planned lies on its executors, in one copy.
    "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND": (
        "an executor was lost, and with it what this run had planned; what was done until then is safe. Run again"
    ),
    "InvalidClassException: lowtide.connector.": f"an executor has another version's connector. {JARS}",
    "ClassNotFoundException: lowtide.connector.": f"an executor lacks the connector, or has an older Lowtide's. {JARS}",
}
#: What YARN says of a run that it does not take: of an unknown queue, or one that is closed to the user.
_NOT_TAKEN = re.compile(r"(?:Failed to submit \w+ to YARN : |(?=User \S+ does not have permission to submit))([^\n]+)")
#: What HDFS says of a folder that is closed to the user; where it is the one above his home, he has none.
_CLOSED = re.compile(r'Permission denied: user=(\S+), access=(\w+), inode="([^"]+)"')
#: What its errors say of a table that is not there, as contract/vectors.json has it; and what HBase's do.
UNKNOWN_TABLE = "Unknown table: "
_NOT_FOUND = "TableNotFoundException"
#: What the connector says of a table that a read comes to, and which is closed by then, or not there any more.
_DISABLED = re.compile(r"Table \S+ is disabled\. Enable it [^\n]+ and run again\.")
_GONE = re.compile(rf"{UNKNOWN_TABLE}(\S+)\. Check the name")
#: Java's class, and what the connector begins with: neither is of use to who reads what follows.
_VIEW = re.compile(r"^[\w.]+: Cannot read the view \w+: ")
#: What py4j says of a method that has other parameters.
_OLDER = re.compile(r"Method \w+\(\[.*\]\) does not exist")
OLDER_JAR = "the connector's jar is of an older Lowtide: put this version's in its place"


class Connector:
    """One HBase cluster, through one Spark session."""

    def __init__(self, spark: SparkSession, config: Config, asked: Rate = AS_CONFIGURED) -> None:
        """*asked*: what of it is given counts for every table, instead of its configured rate."""
        self.spark = spark
        self.config = config
        self._options = config.hbase.client_properties()
        self._asked = asked
        #: What all tasks pass that read, and all that write, whatever the table: a gate each.
        self._gates = {kind: f"{uuid.uuid4().hex}/{kind}" for kind in (READS, WRITES)}
        self._rates: dict[str, Rate] = {}
        #: What the Thrift gateway gives elsewhere, through this session's own client of HBase: a job needs no gateway.
        self.connections = DirectConnections(self._gateway_call)
        #: As it was given last.
        self._state: StateStore | None = None

    def state(self) -> StateStore:
        """The configured state table. Nothing is held open by it.

        Whether it is there is asked until it is: that is a look through all of the cluster's tables. Where it goes
        while a run is at work, what reads or writes it fails.
        """
        there = self._state is not None and self._state.seen
        self._state = StateStore(self.connections.one(), self.config.state.table, there=there)
        return self._state

    def rate(self, table: str) -> Rate:
        """What this run keeps to with *table*: the arguments over the configuration."""
        if table not in self._rates:
            given = self._asked.model_dump(exclude_none=True)
            self._rates[table] = self.config.table(table).rate.model_copy(update=given)
        return self._rates[table]

    def pace(self) -> dict[str, Any]:
        """The rates that were kept to, by table, and for how many seconds somebody waited for them, by kind; what
        several tasks waited at the same time counts once. Empty where there is no rate.
        """
        rates = {table: rate.model_dump(exclude_none=True) for table, rate in sorted(self._rates.items())}
        if not any(rates.values()):
            return {}
        waited = {kind: round(float(self._java().Gates.waited(gate)), 2) for kind, gate in self._gates.items()}
        return {"rates": {table: rate for table, rate in rates.items() if rate}, "waited": waited}

    def _paced(self, table: str, kind: str) -> dict[str, str]:
        """The connector's options of a read or a write, *kind*, of a table."""
        per_second = getattr(self.rate(table), kind)
        return {"perSecond": str(per_second), "gate": self._gates[kind]} if per_second else {}

    def _await(self, kind: str, nanos: int) -> bool:
        """Wait until what takes a gate for so long may begin, in the driver; whether it had to wait."""
        return bool(nanos and self._java().Gates.queue(self._gates[kind], nanos))

    def _gateway_call(self, name: str, arguments: str) -> str:
        try:
            return str(self._java().GatewayCalls.call(self._java_options, name, arguments))
        except Py4JError as error:
            raise ConnectionError(f"HBase's client in the driver: {cause(error)}") from error

    def _read(self, view: str, table: str | None = None, **options: str) -> DataFrame:
        if view in ("versions", "cells") and table is not None:
            options |= self._paced(table, READS)
        reader = self.spark.read.format(FORMAT).options(**self._options).options(view=view, **options)
        try:
            return (reader.option("table", table) if table else reader).load()
        except Exception as error:
            raise explained(error, table) from error

    def _listed(self, view: str, *tables: str) -> list[SimpleNamespace]:
        """What the cluster knows of itself, a value a row of the view ``tables``, ``regions`` or ``snapshots``: what
        :meth:`_read` gives of it, without a query for a few rows. Of several *tables* one that is not there has none.
        """
        try:
            rows = json.loads(self._java().Catalog.look(self._java_options, view, self._names(tables)))
        except (Py4JError, PySparkException) as error:  # some of Java's exceptions become Spark's on the way
            if _OLDER.search(str(error)):
                raise StoreError(OLDER_JAR) from error
            raise explained(error, tables[0] if len(tables) == 1 else None) from error
        except TypeError as error:  # to py4j a class that is not there is a package
            raise StoreError(OLDER_JAR) from error
        return [SimpleNamespace(**row) for row in rows]

    def _names(self, tables: Sequence[str]) -> Any:
        """Names of tables as a list of the JVM: those of a Python list are copied there by a call for each."""
        if len(tables) < 2:
            return list(tables)
        jvm: Any = self.spark._jvm
        mapper, kind = jvm.com.fasterxml.jackson.databind.ObjectMapper(), jvm.java.lang.Class.forName("java.util.List")
        return mapper.readValue(json.dumps(list(tables)), kind)

    def _admin(self) -> Any:
        return self._java().Admin

    def _java(self) -> Any:
        """The connector's classes in the session's JVM, as py4j gives them: it knows no types of theirs."""
        return self._classes

    @cached_property
    def _classes(self) -> Any:
        jvm: Any = self.spark._jvm
        return Remembered(jvm.lowtide.connector)

    @cached_property
    def _java_options(self) -> Any:
        """The cluster's options as a map of the JVM: a dict is copied there anew, entry by entry, whenever it is
        given.
        """
        jvm: Any = self.spark._jvm
        copied = jvm.java.util.HashMap()
        for name, value in self._options.items():
            copied.put(name, value)
        return copied


def cause(error: BaseException) -> str:
    """The innermost message of an error that came through py4j, in one line."""
    text = str(getattr(error, "java_exception", None) or error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "Exception" in line), lines[0] if lines else type(error).__name__)


def quota(error: BaseException) -> str:
    """Which quota of HBase's let nothing through in time, and what to do about it; empty where *error* is another."""
    found = re.search(r"\b[a-z ]+ exceeded - wait [\w, ]+", str(error))  # of Java's errors the causes stand in it too
    if not found:
        return ""
    return (
        f"a quota of HBase's lets nothing through in time ({found[0].strip()}); in HBase's shell list_quotas shows "
        "those of the table, its namespace and the jobs' user: raise it (set_quota), or run when others ask for less"
    )


def told(error: BaseException) -> str:
    """An error of whatever kind, for people: what it means where that is known, else its name and what it says."""
    text = f"{error}\n{getattr(error, 'java_exception', '')}"
    return meaning(text) or quota(error) or f"{type(error).__name__}: {cause(error)}"


def meaning(text: str) -> str:
    """What an error that prints as *text* means, for people; empty where that is not known."""
    if found := _NOT_TAKEN.search(text):
        return (
            f"YARN does not take the run: {found[1].strip()}. spark.yarn.queue in spark.conf names its queue "
            "(root.default where it is not set); who may submit to one is its administrator's to grant"
        )
    if found := _CLOSED.search(text):
        return (
            f"HDFS refuses {found[1]} {found[2]} access to {found[3]}: have it granted; where that is the folder of "
            f"homes, have one made for {found[1]}, through which Spark ships what executors need (or set "
            "spark.yarn.stagingDir)"
        )
    if found := _DISABLED.search(text):
        return found[0]
    if found := _GONE.search(text):
        return f"table {found[1]} was dropped, or got another name, while the run went on. Run again"
    known = next((meant for words, meant in _MEANINGS.items() if words in text), "")
    return known or denial(text) or refusal(text)


def explained(error: Exception, table: str | None) -> StoreError:
    """The error of a read of *table*, or of what is read of no table, to be raised."""
    reason = _VIEW.sub("", cause(error))
    if table is not None and (UNKNOWN_TABLE in reason or _NOT_FOUND in reason):
        return TableError(f"unknown table {table}; {NAMES_OF_TABLES}")
    why = denial(getattr(error, "java_exception", None) or error) or refusal(error) or quota(error) or reason
    return StoreError(f"cannot read {table or 'the store'}: {why}")
