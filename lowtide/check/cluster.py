"""What HBase tells of itself, judged. Pure: it is asked by the driver, through the connector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lowtide.config import HBase
from lowtide.errors import GatewayError, StoreError, UsageError
from lowtide.run import hbases
from lowtide.store.permissions import Lack, unreadable, unwritable
from lowtide.values.clock import from_millis
from lowtide.values.skew import Allotted, machine_apart, oracle_ahead, oracle_apart
from lowtide.values.text import names_text

#: What Lowtide's user needs: on each table, and CREATE globally until Lowtide's own tables are there.
ACTIONS = ("READ", "WRITE", "CREATE", "ADMIN")
_LISTED = 5


@dataclass(frozen=True, slots=True)
class Cluster:
    """An HBase as its master tells of it (``lowtide.connector.Cluster``)."""

    id: str
    master: str
    #: The master's. Of region servers HBase tells its clients none.
    version: str
    #: The region servers that live, and those that the master takes for dead.
    servers: Sequence[str]
    dead: Sequence[str]
    #: The master's clock, ms: when it heard of a region server last, some seconds ago at most. 0: of none yet.
    heard: int
    #: Who asks.
    user: str
    #: Whether it checks permissions at all.
    checks: bool
    #: The actions that the user may not do globally, as HBase answers; None where it does not answer.
    lacks: Sequence[str] | None

    @property
    def sees_every_snapshot(self) -> bool:
        """Whether HBase lists to this user the HBase snapshots of others too. False where it does not answer that."""
        return not self.checks or (self.lacks is not None and "ADMIN" not in self.lacks)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Cluster:
        """As the connector has it."""
        return cls(**value)


def judge_hbase(found: Cluster, client: str) -> str:
    """Whether master and region servers are up, and of which version.

    Args:
        found: what the master tells.
        client: the version of the client that asked.
    """
    if not found.servers:
        raise GatewayError(f"master {found.master} knows no region server that lives", "start HBase's region servers")
    count = len(found.servers)
    parts = [f"{found.version}, master {found.master}, {count} region server{'' if count == 1 else 's'}"]
    if found.dead:
        parts.append(f"dead: {names_text(sorted(found.dead), _LISTED)}")
    if hbases.untried(found.version):
        parts.append(f"this version was not tried; Lowtide was tried with {names_text(hbases.TRIED)}")
    parts.append(f"asked by a client {client}" if client else "")
    return "; ".join(filter(None, parts))


def judge_same(hbase: HBase, through_gateway: object, past_it: object) -> str:
    """Whether both ways to the store read the same."""
    gateway = f"hbase.thrift ({hbase.thrift.host}:{hbase.thrift.port})"
    if through_gateway != past_it:
        fact = f"{gateway} and hbase.zookeeper_quorum ({hbase.address}) lead to different HBase clusters"
        raise UsageError(fact, "correct one of them")
    return f"{gateway} leads to the HBase that ZooKeeper leads to"


def judge_clocks(here: datetime, server: datetime, allotted: Allotted | None, watermark: int) -> str:
    """Whether the clocks of this machine, HBase and the oracle agree.

    Args:
        here: this machine's time.
        server: HBase's, of the same moment but for some seconds.
        allotted: of the oracle, see :func:`lowtide.values.skew.oracle_ahead`.
        watermark: the low watermark; 0: not known.
    """
    ahead = oracle_ahead(allotted, server)
    found = [machine_apart(here, server), oracle_apart(ahead, watermark, server)]
    if apart := [text for text in found if text]:
        raise StoreError("; ".join(apart), "set the clocks (NTP): runs that act are refused until then")
    oracle = (
        "the oracle has none that HBase knows" if ahead is None else f"the oracle's is {ahead.total_seconds():+.0f} s"
    )
    return f"HBase's is {(server - here).total_seconds():+.0f} s from this machine's; {oracle}"


def masters_time(found: Cluster) -> datetime:
    """The master's time, some seconds ago at most: of HBase where there is no table yet to have a row dated in."""
    if not found.heard:
        raise StoreError("HBase's master has heard of no region server yet, so its time is not known", "check again")
    return from_millis(found.heard)


def judge_rights(
    found: Cluster, refused: Mapping[str, str], lacks: Sequence[Lack], tables: int, unmade: Sequence[str] = ()
) -> str:
    """Whether the driver's user may do what jobs do.

    Args:
        found: with HBase's own answer, if it gives one.
        refused: by table why HBase refuses a write that can never be done.
        lacks: rights on whole tables that jobs ask for and do not have.
        tables: how many were asked for.
        unmade: tables of Lowtide's own that are not there: the first job that acts makes them.
    """
    grant = f"as an administrator, in HBase's shell: grant '{found.user}', 'RWCA'"
    if denied := {table: why for table, why in refused.items() if "AccessDenied" in why}:
        table, why = min(denied.items())
        more = f", nor to {len(denied) - 1} more" if len(denied) > 1 else ""
        raise StoreError(f"{found.user} may not write to {table}{more} ({why})", grant)
    if refused:
        table, why = min(refused.items())
        more = f" and for {len(refused) - 1} more" if len(refused) > 1 else ""
        fact = f"HBase does not answer for {table}{more}: {why}"
        raise StoreError(fact, "see that their regions are open and the families are those of the configuration")
    for fact, remedy in (unreadable(lacks), unwritable(lacks)):
        if fact:
            raise StoreError(fact, remedy)
    written = f"{found.user} may read and write {tables} tables"
    if not found.checks:
        return f"{written}; HBase checks no permissions"
    if found.lacks is None:
        return f"{written}; of CREATE and ADMIN HBase does not tell"
    if "CREATE" in found.lacks and unmade:
        fact = f"{found.user} lacks CREATE globally, and {names_text(unmade)} has to be made by the first job that acts"
        raise StoreError(fact, f"{grant}; or have somebody who may run one with --execute")
    if found.lacks:
        return (
            f"{written}; without {', '.join(found.lacks)} globally it needs a grant on each table that is made, and is "
            "shown HBase snapshots of its own alone (docs/clusters.md, Permissions)"
        )
    return f"{written}, and has {', '.join(ACTIONS)} globally"


def judge_executors(read: int, table: str) -> str:
    """Whether executors read through the connector; *read*: how many rows of the one with the low watermark."""
    if not read:
        raise StoreError(f"executors read nothing of {table}, where the driver finds the low watermark", "check again")
    return f"they read {table} through it"


def judge_sideline(folder: str, written: int, read: int, parts: int) -> str:
    """Whether what executors wrote into the sideline is there for the driver."""
    if read != written:
        fact = f"executors wrote {written} rows into state.sideline, {folder}, and {read} of them are there to read"
        raise StoreError(
            fact, "name a place that driver and executors share: hdfs://..., s3a://..., file:// of a mount"
        )
    return f"{folder}: {parts} tasks wrote, the driver read it back"
