"""Jobs on the laboratory's cluster: started as a person does, watched in their containers, killed there."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml

from lowtide.lab.cluster import Cluster
from lowtide.lab.servers import Process, start_time
from lowtide.lab.stack import Stack
from lowtide.lab.stack.machine import java
from lowtide.lab.waiting import reached

ROOT = Path(__file__).resolve().parents[2]
NOWHERE = "/nonexistent/python3"
#: Where nothing has happened for so long, nothing will.
PATIENCE = 600
#: Tables here are tiny: compiling each of hundreds of plans would cost most of the time.
SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.yarn.am.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
_BIN = Path(sys.executable).parent
_EXECUTOR = "YarnCoarseGrainedExecutorBackend"
_BEGAN = re.compile(r"Running task \S+ in stage \S+ \(TID (\d+)\)")
_ENDED = re.compile(
    r"(?:Finished task|Exception in task|Executor interrupted and killed task) \S+ in stage \S+ \(TID (\d+)\)"
)


def tell(text: str) -> None:
    """What is told while the tests run, with the time."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


@dataclass(frozen=True)
class Ended:
    """A command of ``lowtide`` that is over."""

    code: int
    output: str
    summary: dict[str, Any]

    @property
    def totals(self) -> dict[str, Any]:
        """Counts over all tables."""
        return self.summary["totals"]

    @property
    def problems(self) -> list[str]:
        """All problems."""
        return [*self.summary["problems"], *(p for table in self.summary["tables"] for p in table["problems"])]


@dataclass(frozen=True)
class Executor:
    """An executor's JVM in its container."""

    process: Process
    #: What it logs; the file outlives it.
    log: Path

    @property
    def name(self) -> str:
        """The container's."""
        return self.log.parent.name

    @property
    def environment(self) -> Mapping[str, str]:
        """What it was started with."""
        return psutil.Process(self.process.pid).environ()

    def is_in(self, method: str) -> bool:
        """Whether one of its threads is in *method* now."""
        jstack = str(Path(java()).with_name("jstack"))
        stack = subprocess.run([jstack, str(self.process.pid)], capture_output=True, text=True, check=False).stdout
        return method in stack

    def unfinished(self) -> set[str]:
        """Tasks that it has begun and not ended."""
        said = self.log.read_text("utf-8", "replace")
        return set(_BEGAN.findall(said)) - set(_ENDED.findall(said))


