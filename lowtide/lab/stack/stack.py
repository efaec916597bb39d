"""The embedded store as a whole: start, look, stop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lowtide.lab.servers import Part, Progress, Servers, last_words
from lowtide.lab.stack import files, machine, probes
from lowtide.lab.stack.config import LOOPBACK, StackConfig, StackError, load
from lowtide.lab.waiting import reached

#: In the order they start; they stop in reverse.
PARTS = ("hbase", "thrift", "tso")

_TITLES = {"hbase": "HBase", "thrift": "the Thrift gateway", "tso": "Omid's oracle"}
_PROBES = {
    "hbase": probes.zookeeper_answers,
    "thrift": probes.thrift_answers,
    "tso": probes.oracle_answers,
}
_BOOT_SECONDS = 300
#: HBase flushes its regions when it is told to end.
_END_SECONDS = {"hbase": 60, "thrift": 5, "tso": 5}


class Stack:
    """Control of one embedded store. Any number of objects and programs may control the same ``home``."""

    def __init__(self, config: StackConfig) -> None:
        self.config = config
        self._servers = Servers(config.home)

    def up(self, progress: Progress = lambda _: None) -> None:
        """Start whatever does not run and wait until every part answers. Harmless when all do.

        A part that runs without answering is ended first. When HBase has to start, the others start anew with it:
        they would otherwise hang on to servers that are gone. Raises StackError, with what was started left as it is.
        """
        with self._servers.exclusively():
            state = {part.name: part.state for part in self.status()}
            missing = [name for name in PARTS if state[name] != "running"]
            if not missing:
                return
            if "hbase" in missing:
                missing = list(PARTS)
            self._prepare(missing)
            # The oracle waits for HBase by itself, the gateway needs ZooKeeper at its start.
            for name in missing:
                progress(f"starting {_TITLES[name]}")
                self._start(name)
                if name == "hbase":
                    self._await(name)
            for name in missing:
                self._await(name)
                progress(f"{_TITLES[name]} answers on port {self.config.ports[name]}")

    def status(self) -> list[Part]:
        """The parts as they are now; a part that does not answer takes some seconds."""
        return [self._servers.part(name, self._answers) for name in PARTS]

    def down(self, progress: Progress = lambda _: None) -> None:
        """End every part; returns when no process is left. Data stay."""
        if not self.config.home.exists():
            return
        with self._servers.exclusively():
            for name in reversed(PARTS):
                if name in self._servers.processes():
                    progress(f"stopping {_TITLES[name]}")
                    self._end(name)

    def kill(self, part: str) -> None:
        """End one part without any of its clean-up, as a crash does; ``status`` then says ``killed``."""
        self._servers.kill(part)

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

        It logs to ``home/logs/<log>.log``; *options* are more options of the virtual machine.
        """
        phoenix = [machine.phoenix_classpath()] if self.config.phoenix else []
        class_path = [
            *(str(self._servers.folder("conf")), machine.embedded_classpath()),
            *phoenix,
            *map(str, self.config.extra_classpath),
        ]
        options = [*options, f"-Dlowtide.log={self.logs / f'{log}.log'}"]
        return machine.java_command(class_path, main_class, *args, heap=heap, options=options)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _answers(self, name: str) -> bool:
        return _PROBES[name](self.config.ports[name])

    def _prepare(self, parts: list[str]) -> None:
        machine.check_java()
        machine.embedded_classpath()
        if self.config.phoenix:
            machine.phoenix_classpath()
        machine.check_disk(self.config.home)
        self._check_clock()
        for name in reversed(parts):
            self._end(name)
        machine.check_ports(self.config, parts)
        self._servers.folder("logs")
        files.write(self.config)

    def _check_clock(self) -> None:
        """A store's timestamps are of one kind for good: its cells carry them."""
        home, wanted = self.config.home, self.config.timestamps
        made = load(home).timestamps
        if (home / "hbase").exists() and made != wanted:
            raise StackError(
                f"the store in {home} was made with {made} timestamps, not {wanted}; "
                f"use --timestamps {made}, or another home"
            )

    def _start(self, name: str) -> None:
        self._servers.start(name, self._commands()[name])

    def _commands(self) -> dict[str, list[str]]:
        config = self.config
        return {
            "hbase": self.java_command(
                "lowtide.store.Database",
                f"--localRegionServers={config.region_servers}",
                "start",
                heap=config.hbase_heap,
                log="hbase",
                options=config.java_options,
            ),
            "thrift": self.java_command(
                "org.apache.hadoop.hbase.thrift.ThriftServer",
                *("--bind", LOOPBACK, "--port", str(config.thrift_port), "--infoport", "-1", "start"),
                heap=config.thrift_heap,
                log="thrift",
                options=config.java_options,
            ),
            "tso": self.java_command(
                "lowtide.store.Oracle", heap=config.tso_heap, log="tso", options=config.java_options
            ),
        }

    def _await(self, name: str) -> None:
        def answers() -> bool:
            if self._answers(name):
                return True
            for part, process in self._servers.processes().items():
                if not process.alive:
                    raise StackError(f"{_TITLES[part]} ended while it started; it said:\n{self._last_words(part)}")
            return False

        if not reached(answers, _BOOT_SECONDS, pause=0.1):
            raise StackError(f"{_TITLES[name]} did not answer within {_BOOT_SECONDS} s; see {self.logs}")

    def _end(self, name: str) -> None:
        self._servers.end(name, _END_SECONDS[name])

    def _last_words(self, name: str) -> str:
        return last_words([self.logs / f"{name}.log", self._servers.output(name)], lines=15)
