"""A store and a Spark driver that are kept for all mutations of a copy, and made as good as new between two of them."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

from lowtide.config import Config, Thrift
from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient, WorkloadError
from lowtide.store.gateway import connect
from lowtide.values.formats import LOW_WATERMARK_ROW
from tests import warm

ROOT = Path(__file__).resolve().parents[2]


class _Client(OmidClient):
    def relay(self, line: str) -> str:
        """A command as text, and its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()
        return self._process.stdout.readline()


class WarmStore:
    """A store of the tests', and a client to clean it with."""

    def __init__(self, home: Path) -> None:
        self._stack = Stack(warm.store_config(home))
        try:
            self._stack.up()
            self._client = _Client(self._stack)
        except BaseException:
            self._stack.down()
            raise
        self._server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._lend, daemon=True).start()
        self.environment = {warm.STORE: str(home), warm.CLIENT: str(self._server.getsockname()[1])}

    def _lend(self) -> None:
        """Hand the client's commands and answers on, of one test process after another: a client costs seconds."""
        with contextlib.suppress(OSError):  # of the socket, when it is closed
            while True:
                connection, _ = self._server.accept()
                with connection, connection.makefile("rw", encoding="utf-8") as stream:
                    for line in stream:
                        stream.write(self._client.relay(line))
                        stream.flush()

    def clean(self) -> None:
        """Take away what a test that was cut short left: its tables would hold the next one's bound, its records speak
        of them.
        """
        config = Config()
        for name in self._client.snapshots():
            try:
                self._client.delete_snapshot(name)
            except WorkloadError:
                # The driver drops those of reads that it has no use for any more, whenever it finds out.
                if name in self._client.snapshots():
                    raise
        there = self._client.tables()
        for table in there:
            if table not in config.own_tables:
                self._client.drop(table)
        with connect(Thrift(port=self._stack.config.thrift_port)) as connection:
            for name in {config.state.table, config.state.journal_table, config.omid.commit_table}.intersection(there):
                _empty(connection.table(name))

    def close(self) -> None:
        """End it."""
        self._server.close()
        self._client.close()
        self._stack.down()


def _empty(table: Any) -> None:
    with table.batch() as batch:
        for row, _ in table.scan():
            if row != LOW_WATERMARK_ROW:
                batch.delete(row)


class WarmDriver(warm.Driver):
    """A Spark driver whose classes can be given other bodies while it runs."""

    def __init__(self, folder: Path) -> None:
        self._debugged = free_ports_config(folder).zookeeper_port
        # A debugger can give a class of a running driver another body: a second instead of a driver's start.
        options = [f"-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,quiet=y,address=127.0.0.1:{self._debugged}"]
        super().__init__(folder, [*warm.LONG_LIVED, *options])

    def redefine(self, classes: dict[str, Path]) -> bool:
        """Give loaded classes other bodies; False where Java cannot: methods were added or taken, or a class is not
        loaded yet.
        """
        commands = "".join(f"redefine {name} {file}\n" for name, file in classes.items())
        command = ["jdb", "-J-XX:TieredStopAtLevel=1", "-attach", f"127.0.0.1:{self._debugged}"]
        try:
            done = subprocess.run(
                command, input=f"{commands}exit\n", capture_output=True, text=True, check=False, timeout=60
            )
        except subprocess.TimeoutExpired:
            return False
        said = done.stdout + done.stderr
        return done.returncode == 0 and "rror" not in said and "No class named" not in said
