"""Phoenix in the embedded store, and the workload's model: what needs no store to be known."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from lowtide.lab.stack import Stack, StackConfig, StackError, files, load, machine
from lowtide.lab.workload.phoenix import (
    COLUMNS,
    DDL,
    INDEXES,
    KEYS,
    LATE_DDL,
    Draft,
    PhoenixWorkload,
    Rows,
    _shift,
    draft,
)
from lowtide.lab.workload.sql import PhoenixClient
from tests import seeds

Statement = tuple[str, tuple[Any, ...]]


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


def _whole(number: int) -> dict[str, Any]:
    return {column: f"{column}{number}" for column in COLUMNS["PX_A"]}


def _draft_over(*keys: int) -> Draft:
    return Draft(1, random.Random(1), {**{name: {} for name in COLUMNS}, "PX_A": {key: _whole(0) for key in keys}})


def test_a_deleted_row_is_written_again_whole_or_not_at_all() -> None:
    """Phoenix would give columns that are not named what they held before the delete. A row that was not there, and
    one that is written again already, can be written in part."""
    made = _draft_over(34)
    made.delete("PX_A", 33, 34)
    made.upsert("PX_A", 34, A="x")
    assert [text.split()[0] for text, _ in made.statements] == ["DELETE"]
    assert made.tables["PX_A"] == {}
    made.upsert("PX_A", 33, A="new")
    made.upsert("PX_A", 34, **_whole(1))
    made.upsert("PX_A", 34, A="x")
    assert [text.split()[0] for text, _ in made.statements] == ["DELETE", "UPSERT", "UPSERT", "UPSERT"]
    assert made.tables["PX_A"] == {33: {"A": "new", "B": None, "C": None}, 34: {**_whole(1), "A": "x"}}


@pytest.mark.parametrize("between", [lambda made: made.delete("PX_A", 1, 1), _shift], ids=["a delete", "UPSERT SELECT"])
def test_a_deleted_row_is_not_written_again_once_its_table_was_read(between: Callable[[Draft], None]) -> None:
    """Phoenix would hide it behind the tombstone that it has sent by then. What was not there, and what was read of
    another table, hides nothing."""
    made = _draft_over(35, 36)
    made.delete("PX_A", 35, 35)
    between(made)
    made.delete("PX_A", 36, 37)
    made.delete("PX_S", 1, 1)
    before = len(made.statements)
    for key in (35, 36, 37):
        made.upsert("PX_A", key, **_whole(key))
    assert [values[0] for _, values in made.statements[before:]] == [36, 37]
    assert {35, 36, 37} & set(made.tables["PX_A"]) == {36, 37}


class Told:
    """In the place of a client: takes down the statements of a transaction, and has no rows to answer with."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []

    def execute(self, text: str, *values: Any, session: str) -> None:
        assert session == "main"
        self.statements.append((text, values))

    def query(self, _text: str, session: str) -> list[tuple[Any, ...]]:
        assert session == "main"
        return []

    def commit(self, point: int | None = None) -> bool:
        return point is not None

    def rollback(self) -> None:
        """Nothing was done."""


def _written_again(statements: list[Statement], there: set[tuple[str, int]]) -> list[tuple[Statement, bool]]:
    """The upserts of rows that the same transaction deleted, by its statements and the rows that were there before;
    and whether Phoenix carries each out as SQL says."""
    found, deleted, sent = list[tuple[Statement, bool]](), set[tuple[str, int]](), set[tuple[str, int]]()
    for text, values in statements:
        table = text.split()[2]
        if text.startswith("DELETE") or "SELECT" in text:
            sent |= {row for row in deleted if row[0] == table}
            keys = range(values[0], values[1] + 1)
        if text.startswith("DELETE"):
            gone = {(table, key) for key in keys} & there
            deleted, there = deleted | gone, there - gone
        elif "SELECT" in text:
            there = there | {(table, key + 1000) for key in keys if (table, key) in there}
        else:
            row = (table, values[0])
            named = set(text[text.index("(") + 1 : text.index(")")].split(", ")) - {"ID"}
            if row in deleted:
                found.append(((text, values), row not in sent and named == set(COLUMNS[table])))
            deleted, there = deleted - {row}, there | {row}
    return found


@seeds.each("clients of Phoenix", count=2, always=[0, 1])
def test_a_client_asks_for_nothing_that_phoenix_does_otherwise(seed: int) -> None:
    """Of 300 transactions none writes a row in part that it deleted, nor at all once a later statement has read the
    table; rows that are deleted and written again whole there are."""
    told = Told()
    work = PhoenixWorkload(cast(Stack, None), cast(PhoenixClient, told), random.Random(seed), stopping=0)
    right, wrong = 0, []
    while work.number < 300:
        there = {(table, key) for table, rows in work.tables.items() for key in rows}
        work.one()
        for statement, well in _written_again(told.statements, there):
            right += well
            wrong += [] if well else [(work.number, *statement)]
        told.statements.clear()
        if work.number % 10 == 0:
            work.differences()
    assert wrong == []
    assert right > 0


def test_every_index_that_is_read_is_made() -> None:
    """The workload makes each index that it asks through, and asks through every one but that which Phoenix cannot
    read.
    """
    made = {
        words[i + 1] for text in (*DDL, LATE_DDL) if "INDEX" in (words := text.split()) for i in [words.index("INDEX")]
    }
    assert made - {"PX_S_UNCOVERED"} == {index for indexes in INDEXES.values() for index in indexes}
