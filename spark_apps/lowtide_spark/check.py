"""The hops of ``lowtide check`` that only a driver can look at: HBase past the gateway, executors, the sideline.

A job of Spark rather than a client of the connector's in a JVM of its own: it takes the very way that the jobs take,
with their master, class path, Kerberos tickets and executors, and those are what is to be checked.

It writes a row of its own to the state table, where there is one, and files of its own into the sideline, and removes
both. Rights are asked for by writes that can never be done: each is checked against a value that no cell has. Whether
they are rights on whole tables is asked as jobs ask it.
"""

from __future__ import annotations

import argparse
import json
import secrets
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lowtide.check import cluster, records
from lowtide.check.driver import wanted
from lowtide.check.hops import Line, Look, NotCheckedError, walk
from lowtide.check.machine import hbase_client
from lowtide.cleaning.planning import Request
from lowtide.config import Config, load
from lowtide.errors import GatewayError, LowtideError, StoreError
from lowtide.journal import life
from lowtide.run import rate
from lowtide.store.gateway import allotted, failures, low_watermark, table_state
from lowtide.store.permissions import judged
from lowtide.store.rows import FAMILY
from lowtide.store.state import StateStore, opened
from lowtide.tables.inventory import Descriptor, marked_families
from lowtide.tables.settings import losing_entries
from lowtide.values.formats import LOW_WATERMARK_ROW
from lowtide_spark.frames import owner
from lowtide_spark.frames.inventory import left_behind
from lowtide_spark.frames.sideline import try_out
from lowtide_spark.frames.store import Store, cause
from lowtide_spark.run.session import check_connector, check_executors, check_place, check_tokens, session

#: A server that is down is told of within a minute, however patient jobs are.
_BOUNDS = {
    "hbase.client.retries.number": "3",
    "hbase.client.operation.timeout": "30000",
    "hbase.client.meta.operation.timeout": "30000",
    "hbase.rpc.timeout": "15000",
    "zookeeper.recovery.retry": "1",
}
#: Rows that each task writes into the sideline.
_ROWS = 3
#: Tables whose states are compared, where there is no state table yet.
_COMPARED = 5
_NAMESPACES = "hbase:namespace"


def main(argv: Sequence[str] | None = None) -> int:
    """Look at the driver's hops; the exit code is 0 also where one is wrong: the lines say so."""
    parser = argparse.ArgumentParser(prog="check", allow_abbrev=False)
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration file")
    parser.add_argument("--known", type=Path, required=True, metavar="FILE", help="the lines so far, as a JSON list")
    parser.add_argument("--lines", type=Path, required=True, metavar="FILE", help="add the lines there, one JSON each")
    options = parser.parse_args(argv)
    check_place()
    known = [Line.from_json(value) for value in json.loads(options.known.read_text())]
    config = load(options.config)
    looks = Driver(session("lowtide check", config, connector=False), config).looks()
    with options.lines.open("a") as sink:
        for line in walk({name: looks[name] for name in wanted(known)}, known):
            sink.write(json.dumps(line.to_json()) + "\n")
            sink.flush()  # what follows may hang, and be ended
    return 0


