"""The other side: bare Java loops over the same table (``bench/java/Bare.java``)."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lowtide.config import Config
from lowtide.lab.stack import Stack
from lowtide.run.submit import class_path

SOURCE = Path(__file__).parent / "java" / "Bare.java"
FAMILY = "f"
COLUMNS, VALUE_BYTES, REGIONS, THREADS = 5, 32, 8, 2


class Bare:
    """Runs ``Bare.java`` on a store. Each call is a process of its own."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        #: The timestamp of the first row that was loaded, by table.
        self._start: dict[str, int] = {}

    def load(self, table: str, rows: int) -> int:
        """A new table of *rows* rows, committed before now, 1 row in 1,000 without shadow cells; the number of its
        cells.
        """
        start = self._stack.timestamp() - 200 * rows
        self._start[table] = start - start % 50
        self._run("load", table, rows, COLUMNS, VALUE_BYTES, REGIONS, self._start[table])
        return rows * COLUMNS * 2 - (rows // 1000) * COLUMNS

    def day(self, table: str, rows: int, updates: int, start: int) -> None:
        """*updates* rows of the table's *rows* written again, by transactions from *start* on, in store files of their
        own.
        """
        self._run("day", table, rows, COLUMNS, VALUE_BYTES, REGIONS, updates, start)

    def history(self, table: str, rows: int, versions: int) -> int:
        """A new table of *rows* rows, all committed before now; the number of its cells.

        Every other region has *versions* versions of every cell; the rest have them in one row of a hundred, and one in
        the others.
        """
        start = self._stack.timestamp() - 200 * rows * versions
        return int(self._run("history", table, rows, COLUMNS, VALUE_BYTES, REGIONS, versions, start - start % 50))

    def act(self, table: str, loaded: str, rows: int, config: Config) -> tuple[int, float]:
        """Do to a clone of a *loaded* table what a cleanup does, under the same guards; the mutations, and the seconds
        that they took.
        """
        commits = config.omid.commit_table, config.omid.commit_family
        done = self._run("act", table, rows, COLUMNS, self._start[loaded], *commits, THREADS).split()
        return int(done[0]), float(done[1])

    def loop(self, way: str, table: str, rounds: int) -> tuple[int, list[float]]:
        """Read every cell *rounds* times over ``rpc`` or a ``snapshot``; the cells of one round and the seconds of
        each.
        """
        lines = [line.split() for line in self._run(way, table, THREADS, rounds).splitlines() if line]
        return int(lines[-1][0]), [float(seconds) for _, seconds in lines]

    def _run(self, *arguments: object) -> str:
        from pyspark.find_spark_home import _find_spark_home

        jars = f"{_find_spark_home()}/jars/*"
        properties = [f"-D{name}={value}" for name, value in self._stack.hbase_properties().items()]
        command = ["java", "-Xmx2g", *properties, "-cp", ":".join([*class_path(Config()), jars]), str(SOURCE)]
        done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"Bare {arguments[0]} failed:\n{done.stderr[-2000:]}")
        return done.stdout
