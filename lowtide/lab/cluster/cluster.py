"""The laboratory's cluster as a whole: start, look, stop."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from lowtide.lab.cluster.config import ClusterConfig, write
from lowtide.lab.servers import Part, Progress, Servers, last_words
from lowtide.lab.stack import machine
from lowtide.lab.stack import secured as keys
from lowtide.lab.stack.config import LOOPBACK, StackError
from lowtide.lab.waiting import reached

_NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
#: In the order they start; they end in reverse.
_MAIN_CLASSES = {
    "namenode": _NAMENODE,
    "datanode": "org.apache.hadoop.hdfs.server.datanode.DataNode",
    "resourcemanager": "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
    "nodemanager": "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
}
_HEAP = "384m"
_BOOT_SECONDS = 120
_ANSWER_SECONDS = 5.0
#: A NodeManager hangs in its own clean-up; what it has started is ended with it.
_END_SECONDS = 5


class Cluster:
    """Control of one cluster. Any number of objects and programs may control the same ``home``."""

    def __init__(self, config: ClusterConfig) -> None:
        self.config = config
        self._servers = Servers(config.home)

    @property
    def hdfs(self) -> str:
        """The root of HDFS."""
        return self.config.hdfs

    @property
    def conf(self) -> Path:
        """What ``HADOOP_CONF_DIR`` names."""
        return self.config.conf

    def up(self, progress: Progress = lambda _: None) -> None:
        """Start whatever does not run, and wait until HDFS takes files and YARN has its node.

        Raises:
            StackError: names what did not start; what was started is left as it is.
        """
        with self._servers.exclusively():
            machine.check_java()
            _libraries()
            machine.check_disk(self.config.home)
            self._servers.folder("logs")
            write(self.config)
            if not (self.config.home / "name").exists():
                self._run(_NAMENODE, "-format", "-nonInteractive")
            missing = [part.name for part in self.status() if part.state != "running"]
            for name in missing:
                self._servers.end(name, _END_SECONDS)
                progress(f"starting the {name}")
                self._servers.start(name, self._command(_MAIN_CLASSES[name]), self._environment())
            for name in missing:
                self._await(name)
                progress(f"the {name} answers")

    def status(self) -> list[Part]:
        """The servers as they are now."""
        return [self._servers.part(name, self._answers) for name in _MAIN_CLASSES]

    def down(self, progress: Progress = lambda _: None) -> None:
        """End every server and all containers; returns when no process is left. Files stay."""
        if not self.config.home.exists():
            return
        with self._servers.exclusively():
            for name in reversed(self._servers.processes()):
                progress(f"stopping the {name}")
                self._servers.end(name, _END_SECONDS)

    def kill(self, name: str) -> None:
        """End one server without any of its clean-up, as a crash does; ``status`` then says ``killed``."""
        self._servers.kill(name)

    def fs(self, *arguments: str, user: str = "hdfs") -> str:
        """What Hadoop's shell for file systems says: ``fs("-ls", "/")``, as ``hdfs dfs -ls /`` elsewhere. *user*: who
        asks, in a secured cluster: ``hdfs``, who may do everything, or one of the clients.
        """
        return self._run("org.apache.hadoop.fs.FsShell", *arguments, environment=self.login(user))

    def fs_command(self) -> list[str]:
        """The command of that shell, without its arguments; in a secured cluster it wants a :meth:`login`."""
        return self._command("org.apache.hadoop.fs.FsShell")

    def login(self, user: str) -> dict[str, str]:
        """The variables by which a program of Hadoop's logs in as *user*; none where nobody asks."""
        if self.config.realm is None:
            return {}
        principal = keys.HDFS if user == "hdfs" else user
        return {
            "KRB5PRINCIPAL": f"{principal}@{keys.REALM}",
            "KRB5KEYTAB": str(keys.keytab(self.config.realm, principal)),
        }

    def applications(self) -> list[Mapping[str, Any]]:
        """What YARN tells of each application that it has seen: its name, its state, when it began and ended."""
        found: list[Mapping[str, Any]] = (self._ask_yarn("apps")["apps"] or {}).get("app", [])
        return found

    # --- inside -----------------------------------------------------------------------------------------------------

    def _answers(self, name: str) -> bool:
        try:
            if name in ("namenode", "datanode"):
                return self._live_datanodes() >= (name == "datanode")
            nodes = (self._ask_yarn("nodes")["nodes"] or {"node": []})["node"]
        except (httpx.HTTPError, ValueError):  # away, or not yet of a mind to answer
            return False
        if name == "resourcemanager":
            return True
        # The ResourceManager takes a dead one for running for minutes; the new one has another port.
        own = self._servers.ports(name)
        return any(node["state"] == "RUNNING" and int(node["id"].rpartition(":")[2]) in own for node in nodes)

    def _live_datanodes(self) -> int:
        """Raises ValueError while files cannot be written."""
        beans = _json(
            f"http://{LOOPBACK}:{self.config.namenode_http_port}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        )["beans"]
        if not beans or beans[0]["FSState"] != "Operational":
            msg = "the NameNode is not ready"
            raise ValueError(msg)
        return int(beans[0]["NumLiveDataNodes"])

    def _ask_yarn(self, what: str) -> Mapping[str, Any]:
        return _json(f"http://{LOOPBACK}:{self.config.resourcemanager_http_port}/ws/v1/cluster/{what}")

    def _await(self, name: str) -> None:
        def answers() -> bool:
            if not self._servers.processes()[name].alive:
                said = last_words([self._servers.output(name)], lines=15)
                raise StackError(f"the {name} ended while it started; it said:\n{said}")
            return self._answers(name)

        if not reached(answers, _BOOT_SECONDS, pause=0.3):
            raise StackError(f"the {name} did not answer within {_BOOT_SECONDS} s; see {self._servers.output(name)}")

    def _command(self, main_class: str, *arguments: str) -> list[str]:
        class_path = [str(self.config.servers), str(_libraries() / "*")]
        options = keys.java_options(self.config.realm) if self.config.realm else []
        return machine.java_command(class_path, main_class, *arguments, heap=_HEAP, options=options)

    def _environment(self) -> dict[str, str]:
        """A container's Java is the one that its NodeManager is told of."""
        return {**os.environ, "JAVA_HOME": str(Path(machine.java()).resolve().parents[1])}

    def _run(self, main_class: str, *arguments: str, environment: Mapping[str, str] = {}) -> str:
        command = self._command(main_class, *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
        if done.returncode:
            raise StackError(f"{main_class} {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        return done.stdout


def _libraries() -> Path:
    found = machine.embedded_target().parent / "hadoop" / "target" / "lib"
    if not any(found.glob("hadoop-yarn-server-nodemanager-*.jar")):
        raise StackError(f"the servers of YARN and HDFS are not in {found}; run `make yarn`")
    return found


def _json(url: str) -> Mapping[str, Any]:
    answer = httpx.get(url, timeout=_ANSWER_SECONDS, trust_env=False).raise_for_status()
    found: Mapping[str, Any] = answer.json()
    return found
