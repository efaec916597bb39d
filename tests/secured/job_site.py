"""Jobs on the secured store, started as a person starts them: a cluster's two files, a configuration, ``lowtide``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from secured_kit import Gateway

from lowtide.lab.stack import files, secured

_LOWTIDE = str(Path(sys.executable).with_name("lowtide"))
#: One that is stuck has no answer by then.
_PATIENCE = 420


@dataclass(frozen=True)
class Ended:
    """A command that is over: its exit code, what it printed, its summary if it wrote one."""

    code: int
    output: str
    summary: Mapping[str, Any]

    @property
    def totals(self) -> Mapping[str, Any]:
        """Counts over all tables."""
        found: Mapping[str, Any] = self.summary["totals"]
        return found

    @property
    def problems(self) -> str:
        """All of them, or what was printed where there is no summary."""
        if not self.summary:
            return self.output
        of_tables = (problem for table in self.summary["tables"] for problem in table["problems"])
        return "\n".join([*self.summary["problems"], *of_tables])


class Site:
    """Where ``lowtide`` is called: the cluster's configuration in a folder of its own, as an administrator hands it
    out, without anybody's keytab. *more*: what Hadoop's and HBase's clients are told besides; None: they are not.
    """

    def __init__(self, gateway: Gateway, folder: Path, more: Mapping[str, str | None] | None = None) -> None:
        self.gateway, self.folder = gateway, folder
        config = gateway.stack.config
        self.conf = folder / "conf"
        self.conf.mkdir()
        hadoops = {**secured.CORE, **(more or {})}
        (self.conf / "core-site.xml").write_text(files.site(_told(hadoops)), "utf-8")
        quorum = {"hbase.zookeeper.quorum": "127.0.0.1", "hbase.zookeeper.property.clientPort": config.zookeeper_port}
        hbases = {**quorum, **secured.client_properties(), **config.extra_hbase, **(more or {})}
        (self.conf / "hbase-site.xml").write_text(files.site(_told(hbases)), "utf-8")
        self._runs = 0

    @property
    def sideline(self) -> Path:
        """Where cells are put aside."""
        return self.folder / "sideline"

    def configuration(
        self, master: str = "local[1]", keytab: str | None = "lowtide", **sections: Mapping[str, Any]
    ) -> Path:
        """A configuration by docs/clusters.md, with more *sections*. *keytab*: whose, for Spark; None: there is a
        ticket cache.
        """
        java = " ".join([*secured.java_options(self.gateway.stack.config), "-XX:TieredStopAtLevel=1"])
        realm = {"hbase.client.retries.number": "3"}
        if keytab:
            realm["hbase.client.keytab.file"] = self.gateway.keytab(keytab)
            realm["hbase.client.keytab.principal"] = f"{keytab}@{secured.REALM}"
        gateway = self.gateway.settings().model_dump(mode="json", exclude_defaults=True, exclude={"timeout"})
        content = {
            "hbase": {"conf_dir": str(self.conf), "properties": realm, "thrift": gateway},
            "spark": {
                "master": master,
                "driver_memory": "768m",
                "conf": {
                    "spark.driver.extraJavaOptions": java,
                    "spark.executor.extraJavaOptions": java,
                    "spark.executor.memory": "512m",
                    "spark.sql.codegen.wholeStage": "false",
                    "spark.sql.shuffle.partitions": "4",
                },
            },
            "state": {"sideline": f"file://{self.sideline}"},
            "omid": {"oracle": [f"127.0.0.1:{self.gateway.stack.config.tso_port}"]},
            "allow_no_grace": True,
            "defaults": {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}},
            **sections,
        }
        self._runs += 1
        file = self.folder / f"lowtide-{self._runs}.yaml"
        file.write_text(yaml.safe_dump(content))
        return file

    def lowtide(self, *arguments: str, **environment: str) -> Ended:
        """A command, as a person types it."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "HADOOP_", "HBASE_"))}
        done = subprocess.run(
            [_LOWTIDE, *arguments],
            cwd=self.folder,
            env={**kept, "COLUMNS": "200", **environment},
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        return Ended(done.returncode, done.stdout + done.stderr, {})

    def run(self, job: str, *arguments: str, config: Path, **environment: str) -> Ended:
        """A run of a job."""
        self._runs += 1
        summary = self.folder / f"summary-{self._runs}.json"
        given = ("--config", str(config), "--summary", str(summary))
        done = self.lowtide("run", job, *given, *arguments, **environment)
        return Ended(done.code, done.output, json.loads(summary.read_text()) if summary.exists() else {})


def _told(properties: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in properties.items() if value is not None}
