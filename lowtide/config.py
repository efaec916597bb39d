"""The configuration file: one YAML document, validated whole, unknown keys refused.

Found by ``--config``, else by the environment variable ``LOWTIDE_CONFIG``, else ``lowtide.yaml`` in the current folder,
else the defaults below, which suit the embedded store. Single settings come from environment variables over it
(:mod:`lowtide.sources.variables`), what it leaves out of the store from the cluster's own files
(:mod:`lowtide.sources.site`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from lowtide import paths
from lowtide.errors import UnnamedStoreError, UsageError
from lowtide.sources import document, secrets, site, variables
from lowtide.tables.inventory import Kind
from lowtide.values.durations import Ages, duration_text, parse_duration

__all__ = [
    "Config",
    "load",
]


def _age(value: object) -> object:
    try:
        return value if value == "forever" else parse_duration(value)
    except ValueError as error:
        msg = f"{error}; or forever, which removes nothing"
        raise ValueError(msg) from None


def _some(span: timedelta) -> timedelta:
    if not span:
        msg = "a duration longer than nothing is expected, such as 1h or 7d, found 0s"
        raise ValueError(msg)
    return span


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        msg = (
            f"host:port is expected, such as tso1.example.org:24758, found {text!r}; give a name in place of an "
            "address with colons"
        )
        raise ValueError(msg)
    return text


Address = Annotated[str, AfterValidator(_address)]
Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
PositiveDuration = Annotated[Duration, AfterValidator(_some)]
Age = Annotated[timedelta | Literal["forever"], BeforeValidator(_age)]

CONFIG_VARIABLE = "LOWTIDE_CONFIG"
DEFAULT_FILE = Path("lowtide.yaml")
DEFAULTS = "the default configuration"
#: The setting that, given as a variable, says that the defaults' store is meant.
THIS_MACHINE = ("hbase", "zookeeper_quorum")
_ROOT = "hbase.rootdir"
#: The kind of problems whose text is whole.
_OURS = "setting"
_CACHE_TYPE = re.compile(r"[A-Z]+:")
#: What HBase takes in no name of a table, as far as it is ASCII.
_NOT_IN_NAMES = re.compile(r"[\x00-,/;-@\[-^`{-\x7f\s]|^[.-]|:.*:|^:|:$|:[.-]|^$")
_ADDRESS = re.compile(r"[^:\s]+:\d{1,5}")
#: A URL's beginning without the slashes that make it one.
_SCHEME_ALONE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!//)")
_KERBEROS_NAME = re.compile(r"[!-~]+")
#: Of HBase's client: whom it asks where HBase is; ZooKeeper, unless another is set.
REGISTRY = "hbase.client.registry.impl"
#: Of HBase's client: whether servers ask it for a login.
SECURITY = "hbase.security.authentication"
_ZK_REGISTRY = "ZKConnectionRegistry"
#: Where HBase's client asks that goes by its servers, the first that is given.
_SERVERS = ("hbase.client.bootstrap.servers", "hbase.masters")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Thrift(_Section):
    """The Thrift 1 gateway that happybase speaks to."""

    #: The Thrift 1 gateway. Where it asks for a login, that is the name of its principal's host: docs/clusters.md.
    host: str = "127.0.0.1"
    port: PositiveInt = 9090
    #: As the gateway has it: ``framed`` where it is started with ``hbase.regionserver.thrift.framed``, ``http`` with
    #: ``hbase.regionserver.thrift.http``, ``https`` with ``hbase.thrift.ssl.enabled`` besides.
    transport: Literal["buffered", "framed", "http", "https"] = "buffered"
    #: As the gateway has it: ``compact`` where it is started with ``hbase.regionserver.thrift.compact``.
    protocol: Literal["binary", "compact"] = "binary"
    #: How long one answer of the gateway may take.
    timeout: PositiveDuration = timedelta(seconds=30)
    #: ``kerberos`` where the gateway asks for it: by SASL (``hbase.thrift.security.qop``), or over HTTP with SPNEGO
    #: (``hbase.thrift.spnego.principal``). It needs ``lowtide[kerberos]``.
    login: Literal["none", "kerberos"] = "none"
    #: Who logs in. Empty: whose tickets the cache has.
    principal: str = ""
    #: The whole path of a file with that principal's key. Empty: there is a ticket in a cache, and something renews it.
    keytab: str = ""
    #: Kerberos's ticket cache: the whole path of a file, or ``TYPE:REST``. Empty: ``KRB5CCNAME``, else the default.
    ticket_cache: str = ""
    #: The gateway's principal, as in ``thrift/gateway.example.org``, with its realm if need be; ``_HOST`` is ``host``.
    #: Empty: ``thrift/_HOST``, over HTTP ``HTTP/_HOST``.
    service: str = ""
    #: Without HTTP, as the gateway's ``hbase.thrift.security.qop``: whether what follows the login is as it is,
    #: protected against change, or encrypted. Another layer than this is never taken.
    qop: Literal["auth", "auth-int", "auth-conf"] = "auth-conf"
    #: With ``https``: the whole path of a file of certificates (PEM), to trust these alone. Empty: the system's.
    ca_file: str = ""
    #: Over HTTP with a login: the user to act as, if the gateway lets the principal.
    do_as: str = ""

    @field_validator("keytab", "ca_file", "ticket_cache")
    @classmethod
    def _whole_path(cls, value: str, info: ValidationInfo) -> str:
        """What processes in several folders read."""
        if not value or value.startswith("/") or (info.field_name == "ticket_cache" and _CACHE_TYPE.match(value)):
            return value
        msg = f"the whole path is expected, beginning with /, found {value!r}"
        raise ValueError(msg)

    @field_validator("principal", "service", "do_as")
    @classmethod
    def _name_in_a_line(cls, value: str) -> str:
        """They go to the gateway, one of them in a header."""
        if not value or _KERBEROS_NAME.fullmatch(value):
            return value
        msg = f"a name without spaces is expected, such as lowtide@EXAMPLE.ORG, found {value!r}"
        raise ValueError(msg)

    @model_validator(mode="after")
    def _check_together(self) -> Thrift:
        """Refuse what no gateway has, and what would not be obeyed."""
        for key, wrong, text in (
            (
                "protocol",
                self.is_http and self.protocol == "compact",
                "over HTTP it is always binary: leave it out",
            ),
            (
                "login",
                self.login == "kerberos" and self.transport == "framed",
                "no gateway that is framed asks for a login by Kerberos: set transport to buffered, or login to none",
            ),
            ("ca_file", bool(self.ca_file) and self.transport != "https", "it counts with transport: https alone"),
            ("do_as", bool(self.do_as) and not self.is_http, "it counts with transport: http or https alone"),
            ("keytab", bool(self.keytab and self.ticket_cache), "give it or ticket_cache, not both"),
            ("keytab", bool(self.keytab) and not self.principal, "give principal beside it: whose key it is"),
            *(
                (key, bool(getattr(self, key)) and self.login == "none", "it counts with login: kerberos alone")
                for key in ("principal", "keytab", "ticket_cache", "service", "do_as")
            ),
        ):
            if wrong:
                raise _problems(InitErrorDetails(type=_ours(text), loc=(key,), input=getattr(self, key)))
        return self

    @property
    def is_http(self) -> bool:
        """Whether it speaks HTTP, with TLS or without."""
        return self.transport in ("http", "https")


class HBase(_Section):
    """How Spark's executors and the gateway's clients reach the store."""

    #: A folder (relative: to the configuration file) with the cluster's ``hbase-site.xml``, and perhaps its
    #: ``core-site.xml``: what a client needs of them counts, below what is said here. Left out, it is where
    #: ``HBASE_CONF_DIR`` or ``HADOOP_CONF_DIR`` leads, if there is a configuration file and nothing in it, nor in a
    #: variable, says quorum, port or znode.
    conf_dir: str | None = None
    #: Hosts, separated by commas.
    zookeeper_quorum: str = "127.0.0.1"
    zookeeper_port: PositiveInt = 2181
    #: As the cluster's ``zookeeper.znode.parent``.
    znode: str = "/hbase"
    thrift: Thrift = Thrift()
    #: Further properties for the HBase client, as in hbase-site.xml (Kerberos principals, timeouts, ...). Reading
    #: HBase snapshots needs ``hbase.rootdir``; without a configuration file the embedded store's is known.
    properties: dict[str, str] = {}
    #: Says that no cell of a transactional table bears a visibility label. Where HBase has ``hbase:labels``, jobs
    #: refuse to run without that word: labels do not travel to clients, and a healed cell would have lost its own.
    unlabelled: bool = False

    @field_validator("properties")
    @classmethod
    def _properties_of_hbase(cls, value: dict[str, str]) -> dict[str, str]:
        """The connector takes no others."""
        for name in value:
            if not name.startswith(("hbase.", "zookeeper.")):
                msg = (
                    f"{secrets.masked(name)} is none of HBase's: names begin with hbase. or zookeeper.; what Hadoop "
                    "needs is read from HADOOP_CONF_DIR"
                )
                raise ValueError(msg)
        return value

    @property
    def address(self) -> str:
        """Where a client finds the store: quorum, port and znode, as it gets them."""
        found = self.client_properties()
        quorum, port = found["hbase.zookeeper.quorum"], found["hbase.zookeeper.property.clientPort"]
        return f"{quorum}:{port}{found['zookeeper.znode.parent']}"

    def client_properties(self) -> dict[str, str]:
        """All properties that an HBase client needs, as the connector's ``hbase.*`` options."""
        return {
            "hbase.zookeeper.quorum": self.zookeeper_quorum,
            "hbase.zookeeper.property.clientPort": str(self.zookeeper_port),
            "zookeeper.znode.parent": self.znode,
            **self.properties,
        }

    @property
    def zookeeper_addresses(self) -> list[str]:
        """Where ZooKeeper listens (host:port), as HBase's client would look for it; none where it asks HBase's servers
        instead.
        """
        if self.hides_zookeeper:
            return []
        properties = self.client_properties()
        port = properties["hbase.zookeeper.property.clientPort"]
        hosts = [host.strip() for host in properties["hbase.zookeeper.quorum"].split(",") if host.strip()]
        return [host if re.search(r".:\d+$", host) else f"{host}:{port}" for host in hosts]

    @property
    def hides_zookeeper(self) -> bool:
        """Whether HBase's client finds it through its servers instead of ZooKeeper."""
        return not self.client_properties().get(REGISTRY, _ZK_REGISTRY).endswith(_ZK_REGISTRY)

    def check_gateway(self) -> None:
        """Refuse the gateway that is looked for on this machine because none is named, where the store is elsewhere:
        what answers here may be another store's.

        Raises:
            UnnamedStoreError: that is so.
        """
        if "host" in self.thrift.model_fields_set:
            return
        properties = self.client_properties()
        names = _SERVERS if self.hides_zookeeper else ("hbase.zookeeper.quorum",)
        asked = next((properties[name] for name in names if properties.get(name)), "")
        if asked and all(_is_here(each) for each in asked.split(",")):
            return
        fact = (
            f"the store is at {asked or 'servers that nobody names'}, and no Thrift gateway of it is named: what "
            f"answers on this machine ({self.thrift.host}:{self.thrift.port}) may be another store's"
        )
        ours = variables.variable_name("hbase", "thrift", "host")
        raise UnnamedStoreError(
            fact, f"say hbase.thrift.host, or set {ours}; {self.thrift.host}, if the gateway here is that store's"
        )


