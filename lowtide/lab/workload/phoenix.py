"""A workload through Apache Phoenix, whose clients stop and are killed, with the model of what SQL must answer.

One client at a time: what is tested is what dead ones leave. Every transaction also writes its number into the log
table, so that what was in doubt at a kill is settled by reading that table afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lowtide.lab.stack import Stack
from lowtide.lab.workload.sql import PhoenixClient, SqlError

Row = dict[str, Any]
Rows = dict[int, Row]

_TRANSACTIONAL = "TRANSACTIONAL=true, TRANSACTION_PROVIDER='OMID'"
#: Two families; salted; immutable; a table whose view has an index of its own; and the log.
DDL = (
    f"CREATE TABLE PX_A (ID BIGINT NOT NULL PRIMARY KEY, A VARCHAR, B VARCHAR, F2.C VARCHAR) {_TRANSACTIONAL}",
    "CREATE INDEX PX_A_COVERED ON PX_A (A) INCLUDE (B, F2.C)",
    f"CREATE TABLE PX_S (ID BIGINT NOT NULL PRIMARY KEY, A VARCHAR, N BIGINT) {_TRANSACTIONAL}, SALT_BUCKETS=3",
    "CREATE INDEX PX_S_COVERED ON PX_S (A) INCLUDE (N)",
    # Written, and not read: through an uncovered index of a salted table Phoenix 5.2.1 itself fails with a null
    # pointer.
    "CREATE UNCOVERED INDEX PX_S_UNCOVERED ON PX_S (A)",
    f"CREATE IMMUTABLE TABLE PX_M (ID BIGINT NOT NULL PRIMARY KEY, A VARCHAR) {_TRANSACTIONAL}, "
    "IMMUTABLE_STORAGE_SCHEME=ONE_CELL_PER_COLUMN, COLUMN_ENCODED_BYTES=0",
    "CREATE INDEX PX_M_BY_A ON PX_M (A)",
    f"CREATE TABLE PX_B (ID BIGINT NOT NULL PRIMARY KEY, KIND VARCHAR, A VARCHAR) {_TRANSACTIONAL}",
    "CREATE VIEW PX_V (K BIGINT) AS SELECT * FROM PX_B WHERE KIND = 'v'",
    "CREATE INDEX PX_V_BY_K ON PX_V (K) INCLUDE (A)",
    f"CREATE TABLE PX_LOG (ID BIGINT NOT NULL PRIMARY KEY, FATE VARCHAR) {_TRANSACTIONAL}",
)
#: Made when half of the transactions are over: index population.
LATE_DDL = "CREATE INDEX PX_A_LATE ON PX_A (B)"
#: What is dropped, with all that hangs on it.
TABLES = ("PX_A", "PX_S", "PX_M", "PX_B", "PX_LOG")
#: The tables that HBase has of all these, with the late index.
PHYSICAL = (
    *("PX_A", "PX_A_COVERED", "PX_A_LATE", "PX_S", "PX_S_COVERED", "PX_S_UNCOVERED", "PX_M", "PX_M_BY_A"),
    *("PX_B", "_IDX_PX_B", "PX_LOG"),
)
COLUMNS = {"PX_A": ("A", "B", "C"), "PX_S": ("A", "N"), "PX_M": ("A",), "PX_V": ("A", "K"), "PX_LOG": ("FATE",)}
#: Ways to read a table that must agree: without and through each index.
INDEXES = {
    "PX_A": ("PX_A_COVERED", "PX_A_LATE"),
    "PX_S": ("PX_S_COVERED",),
    "PX_M": ("PX_M_BY_A",),
    "PX_V": ("PX_V_BY_K",),
    "PX_LOG": (),
}
#: Points of Omid's commit at which a client stops, and whether the transaction counts.
STOPS = {1: False, 4: True, 5: True, 6: True}
KEYS = 40


def make_tables(client: PhoenixClient) -> None:
    """All of them, the late index too, empty."""
    for statement in (*DDL, LATE_DDL):
        client.execute(statement)


def drop_tables(client: PhoenixClient) -> None:
    """None of them is left, nor what hangs on them."""
    for table in TABLES:
        client.execute(f"DROP TABLE IF EXISTS {table} CASCADE")


@dataclass
class Draft:
    """One transaction as it is made: the statements, what the tables hold if it commits, and the view's rows on the way
    there.

    It leaves out upserts that Phoenix 5.2.1 carries out otherwise than SQL says, all of rows that the same
    transaction deleted. While Phoenix's client holds the delete, an upsert takes its place, so that columns which the
    upsert does not name keep what they held before (``MutationState.joinMutationState``). Whatever reads a table
    first sends what the client holds of it (``sendUncommitted``): then the delete is a family tombstone at the
    transaction's timestamp, and hides all that the transaction writes to the row afterwards.
    """

    number: int
    dice: random.Random
    tables: dict[str, Rows]
    statements: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    view: set[tuple[Any, ...]] = field(default_factory=set)
    #: Rows, as table and key, whose delete Phoenix's client still holds, and those whose delete it has sent.
    unsent: set[tuple[str, int]] = field(default_factory=set)
    sent: set[tuple[str, int]] = field(default_factory=set)

    def sql(self, text: str, *values: Any) -> None:
        """One more statement."""
        self.statements.append((text, values))

    def upsert(self, table: str, key: int, **columns: Any) -> None:
        """Some columns of one row; the others stay, or are NULL in a new row. Left out where Phoenix does otherwise."""
        whole = set(columns) == set(COLUMNS[table])
        if (table, key) in self.sent or ((table, key) in self.unsent and not whole):
            return
        self.unsent.discard((table, key))
        names, marks = ", ".join(["ID", *columns]), ", ".join("?" * (1 + len(columns)))
        self.sql(f"UPSERT INTO {table} ({names}) VALUES ({marks})", key, *columns.values())
        empty = dict.fromkeys(COLUMNS[table])
        row = self.tables[table][key] = {**self.tables[table].get(key, empty), **columns}
        if table == "PX_V":
            self.view.add((key, *(row[name] for name in COLUMNS[table])))

    def delete(self, table: str, low: int, high: int) -> None:
        """The rows with keys from *low* to *high*."""
        self.reads(table)
        self.sql(f"DELETE FROM {table} WHERE ID BETWEEN ? AND ?", low, high)
        for key in range(low, high + 1):
            if self.tables[table].pop(key, None) is not None:
                self.unsent.add((table, key))

    def reads(self, table: str) -> None:
        """The next statement reads the table: before that Phoenix's client sends what it holds of it."""
        self.sent |= {row for row in self.unsent if row[0] == table}
        self.unsent -= self.sent

    def text(self) -> str:
        """A value that says where it was written."""
        return f"t{self.number}-{self.dice.randrange(1000)}"


