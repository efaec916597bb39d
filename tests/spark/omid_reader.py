"""Omid's reader on a row in memory: what the client shows at a read point, by ``SnapshotFilterImpl``, line by line.

It is a model to hold the rules against, so it keeps the client's own steps: one version of every HBase column first,
further versions by pending gets; the commit cache of the result at hand; the family deletion cache, and the search for
a family tombstone that ends only when one is found or nothing at all is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lowtide.values.formats import SHADOW_PREFIX, SHADOW_SUFFIX, base, decode_long, encode_long, shadow_qualifier

LEGACY_TOMBSTONE = b"__OMID_TOMBSTONE__"


class Key(NamedTuple):
    """A cell's place within its row."""

    family: bytes
    qualifier: bytes
    timestamp: int


Row = Mapping[Key, bytes]


class EndlessError(Exception):
    """The client would ask for the same cells for ever."""


def is_shadow(qualifier: bytes) -> bool:
    """``CellUtils.isShadowCell``."""
    return len(qualifier) > len(SHADOW_SUFFIX) and qualifier.endswith(SHADOW_SUFFIX)


def is_family_tombstone(key: Key, value: bytes) -> bool:
    """``CellUtils.isFamilyDeleteCell``."""
    return key.qualifier == b"" and value == b""


def kind(key: Key, value: bytes) -> str:
    """The connector's kind of a data cell."""
    if value == b"":
        return "family_tombstone" if key.qualifier == b"" else "tombstone"
    return "tombstone" if value == LEGACY_TOMBSTONE else "put"


def data_qualifier(qualifier: bytes) -> bytes:
    """The data cell's qualifier of a shadow cell's."""
    return qualifier[len(SHADOW_PREFIX) : -len(SHADOW_SUFFIX)]


@dataclass
class Reader:
    """One row's cells, the commit table, and the read point."""

    row: Row
    snapshot: int
    #: Start timestamps to commit timestamps; None: an invalidation mark.
    entries: Mapping[int, int | None]

    def cells(self) -> dict[tuple[bytes, bytes], bytes]:
        """What the client shows: value by family and qualifier."""
        families: dict[bytes, int] = {}
        found = self._filtered(self._versions(self.row, 1, self.snapshot + 1), 1, families)
        return {(key.family, key.qualifier): self.row[key] for key in found}

    def _versions(self, keys: Iterable[Key], count: int, to: int) -> list[Key]:
        """The newest *count* versions below *to* of every column of *keys*, in HBase's order."""
        columns: dict[tuple[bytes, bytes], list[Key]] = {}
        for key in sorted(keys, key=lambda k: (k.family, k.qualifier, -k.timestamp)):
            versions = columns.setdefault(key[:2], [])
            if key.timestamp < to and len(versions) < count:
                versions.append(key)
        return [key for versions in columns.values() for key in versions]

    def _pending(self, key: Key, count: int) -> list[Key]:
        wanted = (key.qualifier, shadow_qualifier(key.qualifier))
        return self._versions(
            (k for k in self.row if k.family == key.family and k.qualifier in wanted), count, key.timestamp
        )

    def _cache(self, keys: Iterable[Key]) -> dict[int, int]:
        return {key.timestamp: decode_long(self.row[key]) for key in keys if is_shadow(key.qualifier)}

    def _in_snapshot(self, key: Key, cache: Mapping[int, int]) -> int | None:
        """``getTSIfInSnapshot``: cache, commit table, own shadow cell."""
        own = self.row.get(Key(key.family, shadow_qualifier(key.qualifier), key.timestamp))
        commit = cache.get(key.timestamp)
        if commit is None and base(key.timestamp) in self.entries:
            commit = self.entries[base(key.timestamp)]
        elif commit is None and own is not None:
            commit = decode_long(own)
        return commit if commit is not None and commit < self.snapshot else None

    def _filtered(self, keys: list[Key], versions: int, families: dict[bytes, int]) -> list[Key]:
        cache = self._cache(keys)
        self._find_family_tombstones(keys, cache, families)
        shown: list[Key] = []
        pending: list[list[Key]] = []
        for column in dict.fromkeys(key[:2] for key in keys):
            of_column = [
                key
                for key in keys
                if key[:2] == column and not is_shadow(key.qualifier) and not is_family_tombstone(key, self.row[key])
            ]
            if not of_column:
                continue
            for key in of_column:
                if self._in_snapshot(key, cache) is not None:
                    hidden = families.get(key.family)
                    if not (hidden is not None and hidden >= key.timestamp) and kind(key, self.row[key]) == "put":
                        shown.append(key)
                    break
            else:
                pending.append(self._pending(of_column[-1], versions * 2))
        for further in pending:
            if further:
                shown += self._filtered(further, versions * 2, families)
        return shown

    def _find_family_tombstones(self, keys: list[Key], cache: Mapping[int, int], families: dict[bytes, int]) -> None:
        for key in keys:
            if not is_family_tombstone(key, self.row[key]):
                continue
            if key.family in families:
                return
            commit = self._in_snapshot(key, cache)
            if commit is None:
                commit = self._older_family_tombstone(key)
            if commit is not None:
                families[key.family] = commit

    def _older_family_tombstone(self, key: Key) -> int | None:
        last = key
        while further := self._pending(last, 3):
            cache = self._cache(further)
            before = last
            for found in further:
                if is_family_tombstone(found, self.row[found]):
                    commit = self._in_snapshot(found, cache)
                    if commit is not None:
                        return commit
                    last = found
            if last == before:
                raise EndlessError(f"no family tombstone among {further}")
        return None


def read(row: Row, snapshot: int, entries: Mapping[int, int | None] | None = None) -> dict[tuple[bytes, bytes], bytes]:
    """What Omid's client shows of a row to a transaction that starts at *snapshot*."""
    return Reader(row, snapshot, entries or {}).cells()


def shadow(key: Key) -> Key:
    """The place of the shadow cell beside a data cell."""
    return Key(key.family, shadow_qualifier(key.qualifier), key.timestamp)


def commits(row: Row) -> dict[Key, int]:
    """The data cells of a row that have their own shadow cell, with its value."""
    return {key: decode_long(row[shadow(key)]) for key in row if not is_shadow(key.qualifier) and shadow(key) in row}


def put(row: dict[Key, bytes], key: Key, value: bytes, commit: int | None = None) -> None:
    """Add a data cell, and its shadow cell if it has a commit timestamp."""
    row[key] = value
    if commit is not None:
        row[shadow(key)] = encode_long(commit)
