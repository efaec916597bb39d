"""The laboratory's cluster itself: started, killed in part, ended."""

from __future__ import annotations

from pathlib import Path

import psutil
from yarn_kit import tell

from lowtide.lab.cluster import Cluster, free_ports_cluster
from lowtide.lab.servers import start_time


def states(cluster: Cluster) -> dict[str, str]:
    return {part.name: part.state for part in cluster.status()}


def pids(cluster: Cluster) -> dict[str, int | None]:
    return {part.name: part.pid for part in cluster.status()}


def test_servers_listen_on_loopback_come_back_alone_and_end(tmp_path: Path) -> None:
    """All four run, and nothing of them can be reached from elsewhere; a killed NodeManager is noticed, and started
    again alone; a file outlives the servers; in the end no process is left.
    """
    cluster = Cluster(free_ports_cluster(tmp_path / "cluster"))
    try:
        cluster.up(tell)
        assert set(states(cluster).values()) == {"running"}
        running = pids(cluster)
        for name, pid in running.items():
            listening = [c for c in psutil.Process(pid).net_connections("tcp") if c.status == psutil.CONN_LISTEN]
            assert listening, name
            assert {c.laddr.ip.removeprefix("::ffff:") for c in listening} == {"127.0.0.1"}, (name, listening)
        cluster.fs("-mkdir", "-p", "/kept")
        cluster.kill("nodemanager")
        assert states(cluster) == {**dict.fromkeys(running, "running"), "nodemanager": "killed"}
        cluster.up(tell)
        again = pids(cluster)
        assert {name for name, pid in again.items() if pid != running[name]} == {"nodemanager"}
        cluster.down(tell)
        assert set(states(cluster).values()) == {"stopped"}
        assert [pid for pid in again.values() if start_time(pid or 0)] == []
        cluster.up(tell)
        assert "/kept" in cluster.fs("-ls", "/")
    finally:
        cluster.down()
