"""Jobs on a secured cluster, with a secured store on its HDFS: by a keytab or by a ticket."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from secured_kit import Gateway
from yarn_kit import SMALL, Site, tell

from lowtide.config import load
from lowtide.journal import life
from lowtide.lab.cluster import Cluster, free_ports_cluster
from lowtide.lab.cluster import secured as keys
from lowtide.lab.stack import Stack, files, free_ports_config, secured
from lowtide.store.gateway import connect
from lowtide.store.rows import FAMILY_SETTINGS
from lowtide.store.state import opened

#: Whose jobs they are: a user without rights, but for those that a test grants.
USER = "alice"
ME = f"{USER}@{secured.REALM}"
#: A queue that nobody but YARN's administrators may submit to.
CLOSED = "closed"
#: So long HBase's tokens are good, and HDFS's unless they are renewed, in seconds: shorter than a slow run.
HBASE_SECONDS, HDFS_SECONDS = 120, 100
_QUEUES = {
    "yarn.scheduler.capacity.root.queues": f"default,{CLOSED}",
    "yarn.scheduler.capacity.root.default.capacity": "90",
    f"yarn.scheduler.capacity.root.{CLOSED}.capacity": "10",
    "yarn.scheduler.capacity.root.acl_submit_applications": " ",
    "yarn.scheduler.capacity.root.acl_administer_queue": " ",  # or everybody is one, who may submit as well
    "yarn.scheduler.capacity.root.default.acl_submit_applications": "*",
}
#: YARN shows applications to whom may see them, and the tests ask without a login.
_ACLS = {"yarn.acl.enable": "true", "yarn.admin.acl": "yarn,dr.who"}
_HOMES = {"/hbase": "hbase", "/user/lowtide": "lowtide", "/user/alice": USER, "/lowtide": USER}


@contextmanager
def booted(folder: Path) -> Iterator[tuple[Cluster, Stack]]:
    """A secured cluster and a secured store with its files in that HDFS, which belong to HBase's user alone; this
    process finds their key distribution centre meanwhile. Tokens are short-lived.
    """
    realm = free_ports_config(
        folder / "store", secured=True, hbase_heap="512m", timestamps="incremental", conflict_map_size=64
    )
    tokens = {"dfs.namenode.delegation.token.renew-interval": str(HDFS_SECONDS * 1000)}
    cluster = Cluster(
        free_ports_cluster(folder / "cluster", realm, hdfs_site=tokens, yarn_site=_ACLS, capacity_scheduler=_QUEUES)
    )
    hdfs = keys.client_properties()
    properties = {
        **{name: value for name, value in hdfs["core-site"].items() if not name.startswith("hadoop.security.auth")},
        **hdfs["hdfs-site"],
        "hbase.rootdir": f"{cluster.hdfs}/hbase",
        "hbase.thrift.server.socket.read.timeout": "900000",
        "hbase.auth.token.max.lifetime": str(HBASE_SECONDS * 1000),
        "hbase.auth.key.update.interval": "60000",
    }
    store = Stack(dataclasses.replace(realm, extra_hbase=properties))
    before = os.environ.get("KRB5_CONFIG")
    try:
        store.up(tell, until="kdc")
        os.environ["KRB5_CONFIG"] = str(secured.krb5_conf(realm))
        cluster.up(tell)
        for path, owner in _HOMES.items():
            cluster.fs("-mkdir", "-p", path)
            cluster.fs("-chown", f"{owner}:{owner}", path)
        cluster.fs("-chmod", "700", "/hbase")
        store.up(tell)
        yield cluster, store
    finally:
        store.down()
        cluster.down()
        os.environ.pop("KRB5_CONFIG", None)
        if before:
            os.environ["KRB5_CONFIG"] = before


class SecuredSite(Site):
    """The recipe of docs/clusters.md for a cluster that asks for logins: the cluster's files as an administrator hands
    them out, a keytab for the driver or a ticket cache, and nothing of how tokens come to executors.
    """

    def __init__(self, cluster: Cluster, stack: Stack, folder: Path) -> None:
        super().__init__(cluster, stack, folder)
        self.conf = folder / "hbase-conf"
        self.conf.mkdir()
        quorum = {
            "hbase.zookeeper.quorum": "127.0.0.1",
            "hbase.zookeeper.property.clientPort": str(stack.config.zookeeper_port),
        }
        told = {**quorum, **secured.client_properties()}
        (self.conf / "hbase-site.xml").write_text(files.site(told), "utf-8")

    @property
    def environment(self) -> dict[str, str]:
        """As without logins; no ticket of who runs the tests."""
        return {**super().environment, "KRB5CCNAME": str(self.folder / "no-ticket")}

    def keytab(self, name: str = USER) -> str:
        """The key of a client."""
        return str(secured.keytab(self.stack.config, name))

    @contextmanager
    def ticket(self, seconds: int, name: str = USER) -> Iterator[str]:
        """A cache with a ticket that lives so long, as ``kinit`` makes it."""
        with Gateway(self.stack, self.folder).ticket(seconds, name) as cache:
            yield str(cache)

    def make_own_tables(self) -> None:
        """Lowtide's, as its jobs make them: by somebody who may, since the jobs' user may not."""
        config = load(self.configuration(keytab="lowtide"))
        with opened(config) as state:
            state.create()
        with connect(config.hbase.thrift) as connection:
            connection.create_table(config.state.journal_table, {life.FAMILY: FAMILY_SETTINGS})

    def grant(self, user: str, tables: Iterable[str]) -> None:
        """READ, WRITE and ADMIN on each of these, and nothing globally."""
        command = self.stack.java_command("lowtide.store.Grants", user, *tables, log="grants")
        subprocess.run(command, check=True, capture_output=True)

    @property
    def archive_environment(self) -> dict[str, str]:
        return {**self.environment, **self.cluster.login(USER)}

    def configuration(self, conf: Mapping[str, str | None] = {}, *, keytab: str | None = USER, **sections: Any) -> Path:
        """As without logins; *keytab*: whose, for Spark, None: there is a ticket cache."""
        java = " ".join(secured.java_options(self.stack.config))
        options = {name: f"{value} {java}" for name, value in SMALL.items() if name.endswith("extraJavaOptions")}
        login: dict[str, str] = {}
        if keytab:
            login = {
                "spark.kerberos.keytab": self.keytab(keytab),
                "spark.kerberos.principal": f"{keytab}@{secured.REALM}",
            }
        file = super().configuration({**options, **login, **conf}, **sections)
        content = yaml.safe_load(file.read_text("utf-8"))
        gateway = {
            "host": secured.HOST,
            "port": self.stack.config.thrift_port,
            "login": "kerberos",
            "principal": keytab or USER,
            "keytab": self.keytab(keytab or USER),
        }
        content["hbase"] = {"conf_dir": str(self.conf), "thrift": gateway, **sections.get("hbase", {})}
        content["defaults"] = {"budget": {"share": 1.0}, "read": "rpc", **sections.get("defaults", {})}
        content.update({"allow_no_grace": True})
        file.write_text(yaml.safe_dump(content), "utf-8")
        return file