class Omid(_Section):
    """The status oracle and its commit table."""

    #: Names as the oracle has them (``omid.committable.tablename`` and its like); these are Omid's defaults.
    commit_table: str = "OMID_COMMIT_TABLE"
    timestamp_table: str = "OMID_TIMESTAMP_TABLE"
    #: Of the commit table: commit entries and invalidation marks.
    commit_family: str = "F"
    #: Of the commit table: the low watermark.
    watermark_family: str = "LWF"
    #: ``auto``: a low watermark of 10^17 or more is a world clock's.
    clock: Literal["auto", "world", "incremental"] = "auto"
    #: True where the oracle runs with ``lowLatency``: invalidation marks are then never pruned, and reads at a
    #: read point (``asOf``) are refused.
    low_latency: bool = False
    #: Where HBase has another oracle's commit table too, jobs refuse to run until every transactional table is named,
    #: here or in ``foreign``. Here: the tables of this oracle, names or patterns with ``*``. Else not used.
    tables: list[str] = []
    #: The tables of other oracles, their commit tables and their Lowtide's own among them, names or patterns with
    #: ``*``: never touched, never a proof, and they keep nothing back.
    foreign: list[str] = []
    #: Addresses of the oracle, host:port; a run that acts is refused while none answers. Empty: not checked.
    oracle: list[Address] = ["127.0.0.1:24758"]

    def is_named(self, table: str) -> bool:
        """Whether ``tables`` names the table."""
        return any(fnmatchcase(table, pattern) for pattern in self.tables)

    def is_foreign(self, table: str) -> bool:
        """Whether ``foreign`` names the table."""
        return any(fnmatchcase(table, pattern) for pattern in self.foreign)


