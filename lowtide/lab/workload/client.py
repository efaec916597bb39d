"""One long-lived Omid client in Java, driven from Python: reads, raw cells, regions, tables, the commit table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lowtide.lab.workload.model import Cell, Column, raw, text
from lowtide.lab.workload.program import Program, Store, WorkloadError
from lowtide.lab.workload.script import Group

__all__ = ["COMMIT_TABLE", "CommitEntry", "OmidClient", "RawCell", "Region", "WorkloadError"]

COMMIT_TABLE = "OMID_COMMIT_TABLE"
ALL_VERSIONS = 2**31 - 1


class RawCell(NamedTuple):
    """A cell as HBase stores it."""

    row: bytes
    family: bytes
    qualifier: bytes
    timestamp: int
    kind: str
    """``put``, or the delete marker: ``delete`` (one version), ``delete_column``, ``delete_family``, ..."""
    value: bytes

    @property
    def key(self) -> tuple[bytes, bytes, bytes, int]:
        return self[:4]


class CommitEntry(NamedTuple):
    """A row of the commit table. ``commit`` is None for a bare invalidation mark; the mark outranks an entry."""

    start: int
    commit: int | None
    invalid: bool


class Region(NamedTuple):
    """A region of a table: keys from ``start`` to below ``end`` (empty: open)."""

    name: str
    start: bytes
    end: bytes
    server: str
    files: int


class OmidClient(Program):
    """Omid's own client, and HBase's administration, behind plain calls. Use as a context manager.

    Commands are carried out one after another and return when they are done. Row keys, families, qualifiers and values
    are bytes. Errors of the Java side arrive as WorkloadError.
    """

    def __init__(self, store: Store, heap: str = "256m", commit_table: str = COMMIT_TABLE) -> None:
        super().__init__(store, "lowtide.workload.Client", store.oracle, commit_table, heap=heap, log="client")
        self._conflict_map_size = store.conflict_map_size

    # --- read points and cells ---------------------------------------------------------------------------------------

    def read(self, table: str, timestamp: int, *, heal: bool = False) -> dict[Column, bytes]:
        """The table as Omid's reader shows it to a transaction with this read timestamp.

        Omid's reader writes missing shadow cells while it reads; here it does so only with *heal*.
        """
        rows = self._do("read", table=table, timestamp=timestamp, heal=heal)
        return {(raw(row), raw(family), raw(qualifier)): raw(value) for row, family, qualifier, value in rows}

    def count(self, table: str, timestamp: int) -> int:
        """How many cells Omid's reader shows to a transaction with this read timestamp."""
        return int(self._do("count", table=table, timestamp=timestamp))

    def begin(self) -> int:
        """A fresh start timestamp: a read point at it shows everything committed before."""
        return int(self._do("begin"))

    def raw(self, table: str) -> list[RawCell]:
        """Every version and delete marker, in HBase's order."""
        return [
            RawCell(raw(row), raw(family), raw(qualifier), timestamp, kind, raw(value))
            for row, family, qualifier, timestamp, kind, value in self._do("raw", table=table)
        ]

    def put(self, table: str, row: bytes, family: bytes, qualifier: bytes, timestamp: int, value: bytes) -> None:
        """Put one cell as it is, past Omid."""
        self._do("put", table=table, **_column(row, family, qualifier), timestamp=timestamp, value=text(value))

    def bulk_load(self, table: str, cells: Iterable[tuple[bytes, bytes, bytes, int, bytes]]) -> None:
        """Bring cells (row, family, qualifier, timestamp, value) into a table as files, past its log and Omid."""
        fields = [[*map(text, cell[:3]), cell[3], text(cell[4])] for cell in cells]
        self._do("bulk_load", table=table, cells=fields)

    def delete_version(self, table: str, row: bytes, family: bytes, qualifier: bytes, timestamp: int) -> None:
        """Delete exactly one version, past Omid."""
        self._do("delete_version", table=table, **_column(row, family, qualifier), timestamp=timestamp)

    # --- commit table -----------------------------------------------------------------------------------------------

    def commit_table(self) -> dict[int, CommitEntry]:
        """Every entry and invalidation mark, by start timestamp."""
        return {start: CommitEntry(start, commit, invalid) for start, commit, invalid in self._do("commit_table")}

    def add_commit_entry(self, start: int, commit: int) -> None:
        """Write a commit entry as the oracle does."""
        self._do("add_commit_entry", start=start, commit=commit)

    def delete_commit_entry(self, start: int) -> None:
        """Delete a transaction's row from the commit table as a client that completes does."""
        self._do("delete_commit_entry", start=start)

    def invalidate(self, start: int) -> bool:
        """Put an invalidation mark as a reader does; False if there is a commit entry."""
        return bool(self._do("invalidate", start=start))

    def watermark(self) -> int:
        """The stored low watermark."""
        return int(self._do("watermark"))

    def advance_watermark(self) -> int:
        """Push the low watermark above every transaction begun before this call; the new one.

        The oracle is made to forget all written cells it remembers by a commit of invented ones, which leaves no trace
        in any table but a delete marker in the commit table. Running transactions are refused at their commit.
        """
        # Ids meet slots at random: four times as many as there are leave no old one, for all practical purposes.
        return int(self._do("advance_watermark", cells=4 * (self._conflict_map_size + 32)))

    def decide(self, start: int) -> int:
        """Have the oracle commit the transaction, and do nothing more; its commit timestamp.

        In low-latency mode there is no commit entry then: to write it is the client's.
        """
        return int(self._do("decide", start=start))

    def fate(self, start: int, cells: Iterable[Cell]) -> int | None:
        """Whether a transaction whose client is dead committed: its commit timestamp, or None.

        Looks at its own shadow cells, then at the commit table. Final only if the low watermark has passed it.
        """
        fields = [[cell.table, *map(text, cell[1:4]), cell.checkpoint] for cell in cells]
        answer = self._do("fate", start=start, cells=fields)
        return None if answer is None else int(answer)

    # --- tables -----------------------------------------------------------------------------------------------------

    def tables(self) -> list[str]:
        """The names of all tables but HBase's own."""
        return list(self._do("tables"))

    def create(
        self,
        table: str,
        families: Sequence[str] = ("a", "b"),
        *,
        omid_enabled: bool = True,
        splits: Sequence[str | bytes] = (),
        versions: int = ALL_VERSIONS,
        attributes: Mapping[str, str] = {},
        settings: Mapping[str, str] = {},
    ) -> None:
        """Make a table, and its namespace if need be; *omid_enabled* sets Omid's flag on its families.

        It gets *attributes*, and its families *settings*, as HBase's shell names them.
        """
        self._do(
            "create",
            table=table,
            families=list(families),
            omid_enabled=omid_enabled,
            splits=[key if isinstance(key, str) else text(key) for key in splits],
            versions=versions,
            attributes=dict(attributes),
            settings=dict(settings),
        )

    def truncate(self, table: str) -> None:
        """Empty a table, its regions' keys kept. (HBase makes it anew.)"""
        self._do("truncate", table=table)

    def drop(self, table: str) -> None:
        """Remove a table, if it is there."""
        self._do("drop", table=table)

    def set(self, table: str, *, families: Mapping[str, str] = {}, **attributes: str) -> None:
        """Give a table *attributes*, and all its families settings, as HBase's shell does with ``alter``."""
        self._do("set", table=table, families=dict(families), attributes=attributes)

    def add_family(self, table: str, family: str) -> None:
        """Give a table one more family, with Omid's flag."""
        self._do("add_family", table=table, family=family)

    def disable(self, table: str) -> None:
        """Close all regions of a table."""
        self._do("disable", table=table)

    def enable(self, table: str) -> None:
        """Open them again."""
        self._do("enable", table=table)

    def attach_omid_compactor(self, table: str) -> None:
        """Run Omid's compactor in the table's compactions from now on."""
        self._do("attach_omid_compactor", table=table)

    def detach_omid_compactor(self, table: str) -> None:
        """No longer; the families' flag becomes false."""
        self._do("detach_omid_compactor", table=table)

    def snapshot(self, table: str, snapshot: str) -> None:
        """Take an HBase snapshot (memory is flushed first)."""
        self._do("snapshot", table=table, snapshot=snapshot)

    def clone(self, snapshot: str, table: str) -> None:
        """Make a new table from an HBase snapshot."""
        self._do("clone", snapshot=snapshot, table=table)

    def restore(self, snapshot: str) -> None:
        """Put the HBase snapshot's table back to what it was."""
        self._do("restore", snapshot=snapshot)

    def delete_snapshot(self, snapshot: str) -> None:
        """Forget an HBase snapshot."""
        self._do("delete_snapshot", snapshot=snapshot)

    def snapshots(self) -> list[str]:
        """The names of all HBase snapshots."""
        return list(self._do("snapshots"))

    # --- regions ----------------------------------------------------------------------------------------------------

    def regions(self, table: str) -> list[Region]:
        """The table's regions in key order, without their replicas."""
        return [
            Region(name, raw(start), raw(end), server, files)
            for name, start, end, server, files in self._do("regions", table=table)
        ]

    def write_requests(self) -> dict[str, int]:
        """How many write requests the servers have counted, by table, since they opened its regions."""
        return dict(self._do("write_requests"))

    def flush(self, table: str) -> None:
        """Write the table's memory to files."""
        self._do("flush", table=table)

    def compact(self, table: str, *, major: bool) -> tuple[int, int]:
        """Compact every region and wait; the number of files before and after.

        A minor compaction chooses for itself and does nothing with fewer than three files a store.
        """
        before, after = self._do("compact", table=table, major=major)
        return before, after

    @contextmanager
    def no_compactions(self) -> Iterator[None]:
        """The servers compact nothing meanwhile, by themselves or when asked; afterwards they do again."""
        self._do("compactions", on=False)
        try:
            yield
        finally:
            self._do("compactions", on=True)

    def split(self, table: str, key: bytes) -> None:
        """Split the region that holds *key* at it. (One that was just split must be compacted first.)"""
        self._do("split", table=table, key=text(key))

    def merge(self, table: str, key: bytes) -> None:
        """Merge the region that holds *key* with the one after it. (After a split: compact with *major* first.)"""
        self._do("merge", table=table, key=text(key))

    def move(self, table: str, key: bytes) -> str:
        """Move the region that holds *key* to another server; with only one it is closed and opened again."""
        return str(self._do("move", table=table, key=text(key)))

    # --- scripts ----------------------------------------------------------------------------------------------------

    def run(self, groups: Sequence[Group], log: Path, *, threads: int = 4) -> dict[str, int]:
        """Carry out every group once; events go to the end of *log*. Counts of outcomes since the client started."""
        return dict(self._do("run", groups=list(groups), log=str(log), threads=threads))

    def start_run(self, groups: Sequence[Group], log: Path, *, threads: int = 4) -> None:
        """As ``run``, but return at once: for a client that is going to be killed or to halt."""
        self._send("run", groups=list(groups), log=str(log), threads=threads)

    def open(self, name: str, group: Group, log: Path) -> None:
        """Begin a group that is carried out by :meth:`turn`; events go to the end of *log*."""
        self._do("open", name=name, group=group, log=str(log))

    def turn(self, name: str) -> bool:
        """Carry out the next turn of an open group's order; whether there are more. One that is left is a client that
        was suspended and never came back.
        """
        return bool(self._do("turn", name=name))

    def live(self, groups: Sequence[Group], log: Path, *, threads: int, pause_ms: int) -> None:
        """Carry out the groups round and round in the background until ``stop``."""
        self._do("live", groups=list(groups), log=str(log), threads=threads, pause_ms=pause_ms)

    def counts(self) -> dict[str, int]:
        """Outcomes so far."""
        return dict(self._do("counts"))

    def stop(self) -> dict[str, int]:
        """End ``live``; the counts of outcomes."""
        return dict(self._do("stop"))


def _column(row: bytes, family: bytes, qualifier: bytes) -> dict[str, str]:
    return {"row": text(row), "family": text(family), "qualifier": text(qualifier)}
