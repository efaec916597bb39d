"""The configuration files of the servers, written under ``home/conf`` (first on every class path)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from lowtide.lab.stack import secured
from lowtide.lab.stack.config import LOOPBACK, StackConfig, save

#: ZooKeeper's, where it is a process of its own.
ZOOKEEPER = "zoo.cfg"

_LOGGING = """\
status = error
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = ${sys:lowtide.log}
appender.file.filePattern = ${sys:lowtide.log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{ISO8601} %-5p [%t] %c{2}: %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
logger.zookeeper.name = org.apache.zookeeper
logger.zookeeper.level = warn
"""

_SESSION_MILLIS = "20000"
_TICK_MILLIS = "2000"

#: Where region servers are processes of their own.
_APART = {
    # Wherever there is room, as in one process.
    "hbase.master.port": "0",
    "hbase.regionserver.port": "0",
    "zookeeper.session.timeout": _SESSION_MILLIS,
    # So long the master waits for all of them. Then it begins with those that are there, as it must when it is started
    # again and one of them is dead.
    "hbase.master.wait.on.regionservers.timeout": "30000",
}

#: What Phoenix asks of servers and clients alike.
_PHOENIX = {
    "hbase.regionserver.wal.codec": "org.apache.hadoop.hbase.regionserver.wal.IndexedWALEditCodec",
    "phoenix.transactions.enabled": "true",
}


def write(config: StackConfig) -> None:
    """Write ``hbase-site.xml``, the oracle's YAML, ZooKeeper's settings, the logging set-up, and *config* itself for
    later ``load``s.
    """
    conf = config.home / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    save(config)
    (conf / "hbase-site.xml").write_text(site({**server_properties(config), **config.extra_hbase}), "utf-8")
    (conf / "omid-server-configuration.yml").write_text(_oracle(config), "utf-8")
    (conf / ZOOKEEPER).write_text(_zookeeper(config), "utf-8")
    # Phoenix builds its Omid client from this file alone; it has no property of its own for the oracle's address.
    (conf / "hbase-omid-client-config.yml").write_text(f'connectionString: "{LOOPBACK}:{config.tso_port}"\n', "utf-8")
    write_logging(conf)
    if config.secured:
        _write_secured(config, conf)


def _write_secured(config: StackConfig, conf: Path) -> None:
    """Folders beside the servers' files, each for who logs in as somebody else: its ``hbase-site.xml`` stands before
    theirs. The gateway's has a password.
    """
    (conf / "core-site.xml").write_text(site(secured.CORE), "utf-8")
    for role in secured.Role:
        folder = conf / role
        folder.mkdir(mode=0o700, exist_ok=True)
        of_role = {**server_properties(config), **secured.properties_of(config, role), **config.extra_hbase}
        (folder / "hbase-site.xml").write_text(site(of_role), "utf-8")
    secured.write(config)


def write_logging(folder: Path) -> None:
    """Write the logging set-up: everything goes to the file that the property ``lowtide.log`` of a virtual machine
    names.
    """
    (folder / "log4j2.properties").write_text(_LOGGING, "utf-8")


def client_properties(config: StackConfig) -> dict[str, str]:
    """What an HBase client needs to reach the store, and a reader of HBase snapshots to find their files."""
    return {
        "hbase.zookeeper.quorum": LOOPBACK,
        "hbase.zookeeper.property.clientPort": str(config.zookeeper_port),
        "zookeeper.znode.parent": "/hbase",
        "hbase.rootdir": (config.home / "hbase").as_uri(),
        **(_PHOENIX if config.phoenix else {}),
        **(secured.client_properties() if config.secured else {}),
        **config.extra_hbase,
    }


def server_properties(config: StackConfig) -> dict[str, str]:
    """The servers' HBase configuration, before ``extra_hbase``."""
    home = config.home
    return {
        **client_properties(config),
        **(_APART if config.region_servers else {}),
        **(secured.server_properties(config) if config.secured else {}),
        "hbase.cluster.distributed": str(config.region_servers > 0).lower(),
        "hbase.tmp.dir": str(home / "tmp"),
        "hadoop.tmp.dir": str(home / "tmp"),
        "hbase.zookeeper.property.dataDir": str(home / "zookeeper"),
        # The checksumming local file system cannot flush a log on request: a killed server would lose acknowledged
        # writes. The raw one can.
        "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "hbase.unsafe.stream.capability.enforce": "false",
        "hbase.wal.provider": "filesystem",
        # Nothing listens outside the loopback interface, and there are no web pages.
        "hbase.master.ipc.address": LOOPBACK,
        "hbase.regionserver.ipc.address": LOOPBACK,
        "hbase.master.hostname": LOOPBACK,
        "hbase.unsafe.regionserver.hostname": LOOPBACK,
        # The master and the region servers listen wherever there is room; clients find them through ZooKeeper.
        "hbase.localcluster.assign.random.ports": "true",
        "hbase.master.info.port": "-1",
        "hbase.regionserver.info.port": "-1",
        "hbase.thrift.info.port": "-1",
        # How long HBase may be held up before it counts as dead: longer than the 10 s of a local cluster, since other
        # programs want the processors too. A killed HBase takes as long to start again.
        "zookeeper.session.timeout.localHBaseCluster": _SESSION_MILLIS,
        # A small machine that should boot quickly.
        "hbase.master.wait.on.regionservers.mintostart": "1",
        "hbase.master.wait.on.regionservers.maxtostart": str(max(1, config.region_servers)),
        "hbase.master.wait.on.regionservers.interval": "200",
        "hbase.regionserver.msginterval": "1000",
        "hbase.procedure.remote.dispatcher.delay.msec": "10",
        "hbase.regionserver.handler.count": "12",
        "hbase.zookeeper.property.tickTime": _TICK_MILLIS,
        "hbase.hfile.compaction.discharger.interval": "2000",
        # Major compactions remove history that Lowtide wants to see; they run when asked for.
        "hbase.hregion.majorcompaction": "0",
    }


def site(properties: Mapping[str, str]) -> str:
    """The content of a configuration file of HBase or Hadoop."""
    rows = [
        f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in sorted(properties.items())
    ]
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', "<configuration>", *rows, "</configuration>", ""])


def _zookeeper(config: StackConfig) -> str:
    # The folder is the one that ZooKeeper uses inside HBase's process: a store can be started either way.
    return f"""\
dataDir={config.home / "zookeeper" / "zookeeper_0"}
clientPort={config.zookeeper_port}
clientPortAddress={LOOPBACK}
tickTime={_TICK_MILLIS}
maxClientCnxns=300
4lw.commands.whitelist=ruok
admin.enableServer=false
"""


def _oracle(config: StackConfig) -> str:
    clock = {"world": "WORLD_TIME", "incremental": "INCREMENTAL"}[config.timestamps]
    return f"""\
port: {config.tso_port}
waitStrategy: LOW_CPU
conflictMapSize: {config.conflict_map_size}
timestampType: {clock}
timestampStoreModule: !!org.apache.omid.timestamp.storage.DefaultHBaseTimestampStorageModule [ ]
commitTableStoreModule: !!org.apache.omid.committable.hbase.DefaultHBaseCommitTableStorageModule [ ]
leaseModule: !!org.apache.omid.tso.LoopbackLeaseModule [ ]
networkIfaceName: lo
"""