class State(_Section):
    """Lowtide's own tables, and where it puts aside what it removes."""

    #: Made by the first run that acts.
    table: str = "LOWTIDE_STATE"
    #: What was pruned from the commit table: the last proof of it.
    journal_table: str = "LOWTIDE_JOURNAL"
    #: A folder (relative: to the configuration file) or URL that driver and executors can write to; on a cluster a URL.
    #: One store's alone: the first run that acts claims it, and another's is refused. What runs put aside is kept there
    #: for ``sideline_keep``, and lists of cells (``--list``); and for ever the audit log (docs/security.md).
    sideline: str = ".lowtide/sideline"
    #: What is older is removed by the next run that acts, of any job but a restore.
    sideline_keep: Duration = timedelta(days=30)
    #: A journal entry is kept at least this long, and while an HBase snapshot older than its pruning exists, or a cell
    #: needs it that is there; ``forever`` removes none. What was removed cannot be proved any more: where a table comes
    #: back from an HBase snapshot after that, ``lowtide resolve`` must decide. Longer than the oldest backup of any
    #: other kind (Export, files) that may be put back: of those HBase tells nothing.
    journal_keep: Age = "forever"

    @field_validator("sideline")
    @classmethod
    def _folder_or_url(cls, value: str) -> str:
        """What is neither would be a folder of that very name beside the configuration file."""
        if not value.strip():
            msg = "a folder or a URL is expected, such as hdfs://ns/lowtide/sideline, found none"
            raise ValueError(msg)
        if value.startswith("~"):
            msg = f"{value!r} begins with ~, which stands for no folder here: give the whole path, beginning with /"
            raise ValueError(msg)
        if scheme := _SCHEME_ALONE.match(value):
            found, rest = secrets.masked(value), secrets.masked(value[scheme.end() :].lstrip("/"))
            msg = f"{found!r} is no URL: write {scheme[0]}///{rest}, or with its host {scheme[0]}//HOST/{rest}"
            raise ValueError(msg)
        return value

    def check_sideline(self, master: str) -> None:
        """Refuse a sideline that executors of Spark's *master* may each have for themselves: what goes could not be put
        back.

        A path without a scheme is a folder of this machine unless Hadoop's configuration says otherwise, which is not
        looked at. A URL is taken at its word, ``file:`` included.

        Raises:
            UsageError: it is such a path, and the executors are not all on this machine.
        """
        if "://" not in self.sideline and not is_local(master):
            msg = (
                f"state.sideline is {self.sideline}, a folder of one machine, and Spark's executors run elsewhere "
                f"({master}): each would put aside on its own disk. Give a URL that all of them reach, such as "
                f"hdfs://..., or file://{self.sideline} if it is mounted everywhere"
            )
            raise UsageError(msg)


