"""The ledger's column expressions against the rules for one row, on rows that clients leave and on such that nobody can
have left.
"""

from __future__ import annotations

import copy
import csv
import gzip
import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lowtide_spark.ledger import dataframes, listing, repair
from lowtide_spark.ledger.balances import by_user, write_csv
from lowtide_spark.ledger.settled_mark import when
from pyspark.sql import SparkSession

from lowtide.ledger import steps
from lowtide.ledger.model import MAX_MILLIS, ContradictionError, Table, parse_transaction, user_id
from lowtide.run.summary import Summary, TableReport
from tests import seeds
from tests.spark.folder_kit import Runs
from tests.unit.ledger_memory import ISSUER, Memory, opened, request, transfer
from tests.unit.test_ledger_steps import until

COLUMNS = dataframes.TRANSACTION_COLUMNS


def left(seed: int) -> Memory:
    """Transfers of three users, stopped at some write or not at all."""
    chance = random.Random(seed)
    names = ("ann", "bob", "cid")
    memory = opened(*names, money=20)
    for nonce in range(1, 60):
        sender, recipient = chance.sample(names, 2)
        asked = request(sender, recipient, chance.randint(1, 30), chance.choice((0, 1_000, 10**14)), nonce)
        try:
            until(memory, transfer(asked), chance.choice((2, 3, 4, 5, 8, 11, 99)), applied=True)
        except steps.UsageError:
            continue
    until(memory, transfer(request("issuer", "ann", 1, nonce=99)), 2 + seed % 2, applied=True)
    return memory


def spoilt(id: str, cells: dict[str, str], chance: random.Random) -> tuple[str, dict[str, str]]:
    """The row with one thing wrong, or perhaps not: a column gone, taken from elsewhere, or a part of its request or
    decision changed.
    """
    cells = dict(cells)
    name = chance.choice(("key", *COLUMNS))
    junk = [
        "",
        "-5",
        "0",
        "05",
        "5\n",
        " 5",
        "five",
        str(2**63),
        "finished",
        "dropped",
        "initial",
        id,
        user_id("bob"),
        user_id("ann"),
    ]
    if name == "key":
        return chance.choice([id[:-1], id[:-12] + "0" * 12, user_id("eve") + id[40:], id + "0"]), cells
    if name in ("request", "decision") and name in cells and chance.random() < 0.8:
        value = json.loads(cells[name])
        part = chance.choice(list(value))
        changed = chance.choice(
            [*junk, -5, 0, 5, 2**63 - 1, 2**63, True, None, 1.5, 10**15, [], user_id("cid"), 'no"quote']
        )
        if chance.random() < 0.2:
            del value[part]
        else:
            value[part] = changed
        # The columns that follow from it say the same: a row that is wrong throughout.
        if part in cells and chance.random() < 0.7:
            cells[part] = str(changed)
        text = json.dumps(value, separators=(",", ":"), sort_keys=True)
        cells[name] = text + chance.choice(["", "", "", " ", "\n"])
    elif chance.random() < 0.4:
        cells.pop(name, None)
    else:
        cells[name] = chance.choice(junk)
    return id, cells


def parses(id: str, cells: dict[str, str]) -> bool:
    try:
        parse_transaction(id, cells)
    except ContradictionError:
        return False
    return True


@seeds.each("spoilt rows", always=[1])
def test_what_the_columns_clear_the_rules_take_too(spark: SparkSession, seed: int) -> None:
    """No row passes unseen that :func:`parse_transaction` refuses; every row that clients leave passes."""
    chance = random.Random(seed)
    whole = [row for n in range(5) for row in left(seed + n).rows[Table.TRANSACTIONS].items()]
    assert {cells.get("state") for _, cells in whole} >= {
        None,
        "initial",
        "in progress",
        "committed",
        "finished",
        "dropped",
    }
    rows = whole + [spoilt(id, cells, chance) for id, cells in whole for _ in range(20)]
    data: list[Any] = [(number, id, *(cells.get(name) for name in COLUMNS)) for number, (id, cells) in enumerate(rows)]
    frame = spark.createDataFrame(
        data, ", ".join(f"`{name}` string" for name in ("key", *COLUMNS)).join(("number int, ", ""))
    )
    cleared = {row.number for row in frame.where(dataframes.orderly()).select("number").collect()}
    assert cleared >= set(range(len(whole)))
    assert [rows[number] for number in cleared if not parses(*rows[number])] == []
    assert sum(not parses(*row) for row in rows) > 1000


def test_money_that_moves_backwards_is_not_balanced(spark: SparkSession) -> None:
    """A transaction of a negative amount whose records agree with it is not taken for one that moved its amount."""
    ann, bob = user_id("ann"), user_id("bob")
    transactions = spark.createDataFrame(
        [(f"{n}", ann, bob, amount) for n, amount in enumerate(("5", "-5"))],
        "key string, sender string, recipient string, amount string",
    )
    records = spark.createDataFrame(
        [
            (f"{n}", user, moved, "finished")
            for n, sign in enumerate((1, -1))
            for user, moved in ((ann, str(-5 * sign)), (bob, str(5 * sign)))
        ],
        "transaction string, user string, amount string, state string",
    )
    sides = dataframes.settled_sides(transactions, records)
    assert {row.key: row.good for row in sides.select("key", dataframes.balanced().alias("good")).collect()} == {
        "0": True,
        "1": False,
    }


