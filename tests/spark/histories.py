"""Random histories of rows, as cells and as the rows that the connector's view ``versions`` shows of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count

from lowtide.values.formats import base, encode_long, shadow_qualifier
from tests.spark.omid_reader import (
    LEGACY_TOMBSTONE,
    Key,
    Row,
    commits,
    data_qualifier,
    is_family_tombstone,
    is_shadow,
    kind,
    put,
    shadow,
)

COLUMNS = (
    "region string, row binary, family binary, qualifier binary, timestamp bigint, start_ts bigint, commit_ts bigint, "
    "replaced_ts bigint, kind string, value binary, problem string"
)
#: Of a wide row.
WIDE = [b"c%02d" % number for number in range(30)]


def _hidden(others: list[tuple[Key, int, bool]], key: Key, is_family: bool, snapshot: int, bare: bool) -> bool:
    """Whether a read point passes the version over for another, by proven cells alone (the contract of
    ``replaced_ts``).
    """
    proven = [other for other in others if other[1] < snapshot]
    if any(k[1] == key[1] and k.timestamp > key.timestamp and family == is_family for k, _, family in proven):
        return True
    tombstones = [(k.timestamp, commit) for k, commit, family in proven if family]
    return not is_family and not bare and bool(tombstones) and max(tombstones)[1] >= key.timestamp


def is_bare(row: Row, family: bytes) -> bool:
    """Whether the family has a cell without qualifier that is no family tombstone."""
    return any(k.family == family and not k.qualifier and not is_family_tombstone(k, row[k]) for k in row)


def replaced(row: Row, proof: dict[Key, int], key: Key) -> int | None:
    """``replaced_ts`` of the view ``versions``."""
    others = [(k, c, is_family_tombstone(k, row[k])) for k, c in proof.items() if k.family == key.family]
    bare, is_family = is_bare(row, key.family), is_family_tombstone(key, row[key])
    return min((c for _, c, _ in others if _hidden(others, key, is_family, c + 1, bare)), default=None)


def versions(row: Row, name: bytes, region: str = "r") -> list[tuple[object, ...]]:
    """The rows of the view ``versions``, with traces, as tuples of COLUMNS."""
    proof, found = commits(row), []
    for key, value in row.items():
        if not is_shadow(key.qualifier):
            what = (proof.get(key), replaced(row, proof, key), kind(key, value), bytearray(value), None)
            found.append((key, key.qualifier, what))
        else:
            data = data_qualifier(key.qualifier)
            if Key(key.family, data, key.timestamp) not in row:
                found.append((key, data, (int.from_bytes(value, "big"), None, "shadow", None, None)))
    return [
        (
            region,
            bytearray(name),
            bytearray(key.family),
            bytearray(qualifier),
            key.timestamp,
            base(key.timestamp),
            *what,
        )
        for key, qualifier, what in found
    ]


@dataclass
class History:
    """A row, and the commit timestamps of transactions of which a cell lacks its shadow cell."""

    cells: dict[Key, bytes] = field(default_factory=dict)
    #: Undecided transactions and when they would commit, if their commit entry were still there.
    doubtful: dict[int, int] = field(default_factory=dict)


Clock = Callable[[int], int]


def random_history(source: random.Random, stamp: Clock, beats: int, *, wide: bool = False) -> History:
    """One row of one of many shapes, or a *wide* one; *stamp* turns a beat (1 to *beats* and beyond) into a timestamp
    of this history alone.
    """
    history = History()
    families = source.choice(([b"f"], [b"f"], [b"f", b"g"]))
    qualifiers = WIDE if wide else source.choice(([b"a"], [b"a", b"b"], [b"a", b"b", b"c", b"d", b"e", b"ab"]))
    odds = {
        "tombstone": source.choice((0, 0.1, 0.4)),
        "family": source.choice((0, 0, 0.1, 0.3)),
        "bare": source.choice((0, 0, 0, 0.1)),
        "orphan": source.choice((0, 0.1, 0.3)),
        "torn": source.choice((0, 0, 0.1)),
        "dangling": source.choice((0, 0, 0.1)),
        "foreign": source.choice((0, 0, 0, 0.1)),
    }
    lag = source.choice((1, 3, 12))
    # Starts and commits are all different, as one oracle gives them.
    starts = source.sample(range(1, beats), min(beats - 1, 4 if wide else source.choice((3, 8, 20))))
    free = [beat for beat in range(2, beats + lag + 30) if beat not in starts]
    source.shuffle(free)
    # A client that gives its own timestamps may give any that is nobody else's: with two commits under one, what is
    # shown is a matter of chance.
    taken = {stamp(beat) + step for beat in starts for step in range(3)}
    for start_beat in starts:
        later = [beat for beat in free if start_beat < beat <= start_beat + lag] or [
            min(beat for beat in free if beat > start_beat)
        ]
        commit_beat = source.choice(later)
        free.remove(commit_beat)
        _transaction(source, history, stamp(start_beat), stamp(commit_beat), families, qualifiers, odds, taken)
    return history


def _transaction(
    source: random.Random,
    history: History,
    start: int,
    commit: int,
    families: list[bytes],
    qualifiers: list[bytes],
    odds: dict[str, float],
    taken: set[int],
) -> None:
    def chance(name: str) -> bool:
        return source.random() < odds[name]

    orphan, torn = chance("orphan"), chance("torn")
    checkpoints = source.choice((1, 1, 3))
    for step in range(source.choice((1, 1, 2, 4)) * max(1, len(qualifiers) // 6)):
        timestamp = start + min(step, checkpoints - 1)
        family, qualifier = source.choice(families), source.choice(qualifiers)
        value = b"v%d" % timestamp
        if chance("family"):
            qualifier, value = b"", b""
        elif chance("tombstone"):
            value = source.choice((b"", b"", LEGACY_TOMBSTONE))
        elif chance("bare"):
            qualifier = b""
        if chance("foreign"):
            timestamp = source.randrange(1, 1000)
            timestamp = next(free for free in count(timestamp) if free not in taken)
            taken.add(timestamp)
        key = Key(family, qualifier, timestamp)
        # A foreign timestamp may lie above the transaction's; no shadow cell is below its own.
        proof = max(commit, base(timestamp) + 50)
        if chance("dangling") and not orphan:
            history.cells.setdefault(shadow(key), encode_long(proof))
            continue
        lost = orphan or (torn and source.random() < 0.5)
        if shadow(key) in history.cells and lost:
            continue
        if timestamp >= start and lost:
            history.doubtful[start] = commit
        put(history.cells, key, value, None if lost else proof)


def leaving(row: Row, mark: int, first_ts: int) -> set[Key]:
    """The cells that must go, by what the reader shows: nothing more and nothing less. Shadow cells are named by their
    own keys.
    """
    proof = commits(row)
    undecided = {
        base(k.timestamp)
        for k in row
        if not is_shadow(k.qualifier) and k not in proof and first_ts <= k.timestamp < mark
    }
    mixed = {
        f
        for f in {k.family for k in row}
        if is_bare(row, f) and any(k.family == f and is_family_tombstone(k, v) for k, v in row.items())
    }

    def is_open(key: Key, value: bytes) -> bool:
        return is_family_tombstone(key, value) and key not in proof and first_ts <= key.timestamp < mark

    def sure(key: Key) -> bool:
        qualifier = data_qualifier(key.qualifier) if is_shadow(key.qualifier) else key.qualifier
        own = decode(row, key)
        return (
            own is not None
            and key.timestamp >= first_ts
            and base(key.timestamp) not in undecided
            and not (qualifier == b"" and key.family in mixed)
            and (is_family_tombstone(key, row[key]) or key.timestamp <= open_from.get(key.family, key.timestamp))
        )

    open_from = {
        f: min(k.timestamp for k, v in row.items() if k.family == f and is_open(k, v))
        for f in {k.family for k, v in row.items() if is_open(k, v)}
    }
    sight = {k: v for k, v in row.items() if not is_shadow(k.qualifier) and k in proof}
    gone: set[Key] = set()
    for key, value in sight.items():
        if not sure(key) or key.timestamp >= mark:
            continue
        if is_family_tombstone(key, value):
            goes = any(
                k.family == key.family and k.timestamp > key.timestamp and proof[k] < mark and is_family_tombstone(k, v)
                for k, v in sight.items()
            )
        else:
            goes = _passed_over(sight, proof, key, mark, key.family in mixed)
        if goes:
            gone.add(key)
    dangling = [k for k in row if is_shadow(k.qualifier) and not _has_data(row, k)]
    gone |= {k for k in dangling if sure(k) and (decode(row, k) or 0) < mark}
    _free_tombstones(row, proof, gone, mark, sure)
    return gone | {shadow(k) for k in gone if not is_shadow(k.qualifier)}


def decode(row: Row, key: Key) -> int | None:
    """The commit timestamp that a shadow cell, or the one beside a data cell, holds."""
    value = row[key] if is_shadow(key.qualifier) else row.get(shadow(key))
    return None if value is None else int.from_bytes(value, "big")


def _has_data(row: Row, key: Key) -> bool:
    return Key(key.family, data_qualifier(key.qualifier), key.timestamp) in row


def _passed_over(sight: Row, proof: dict[Key, int], key: Key, mark: int, mixed: bool) -> bool:
    """Whether the mark's read point would not show the version even if it had been committed at once."""
    seen = [k for k in sight if k.family == key.family and proof[k] < mark]
    tombstones = [] if mixed else [k for k in seen if is_family_tombstone(k, sight[k])]
    newest = max(tombstones, key=lambda k: k.timestamp, default=None)
    higher = any(k.qualifier == key.qualifier and k.timestamp > key.timestamp for k in seen)
    return higher or (newest is not None and proof[newest] >= key.timestamp)