class Spark(_Section):
    """How jobs are submitted by ``lowtide run`` and by the DAGs."""

    #: As of ``spark-submit``; always in client mode. Clusters: docs/clusters.md.
    master: str = "local[2]"
    driver_memory: str = "1g"
    #: Further Spark settings; they win over Lowtide's own, but for those that results depend on, which are refused
    #: here (docs/clusters.md). Values are text: quote numbers.
    conf: dict[str, str] = {}
    #: Entries of the class path of driver and executors: the connector's jar and ``lib/*``. Found beside the package
    #: when empty.
    connector_class_path: list[str] = []


class Budget(_Section):
    """The most that one run may remove from one table before it stops and asks."""

    #: Cells that may go.
    rows: PositiveInt = 10_000_000
    #: Share of the cells examined, shadow cells among them. Of ``history_gc`` it counts versions, each of which goes
    #: with its shadow cell: those are never more than half, so that a smaller share is needed to stop one.
    share: float = Field(0.5, gt=0, le=1)
    #: Up to this many deletions the share is not checked: small tables have large shares.
    always: NonNegativeInt = 10_000


class Rate(_Section):
    """The most that one run reads and writes in a second, all its tasks together; give both, or none."""

    #: Cells read, from region servers or from files. Null: as fast as it goes.
    reads: PositiveInt | None = None
    #: Mutations written. Null: as fast as it goes.
    writes: PositiveInt | None = None


class Compaction(_Section):
    """Which compactions ``history_gc`` asks HBase for."""

    #: In every run that acts, scheduled ones among them; else with ``--compact`` only.
    always: bool = False
    #: Only of families of a region that give back at least this share of their bytes.
    share: float = Field(0.3, gt=0, le=1)
    #: So many bytes on disk of one table are read anew in one run, at most.
    bytes: PositiveInt = 10 << 30
    #: So many regions at a time.
    regions: PositiveInt = 2


class Mode(StrEnum):
    """What scheduled and backfilled runs do with a table."""

    DRY_RUN = "dry-run"
    EXECUTE = "execute"


class Read(StrEnum):
    """How cell versions are read."""

    #: ``snapshot`` for large ranges read from 0, ``rpc`` otherwise.
    AUTO = "auto"
    RPC = "rpc"
    SNAPSHOT = "snapshot"


#: By how much the clocks of HBase's servers may be apart (:data:`lowtide.ledger.settled.SKEW`), and as long as one
#: write to HBase may take (``hbase.rpc.timeout``): a younger entry of the ledger's index may be a living client's.
_LEAST_LEDGER_GRACE = timedelta(minutes=3)