def _write(draft: Draft) -> None:
    table = draft.dice.choice(("PX_A", "PX_A", "PX_S", "PX_V"))
    key = draft.dice.randrange(KEYS)
    columns: dict[str, Any] = {c: draft.text() for c in COLUMNS[table] if c not in ("N", "K")}
    columns |= {c: draft.dice.randrange(10_000) for c in COLUMNS[table] if c in ("N", "K")}
    kind = draft.dice.random()
    if kind < 0.45:
        draft.upsert(table, key, **columns)
    elif kind < 0.6:
        draft.upsert(table, key, A=draft.text())
    elif kind < 0.7:
        draft.upsert(table, key, A=None)
    elif kind < 0.85:
        draft.delete(table, key, key)
    else:
        draft.delete(table, key, key)
        draft.upsert(table, key, **columns)


def _range_delete(draft: Draft) -> None:
    low = draft.dice.randrange(KEYS)
    draft.delete(draft.dice.choice(("PX_A", "PX_S")), low, low + 4)


def _shift(draft: Draft) -> None:
    """UPSERT SELECT within one table: Phoenix checkpoints the transaction, its cells lie above its start."""
    low = draft.dice.randrange(KEYS)
    draft.reads("PX_A")
    draft.sql("UPSERT INTO PX_A (ID, A, B) SELECT ID + 1000, A, B FROM PX_A WHERE ID BETWEEN ? AND ?", low, low + 3)
    rows = draft.tables["PX_A"]
    for key in range(low, low + 4):
        if key in rows:
            empty = dict.fromkeys(COLUMNS["PX_A"])
            rows[key + 1000] = {**rows.get(key + 1000, empty), "A": rows[key]["A"], "B": rows[key]["B"]}


def _append(draft: Draft) -> None:
    # A row of an immutable table is written once.
    draft.upsert("PX_M", draft.number * 100 + len(draft.statements), A=draft.text())


def draft(number: int, dice: random.Random, tables: dict[str, Rows]) -> Draft:
    """A transaction over some tables, on top of what they hold."""
    made = Draft(number, dice, {name: {k: dict(r) for k, r in rows.items()} for name, rows in tables.items()})
    for _ in range(dice.randint(1, 3)):
        dice.choices((_write, _range_delete, _shift, _append), (10, 1, 2, 3))[0](made)
    made.upsert("PX_LOG", number, FATE="committed")
    return made


@dataclass
class Counts:
    """How transactions ended."""

    committed: int = 0
    rolled_back: int = 0
    stopped: int = 0
    killed: int = 0