def _free_tombstones(row: Row, proof: dict[Key, int], gone: set[Key], mark: int, sure: Callable[[Key], bool]) -> None:
    """Add to *gone* the newest tombstones before the mark that hide nothing any more: of columns, then of families."""

    def stay(keys: Iterable[Key]) -> bool:
        return any(k not in gone and (not is_shadow(k.qualifier) or not _has_data(row, k)) for k in keys)

    candidates = [k for k in proof if k not in gone and sure(k) and proof[k] < mark]
    for key in [k for k in candidates if kind(k, row[k]) == "tombstone"]:
        names = {key.qualifier, shadow(key).qualifier}
        below = [k for k in row if k.family == key.family and k.qualifier in names and k.timestamp < key.timestamp]
        if not stay(below):
            gone.add(key)
    # Of a family: over nothing that is there, whether it goes or not.
    for key in [k for k in candidates if is_family_tombstone(k, row[k])]:
        covered = [
            k
            for k in row
            if k.family == key.family
            and k.timestamp <= proof[key]
            and not (is_family_tombstone(k, row[k]) and sure(k))
            and not (is_shadow(k.qualifier) and _has_data(row, k))
        ]
        # Before a shadow cell that stays alone a client that looks for an older family tombstone would search for ever.
        alone = [
            k for k in row if k.family == key.family and k.qualifier == shadow_qualifier(b"") and not _has_data(row, k)
        ]
        if not covered and not alone:
            gone.add(key)
