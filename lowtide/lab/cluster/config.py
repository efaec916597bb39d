"""What a laboratory's cluster is made of, and the configuration files that follow."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lowtide.lab.stack.config import LOOPBACK, free_ports
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
    node has for containers.
    """

    home: Path
    namenode_port: int
    namenode_http_port: int
    resourcemanager_port: int
    resourcemanager_http_port: int
    scheduler_port: int
    tracker_port: int
    memory_mb: int = 6144

    def __post_init__(self) -> None:
        object.__setattr__(self, "home", Path(self.home).absolute())

    @property
    def hdfs(self) -> str:
        """The root of HDFS."""
        return f"hdfs://{LOOPBACK}:{self.namenode_port}"

    @property
    def conf(self) -> Path:
        """The folder of its configuration: what ``HADOOP_CONF_DIR`` names."""
        return self.home / "conf"


def free_ports_cluster(home: Path) -> ClusterConfig:
    """A configuration on ports that are free now."""
    return ClusterConfig(home, *free_ports(6))


def write(config: ClusterConfig) -> None:
    """Write the configuration of servers and clients, which is the same."""
    for page in _PAGES:
        (config.conf / page).mkdir(parents=True, exist_ok=True)
    (config.conf / "log4j.properties").write_text(_LOGGING, "utf-8")
    for name, properties in _sites(config).items():
        (config.conf / f"{name}.xml").write_text(site(properties), "utf-8")


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