@dataclass
class Driver:
    """What a driver sees of HBase, executors and the sideline."""

    spark: SparkSession
    config: Config
    #: Of the sideline: whose it is, and when.
    request: Request = field(default_factory=lambda: Request("lowtide-check", datetime.now(UTC)))

    @cached_property
    def store(self) -> Store:
        """The store, with an end to waiting."""
        hbase = self.config.hbase
        bounded = hbase.model_copy(update={"properties": {**hbase.properties, **_BOUNDS}})
        return Store(self.spark, rate.without(self.config.model_copy(update={"hbase": bounded})))

    def looks(self) -> dict[str, Look]:
        """What looks at each hop of the driver."""
        return {
            "driver": self._driver,
            "hbase": self._hbase,
            "cluster": self._same_cluster,
            "clocks": self._clocks,
            "executors": self._executors,
            "listing": self._listing,
            "rights": self._rights,
            "sideline": self._sideline,
            **records.store_looks(self.config, self._connection, self.store.state),
        }

    def _connection(self) -> Any:
        """Past the gateway, as jobs look."""
        return self.store.state().connection

    def _driver(self) -> str:
        context = self.spark.sparkContext
        check_connector()
        try:
            self.spark.range(0, self._tasks, 1, self._tasks).count()
        except Exception as error:  # Spark's
            raise StoreError(f"executors run no task: {cause(error)}", "see Spark's own log") from error
        return f"Spark {self.spark.version} on {context.master}, {self._tasks} tasks at once"

    @property
    def _tasks(self) -> int:
        return max(1, self.spark.sparkContext.defaultParallelism)

    @cached_property
    def _cluster(self) -> cluster.Cluster:
        return self.store.cluster()

    def _hbase(self) -> str:
        return cluster.judge_hbase(self._cluster, hbase_client(self.config))

    def _same_cluster(self) -> str:
        """By a row that is written through the gateway and read past it; where there is no state table yet by the times
        at which tables were made or enabled, which no two clusters have in common.
        """
        with opened(self.config) as state:
            if not state.exists():
                return self._same_states(state)
            with state.passing_row() as (row, value, _):
                past_it = self.store.state()
                past = past_it.passed(row) if past_it.exists() else None
        return cluster.judge_same(self.config.hbase, value, past)

    def _same_states(self, state: StateStore) -> str:
        names = sorted(name.decode() for name in state.connection.tables())[:_COMPARED] or [_NAMESPACES]
        through = {name: table_state(state.connection, name)[1] for name in names}
        if not any(through.values()):
            raise NotCheckedError(
                "hbase:meta does not tell since when a table is as it is, and there is no state table yet"
            )
        return cluster.judge_same(self.config.hbase, through, {name: self.store.life(name).stated for name in names})

    def _clocks(self) -> str:
        """By a row that the jobs' own client writes; where there is no table for it yet by the master's clock."""
        state = self.store.state()
        records.state_format(state, self.config.state.table)  # a gateway of another store has told of other records
        server = state.server_time() if state.exists() else cluster.masters_time(self.store.cluster())
        here = datetime.now(UTC)
        known = allotted(state.connection, self.config)
        try:
            watermark = low_watermark(state.connection, self.config)
        except StoreError:  # told of at a hop of its own
            watermark = 0
        return cluster.judge_clocks(here, server, known, watermark)

    def _executors(self) -> str:
        table = self.config.omid.commit_table
        try:
            check_executors(self.spark)
            check_tokens(self.spark, self.config)
            read = self.store.cells(table).where(F.col("row") == F.lit(bytearray(LOW_WATERMARK_ROW))).count()
        except LowtideError:
            raise
        except Exception as error:  # Spark's
            fact = f"executors cannot read {table} through the connector: {cause(error)}"
            remedy = (
                "have the connector's jars on every node, where spark.executor.extraClassPath says: docs/clusters.md"
            )
            raise StoreError(fact, remedy) from error
        return cluster.judge_executors(read, table)

    @cached_property
    def _descriptors(self) -> list[Descriptor]:
        return self.store.descriptors()

    def _listing(self) -> str:
        marked = [d for d in self._descriptors if marked_families(d)[0]]
        listed = f"complete: {len(self._descriptors)} tables, {len(marked)} of them bear Omid's marks"
        ours = {d.table: marked_families(d)[0] for d in marked if not self.config.omid.is_foreign(d.table)}
        fact, remedy = losing_entries(self._descriptors, self.config.omid.commit_table)
        if fact:
            raise StoreError(fact, remedy)
        return "; ".join(filter(None, (listed, *left_behind(self.config, self._descriptors, ours))))

    def _rights(self) -> str:
        targets = self._targets()
        by_family: dict[str, list[str]] = defaultdict(list)
        for table, family in targets.items():
            by_family[family].append(table)
        refused: dict[str, str] = {}
        for family, tables in by_family.items():
            answers = self.store.work_rows(family, [_never_done(table) for table in tables])
            refused |= {table: answer for table, answer in zip(tables, answers, strict=True) if isinstance(answer, str)}
        own = {d.table: d.families for d in self._descriptors if d.enabled and d.table in targets}
        lacks = self.store.lacking(judged(self.config, self._descriptors) | own)
        asked = [lack for lack in lacks if lack.right == "READ" or lack.table in targets]
        there = {d.table for d in self._descriptors}
        unmade = [name for name in (self.config.state.table, self.config.state.journal_table) if name not in there]
        return cluster.judge_rights(self._cluster, refused, asked, len(targets), unmade)

    def _targets(self) -> dict[str, str]:
        """The tables that jobs write to, as far as they are there, each with one of its families."""
        config = self.config
        of_ours = {
            config.omid.commit_table: config.omid.commit_family,
            config.state.table: FAMILY,
            config.state.journal_table: life.FAMILY,
        }
        found = {}
        for d in self._descriptors:
            families = {of_ours[d.table]} if d.table in of_ours else marked_families(d)[0]
            if d.enabled and families and not config.omid.is_foreign(d.table):
                found[d.table] = min(families)
        return found

    def _sideline(self) -> str:
        self.config.state.check_sideline(self.spark.sparkContext.master or "")
        try:
            if not owner.check(self):
                with suppress(*failures()):  # told at HBase's own hop; what a folder takes needs no HBase
                    owner.check_remembered(self)
        except GatewayError as error:  # told at its own hop
            raise NotCheckedError(f"HBase has to tell which store it is of, and does not: {error.fact}") from error
        parts = max(2, self._tasks)
        written = _ROWS * parts
        read = try_out(self, written, parts)
        return cluster.judge_sideline(self.config.state.sideline, written, read, parts)


def _never_done(table: str) -> list[Any]:
    """A write that HBase asks the user's rights for and never does: no cell has the value it is checked against."""
    value = secrets.token_hex(16)
    return ["check", table, records.NOBODYS_ROW.decode(), "lowtide-check", value, {"lowtide-check": value}]
