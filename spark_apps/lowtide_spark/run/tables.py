"""Which tables a run works on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lowtide.errors import NAMES_OF_TABLES
from lowtide.run import misnamed
from lowtide.run.summary import TableReport
from lowtide.tables.inventory import Entry, Kind
from lowtide_spark.run.base import RunBase


@dataclass
class TableChoice(RunBase):
    """The tables of a run."""

    def check_names(self, there: Collection[str]) -> None:
        """Refuse settings that would protect a table and stand under a name that is not *there*, in HBase.

        Raises:
            UsageError: names them (:mod:`lowtide.run.misnamed`).
        """
        if note := misnamed.check(self.config, self.summary.job, there):
            self.summary.notes.append(note)

    def choose(self, inventory: Sequence[Entry]) -> list[Entry]:
        """The tables to work on, out of the inventory.

        One that was asked for by name and is unknown, plain, of unknown standing, disabled, or that nothing may be
        written to although the run would, makes the run red, and so does any of which HBase lets this user write only a
        part; the others are worked on. What is wrong with one of them is its own report's: it stays wrong until a run
        works on that table.
        """
        by_name = {e.table: e for e in inventory}
        names = self.options.table or [e.table for e in inventory if e.kind is Kind.TRANSACTIONAL and e.workable]
        chosen = []
        for name in dict.fromkeys(names):
            entry = by_name.get(name)
            if entry is not None and entry.kind is Kind.TRANSACTIONAL and entry.workable:
                chosen.append(entry)
            elif not self.options.discovered and (entry is None or entry.kind is Kind.PLAIN):
                self.summary.problems.append(refusal(name, entry))  # no run will ever work on it
            elif not self.options.discovered:
                self._refuse_table(name, refusal(name, entry))
            else:
                print(f"{self.summary.job}: {name} is passed over: {refusal(name, entry)}", flush=True)
        denied = [entry for entry in chosen if entry.denied and self.executes(entry.table)]
        for entry in denied:
            self._refuse_table(entry.table, entry.denied)
        chosen = [entry for entry in chosen if entry not in denied]
        self._report_left_alone(inventory, names)
        objections = self._objections(chosen)
        chosen = [entry for entry in chosen if entry.table not in objections]
        self._report_objections(objections, nothing_left=not chosen)
        return chosen

    def _refuse_table(self, name: str, why: str) -> None:
        self.summary.tables.append(TableReport(name, execute=self.executes(name), problems=[why]))

    def _objections(self, entries: Sequence[Entry]) -> dict[str, str]:
        """What stands against acting on these tables, of those on which the run would."""
        also = [self.config.omid.commit_table] if self.summary.job == "orphan_cleanup" else []  # marks are put there
        return self.store.objections({e.table: e.veto for e in entries if self.executes(e.table)}, *also)

    def _report_objections(self, objections: Mapping[str, str], nothing_left: bool) -> None:
        """A note on each table that nothing may be written to, so that it is not read either. Where a person asked for
        it by name, or with ``--execute`` for nothing else, it is a problem.
        """
        named = set() if self.options.discovered else set(self.options.table)
        for table, why in objections.items():
            asked = table in named or (self.options.execute and nothing_left)
            if asked:
                self._refuse_table(table, why)
            else:
                self.summary.tables.append(TableReport(table, left_alone=True, notes=[why]))

    def _report_left_alone(self, inventory: Sequence[Entry], names: Sequence[str]) -> None:
        """A note on each table that is in doubt and that nobody asked for by name; one that was asked for is a
        problem.
        """
        asked = set() if self.options.discovered else set(self.options.table)
        # Without names all tables were meant; those of unknown standing are the collection's to tell of.
        meant = names if self.options.table else [e.table for e in inventory if e.kind is Kind.TRANSACTIONAL]
        for entry in inventory:
            if entry.doubt and entry.enabled and entry.table in meant and entry.table not in asked:
                report = TableReport(entry.table, left_alone=True, notes=[refusal(entry.table, entry)])
                self.summary.tables.append(report)


def refusal(name: str, entry: Entry | None) -> str:
    """Why a job does not work on a table, and what to do; *entry*: of the inventory, None where that lacks it."""
    if entry is None:
        return (
            f"unknown table {name}; it is not in HBase, or is one of Omid's, of Lowtide's own or of another "
            f"oracle's (omid.foreign); {NAMES_OF_TABLES}"
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
