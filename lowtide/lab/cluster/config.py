"""What a laboratory's cluster is made of, and the configuration files that follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lowtide.lab.cluster import secured
from lowtide.lab.stack.config import LOOPBACK, StackConfig, free_ports
from lowtide.lab.stack.files import site

_LOGGING = """\
log4j.rootLogger=INFO,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %-5p [%t] %c{2}: %m%n
"""

#: The servers look here for their pages, which Maven's jars lack; without the folders HDFS's do not start.
_PAGES = ("webapps/hdfs", "webapps/datanode")


@dataclass(frozen=True)
class ClusterConfig:
    """A cluster of one node.

    ``home`` holds everything. What is not found by its port listens wherever there is room. ``memory_mb`` is what the
    node has for containers. ``realm`` is the secured store whose key distribution centre it takes its keys from, which
    must run while it runs: then every server asks for a login, and HDFS checks permissions
    (:mod:`lowtide.lab.cluster.secured`). None: it asks nobody, and lets everybody do everything.
    """

    home: Path
    namenode_port: int
    namenode_http_port: int
    resourcemanager_port: int
    resourcemanager_http_port: int
    scheduler_port: int
    tracker_port: int
    memory_mb: int = 6144
    realm: StackConfig | None = None
    #: Of Hadoop's servers, over what they have here.
    extra: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "home", Path(self.home).absolute())

    @property
    def hdfs(self) -> str:
        """The root of HDFS."""
        return f"hdfs://{LOOPBACK}:{self.namenode_port}"

    @property
    def conf(self) -> Path:
        """The folder of its clients' configuration: what ``HADOOP_CONF_DIR`` names."""
        return self.home / "conf"

    @property
    def servers(self) -> Path:
        """The folder of the servers' configuration, with whose keys they log in."""
        return self.home / "servers"


def free_ports_cluster(home: Path, realm: StackConfig | None = None, **extra: Mapping[str, str]) -> ClusterConfig:
    """A configuration on ports that are free now; *extra* with ``_`` for the files' ``-``, as in ``hdfs_site``."""
    files = {name.replace("_", "-"): properties for name, properties in extra.items()}
    namenode, page, manager, pages, scheduler, tracker = free_ports(6)
    return ClusterConfig(home, namenode, page, manager, pages, scheduler, tracker, realm=realm, extra=files)


def write(config: ClusterConfig) -> None:
    """Write the configuration of servers and clients, which differ in the servers' keys alone."""
    clients = _sites(config)
    if config.realm:
        _add(clients, secured.client_properties())
    servers = {name: dict(properties) for name, properties in clients.items()}
    if config.realm:
        _add(servers, secured.server_properties(config.realm))
    _add(servers, config.extra)
    for folder, sites in ((config.conf, clients), (config.servers, servers)):
        for page in _PAGES:
            (folder / page).mkdir(parents=True, exist_ok=True)
        (folder / "log4j.properties").write_text(_LOGGING, "utf-8")
        for name, properties in sites.items():
            (folder / f"{name}.xml").write_text(site(properties), "utf-8")


def _add(sites: dict[str, dict[str, str]], more: Mapping[str, Mapping[str, str]]) -> None:
    for name, properties in more.items():
        sites[name] |= properties


def _sites(config: ClusterConfig) -> dict[str, dict[str, str]]:
    home, anywhere = config.home, f"{LOOPBACK}:0"
    return {
        "core-site": {"fs.defaultFS": config.hdfs, "hadoop.tmp.dir": str(home / "tmp")},
        "hdfs-site": {
            "dfs.replication": "1",
            "dfs.permissions.enabled": "false",
            "dfs.namenode.name.dir": (home / "name").as_uri(),
            "dfs.datanode.data.dir": (home / "data").as_uri(),
            "dfs.namenode.http-address": f"{LOOPBACK}:{config.namenode_http_port}",
            "dfs.datanode.address": anywhere,
            "dfs.datanode.http.address": anywhere,
            "dfs.datanode.ipc.address": anywhere,
            "dfs.datanode.hostname": LOOPBACK,
            # One node is all there is to wait for.
            "dfs.namenode.safemode.extension": "0",
        },
        "yarn-site": {
            "yarn.resourcemanager.hostname": LOOPBACK,
            "yarn.resourcemanager.address": f"{LOOPBACK}:{config.resourcemanager_port}",
            "yarn.resourcemanager.scheduler.address": f"{LOOPBACK}:{config.scheduler_port}",
            "yarn.resourcemanager.resource-tracker.address": f"{LOOPBACK}:{config.tracker_port}",
            "yarn.resourcemanager.webapp.address": f"{LOOPBACK}:{config.resourcemanager_http_port}",
            "yarn.resourcemanager.admin.address": anywhere,
            "yarn.nodemanager.address": anywhere,
            "yarn.nodemanager.localizer.address": anywhere,
            "yarn.nodemanager.collector-service.address": anywhere,
            "yarn.nodemanager.webapp.address": anywhere,
            "yarn.nodemanager.local-dirs": str(home / "containers"),
            "yarn.nodemanager.log-dirs": str(home / "logs" / "containers"),
            "yarn.nodemanager.resource.memory-mb": str(config.memory_mb),
            "yarn.nodemanager.resource.cpu-vcores": "8",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.scheduler.minimum-allocation-mb": "128",
            # A disk that is nearly full is this machine's business.
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99",
        },
        "capacity-scheduler": {
            "yarn.scheduler.capacity.root.queues": "default",
            "yarn.scheduler.capacity.root.default.capacity": "100",
            "yarn.scheduler.capacity.maximum-am-resource-percent": "0.5",
        },
    }
