"""A store whose servers are not this program's: all that clients of the workload need to reach it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lowtide.lab.stack.files import write_logging
from lowtide.lab.stack.machine import java_command


@dataclass(frozen=True)
class RemoteStore:
    """A store elsewhere.

    *conf* is a folder with its ``hbase-site.xml``, *jars* the class path of what ``embedded/`` is built into. *oracle*
    is host:port, *logs* a folder for what client programs log. *conflict_map_size* must not be smaller than the
    oracle's.
    """

    conf: Path
    jars: tuple[str, ...]
    oracle: str
    logs: Path
    conflict_map_size: int = 1000

    def java_command(
        self, main_class: str, *args: str, heap: str = "256m", log: str = "client", options: Sequence[str] = ()
    ) -> list[str]:
        """The command of a Java program with the clients' classes, for this store."""
        self.logs.mkdir(parents=True, exist_ok=True)
        write_logging(self.logs)
        class_path = [str(self.logs), str(self.conf), *self.jars]
        options = [*options, f"-Dlowtide.log={self.logs / f'{log}.log'}"]
        return java_command(class_path, main_class, *args, heap=heap, options=options)
