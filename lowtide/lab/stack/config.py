"""What an embedded store is made of: one frozen value."""

from __future__ import annotations

import dataclasses
import json
import random
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lowtide.errors import LowtideError

LOOPBACK = "127.0.0.1"

#: Below the range that Linux and macOS hand out to outgoing connections, so that no other socket takes a port between
#: the moment it is found free and the moment a server binds it.
_TEST_PORTS = range(18_000, 32_000)


#: The lines of HBase's releases that there is a build of ``embedded/`` for, the oldest first.
HBASE_LINES = ("2.5", "2.6")

#: What the gateway of a secured store asks of its clients: nothing; a login by SASL, with what that does for the bytes
#: that follow; a login by SPNEGO with each request.
GATEWAYS = ("open", "auth", "auth-int", "auth-conf", "http", "https")

#: Each is a virtual machine of its own.
MOST_REGION_SERVERS = 9

#: The key of ``region_servers`` in the file of :func:`save`.
_APART = "region_server_processes"


class StackError(LowtideError):
    """The embedded store cannot be started, stopped or reached; the message names the remedy."""


@dataclass(frozen=True)
class StackConfig:
    """An embedded store.

    ``home`` holds everything: data, configuration, logs, process ids. ``timestamps`` is the oracle's clock: ``world``
    counts 1,000,000 a millisecond, ``incremental`` counts from 50 on; it cannot change once the store has data.
    ``conflict_map_size`` is how many written cells the oracle remembers; a small one makes the low watermark follow
    the writers closely (the watermark is the largest commit timestamp that fell out). Omid adds room for 32 cells.
    ``hbase`` is the line of releases that HBase's servers are of. A store is never started on an older one than before.
    ``region_servers`` is 0 where HBase is one process; else ZooKeeper, the master and so many region servers are a
    process each, so that one of them can be killed. ``hbase_heap`` is the heap of each of HBase's processes.
    ``secured`` has every part log in by Kerberos, with a key distribution centre of its own, and HBase check
    permissions; ``gateway``, one of ``GATEWAYS``, is what its gateway asks of clients. See
    :mod:`lowtide.lab.stack.secured`.
    ``java_options`` are more options of the servers' virtual machines: by default those of a store that lives for
    minutes, which starts with a third less work without Java's second compiler. A store that is measured has none.
    """

    home: Path
    zookeeper_port: int = 2181
    thrift_port: int = 9090
    tso_port: int = 24758
    timestamps: Literal["world", "incremental"] = "world"
    conflict_map_size: int = 1000
    region_servers: int = 0
    hbase: Literal["2.5", "2.6"] = "2.6"
    hbase_heap: str = "1g"
    zookeeper_heap: str = "128m"
    thrift_heap: str = "192m"
    tso_heap: str = "256m"
    #: Whether HBase's servers carry Apache Phoenix, and programs on ``java_command`` its client.
    phoenix: bool = False
    secured: bool = False
    kdc_port: int = 10088
    gateway: Literal["open", "auth", "auth-int", "auth-conf", "http", "https"] = "auth-conf"
    java_options: tuple[str, ...] = ("-XX:TieredStopAtLevel=1",)
    extra_hbase: Mapping[str, str] = field(default_factory=dict)
    extra_classpath: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "home", Path(self.home).absolute())
        object.__setattr__(self, "extra_hbase", dict(self.extra_hbase))
        if self.timestamps not in ("world", "incremental"):
            raise StackError(f"timestamps is {self.timestamps!r}; use 'world' or 'incremental'")
        if self.conflict_map_size < 1:
            raise StackError(f"conflict_map_size is {self.conflict_map_size}; it must be at least 1")
        if self.hbase not in HBASE_LINES:
            raise StackError(f"hbase is {self.hbase!r}; use one of {', '.join(HBASE_LINES)}")
        if self.phoenix and self.hbase != HBASE_LINES[-1]:
            raise StackError(f"hbase is {self.hbase}; Phoenix's jars are for {HBASE_LINES[-1]}: leave --phoenix out")
        if self.gateway not in GATEWAYS:
            raise StackError(f"gateway is {self.gateway!r}; use one of {', '.join(GATEWAYS)}")
        if self.secured and (self.phoenix or self.region_servers):
            besides = "--phoenix" if self.phoenix else "--region-servers"
            raise StackError(f"a secured store is one HBase without Phoenix; leave {besides} or --secured out")
        if not 0 <= self.region_servers <= MOST_REGION_SERVERS:
            raise StackError(
                f"region_servers is {self.region_servers}; it is 1 to {MOST_REGION_SERVERS}, or 0 for HBase in one "
                "process"
            )
        ports = self.ports
        if wrong := [f"{name} {port}" for name, port in ports.items() if not 0 < port < 65536]:
            raise StackError(f"no port can be {', '.join(wrong)}; give one from 1 to 65535")
        if len(set(ports.values())) != len(ports):
            raise StackError(f"the ports {ports} are not all different; give each part its own")

    @property
    def ports(self) -> dict[str, int]:
        """The port of each part that is found by it: HBase's is ZooKeeper's, through which clients find its servers on
        whatever ports were free.
        """
        first = "zookeeper" if self.region_servers else "hbase"
        kdc = {"kdc": self.kdc_port} if self.secured else {}
        return {**kdc, first: self.zookeeper_port, "thrift": self.thrift_port, "tso": self.tso_port}


def load(home: Path) -> StackConfig:
    """The configuration that the store in *home* was last started with; the defaults if it never was."""
    saved = _saved(home)
    if not saved.exists():
        return StackConfig(home=home)
    values = json.loads(saved.read_text("utf-8"))
    values["extra_classpath"] = tuple(map(Path, values["extra_classpath"]))
    values["java_options"] = tuple(values.get("java_options", ()))
    # A file of before there was this key says region_servers: 1 of an HBase in one process.
    values["region_servers"] = values.pop(_APART, 0)
    return StackConfig(home=home, **values)


def save(config: StackConfig) -> None:
    """Keep *config* in its home, for ``load``."""
    values = {name: value for name, value in dataclasses.asdict(config).items() if name != "home"}
    values["extra_classpath"] = [str(path) for path in config.extra_classpath]
    values[_APART] = values.pop("region_servers")
    saved = _saved(config.home)
    saved.parent.mkdir(parents=True, exist_ok=True)
    saved.write_text(json.dumps(values, indent=2) + "\n", "utf-8")


def _saved(home: Path) -> Path:
    return Path(home) / "conf" / "stack.json"


def free_ports_config(home: Path, **options: Any) -> StackConfig:
    """A configuration on ports that are free now, for tests and for a second store beside a first."""
    zookeeper, thrift, tso, kdc = free_ports(4)
    return StackConfig(home=home, zookeeper_port=zookeeper, thrift_port=thrift, tso_port=tso, kdc_port=kdc, **options)


def free_ports(count: int) -> list[int]:
    """So many ports that are free now, all different."""
    ports: list[int] = []
    candidates = random.SystemRandom().sample(_TEST_PORTS, 200)
    while len(ports) < count:
        port = candidates.pop()
        if port_is_free(port):
            ports.append(port)
    return ports


def port_is_free(port: int) -> bool:
    """Whether a server could listen on *port* of the loopback interface now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
