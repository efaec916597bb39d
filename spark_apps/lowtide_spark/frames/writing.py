"""Mutations of many rows by the executors, and of single rows by the driver; each counted or answered."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from lowtide.cleaning.facts import Region
from lowtide.config import Config, Rate
from lowtide.errors import StoreError
from lowtide.run.rate import READS, WRITES, nanos, portions
from lowtide.store.records import Claim
from lowtide_spark.frames.connector import AS_CONFIGURED, FORMAT, cause
from lowtide_spark.frames.consent import Consent


@dataclass(frozen=True, slots=True)
class Written:
    """What became of the mutations of one kind in one region: acknowledged, refused by their guard, failed."""

    region: str
    op: str
    done: int
    refused: int
    failed: int
    bytes: int
    failure: str | None


@dataclass(frozen=True, slots=True)
class Life:
    """A table as it was when a run listed its regions: known by *stated*, the time in ms of its state in hbase:meta.

    That is written anew whenever the table is made, disabled or enabled; an HBase snapshot is restored or cloned only
    into a table that is disabled or not there. Given to :meth:`lowtide_spark.frames.store.Store.write`, it is looked
    at again by each task before each of its batches.
    """

    table: str
    stated: int

    @classmethod
    def of(cls, table: str, regions: Sequence[Region]) -> Life:
        """Of *table* when its *regions* were listed."""
        return cls(table, max((r.stated for r in regions), default=0))


def by_region(written: Iterable[Written]) -> Counter[str]:
    """How many mutations of each region were answered for: done, refused or failed."""
    answered = Counter[str]()
    for w in written:
        answered[w.region] += w.done + w.refused + w.failed
    return answered


class Writing(Consent):
    """What is written: many rows by the executors, under the claims that must stand; single rows by the driver."""

    def __init__(self, spark: SparkSession, config: Config, asked: Rate = AS_CONFIGURED) -> None:
        super().__init__(spark, config, asked)
        #: Tables with a write that broke off: executors that the driver lost may go on with it.
        self.unfinished: set[str] = set()

    def life(self, table: str) -> Life:
        """*table* as it is now.

        Raises:
            StoreError: HBase cannot tell.
        """
        try:
            return Life(table, self._admin().stated(self._java_options, table))
        except Py4JError as error:
            msg = (
                f"cannot tell whether {table} is the table that was read: {cause(error)}; nothing more is done to it. "
                "Run again"
            )
            raise StoreError(msg) from error

    def lives(self, tables: Sequence[str]) -> list[Life]:
        """*tables* as they are now, in one question; of one that is not there no time is stated, 0.

        Raises:
            StoreError: HBase cannot tell.
        """
        try:
            told = json.loads(self._admin().statedOf(self._java_options, self._names(tables)))
        except Py4JError as error:
            msg = f"cannot tell since when {len(tables)} tables are as they are: {cause(error)}. Run again"
            raise StoreError(msg) from error
        return [Life(table, told[table]) for table in tables]

    def check_life(self, life: Life, remedy: str = "Run again: what there is now is read then") -> None:
        """What was planned for a table is done to no other, also not to what a backup has brought back under its name.

        Args:
            life: of the table that was read.
            remedy: what to do where it is another.

        Raises:
            StoreError: it was restored, made anew, or disabled and enabled since, or HBase cannot tell.
        """
        if self.life(life.table) != life:
            msg = (
                f"{life.table} was restored, made anew, or disabled and enabled while the run went on; nothing more is "
                f"done to it. {remedy}"
            )
            raise StoreError(msg)

    def write(self, mutations: DataFrame, table: str, *, holding: Claim | Sequence[Claim | Life] = ()) -> list[Written]:
        """Apply mutation rows (see the connector's page) and count what became of them.

        Returns when all are acknowledged, refused or failed. A failed mutation does not raise: it is counted, with
        its text. Where a pause begins meanwhile, batches that were not sent have failed.

        Args:
            mutations: rows.
            table: name.
            holding: what must stand for the write to go on, read by each task before each of its batches, in the
                records: a task that goes on after the run has ended stops when another run takes over; and of the
                table that was read: what was planned for it is not done to what came back in its place.

        Raises:
            ConsentError: *table* says no, or is paused; nothing was written.
            StoreError: HBase cannot tell whether it is so.
        """
        claims = [holding] if isinstance(holding, Claim) else holding
        return self._send(mutations, table, WRITES, [*claims, *self.check_consent(table)])

    def see(self, rows: DataFrame, table: str) -> list[Written]:
        """Read cells by their keys, of operations that write nothing (``see_healed``), and count what was seen as
        :meth:`write` counts. Nobody's consent is asked.
        """
        return self._send(rows, table, READS, ())

    def _send(self, mutations: DataFrame, table: str, kind: str, claims: Sequence[Claim | Life]) -> list[Written]:
        name = uuid.uuid4().hex
        options = {**self._options, "table": table, "writeId": name, "holding": _claims_json(claims)}
        options |= self._paced(table, kind)
        self.unfinished.add(table)
        mutations.write.format(FORMAT).options(**options).mode("append").save()
        self.unfinished.discard(table)
        return [Written(**r) for r in json.loads(self._admin().takeReport(name))]

    def work_rows(self, family: str, operations: Sequence[Sequence[Any]]) -> list[Any]:
        """Carry out reads and writes of rows by key, many at once.

        Each has its answer, or a text that says why there is none. The operations and their answers are those of
        ``lowtide.connector.Rows`` (see the connector's page). At a rate they are sent in portions. That the tables
        may be written to is for whoever calls to see; here it is looked again after a portion has waited.

        Raises:
            ConsentError: a pause began meanwhile; what was sent until then is done.
            StoreError: HBase cannot be reached.
        """
        found: list[Any] = []
        try:
            for portion, reads, writes in portions(operations, self._costs):
                waited = [self._await(READS, reads), self._await(WRITES, writes)]
                if writes and (found or any(waited)):
                    self.check_consent(*sorted({o[1] for o in portion if o[0] != "read"}))
                found += json.loads(self._java().Rows.work(self._java_options, family, json.dumps(portion)))
        except Py4JError as error:
            msg = f"cannot work on rows of the store: {cause(error)}"
            raise StoreError(msg) from error
        return found

    def _costs(self, operation: Sequence[Any]) -> tuple[int, int]:
        """For how many ns an operation takes the gates of reads and of writes. A row that is read counts as one cell:
        how many it has is known afterwards.
        """
        kind, table, what = operation[:3]
        rate = self.rate(table)
        return (nanos(len(what), rate.reads), 0) if kind == "read" else (0, nanos(1, rate.writes))


def _claims_json(claims: Sequence[Claim | Life]) -> str:
    return json.dumps([_claim_json(claim) for claim in claims])


def _claim_json(claim: Claim | Life) -> dict[str, Any]:
    if isinstance(claim, Life):
        return {"table": claim.table, "stated": claim.stated}
    return {
        "table": claim.table,
        "row": claim.row.hex(),
        "family": claim.family,
        "qualifier": claim.qualifier,
        "value": None if claim.value is None else claim.value.hex(),
        **({"lost": claim.lost} if claim.lost else {}),
    }