class Ledger(_Section):
    """The transaction system; see docs/ledger.md."""

    #: Stands before the names of its tables.
    prefix: Annotated[str, Field(pattern=r"^([A-Za-z0-9_]+:)?[A-Za-z0-9_][A-Za-z0-9_.-]*$")] = "ledger_"
    #: Nickname of the one user that may go below zero: all money comes from it.
    issuer: str = "issuer"
    #: A transaction that has not ended is left to its client for this long before a repair takes it. 3m or more, unless
    #: ``allow_short_grace`` says otherwise: HBase's servers' clocks may be two minutes apart, and the write by which a
    #: client claims a number, after its index entry, takes up to one. The gateway may ask HBase again for longer
    #: (``hbase.client.operation.timeout``): best longer than that, too. Less in a repair's ``--grace`` ends only what
    #: is claimed; the settled mark goes by this one.
    grace: Duration = timedelta(minutes=15)
    #: Beside a ``grace`` below 3m, which is refused without it: no client works while a repair does.
    allow_short_grace: bool = False
    #: Connections to the gateway of one client, and so the most transactions that it works on at once; of one repair,
    #: which scans over them.
    pool: PositiveInt = 8
    #: How old the last full check may be before a run makes one by itself.
    full_check_every: Duration = timedelta(days=1)

    @model_validator(mode="after")
    def _check_grace(self) -> Ledger:
        if self.grace < _LEAST_LEDGER_GRACE and not self.allow_short_grace:
            given, least = duration_text(self.grace), duration_text(_LEAST_LEDGER_GRACE)
            text = (
                f"{given} is shorter than {least}, and a client that has put its index entry and is about to claim its "
                "transaction would lose the entry: HBase's servers may be two minutes apart, and the claim takes up to "
                f"one; give it {least} or more, or say allow_short_grace: true beside it, if no client works while a "
                "repair does"
            )
            raise _problems(InitErrorDetails(type=_ours(text), loc=("grace",), input=given))
        return self


class TableDefaults(_Section):
    """Settings of a table; ``defaults`` holds those of every table not named under ``tables``."""

    #: What scheduled and backfilled runs do, and whatever runs ``--as-configured``. Of the commit table: whether they
    #: prune; of the ledger's transactions: whether they repair. A run that is told to ``--execute`` acts all the same.
    mode: Mode = Mode.DRY_RUN
    #: ``transactional`` or ``plain`` for tables whose marks do not say; null: as their marks say. ``plain`` is refused
    #: for a table that bears a mark, or was transactional when ``watermark_collection`` listed it last.
    kind: Kind | None = None
    #: For a table with ``DURABILITY`` ``ASYNC_WAL`` or ``SKIP_WAL``, by name: that it is worked on all the same. What a
    #: crash of HBase took of a transaction's shadow cells is then taken for never committed, as its readers do.
    accept_durability: bool = False
    #: From region servers, or from an HBase snapshot made for the run.
    read: Read = Read.AUTO
    #: ``auto`` reads an HBase snapshot when a full pass must read at least this many bytes and ``hbase.rootdir`` is
    #: given.
    snapshot_from_bytes: NonNegativeInt = 1 << 30
    #: How old the last pass from 0 may be before a run makes one by itself.
    full_pass_every: Duration = timedelta(days=7)
    #: What scheduled and backfilled runs of ``history_gc`` do. It has a switch of its own: what it removes was
    #: committed.
    history_mode: Mode = Mode.DRY_RUN
    #: Read points younger than this stay readable; older history is removed. ``forever`` removes nothing.
    history_max_age: Age = timedelta(days=7)
    #: No history younger than this is removed, whatever else says so: live transactions read at their start, and nobody
    #: tracks them. Longer than the longest transaction, and than a few hours where scans are long.
    min_history_age: Duration = timedelta(hours=1)
    #: How long one hold on the table's history may last, renewals included.
    hold_max_age: PositiveDuration = timedelta(days=7)
    compaction: Compaction = Compaction()
    budget: Budget = Budget()
    rate: Rate = Rate()

    @model_validator(mode="after")
    def _check_ages(self) -> TableDefaults:
        if self.history_max_age != "forever" and self.history_max_age < self.min_history_age:
            age, least = duration_text(self.history_max_age), duration_text(self.min_history_age)
            text = (
                f"{age} is shorter than min_history_age, {least}: give it {least} or more, or set min_history_age as "
                "low, if no transaction lives as long"
            )
            raise _problems(InitErrorDetails(type=_ours(text), loc=("history_max_age",), input=age))
        return self

    @property
    def ages(self) -> Ages:
        """What it says of the table's history."""
        return Ages(None if self.history_max_age == "forever" else self.history_max_age, self.min_history_age)


class Health(_Section):
    """What ``lowtide status``, ``lowtide explain`` and the page call a fault."""

    #: A prune bound or a low watermark that stands still for this long, and a table that has held the bound for as
    #: long.
    stuck_after: Duration = timedelta(days=2)
    #: A job whose last run that acted is older than this.
    overdue_after: Duration = timedelta(days=2)
    #: A settled mark of the ledger that is older than this: its repair runs every hour.
    unsettled_after: Duration = timedelta(hours=3)