@dataclass
class PhoenixWorkload:
    """A workload under way; *tables* is what SQL must answer."""

    stack: Stack
    client: PhoenixClient
    dice: random.Random
    tables: dict[str, Rows] = field(default_factory=lambda: {name: {} for name in COLUMNS})
    counts: Counts = field(default_factory=Counts)
    #: By start timestamp, the transactions whose client was killed: whether they count.
    deaths: dict[int, bool] = field(default_factory=dict)
    number: int = 0
    #: The share of transactions that their client leaves at a point of the commit.
    stopping: float = 0.3
    #: Every row that the view ever had by a transaction that committed, also within it: what its index may show.
    ever: set[tuple[Any, ...]] = field(default_factory=set)
    #: How many questions :meth:`differences` asked last.
    answers: int = 0

    def run(self, transactions: int, kills: int) -> None:
        """So many transactions, and as many more that are killed; the late index is made half-way."""
        fatal = set(self.dice.sample(range(transactions), kills))
        for index in range(transactions):
            if index == transactions // 2:
                self.client.execute(LATE_DDL)
            self.one()
            if index in fatal:
                self.killed()

    def _draft(self, session: str) -> Draft:
        self.number += 1
        made = draft(self.number, self.dice, self.tables)
        for text, values in made.statements:
            self.client.execute(text, *values, session=session)
        return made

    def one(self) -> None:
        """One transaction: committed, rolled back, or left at a point of its commit by its client.

        Raises:
            SqlError: Phoenix refused a statement or the commit; the model is as if the transaction had not been.
        """
        fate = self.dice.random()
        made = self._draft("main")
        if fate < 0.1:
            self.client.rollback()
            self.counts.rolled_back += 1
            return
        point = self.dice.choice(list(STOPS)) if fate < 0.1 + self.stopping else None
        stopped = self.client.commit(point=point)
        if stopped:
            self.counts.stopped += 1
        if point is None or STOPS[point]:
            self._take(made)

    def killed(self) -> None:
        """A client killed in its commit, with another one after it; the log table says how the commit went."""
        made = self._draft("main")
        start = self.client.start()
        self.client.commit_and_die("main", self.dice.uniform(0, 0.05))
        self.client.close()
        self.counts.killed += 1
        self.client = self.client.again()
        counts = bool(self.client.query("SELECT FATE FROM PX_LOG WHERE ID = ?", made.number))
        if counts:
            self._take(made)
        self.client.commit()
        self.deaths[start] = counts

    def _take(self, made: Draft) -> None:
        self.tables = made.tables
        self.counts.committed += 1
        self.ever |= made.view

    def _rows(self, table: str) -> list[tuple[Any, ...]]:
        rows = self.tables[table]
        return [(key, *(rows[key][c] for c in COLUMNS[table])) for key in sorted(rows)]

    # -- what SQL must answer

    def differences(self, collected: bool = False, session: str = "") -> list[str]:
        """Every answer of the client that is not the model's: scans without and through each index, counts, and point
        reads. With *session*, of one that began to read when the model was this, and goes on to do so; without, of what
        there is now.

        Unless history GC has *collected* what was deleted, answers that Phoenix 5.2.1 gives wrongly also where no
        client ever died do not count. Through the view's index, which has no snapshot filter, only rows that never were
        committed are too many then: it shows what was deleted or moved since, and committed family tombstones as rows
        of NULLs. And through the late index, which does not hold column C of the other family, a value of C that was
        deleted may be shown.
        """
        questions = list(self._questions())
        self.answers = len(questions)
        asked = (self._differs(sql, wanted, collected, session or "main") for sql, wanted in questions)
        found = [text for text in asked if text is not None]
        if not session:
            self.client.commit()
        return found

    def count(self, table: str) -> int:
        """How many rows a table has, read without index."""
        ((number,),) = self.client.query(f"SELECT /*+ NO_INDEX */ COUNT(*) FROM {table}")
        self.client.commit()
        return int(number)

    def _questions(self) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        for table, columns in COLUMNS.items():
            wanted = self._rows(table)
            names = ", ".join(("ID", *columns))
            for hint in ("NO_INDEX", *(f"INDEX({table} {index})" for index in INDEXES[table])):
                yield f"SELECT /*+ {hint} */ {names} FROM {table} ORDER BY ID", wanted
                if "PX_V_BY_K" not in hint:
                    yield f"SELECT /*+ {hint} */ COUNT(*) FROM {table}", [(len(wanted),)]
            for key in self.dice.sample(range(KEYS), 3):
                yield f"SELECT {names} FROM {table} WHERE ID = {key}", [w for w in wanted if w[0] == key]

    def _differs(self, sql: str, wanted: list[tuple[Any, ...]], collected: bool, session: str) -> str | None:
        try:
            seen = self.client.query(sql, session=session)
        except SqlError as error:
            return f"{sql}: {error}"
        if "PX_A_LATE" in sql and not collected:
            deleted = {row[0] for row in wanted if row[-1] is None}
            seen = [(*row[:-1], None) if row[0] in deleted else row for row in seen]
        missing, more = set(wanted) - set(seen), set(seen) - set(wanted)
        if "PX_V_BY_K" in sql and not collected:
            more = {row for row in more - self.ever if row[1] is not None}
            right = not missing and not more
        else:
            right = seen == wanted
        return None if right else f"{sql}: missing {missing}, too many {more}"
