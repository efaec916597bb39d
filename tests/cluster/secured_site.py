"""Jobs on a secured cluster, with a secured store on its HDFS: by a keytab or by a ticket."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from yarn_kit import SMALL, Site

from lowtide.lab.cluster import Cluster
from lowtide.lab.stack import Stack, files, secured

ME = f"lowtide@{secured.REALM}"


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

    def keytab(self, name: str = "lowtide") -> str:
        """The key of a client."""
        return str(secured.keytab(self.stack.config, name))

    @property
    def archive_environment(self) -> dict[str, str]:
        return {**self.environment, **self.cluster.login("lowtide")}

    def configuration(
        self, conf: Mapping[str, str | None] = {}, *, keytab: str | None = "lowtide", **sections: Any
    ) -> Path:
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
            "principal": "lowtide",
            "keytab": self.keytab(),
        }
        content["hbase"] = {"conf_dir": str(self.conf), "thrift": gateway, **sections.get("hbase", {})}
        content["defaults"] = {"budget": {"share": 1.0}, "read": "rpc", **sections.get("defaults", {})}
        content.update({"allow_no_grace": True})
        file.write_text(yaml.safe_dump(content), "utf-8")
        return file