class Config(_Section):
    """The whole configuration."""

    #: What monitoring calls the store: the label ``store`` of every metric. Each store that is watched needs its own.
    store: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=63)] = "default"
    hbase: HBase = HBase()
    omid: Omid = Omid()
    state: State = State()
    spark: Spark = Spark()
    ledger: Ledger = Ledger()
    health: Health = Health()
    #: How long the prune bound must have passed a commit entry before the entry goes. A client that is suspended in its
    #: commit for longer takes itself for aborted, and rolls back what others have read: docs/safety.md.
    grace: Duration = timedelta(days=7)
    #: Beside ``grace: 0s``, which is refused without it: entries go at once, and no client is ever suspended in a
    #: commit.
    allow_no_grace: bool = False
    defaults: TableDefaults = TableDefaults()
    #: Settings by table, merged over ``defaults``.
    tables: dict[str, dict[str, Any]] = {}

    @model_validator(mode="after")
    def _check_grace(self) -> Config:
        if not self.grace and not self.allow_no_grace:
            text = (
                "0s lets commit entries go at once, and a client that is suspended in its commit then rolls back what "
                "others have read; give it longer than a client may be suspended, such as 7d, or say allow_no_grace: "
                "true beside it"
            )
            raise _problems(InitErrorDetails(type=_ours(text), loc=("grace",), input="0s"))
        return self

    @model_validator(mode="after")
    def _check_tables(self) -> Config:
        """Check every table's settings at once, so that a bad one is named before anything runs."""
        problems = self._against_the_journal("defaults", self.defaults) + _half_a_rate(self.defaults.rate, "defaults")
        if self.defaults.accept_durability:
            text = "a table is accepted by its name: say it under tables"
            problems.append(InitErrorDetails(type=_ours(text), loc=("defaults", "accept_durability"), input=True))
        for name in self.tables:
            if _NOT_IN_NAMES.search(name):
                text = (
                    f"{name!r} cannot be a table of HBase's: give one table's whole name, NAMESPACE:TABLE outside the "
                    "default namespace; a pattern is none, and defaults are for all tables"
                )
                problems.append(InitErrorDetails(type=_ours(text), loc=("tables", name), input=name))
            try:
                settings = self.table(name)
                if "full_pass_every" in self.tables[name]:
                    problems += self._against_the_journal(f"tables.{name}", settings)
                if "rate" in self.tables[name]:
                    problems += _half_a_rate(settings.rate, "tables", name)
            except ValidationError as error:
                for problem in error.errors():
                    kind = "extra_forbidden" if problem["type"] == "extra_forbidden" else _ours(_message(problem))
                    where = ("tables", name, *problem["loc"])
                    problems.append(InitErrorDetails(type=kind, loc=where, input=problem["input"]))
        if problems:
            raise _problems(*problems)
        return self

    def _against_the_journal(self, where: str, settings: TableDefaults) -> list[InitErrorDetails]:
        """Refuse full passes rarer than the journal lasts: what comes back between two of them would have no proof
        left.
        """
        keep, every = self.state.journal_keep, settings.full_pass_every
        if not isinstance(keep, timedelta) or every <= keep:
            return []
        text = (
            f"{duration_text(every)} is longer than state.journal_keep, {duration_text(keep)}: what is found only by a "
            f"pass from 0 would find its entry swept from the journal. Keep that {duration_text(every)} or longer, or "
            "pass more often"
        )
        place = tuple(where.split(".", 1))
        return [InitErrorDetails(type=_ours(text), loc=(*place, "full_pass_every"), input=every)]

    @property
    def own_tables(self) -> frozenset[str]:
        """Tables that are never cleaned: the commit table, the oracle's timestamps, and Lowtide's own."""
        return frozenset(
            {self.omid.commit_table, self.omid.timestamp_table, self.state.table, self.state.journal_table}
        )

    @property
    def has_ledger(self) -> bool:
        """Whether it speaks of a ledger: by its section, be that empty, or by settings of the ledger's transactions."""
        return "ledger" in self.model_fields_set or f"{self.ledger.prefix}transactions" in self.tables

    def table(self, name: str) -> TableDefaults:
        """The settings of table *name*: its own over the defaults."""
        own = self.tables.get(name)
        # A run asks many times of each of its tables, and of most the configuration says nothing.
        return TableDefaults.model_validate(_merged(self.defaults.model_dump(), own)) if own else self.defaults

    def key_of(self, table: str, setting: str) -> str:
        """Where the file says a table's setting."""
        return f"tables.{table}.{setting}" if setting in self.tables.get(table, {}) else f"defaults.{setting}"


def is_local(master: str) -> bool:
    """Whether all executors of Spark's *master* are on this machine."""
    return master == "local" or master.startswith(("local[", "local-cluster["))


