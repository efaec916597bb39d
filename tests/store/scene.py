"""A small stage for tests that need one transaction in one exact state."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lowtide.lab.workload import Model, OmidClient
from lowtide.values.formats import encode_long, shadow_qualifier

_numbers = itertools.count(1)


@dataclass
class Scene:
    """Tables of a test, dropped after it, and ways to put cells into them."""

    omid: OmidClient
    tables: list[str]

    def table(self, families: tuple[str, ...] = ("a",), namespace: str = "", **options: object) -> str:
        """A new empty table, in HBase's default namespace or in another, that bears Omid's flag unless told
        otherwise.
        """
        # A store that is shared still has the HBase snapshots and folders of others' tables.
        name = f"{namespace}{':' if namespace else ''}scene{os.getpid()}n{next(_numbers)}"
        self.omid.create(name, families, **options)  # type: ignore[arg-type]
        self.tables.append(name)
        return name

    def cell(
        self,
        table: str,
        start: int,
        *,
        row: bytes = b"r",
        family: bytes = b"a",
        qualifier: bytes = b"q",
        value: bytes = b"v",
    ) -> None:
        """A data cell as a client of the transaction *start* (or one of its checkpoints) writes it."""
        self.omid.put(table, row, family, qualifier, start, value)

    def shadow(
        self, table: str, start: int, commit: int, *, row: bytes = b"r", family: bytes = b"a", qualifier: bytes = b"q"
    ) -> None:
        """The shadow cell beside it."""
        self.omid.put(table, row, family, shadow_qualifier(qualifier), start, encode_long(commit))

    def committed(
        self, table: str, *, row: bytes = b"r", family: bytes = b"a", qualifier: bytes = b"q", value: bytes = b"v"
    ) -> tuple[int, int]:
        """A cell of a transaction that completed: data and shadow cell, no commit entry. Its start and commit
        timestamps.
        """
        start, commit = self.omid.begin(), self.omid.begin()
        self.cell(table, start, row=row, family=family, qualifier=qualifier, value=value)
        self.shadow(table, start, commit, row=row, family=family, qualifier=qualifier)
        return start, commit

    def crashed_after_commit(self, table: str, **place: bytes) -> tuple[int, int]:
        """A cell of a transaction whose client died between its commit and its shadow cells: entry, no shadow cell."""
        start, commit = self.omid.begin(), self.omid.begin()
        self.cell(table, start, **place)
        self.omid.add_commit_entry(start, commit)
        return start, commit

    def orphan(self, table: str, **place: bytes) -> int:
        """A cell of a transaction that never committed. Its start timestamp."""
        start = self.omid.begin()
        self.cell(table, start, **place)
        return start

    def flush_a_large_file(self, table: str) -> None:
        """Too large for a minor compaction to take. What fills it is other transactions': whatever has an entry is
        written anew.
        """
        for n in range(200):
            self.committed(table, row=b"big%d" % n, value=b"x" * 20_000)
        self.omid.flush(table)

    def compacted_by_omid(self, table: str) -> None:
        """Omid's compactor is put on the table and takes its small files, then all of them."""
        self.omid.attach_omid_compactor(table)  # before there are small files: HBase compacts three of them unasked
        for n in range(3):
            self.omid.flush(table)
            self.committed(table, row=b"small%d" % n)
        self.omid.flush(table)
        _, files = self.omid.compact(table, major=False)
        assert 1 < files < 5, "the large file is left out, and small ones are not"
        self.omid.compact(table, major=True)

    def data(self, table: str) -> dict[tuple[bytes, bytes, bytes, int], bytes]:
        """All put cells that HBase still shows, versions included: masked ones are left out."""
        cells = self.omid.raw(table)
        deleted = {c.key for c in cells if c.kind == "delete"}
        up_to: dict[tuple[bytes, ...], int] = {}
        for c in cells:
            place = {"delete_column": c.key[:3], "delete_family": c.key[:2]}.get(c.kind)
            if place is not None:
                up_to[place] = max(c.timestamp, up_to.get(place, -1))

        def shows(key: tuple[bytes, bytes, bytes, int]) -> bool:
            return key not in deleted and key[3] > max(up_to.get(key[:3], -1), up_to.get(key[:2], -1))

        return {c.key: c.value for c in cells if c.kind == "put" and shows(c.key)}

    def has(self, table: str, start: int, *, row: bytes = b"r", family: bytes = b"a", qualifier: bytes = b"q") -> bool:
        """Whether exactly this version is there."""
        return (row, family, qualifier, start) in self.data(table)

    def healed(
        self, table: str, start: int, *, row: bytes = b"r", family: bytes = b"a", qualifier: bytes = b"q"
    ) -> int | None:
        """The commit timestamp in the cell's shadow cell, or None without one."""
        value = self.data(table).get((row, family, shadow_qualifier(qualifier), start))
        return None if value is None else int.from_bytes(value, "big")


def check_read_points(omid: OmidClient, model: Model, seed: int, count: int = 20) -> None:
    """Every table of a workload shows at *count* read points of its history what the model says."""
    for point in model.read_timestamps(count, seed):
        for table in model.tables:
            assert omid.read(table, point) == model.shown_at(table, point), (table, point)


def staged(omid: OmidClient) -> Iterator[Scene]:
    """A scene, struck after the test: its tables dropped, so that they hold nobody's prune bound back."""
    scene = Scene(omid, [])
    yield scene
    for table in scene.tables:
        omid.drop(table)


Job = Callable[..., object]