def test_records_are_due_or_odd(spark: SparkSession) -> None:
    """Of each user: the sum by the model's query, and how many of its records are not what their transactions ask
    for.
    """
    ann, bob, eve = (user_id(name) for name in ("ann", "bob", "eve"))
    transactions = spark.createDataFrame(
        [
            ("right", ann, bob, "5", "finished"),
            ("wrong amount", ann, bob, "7", "finished"),
            ("backwards", ann, bob, "-3", "finished"),
            ("open", ann, bob, "100", "committed"),
        ],
        "key string, sender string, recipient string, amount string, state string",
    )
    records = spark.createDataFrame(
        [
            ("right", ann, "-5", "finished"),
            ("right", bob, "5", "finished"),
            ("right", eve, "5", "finished"),
            ("wrong amount", ann, "-7", "finished"),
            ("wrong amount", bob, "70", "finished"),
            ("wrong amount", eve, "7", "pending"),
            ("backwards", ann, "3", "finished"),
            ("backwards", bob, "no number", "finished"),
            ("open", ann, "-100", "finished"),
        ],
        "transaction string, user string, amount string, state string",
    )
    rows = by_user(transactions, records).collect()
    found = {row.user: (int(row.balance), row.due, row.odd) for row in rows}
    assert found == {ann: (-9, 2, 1), bob: (75, 1, 2), eve: (5, 0, 1)}


def test_bytes_that_are_no_text_do_not_end_a_run(spark: SparkSession) -> None:
    """They become text that no rule takes."""
    (row,) = spark.sql("select X'35ff' as cell").select(dataframes._text("cell").alias("text")).collect()
    assert row.text == "5\ufffd"


def test_a_time_that_no_calendar_reaches_does_not_end_a_run() -> None:
    """A client's clock may say anything that fits the index; what is told of it is a text all the same."""
    assert when(MAX_MILLIS) == f"{MAX_MILLIS} ms"
    assert when(0) == "1970-01-01T00:00:00+00:00"


@pytest.mark.parametrize("execute", [False, True])
def test_each_transaction_is_listed_once_before_it_is_brought_to_its_end(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, execute: bool
) -> None:
    """However many there are; a dry run changes nothing, and its second try replaces the first's list. What contradicts
    itself is told once, by the repair where there is one.
    """
    memory = left(3)
    until(memory, transfer(request("ann", "bob", 1, nonce=98)), 1, applied=True)
    spoiled = memory.entries()[0]
    memory.rows[Table.TRANSACTIONS][spoiled.id]["amount"] = "0"
    entries = [entry for entry in memory.entries() if entry.id != spoiled.id]
    contradictions: list[str] = []

    def each(items: Any, program: Any, done: Any, _: str, contradicts: Any = None) -> None:
        for item in items:
            try:
                done(steps.run(program(item), memory))
            except ContradictionError as error:
                (contradicts or contradictions.append)(str(error))

    run = runs("r")
    run.options = SimpleNamespace(list=True)
    run.summary = Summary("transaction_repair", "r", execute)
    frames = SimpleNamespace(name=lambda table: f"ledger_{table}")
    books: Any = SimpleNamespace(run=run, each=each, frames=frames, issuer=ISSUER, report=TableReport("t"))
    monkeypatch.setattr(listing, "AT_ONCE", 3)
    before = copy.deepcopy(memory.rows)
    for _ in range(1 if execute else 2):
        contradictions.clear()
        repair._listed(books, iter([*entries, spoiled]))
    folder = Path(run.summary.listing.folder)
    texts = [gzip.decompress(file.read_bytes()).decode() for file in folder.glob("*/*.json.gz")]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    told = {line["row"]: line["action"] for line in lines}
    assert len(told) == len(lines) == len(entries) > 7
    assert {name.name for name in folder.iterdir()} == {"ledger_transactions", "ledger_open_transactions"}
    assert len(contradictions) == 1
    assert set(told.values()) == {"finish", "drop", "remove"}
    if execute:
        ended = {"finished": "finish", "dropped": "drop"}
        rows = memory.rows[Table.TRANSACTIONS]
        assert {id: ended[rows[id]["state"]] for id in rows if id in told} == {
            row: action for row, action in told.items() if action != "remove"
        }
    else:
        assert memory.rows == before


def test_every_name_is_read_back_from_the_csv_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    """By a reader of RFC 4180, such as Python's: a name gives its user no other balance, and is no row of its own."""
    names = [
        'eve",1000000,"',
        '"',
        'a\\"b',
        "c\\",
        "=SUM(A1:A9)",
        "# no comment",
        "two\nlines",
        'and\r\n"more",1\n',
        " blanks ",
        "Zoë\u2028,",
        "",
    ]
    frame = spark.createDataFrame(
        [(f"{n:040x}", name, n) for n, name in enumerate(names)], "user string, nickname string, balance int"
    )
    write_csv(frame.orderBy("user"), str(tmp_path / "csv"))
    (file,) = (tmp_path / "csv").glob("*.csv")
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.reader(lines))
    assert rows[0] == ["user", "nickname", "balance"]
    assert rows[1:] == [[f"{n:040x}", name, str(n)] for n, name in enumerate(names)]