def _half_a_rate(rate: Rate, *where: str) -> list[InitErrorDetails]:
    """Refuse a rate for reads or for writes alone: whoever is careful with the one would be surprised by the other."""
    if bool(rate.reads) is bool(rate.writes):
        return []
    given, lacks = ("reads", "writes") if rate.reads else ("writes", "reads")
    text = f"{given} are held to {getattr(rate, given)} a second, and {lacks} to nothing: give rate.{lacks} as well"
    return [InitErrorDetails(type=_ours(text), loc=(*where, "rate"), input=rate.model_dump())]


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """*over* laid upon *base*, section by section."""
    both = {k: _merged(base[k], v) for k, v in over.items() if isinstance(v, dict) and isinstance(base.get(k), dict)}
    return base | over | both


def source(path: Path | None = None) -> str:
    """Which file :func:`load` takes, in words where it is none."""
    found = _found(path)
    return str(found.resolve()) if found else DEFAULTS


def load(path: Path | str | None = None, *, store_named: bool = False, one_of_several: bool = False) -> Config:
    """The configuration of *path*, or the one that is found (see the module's text).

    Args:
        path: the file.
        store_named: whether the caller knows of which store it is, and goes by no default for that: an Airflow
            connection names its gateway.
        one_of_several: whether the caller serves other stores too: the file must then say itself where this one is,
            and, unless the caller knows, where its gateway is.

    Raises:
        UsageError: the file is missing, no YAML, not in UTF-8, or has unknown keys, bad values, or a key twice; the
            message names each of them.
        UnnamedStoreError: neither the file, if there is one, nor a variable says where the store is, and
            ``HBASE_CONF_DIR`` or ``HADOOP_CONF_DIR`` is set, without a file, or without leading to an
            ``hbase-site.xml``: the defaults mean this machine's store, and may not be what is meant. Or it is one of
            several stores, and the file does not say where.
    """
    path = None if path is None else Path(path)
    name, text = _read(path)
    try:
        content = document.from_yaml(text) or {}
    except yaml.YAMLError as error:
        msg = f"{name} is not valid YAML: {document.what_is_wrong(error)}"
        raise UsageError(msg) from None  # it has a line of the file in it
    except document.RepeatedKeysError as error:
        raise UsageError(_listed(name, [f"{place}: {what}" for place, what in error.found.items()])) from error
    if not isinstance(content, dict):
        msg = f"{name} must hold a mapping of sections, found {type(content).__name__}"
        raise UsageError(msg)
    given = variables.settings(Config)
    content = _merged(content, given)
    names_store = _names_store(content)
    content = _with_site(content, Path(name).parent, named=name != DEFAULTS and not one_of_several)
    if one_of_several and not _has_address(content):
        fact = f"{name} does not say where its store is, and it is one of several"
        raise UnnamedStoreError(fact, "say hbase.zookeeper_quorum there, or hbase.conf_dir")
    if not store_named and not names_store and not _has_address(content):
        _check_defaults(name)
    try:
        config = _anchored(Config.model_validate(content), Path(name).parent)
    except ValidationError as error:
        raise UsageError(_explain(name, error, given)) from None  # it has values in it, of secrets too
    if one_of_several and not store_named:
        config.hbase.check_gateway()
    return _with_root(config) if name == DEFAULTS else config


def _names_store(content: Mapping[str, Any]) -> bool:
    """Whether it is said where the store is, or in which folder that is said."""
    hbase = content.get("hbase")
    return _has_address(content) or (isinstance(hbase, dict) and bool(hbase.get("conf_dir")))


def _has_address(content: Mapping[str, Any]) -> bool:
    """Whether it has an address of the store's. A port or a znode alone would be that of the defaults' machine."""
    hbase = content.get("hbase")
    if not isinstance(hbase, dict):
        return False
    properties = hbase.get("properties")
    given = {**(properties if isinstance(properties, dict) else {}), **hbase}
    return any(given.get(name) for name in ("zookeeper_quorum", "hbase.zookeeper.quorum", *_SERVERS))


def _check_defaults(name: str) -> None:
    """Refuse to take the defaults' store on a machine that is set up for a cluster; *name*: of the configuration that
    names none.
    """
    cluster = site.hinted()
    if not cluster:
        return
    variable, folder = cluster
    here = f"{HBase().zookeeper_quorum}:{HBase().zookeeper_port}"
    says, remedy = f"{name} does not say where the store is", "say hbase.zookeeper_quorum there, or hbase.conf_dir"
    if name == DEFAULTS:
        says = "there is no configuration here"
        remedy = f"give --config FILE, set {CONFIG_VARIABLE}, or go where {DEFAULT_FILE} is"
    fact = f"{says}, and {variable} is set ({folder}): the store on this machine ({here}) may not be what is meant"
    ours = variables.variable_name(*THIS_MACHINE)
    raise UnnamedStoreError(fact, f"{remedy}; if this machine's store is meant, set {ours}={HBase().zookeeper_quorum}")


