"""Which tables a run works on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lowtide.errors import StoreError
from lowtide.run.summary import TableReport
from lowtide.store.gateway import connect, without_bloom_or_cache
from lowtide.tables.inventory import Entry, Kind
from lowtide_spark.run.base import Base


@dataclass
class TableChoice(Base):
    """The tables of a run, and what it mends of Lowtide's own."""

    def choose(self, inventory: Sequence[Entry]) -> list[Entry]:
        """The tables to work on, out of the inventory.

        One that was asked for by name and is unknown, plain, of unknown standing or disabled makes the run red; the
        others are worked on.
        """
        by_name = {e.table: e for e in inventory}
        names = self.options.table or [e.table for e in inventory if e.kind is Kind.TRANSACTIONAL and e.workable]
        chosen = []
        for name in dict.fromkeys(names):
            entry = by_name.get(name)
            if entry is not None and entry.kind is Kind.TRANSACTIONAL and entry.workable:
                chosen.append(entry)
            elif not self.options.discovered:
                self.summary.problems.append(_refusal(name, entry))
            else:
                print(f"{self.summary.job}: {name} is passed over: {_refusal(name, entry)}", flush=True)
        self._report_left_alone(inventory, names)
        return chosen

    def _report_left_alone(self, inventory: Sequence[Entry], names: Sequence[str]) -> None:
        """A note on each table that is in doubt and that nobody asked for by name; one that was asked for is a
        problem.
        """
        asked = set() if self.options.discovered else set(self.options.table)
        # Without names all tables were meant; those of unknown standing are the collection's to tell of.
        meant = names if self.options.table else [e.table for e in inventory if e.kind is Kind.TRANSACTIONAL]
        for entry in inventory:
            if entry.doubt and entry.enabled and entry.table in meant and entry.table not in asked:
                self.summary.tables.append(TableReport(entry.table, notes=[_refusal(entry.table, entry)]))

    def mend_tables(self, names: Iterable[str]) -> list[str]:
        """Give tables of our own that the gateway made by its defaults what these leave out; notes on what was done.
        Those that are right cost a read.
        """
        with connect(self.config.hbase.thrift) as connection:
            there = connection.tables()
            slow = {name: without_bloom_or_cache(connection, name) for name in names if name.encode() in there}
        notes = []
        for name, families in slow.items():
            if not families:
                continue
            try:
                self.store.give_bloom_and_cache(name, families)
            except StoreError as error:
                ddl = ", ".join(f"{{NAME => '{f}', BLOOMFILTER => 'ROW', BLOCKCACHE => 'true'}}" for f in families)
                notes.append(
                    f"{name} has no bloom filter or no block cache, so that reads of it are slow, and {error}; "
                    "in HBase's shell: "
                    f"alter '{name}', {ddl}"
                )
            else:
                notes.append(
                    f"{name} was made without bloom filter or block cache; it has both now, its files as they "
                    "are written"
                )
        return notes


def _refusal(name: str, entry: Entry | None) -> str:
    if entry is None:
        return (
            f"unknown table {name}; it is not in HBase, or is one of Omid's, of Lowtide's own or of another "
            "oracle's (omid.foreign)"
        )
    if not entry.enabled:
        return f"table {name} is disabled; enable it (it keeps the prune bound back until it is cleaned)"
    if entry.doubt:
        return f"table {name} is left alone, and keeps the prune bound back: {entry.doubt}"
    if entry.kind is Kind.UNMARKED:
        return (
            f"table {name} has shadow cells but no mark of Omid; say in the configuration what it is: "
            f"tables: {{{name}: {{kind: transactional}}}} or plain"
        )
    return (
        f"table {name} bears no marks of Omid and no shadow cells; if it is transactional all the same, say so: "
        f"tables: {{{name}: {{kind: transactional}}}}"
    )
