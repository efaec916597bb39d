"""What HBase's master is asked for: HBase snapshots, tables, flushes, compactions."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta

from py4j.protocol import Py4JError

from lowtide.check.cluster import Cluster
from lowtide.errors import GatewayError, StoreError
from lowtide.store.logins import refusal
from lowtide.store.permissions import Lack, unreadable
from lowtide_spark.frames.connector import cause
from lowtide_spark.frames.consent import Consent
from lowtide_spark.frames.reading import Source

#: Durabilities of tables whose servers may lose what they acknowledged.
UNSYNCED = ("ASYNC_WAL", "SKIP_WAL")
#: No run reads an HBase snapshot for so long: a scratch folder of before is a dead one's.
SCRATCH_KEPT = timedelta(days=1)
#: A compaction is waited for so long; it goes on by itself.
COMPACTION_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class HBaseSnapshot:
    """An HBase snapshot; *created* in ms."""

    name: str
    table: str
    created: int


class Master(Consent):
    """What HBase's master does: HBase snapshots and their scratch folders, tables of our own, flushes, compactions."""

    def cluster(self) -> Cluster:
        """What the master tells of the cluster, and of what this user may do.

        Raises:
            GatewayError: it does not answer.
        """
        try:
            return Cluster.from_json(json.loads(self._java().Cluster.look(self._java_options)))
        except Py4JError as error:
            fact = f"HBase's master does not answer: {refusal(error) or cause(error)}"
            remedy = "start HBase, or correct hbase.znode (zookeeper.znode.parent) and, with Kerberos, hbase.properties"
            raise GatewayError(fact, remedy) from error

    def login(self) -> str:
        """As whom HBase knows this driver: the principal whose keytab HBase's settings name, else who is logged in;
        without Kerberos the user, or whom ``HADOOP_USER_NAME`` says it is. HBase is not asked.

        Raises:
            StoreError: the login does not go well.
        """
        try:
            return str(self._java().Cluster.principal(self._java_options))
        except Py4JError as error:
            told = refusal(error) or f"no login to HBase: {cause(error)}"
            raise StoreError(told, "see docs/clusters.md, Kerberos") from error

    def lacking(self, families: Mapping[str, Iterable[str]]) -> list[Lack]:
        """What of READ and WRITE this user lacks on these tables, which are enabled, as a whole; nothing where HBase
        checks no permissions. Where another product than HBase's own checks them, READ alone is tried.

        One question for all of them; what is tried is a small read a family, some tables at once.

        Args:
            families: all of each table's, by table.

        Raises:
            StoreError: HBase does not tell.
        """
        asked = json.dumps({table: sorted(of) for table, of in families.items()})
        try:
            return [Lack.from_json(v) for v in json.loads(self._java().Cluster.lacking(self._java_options, asked))]
        except Py4JError as error:
            fact = f"HBase does not tell what this user may read: {refusal(error) or cause(error)}"
            raise StoreError(fact, "nothing is judged; see that its master is up, and run again") from error

    def check_readable(self, families: Mapping[str, Iterable[str]]) -> None:
        """Refuse to judge by tables of which HBase may leave families out; *families* as for :meth:`lacking`.

        Raises:
            StoreError: this user may not read all of one, or HBase does not tell.
        """
        fact, remedy = unreadable(self.lacking(families))
        if fact:
            raise StoreError(fact, remedy)

    def snapshots(self) -> list[HBaseSnapshot]:
        """All HBase snapshots of the cluster."""
        return [HBaseSnapshot(r.snapshot, r.table, r.created) for r in self._listed("snapshots")]

    def left_snapshots(self, tables: Collection[str]) -> list[HBaseSnapshot]:
        """Those of :meth:`snapshot` that are still there, of these tables: of runs at work, or of killed ones."""
        return [
            s
            for s in self.snapshots()
            if s.table in tables and re.fullmatch(re.escape(_prefix(s.table)) + "[0-9a-f]{12}", s.name)
        ]

    def drop_snapshot(self, name: str) -> None:
        """Drop an HBase snapshot; nothing happens where it is gone.

        Raises:
            StoreError: it cannot be dropped.
        """
        try:
            self._admin().dropSnapshot(self._java_options, name)
        except Py4JError as error:
            msg = (
                f"cannot drop the HBase snapshot {name}: {cause(error)}; drop it in HBase's shell: delete_snapshot "
                f"'{name}'"
            )
            raise StoreError(msg) from error

    @contextmanager
    def snapshot(self, table: str, run: str, sweep: bool) -> Iterator[Source]:
        """An HBase snapshot of *table*, memstore included, dropped at the end whatever happens.

        Args:
            table: name.
            run: for the message.
            sweep: whether the caller holds the table's epoch, so that scratch folders left over are of runs that were
                killed; they go after a day.

        Raises:
            StoreError: it cannot be made.
        """
        prefix = _prefix(table)
        if sweep:
            self._admin().sweepScratchDirs(self._java_options, prefix, SCRATCH_KEPT // timedelta(milliseconds=1))
        name = prefix + uuid.uuid4().hex[:12]
        with ExitStack() as made:
            try:
                scratch = self._admin().scratchDir(self._java_options, name)
                made.callback(self._admin().dropScratchDir, self._java_options, scratch)
                self._admin().createSnapshot(self._java_options, table, name)
                made.callback(self._admin().dropSnapshot, self._java_options, name)
            except Exception as error:
                msg = (
                    f"cannot make an HBase snapshot of {table} for run {run}: {cause(error)}; "
                    "allow HBase snapshots (hbase.snapshot.enabled, ADMIN permission), or set read: rpc for this table"
                )
                raise StoreError(msg) from error
            yield Source(name, scratch)

    def durability(self, table: str) -> str:
        """When HBase acknowledges what is written to *table*: its ``DURABILITY``, by the name of the value.

        Raises:
            StoreError: HBase does not tell.
        """
        try:
            return str(self._admin().durability(self._java_options, table))
        except Py4JError as error:
            fact = f"HBase does not tell the DURABILITY of {table}: {refusal(error) or cause(error)}"
            raise StoreError(fact, "see that its master is up, and run again") from error

    def make_durable(self, table: str) -> None:
        """Write to files what HBase may keep of *table* in memory alone, as clients leave it without a synced log.

        What is deleted or recorded on the strength of such a cell would outlive it when its server dies. Does nothing
        where the table's log is synced.

        Raises:
            ConsentError: *table* says no, or is paused.
            StoreError: that cannot be done.
        """
        self.check_consent(table)
        try:
            if self._admin().durability(self._java_options, table) in UNSYNCED:
                self._admin().flush(self._java_options, table)
        except Py4JError as error:
            msg = (
                f"cannot flush {table}, whose clients' writes a server may lose (DURABILITY): {cause(error)}; nothing "
                f"is done to it. In HBase's shell: flush '{table}', then run again"
            )
            raise StoreError(msg) from error

    def create_table(self, table: str, family: str) -> None:
        """Make a table of one family with one version; nothing happens where it is.

        Raises:
            ConsentError: the store is paused, or *table*.
        """
        self.check_consent(table)
        self._admin().createTable(self._java_options, table, family, 1)

    def give_bloom_and_cache(self, table: str, families: Sequence[str]) -> None:
        """Give *families* of a table a bloom filter over rows and the block cache.

        The table stays enabled, its regions are opened again.

        Raises:
            ConsentError: *table* says no, or is paused.
            StoreError: HBase does not do it.
        """
        self.check_consent(table)
        try:
            self._admin().giveBloomAndCache(self._java_options, table, list(families))
        except Py4JError as error:
            msg = f"cannot alter {table}: {cause(error)}"
            raise StoreError(msg) from error

    def major_compact(self, table: str, family: str, timeout_seconds: int = COMPACTION_SECONDS) -> None:
        """Major-compact one family of *table* and wait for the end.

        Raises:
            ConsentError: *table* says no, or is paused.
        """
        self.check_consent(table)
        self._admin().majorCompact(self._java_options, table, family, timeout_seconds * 1000)

    def compact_regions(
        self, table: str, families: Mapping[str, Sequence[str]], timeout_seconds: int = COMPACTION_SECONDS
    ) -> dict[str, tuple[int, int]]:
        """Major-compact these *families* of regions, and wait.

        Returns:
            each region's bytes on disk before and after (whole MiB); one that was split or merged since it was listed
            is left out.

        Raises:
            ConsentError: *table* says no, or is paused.
        """
        self.check_consent(table)
        wanted = {region: list(names) for region, names in families.items()}
        report = self._admin().compactRegions(self._java_options, table, wanted, timeout_seconds * 1000)
        return {region: (before, after) for region, (before, after) in json.loads(report).items()}


def _prefix(table: str) -> str:
    return f"lowtide-run-{re.sub(r'[^A-Za-z0-9]', '-', table)}-"