def _is_here(address: str) -> bool:
    """Whether a host, or host:port, is this machine by its loopback."""
    host = address.strip()
    host = re.sub(r":\d+$", "", host) if host.count(":") == 1 else host.strip("[]")
    return host in ("", "localhost", "::1") or bool(re.fullmatch(r"127(\.\d{1,3}){3}", host))


def _with_site(content: dict[str, Any], folder: Path, *, named: bool) -> dict[str, Any]:
    """*content* over what the cluster's own files say.

    A folder that only the environment leads to counts where the file, which must be there, gives no part of an address,
    in words of its own or of HBase's: quorum, port and znode of two clusters would make a third. And the defaults mean
    this machine's store, never one that happens to be configured on it.

    Args:
        content: of the file and the variables.
        folder: of the file.
        named: whether there is a file, and of this machine's one store.
    """
    hbase = content.get("hbase", {})
    if not isinstance(hbase, dict):
        return content
    given = hbase.get("conf_dir")
    if isinstance(given, str):
        where: Path | None = (folder / given).resolve()
    else:
        addressed = set(hbase) & set(site.ADDRESS.values()) or _has_address(content)
        where = site.found() if named and not addressed else None
    if where is None:
        return content
    return {**content, "hbase": _merged(site.settings(where), {**hbase, "conf_dir": str(where)})}


def _with_root(config: Config) -> Config:
    """*config* with the root folder of the embedded store, if that is the store meant: the defaults suit it, and
    whoever reads HBase snapshots there started it, so that its files are open to them.
    """
    known = config.hbase.properties
    root = site.root(paths.store() / "conf", config.hbase.address)
    if root is None or _ROOT in known:
        return config
    return config.model_copy(update={"hbase": config.hbase.model_copy(update={"properties": {**known, _ROOT: root}})})


def _anchored(config: Config, folder: Path) -> Config:
    """*config* with a relative sideline taken from *folder*: jobs run wherever a scheduler puts them, restores
    elsewhere.
    """
    if "://" in config.state.sideline or Path(config.state.sideline).is_absolute():
        return config
    sideline = str((folder / config.state.sideline).resolve())
    return config.model_copy(update={"state": config.state.model_copy(update={"sideline": sideline})})


def _found(path: Path | None) -> Path | None:
    named = path or (Path(os.environ[CONFIG_VARIABLE]) if os.environ.get(CONFIG_VARIABLE) else None)
    return named or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)


def _read(path: Path | None) -> tuple[str, str]:
    chosen = _found(path)
    if chosen is None:
        return DEFAULTS, ""
    try:
        return str(chosen), document.read_text(chosen)
    except OSError as error:
        msg = f"cannot read the configuration {chosen}: {error.strerror}; give --config FILE or set {CONFIG_VARIABLE}"
        raise UsageError(msg) from error


def _explain(source: str, error: ValidationError, variables_given: Mapping[str, Any]) -> str:
    lines = []
    for problem in error.errors():
        place = ".".join(str(part) for part in problem["loc"]) or "(whole file)"
        if by := _variable(variables_given, problem["loc"]):
            place = f"{place} (environment variable {by})"
        if problem["type"] == "extra_forbidden":
            lines.append(f"{place}: unknown key; see docs/configuration.md for the known ones")
        else:
            lines.append(f"{place}: {_message(problem)}")
    return _listed(source, lines)


def _listed(source: str, problems: Sequence[str]) -> str:
    return "\n  ".join([f"{source} has {len(problems)} problem(s):", *problems])


def _variable(given: Mapping[str, Any], path: Sequence[object]) -> str:
    """The environment variable that set the value at *path*, or a mapping or list around it; empty where none did."""
    content: Any = given
    for part in path:
        if isinstance(content, dict):
            if part not in content:
                return ""
            content = content[part]
    settings = variables.known_settings(Config).items()
    return next((variable for variable, setting in settings if setting == tuple(path[: len(setting)])), "")


def _message(problem: ErrorDetails) -> str:
    """What is wrong with a value. Lowtide's own texts say what was found, pydantic's do not; a secret's is not said."""
    if problem["input"] is None and problem["type"] in ("model_type", "dict_type"):
        key = str(problem["loc"][-1])
        return f"nothing stands under it: take {key} out too, or write {key}: {{}}"
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    if problem["type"] == _OURS:
        return problem["msg"]
    return f"{problem['msg']} {secrets.found(problem['loc'], problem['input'])}"


def _ours(text: str) -> PydanticCustomError:
    return PydanticCustomError(_OURS, "{text}", {"text": text})


def _problems(*found: InitErrorDetails) -> ValidationError:
    return ValidationError.from_exception_data("configuration", list(found))
