"""The embedded store as a whole: start, look, stop."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from lowtide.lab.servers import Part, Progress, Servers, last_words
from lowtide.lab.stack import files, machine, probes, secured
from lowtide.lab.stack.config import HBASE_LINES, LOOPBACK, StackConfig, StackError, load
from lowtide.lab.waiting import reached

_TITLES = {
    "kdc": "the key distribution centre",
    "hbase": "HBase",
    "zookeeper": "ZooKeeper",
    "master": "HBase's master",
    "thrift": "the Thrift gateway",
    "tso": "Omid's oracle",
}
#: Those that are asked on a port of the configuration.
_PROBES = {
    "kdc": probes.key_centre_answers,
    "hbase": probes.zookeeper_answers,
    "zookeeper": probes.zookeeper_answers,
    "tso": probes.oracle_answers,
}
_REGION_SERVER = "regionserver"
_BOOT_SECONDS = 300
#: HBase flushes its regions when it is told to end.
_END_SECONDS = {"zookeeper": 5, "thrift": 5, "tso": 5}
_END_HBASE_SECONDS = 60


class Stack:
    """Control of one embedded store. Any number of objects and programs may control the same ``home``."""

    def __init__(self, config: StackConfig) -> None:
        self.config = config
        self._servers = Servers(config.home)

    @property
    def parts(self) -> tuple[str, ...]:
        """In the order they start; they end in reverse.

        So the master ends before its region servers do, which it ends itself; asked one by one they would hand their
        regions to each other.
        """
        return (*self._first, *self.region_servers, *(["master"] if self.region_servers else []), "thrift", "tso")

    @property
    def _first(self) -> tuple[str, ...]:
        """What all others hang on: where keys come from, if it is secured, and the part with ZooKeeper in it."""
        return (*(["kdc"] if self.config.secured else []), "zookeeper" if self.config.region_servers else "hbase")

    @property
    def region_servers(self) -> tuple[str, ...]:
        """The region servers that are parts of their own."""
        return tuple(f"{_REGION_SERVER}{n}" for n in range(1, self.config.region_servers + 1))

    def up(self, progress: Progress = lambda _: None, until: str | None = None) -> None:
        """Start whatever does not run and wait until every part answers. Harmless when all do.

        *until*: the last part to start, of :attr:`parts`; so what HBase hangs on itself, as the HDFS of its files, can
        have keys before it.

        A part that runs without answering is ended first. When the part with ZooKeeper in it has to start, or the one
        that keys come from, those after it start anew with it: they would otherwise hang on to servers, or keys, that
        are gone. A gateway of another kind than wanted starts anew. Raises StackError, with what was started left as it
        is.
        """
        with self._servers.exclusively():
            state: dict[str, str] = {part.name: part.state for part in self.status()}
            if load(self.config.home).gateway != self.config.gateway:
                state["thrift"] = "stopped"  # what it asks of its clients does not show from outside in every kind
            missing = [name for name in self.parts if state[name] != "running"]
            if not missing or (until is not None and self.parts.index(missing[0]) > self.parts.index(until)):
                return
            if anew := [name for name in self._first if name in missing]:
                missing = list(self.parts[self.parts.index(anew[0]) :])
            self._prepare(missing)
            if until is not None:
                missing = [name for name in missing if self.parts.index(name) <= self.parts.index(until)]
            # The oracle waits for HBase by itself, and HBase's servers for each other; the gateway needs ZooKeeper at
            # its start.
            for name in missing:
                progress(f"starting {_title(name)}")
                self._start(name)
                if name in self._first:
                    self._await(name)
            for name in missing:
                self._await(name)
                port = self.config.ports.get(name)
                progress(f"{_title(name)} answers" + (f" on port {port}" if port else ""))

    def status(self) -> list[Part]:
        """The parts as they are now; a part that does not answer takes some seconds."""
        return [self._servers.part(name, self._answers) for name in self.parts]

    def down(self, progress: Progress = lambda _: None) -> None:
        """End every part; returns when no process is left. Data stay."""
        if not self.config.home.exists():
            return
        with self._servers.exclusively():
            self._end_all(self._servers.processes(), progress)

    def kill(self, part: str) -> None:
        """End one part without any of its clean-up, as a crash does; ``status`` then says ``killed``."""
        self._servers.kill(part)

    def listening(self, part: str) -> list[int]:
        """The ports on which a part listens now: how HBase calls a region server tells its port."""
        return self._servers.ports(part)

    @property
    def oracle(self) -> str:
        """The oracle's address."""
        return f"{LOOPBACK}:{self.config.tso_port}"

    @property
    def conflict_map_size(self) -> int:
        """How many written cells the oracle remembers."""
        return self.config.conflict_map_size

    @property
    def logs(self) -> Path:
        """Where servers and client programs log."""
        return self.config.home / "logs"

    def hbase_properties(self) -> dict[str, str]:
        """What an HBase client needs to reach the store: ZooKeeper's address and the root folder."""
        return files.client_properties(self.config)

    def timestamp(self) -> int:
        """A fresh start timestamp from Omid's oracle: larger than every commit acknowledged before."""
        try:
            return probes.timestamp(self.config.tso_port)
        except OSError as e:
            raise StackError(
                f"Omid's oracle on port {self.config.tso_port} gave no timestamp ({e}); run `lowtide stack up`"
            ) from e

    def java_command(
        self, main_class: str, *args: str, heap: str = "256m", log: str = "client", options: Sequence[str] = ()
    ) -> list[str]:
        """The command of a Java program on the store's class path and configuration.

        It logs to ``home/logs/<log>.log``; *options* are more options of the virtual machine. In a secured store it is
        logged in as ``lowtide``.
        """
        return self._java_command(secured.Role.CLIENT, main_class, *args, heap=heap, log=log, options=options)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _java_command(
        self, role: secured.Role | None, main_class: str, *args: str, heap: str, log: str, options: Sequence[str] = ()
    ) -> list[str]:
        conf = self._servers.folder("conf")
        phoenix = [machine.phoenix_classpath()] if self.config.phoenix else []
        class_path = [
            *([str(conf / role)] if self.config.secured and role else []),
            *(str(conf), machine.embedded_classpath(self.config.hbase)),
            *phoenix,
            *map(str, self.config.extra_classpath),
        ]
        login = secured.java_options(self.config) if self.config.secured else []
        options = [*options, *login, f"-Dlowtide.log={self.logs / f'{log}.log'}"]
        return machine.java_command(class_path, main_class, *args, heap=heap, options=options)

    def _answers(self, name: str) -> bool:
        if name == "thrift":
            return probes.gateway_answers(self.config)
        if name in _PROBES:
            return _PROBES[name](self.config.ports[name])
        return any(map(probes.server_answers, self._servers.ports(name)))

    def _prepare(self, parts: list[str]) -> None:
        self._check_made()
        machine.check_java()
        machine.embedded_classpath(self.config.hbase)
        if self.config.phoenix:
            machine.phoenix_classpath()
        if self.config.secured:
            machine.key_centre_classpath()
        machine.check_disk(self.config.home)
        # Of a store that ran in other parts, too.
        others = set(self._servers.processes()) - set(self.parts)
        self._end_all({*parts, *others})
        machine.check_ports(self.config, parts)
        self._servers.folder("logs")
        files.write(self.config)

    def _check_made(self) -> None:
        """A store's timestamps are of one kind for good: its cells carry them. And an HBase reads what an older one
        wrote, not what a newer one did.
        """
        home, wanted = self.config.home, self.config
        if not (home / "hbase").exists():
            return
        made = load(home)
        if made.secured != wanted.secured:
            raise StackError(
                f"the store in {home} was made {'with' if made.secured else 'without'} logins; "
                f"{'add' if made.secured else 'leave out'} --secured, or use another home"
            )
        if made.timestamps != wanted.timestamps:
            raise StackError(
                f"the store in {home} was made with {made.timestamps} timestamps, not {wanted.timestamps}; "
                f"use --timestamps {made.timestamps}, or another home"
            )
        if HBASE_LINES.index(made.hbase) > HBASE_LINES.index(wanted.hbase):
            raise StackError(
                f"the store in {home} was written by HBase {made.hbase}, which is newer than {wanted.hbase}; "
                f"use --hbase {made.hbase}, or another home"
            )

    def _start(self, name: str) -> None:
        self._servers.start(name, self._commands()[name])

    def _commands(self) -> dict[str, list[str]]:
        config = self.config
        return {
            **({"kdc": secured.key_centre_command(config)} if config.secured else {}),
            "hbase": self._hbase_command("hbase", "lowtide.store.Database", "start"),
            "zookeeper": self._java_command(
                None,
                "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                str(self._servers.folder("conf") / files.ZOOKEEPER),
                heap=config.zookeeper_heap,
                log="zookeeper",
                options=config.java_options,
            ),
            "master": self._hbase_command("master", "lowtide.store.Database", "start"),
            **{
                name: self._hbase_command(name, "org.apache.hadoop.hbase.regionserver.HRegionServer", "start")
                for name in self.region_servers
            },
            "thrift": self._java_command(
                secured.Role.THRIFT,
                "org.apache.hadoop.hbase.thrift.ThriftServer",
                *("--bind", LOOPBACK, "--port", str(config.thrift_port), "--infoport", "-1", "start"),
                heap=config.thrift_heap,
                log="thrift",
                options=[*config.java_options, *(secured.gateway_options(config) if config.secured else [])],
            ),
            "tso": self._java_command(
                secured.Role.TSO, "lowtide.store.Oracle", heap=config.tso_heap, log="tso", options=config.java_options
            ),
        }

    def _hbase_command(self, name: str, main_class: str, *args: str) -> list[str]:
        config = self.config
        options = config.java_options
        return self._java_command(None, main_class, *args, heap=config.hbase_heap, log=name, options=options)

    def _await(self, name: str) -> None:
        def answers() -> bool:
            if self._answers(name):
                return True
            for part, process in self._servers.processes().items():
                if not process.alive:
                    raise StackError(f"{_title(part)} ended while it started; it said:\n{self._last_words(part)}")
            return False

        if not reached(answers, _BOOT_SECONDS, pause=0.1):
            raise StackError(f"{_title(name)} did not answer within {_BOOT_SECONDS} s; see {self.logs}")

    def _end_all(self, names: Collection[str], progress: Progress = lambda _: None) -> None:
        """Those of *names* that were started; the last one first."""
        for name in reversed(self._servers.processes()):
            if name in names:
                progress(f"stopping {_title(name)}")
                self._servers.end(name, _END_SECONDS.get(name, _END_HBASE_SECONDS))

    def _last_words(self, name: str) -> str:
        return last_words([self.logs / f"{name}.log", self._servers.output(name)], lines=15)


def _title(name: str) -> str:
    return _TITLES.get(name, f"region server {name.removeprefix(_REGION_SERVER)}")