class Site:
    """The cluster, the store on it, and the documented recipe for both."""

    def __init__(self, cluster: Cluster, stack: Stack, folder: Path) -> None:
        self.cluster, self.stack, self.folder = cluster, stack, folder
        self._files = 0

    @property
    def sideline(self) -> str:
        """Where cells are put aside."""
        return f"{self.cluster.hdfs}/lowtide/sideline"

    @property
    def environment(self) -> dict[str, str]:
        """What ``lowtide`` is called with: the cluster's configuration, and no other Spark's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        path = os.pathsep.join([str(self.folder), str(_BIN), str(Path(java()).parent), os.environ["PATH"]])
        return {**kept, "PATH": path, "HADOOP_CONF_DIR": str(self.cluster.conf)}

    @property
    def archive_environment(self) -> dict[str, str]:
        """What the commands of the page are called with."""
        return self.environment

    def make_archives(self) -> None:
        """By the commands of docs/clusters.md, word for word."""
        hdfs = self.folder / "hdfs"
        command = " ".join(f"'{part}'" for part in self.cluster.fs_command())
        hdfs.write_text(f'#!/bin/sh\nshift # "dfs"\nexec {command} "$@"\n')
        hdfs.chmod(0o755)
        page = (ROOT / "docs/clusters.md").read_text("utf-8")
        section = page.partition("\n## YARN\n")[2].partition("\n## ")[0]
        commands = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
        assert len(commands) == 2, section
        subprocess.run(
            ["bash", "-e", "-c", "".join(commands)], cwd=self.folder, env=self.archive_environment, check=True
        )

    def configuration(self, conf: Mapping[str, str | None] = {}, **sections: Any) -> Path:
        """A configuration file by the recipe, with more of ``spark.conf`` (None: without) and other sections."""
        recipe: dict[str, str | None] = {
            "spark.executor.instances": "2",
            "spark.executor.memory": "512m",
            "spark.yarn.am.memory": "512m",
            "spark.yarn.dist.archives": f"{self.folder}/connector.tgz#connector",
            "spark.executor.extraClassPath": "connector/lowtide-connector.jar:connector/lib/*",
            "spark.yarn.archive": "hdfs:///lowtide/spark-4.2.0-jars.zip",
            # One machine, on which nothing listens elsewhere.
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            **SMALL,
            **conf,
        }
        content: dict[str, Any] = {
            "hbase": {
                "zookeeper_quorum": "127.0.0.1",
                "zookeeper_port": self.stack.config.zookeeper_port,
                "thrift": {"port": self.stack.config.thrift_port},
                "properties": {"hbase.rootdir": self.stack.hbase_properties()["hbase.rootdir"]},
            },
            "omid": {"oracle": [self.stack.oracle]},
            "state": {"sideline": self.sideline},
            "defaults": {"budget": {"share": 1.0}, "read": "snapshot"},
            "spark": {
                "master": "yarn",
                "driver_memory": "512m",
                "conf": {name: value for name, value in recipe.items() if value is not None},
            },
        }
        for name, section in sections.items():
            content[name] = {**content.get(name, {}), **section}
        self._files += 1
        file = self.folder / f"lowtide-{self._files}.yaml"
        file.write_text(yaml.safe_dump(content), "utf-8")
        return file

    def run(self, *arguments: str, meanwhile: Callable[[], None] = lambda: None, **environment: str) -> Ended:
        """``lowtide run`` with *arguments*, to its end; *meanwhile* is called as soon as it is started. *environment*:
        what is in it besides.
        """
        return self.lowtide("run", *arguments, meanwhile=meanwhile, **environment)

    def lowtide(self, *arguments: str, meanwhile: Callable[[], None] = lambda: None, **environment: str) -> Ended:
        """A command of ``lowtide`` to its end."""
        self._files += 1
        summary, output = self.folder / f"summary-{self._files}.json", self.folder / f"output-{self._files}"
        began = time.monotonic()
        with output.open("w") as sink:
            started = subprocess.Popen(
                [str(_BIN / "lowtide"), *arguments, *(["--summary", str(summary)] if arguments[0] == "run" else [])],
                cwd=self.folder,
                env={**self.environment, **environment},
                stdout=sink,
                stderr=subprocess.STDOUT,
            )
            try:
                meanwhile()
                code = started.wait(timeout=PATIENCE)
            finally:
                if started.poll() is None:
                    started.terminate()
                    started.wait(30)
        typed = " ".join(word for word in arguments if word != "--config" and not word.startswith("/"))
        tell(f"lowtide {typed}: exit code {code}, {time.monotonic() - began:.0f} s")
        found = json.loads(summary.read_text("utf-8")) if summary.exists() else {"problems": [], "tables": []}
        return Ended(code, output.read_text("utf-8", "replace"), found)

    def executors(self) -> list[Executor]:
        """Those that run now, of any application."""
        found = []
        for process in psutil.process_iter(["name", "cmdline"]):
            words = process.info["cmdline"] or []
            if process.info["name"] != "java" or not any(_EXECUTOR in word for word in words):
                continue
            log = re.search(
                rf"{re.escape(str(self.cluster.config.home))}/logs/containers/\S+?/container_\w+", " ".join(words)
            )
            if log and (started := start_time(process.pid)):
                found.append(Executor(Process(process.pid, started), Path(log[0]) / "stderr"))
        return found

    def await_executors(self, count: int) -> None:
        """Wait until so many run."""
        assert reached(lambda: len(self.executors()) == count, PATIENCE, pause=0.1)

    def containers(self, application: str) -> list[Path]:
        """The executors' logs of an application, of those that are gone too."""
        folder = self.cluster.config.home / "logs/containers" / application
        logs = sorted(folder.glob("container_*/stderr"))
        return [log for log in logs if "Starting executor ID" in log.read_text("utf-8", "replace")]

    def applications(self, name: str) -> list[Mapping[str, Any]]:
        """What YARN knows by that name, the oldest first."""
        found = [each for each in self.cluster.applications() if each["name"] == name]
        return sorted(found, key=lambda each: each["startedTime"])

    def kill_one_in(self, method: str, killed: list[Executor]) -> None:
        """End the first executor that is found in *method*, with tasks under way, as a crash does."""

        def hit() -> bool:
            for executor in self.executors():
                if executor.is_in(method) and executor.unfinished():
                    executor.process.kill()
                    killed.append(executor)
                    return True
            return False

        assert reached(hit, PATIENCE, pause=0.02), f"no executor was found in {method}"


@contextlib.contextmanager
def held_still(executors: list[Executor]) -> Iterator[None]:
    """Stop these for as long as the body runs: what they have written is then all."""
    for executor in executors:
        executor.process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for executor in executors:
            executor.process.signal(signal.SIGCONT)
