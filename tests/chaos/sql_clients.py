"""Clients of Apache Phoenix in a plan. What they did the judge is told in Omid's terms, from the cells that came: each
is of the transaction that was there alone. So all its rules hold for their tables; and SQL is asked, too.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

from lowtide.lab.workload.phoenix import PHYSICAL, Draft, PhoenixWorkload, draft
from lowtide.lab.workload.sql import PhoenixClient, SqlError
from tests.chaos import sql_plan
from tests.chaos.judge import Judge, Key, is_shadow, standing, start_of, unproved
from tests.chaos.laboratory import Laboratory
from tests.chaos.sql_plan import Fate, Physical

#: A transaction that Omid refuses: it began before what the oracle still remembers.
_CONFLICT = "conflict"
#: Whoever asks what there is now: the writer would be shown what it has not committed.
_ASKER = "asker"


@dataclass
class Phoenix:
    """The writer, those who read, and what SQL must answer them."""

    lab: Laboratory
    client: PhoenixClient
    judge: Judge
    counts: Counter[str]
    work: PhoenixWorkload = field(init=False)
    #: The transaction that waits, and its start timestamp.
    _waits: tuple[Draft, int] | None = None
    #: Sessions that read, with their read points and what they must be answered.
    _readers: list[tuple[str, int, PhoenixWorkload]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.work = PhoenixWorkload(self.lab.stack, self.client, random.Random("sql"))

    def transactions(self, step: sql_plan.Transactions) -> str:
        """Some, one after another; the one that waits is over first."""
        said = [] if self._waits is None else [self._end(Fate.COMMIT)]
        for number in range(step.transactions):
            chance = random.Random(f"sql/{step.seed}/{number}")
            self._begin(chance)
            said.append(self._end(sql_plan.fate(chance)))
        return ", ".join(said)

    def begin(self, step: sql_plan.Begin) -> str:
        """The statements of one; the one that waits is over first."""
        said = "" if self._waits is None else self._end(Fate.COMMIT)
        self._begin(random.Random(f"sql/{step.seed}"))
        return said

    def end(self, step: sql_plan.End) -> str:
        """The one that waits ends."""
        return "nobody waits" if self._waits is None else self._end(step.fate)

    def ask(self, step: sql_plan.Ask) -> str:
        """A session begins to read, and is asked everything."""
        name = f"reader-{step.number}"
        self.client.query("SELECT ID FROM PX_LOG", session=name)
        self._readers.append((name, self.client.start(name), replace(self.work, dice=random.Random(name))))
        return self._answers(f"step {step.number}", *self._readers[-1])

    def ask_again(self, step: sql_plan.AskAgain) -> str:
        """A session that reads is asked everything once more."""
        if not self._readers:
            return "nobody is there"
        return self._answers(f"step {step.number}", *self._readers[step.pick % len(self._readers)])

    def alter(self, step: sql_plan.Alter) -> str | None:
        """A physical table changes, and loses nothing."""
        omid, table = self.lab.omid, step.table
        rows = sorted({cell.row for cell in self.lab.raw(table)})
        if not rows:
            return "it is empty"
        row = rows[step.pick % len(rows)]
        match step.change:
            case Physical.FLUSH:
                omid.flush(table)
            case Physical.COMPACT:
                omid.compact(table, major=True)
            case Physical.SPLIT:
                omid.split(table, row)
                omid.compact(table, major=True)
            case Physical.MOVE:
                omid.move(table, row)
        return None

    def no_faults(self) -> None:
        """Nobody waits any more, and nobody reads."""
        if self._waits is not None:
            self._end(Fate.ROLL_BACK)
        for name, _, _ in self._readers:
            self.client.commit(name)
        self._readers.clear()

    def asked(self, where: str) -> None:
        """What SQL answers now is what committed, wherever that can be asked."""
        if not self._unproved():
            self._judge(where, self.work.differences(session=_ASKER))
            self.client.commit(_ASKER)  # what comes later it is to see

    # -- inside

    def _begin(self, chance: random.Random) -> None:
        self.work.number += 1
        made = draft(self.work.number, chance, self.work.tables)
        for text, values in made.statements:
            self.client.execute(text, *values)
        self._waits = made, self.client.start()
        self._tell(self._waits[1])

    def _end(self, fate: Fate) -> str:
        assert self._waits is not None
        made, start = self._waits
        self._waits = None
        history = self.judge.history
        try:
            if fate is Fate.ROLL_BACK:
                self.client.rollback()
            else:
                self.client.commit(point=sql_plan.POINTS.get(fate))
        except SqlError as error:
            self.client.rollback()
            # Whoever had no oracle, or began before what it remembers, did not commit, and hears so.
            if fate is not Fate.NO_ORACLE and _CONFLICT not in str(error):
                raise
        self._tell(start)
        history.ended.add(start)
        self.counts["transactions of SQL"] += 1
        if (commit := self.client.committed(start)) is None:
            return "none"
        history.committed(start, commit)
        self.counts["transactions of SQL that committed"] += 1
        self.work.tables = made.tables
        self.work.ever |= made.view
        return "committed"

    def _tell(self, start: int) -> None:
        """The judge hears of all cells that came since: nobody else has written."""
        history = self.judge.history
        history.begun.add(start)
        for table in PHYSICAL:
            ever = history.ever[table]
            for cell in self.lab.raw(table):
                key: Key = (cell.row, cell.family, cell.qualifier, cell.timestamp)
                if cell.kind == "put" and not is_shadow(cell.qualifier) and key not in ever:
                    assert start_of(cell.timestamp) == start, f"{table} {key} is of another than {start}"
                    ever[key] = history.tables[table][key] = cell.value

    def _unproved(self) -> bool:
        """Whether anything lacks a proof: until it is cleaned Phoenix answers wrongly, with jobs or without."""
        return any(True for table in PHYSICAL for _ in unproved(standing(self.lab.raw(table))))

    def _answers(self, where: str, name: str, point: int, then: PhoenixWorkload) -> str:
        marks = [self.judge.marks.get(table, -1) for table in PHYSICAL]
        if max(marks) > point:
            return "history that it needs may be gone"
        if self._unproved():
            return "something has no proof"
        self._judge(where, then.differences(session=name))
        return "all of it"

    def _judge(self, where: str, differences: list[str]) -> None:
        self.counts["looks at SQL"] += 1
        self.judge.wrong += [f"{where}: {text[:300]} (5)" for text in differences[:3]]
