"""Phoenix in the embedded store, and the workload's model: what needs no store to be known."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lowtide.stack import Stack, StackConfig, StackError, files, load, machine
from lowtide.workload.phoenix import COLUMNS, DDL, INDEXES, KEYS, LATE_DDL, Rows, draft
from lowtide.workload.sql import PhoenixClient
from tests import seeds


def test_a_store_without_phoenix_knows_nothing_of_it(tmp_path: Path) -> None:
    """Phoenix's settings and jars are there when asked for, for servers and clients alike, and only then."""
    plain, phoenix = StackConfig(tmp_path / "a"), StackConfig(tmp_path / "b", phoenix=True, tso_port=4321)
    codec = "hbase.regionserver.wal.codec"
    assert codec not in files.server_properties(plain)
    assert "IndexedWALEditCodec" in files.server_properties(phoenix)[codec]
    assert files.client_properties(phoenix)["phoenix.transactions.enabled"] == "true"
    files.write(phoenix)
    assert (tmp_path / "b/conf/hbase-omid-client-config.yml").read_text() == 'connectionString: "127.0.0.1:4321"\n'
    assert load(phoenix.home).phoenix


def test_missing_jars_are_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its jars Phoenix is refused before anything starts; so is a client of a store without it."""
    monkeypatch.setattr(machine, "embedded_target", lambda: tmp_path / "embedded" / "target")
    with pytest.raises(StackError, match="make phoenix"):
        machine.phoenix_classpath()
    with pytest.raises(StackError, match="stack up --phoenix"):
        PhoenixClient(Stack(StackConfig(tmp_path)))


def _drafts(seed: int, number: int) -> list[tuple[list[tuple[str, tuple[object, ...]]], dict[str, Rows]]]:
    dice, tables = random.Random(seed), {name: {} for name in COLUMNS}
    made = []
    for n in range(number):
        one = draft(n, dice, tables)
        tables = one.tables
        made.append((one.statements, tables))
    return made


@seeds.each("drafts of statements", count=3, always=[1])
def test_a_seed_says_what_is_done(seed: int) -> None:
    """The same seed makes the same statements and the same model; every kind of statement comes up."""
    made = _drafts(seed, 300)
    assert made == _drafts(seed, 300)
    texts = " ".join(text for statements, _ in made for text, _ in statements)
    for kind in ("DELETE FROM PX_A", "DELETE FROM PX_V", "UPSERT INTO PX_S", "UPSERT INTO PX_M", "SELECT ID + 1000"):
        assert kind in texts
    assert all(statements[-1][0].startswith("UPSERT INTO PX_LOG") for statements, _ in made)


def test_a_draft_leaves_the_model_alone_until_it_is_taken() -> None:
    """What a transaction would change is its own: one that is rolled back has changed nothing."""
    tables: dict[str, Rows] = {
        name: {k: dict.fromkeys(columns) for k in range(KEYS)} for name, columns in COLUMNS.items()
    }
    before = {name: {k: dict(r) for k, r in rows.items()} for name, rows in tables.items()}
    for n in range(50):
        draft(n, random.Random(n), tables)
    assert tables == before


def test_every_index_that_is_read_is_made() -> None:
    """The workload makes each index that it asks through, and asks through every one but that which Phoenix cannot read."""
    made = {
        words[i + 1] for text in (*DDL, LATE_DDL) if "INDEX" in (words := text.split()) for i in [words.index("INDEX")]
    }
    assert made - {"PX_S_UNCOVERED"} == {index for indexes in INDEXES.values() for index in indexes}
