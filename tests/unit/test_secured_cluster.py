"""What a secured cluster's files say: to servers, with whose keys they log in, and to clients."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from lowtide.lab.cluster import ClusterConfig, free_ports_cluster
from lowtide.lab.cluster.config import write
from lowtide.lab.stack import StackConfig, secured


def told(folder: Path) -> dict[str, str]:
    """All properties of a folder's files."""
    found = {}
    for file in folder.glob("*.xml"):
        for one in ElementTree.parse(file).getroot().iter("property"):
            found[one.findtext("name") or ""] = one.findtext("value") or ""
    return found


def written(tmp_path: Path, realm: StackConfig | None) -> ClusterConfig:
    config = free_ports_cluster(tmp_path / "cluster", realm, hdfs_site={"dfs.replication": "3"})
    write(config)
    return config


def test_keys_are_the_servers_alone(tmp_path: Path) -> None:
    """Clients are told that they have to log in, how and to whom they speak; where a key lies they are not."""
    realm = StackConfig(tmp_path / "store", secured=True)
    config = written(tmp_path, realm)
    clients, servers = told(config.conf), told(config.servers)
    assert clients["hadoop.security.authentication"] == servers["hadoop.security.authentication"] == "kerberos"
    assert clients["hadoop.rpc.protection"] == servers["hadoop.rpc.protection"] == "privacy"
    assert clients["dfs.namenode.kerberos.principal"] == f"hdfs/localhost@{secured.REALM}"
    assert not [name for name in clients if "keytab" in name]
    keytabs = {value for name, value in servers.items() if "keytab" in name}
    assert keytabs == {str(secured.keytab(realm, name)) for name in (secured.HDFS, secured.YARN, secured.WEB)}
    assert {secured.HDFS, secured.YARN, secured.WEB} < set(secured.PRINCIPALS)


def test_where_nobody_is_asked_nothing_is_said_of_logins(tmp_path: Path) -> None:
    """The two folders differ in what servers are told besides."""
    config = written(tmp_path, None)
    clients, servers = told(config.conf), told(config.servers)
    assert not [name for name in servers if "kerberos" in name or "security" in name]
    assert clients["dfs.permissions.enabled"] == "false"
    assert {**clients, "dfs.replication": "3"} == servers
