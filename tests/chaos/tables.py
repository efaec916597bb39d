"""The tables of a plan: what is done to them, and what they are by that."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress

from lowtide.errors import UsageError
from lowtide.lab.workload.client import ALL_VERSIONS, COMMIT_TABLE
from lowtide.lab.workload.phoenix import PHYSICAL
from tests.chaos.judge import (
    Judge,
    Key,
    Raw,
    commit_entries,
    is_shadow,
    journal_entries,
    shadow,
    standing,
    start_of,
    unproved,
)
from tests.chaos.laboratory import FAMILIES, JOURNAL, NO_COMPACTIONS, STATE, TWO_AT_A_TIME, Laboratory, row
from tests.chaos.nemeses import Kind
from tests.chaos.steps import COMING, ROWS, TABLES, Alter, Change, Table
from tests.chaos.striking import Strikes


class Tables:
    """Those that are there, and what became of each. With *phoenix* its tables are there too, all the time."""

    def __init__(self, lab: Laboratory, judge: Judge, strikes: Strikes, *, phoenix: bool) -> None:
        self._lab = lab
        self._judge = judge
        self._strikes = strikes
        self.there = set(TABLES)
        #: The tables that HBase has of Phoenix's.
        self.physical = PHYSICAL if phoenix else ()
        #: What the disabled ones have.
        self.disabled: dict[str, Raw] = {}
        self.vetoed: set[str] = set()
        self.hidden: set[str] = set()
        #: Those that a person has yet to confirm.
        self.imported: set[str] = set()
        #: The shadow cells that were garbled, and what they were.
        self.garbled: dict[str, dict[Key, bytes]] = {}
        #: Those that take no writes; the journal may be one.
        self.frozen: set[str] = set()
        #: Those whose servers may lose what they acknowledged.
        self.loose: set[str] = set()
        #: Those of which a family has no mark.
        self.unmarked: set[str] = set()
        #: Whether the journal has lost what it had, and nobody has said yet that it is to go on without.
        self.journal_lost = False
        #: The transactions that it had when somebody emptied it.
        self._emptied: set[int] = set()
        #: Whether a plain table has the name of the one that comes and goes.
        self._plain = False
        self._compactor: set[str] = set()
        #: What the descriptors say, in the HBase snapshots and now.
        self._said: tuple[tuple[set[str], set[str]], ...]
        self._said = (set(), self.vetoed), (set(), self.hidden), (set(), self.unmarked), (set(), self.loose)
        #: What the HBase snapshots have, as one who exports them sees it.
        self._exports: dict[str, dict[Key, bytes]] = {}

    def every(self) -> list[str]:
        """Their names, Phoenix's among them."""
        return sorted({*self.there, *self.physical})

    def raw(self) -> dict[str, Raw]:
        """All cells of each. A disabled table has what it had."""
        return {str(t): self.disabled[t] if t in self.disabled else self._lab.raw(t) for t in self.every()}

    def alter(self, step: Alter, *, written: bool) -> str | None:
        """Carry out a change; why not, if not. *written*: clients are in the middle of something."""
        table = step.table
        if step.change in (Change.DEAFEN, Change.HEAR, Change.LOSE):  # whatever becomes of the table
            return self._CHANGES[step.change](self, table, b"")
        if step.change is Change.UNSNAP:  # whatever became of the table; what was exported of it is there still
            self._forget_snapshot(table)
            return None
        if self._plain and (step.change is Change.RENAME or (table is Table.C and step.change in COMING)):
            return self._drop_plain() if step.change is Change.DROP else "the name is a plain one's"
        if (table in self.there) is (step.change in (Change.MAKE, Change.COPY, Change.PLAIN)):
            return f"it is {'' if table in self.there else 'not '}there"
        if table in self.disabled:
            if step.change is not Change.ENABLE:
                return "it is disabled"
            self._enable(table)
            return None
        if step.change in (Change.DROP, Change.RENAME) and written:
            return "somebody writes to it"
        if table in self.garbled and step.change is not Change.GARBLE:
            return "it is garbled"
        if table in self.frozen and step.change is not Change.THAW:
            return "it takes no writes"
        change = self._CHANGES.get(step.change)
        return None if change is None else change(self, table, row(step.key).encode())

    def unheal(self, table: Table, bare: Collection[Key]) -> str:
        """Of cells that were *bare* none has its shadow cell any more, nor anything that says so."""
        there = standing(self.raw().get(table, frozenset()))
        lost = [shadow(key) for key in bare if shadow(key) in there] if table not in self.disabled else []
        for key in sorted(lost):
            self._lab.omid.delete_version(table, *key)
        if lost:  # or it would hide what is written there again
            self._flush(table, b"")
            self._compact(table, b"")
        return f"{len(lost)} are bare again"

    def make_fit(self) -> None:
        """No client writes to a disabled table: it would wait; nor to one that takes no writes; nor reads what is of no
        form that it knows.
        """
        for table in list(self.disabled):
            self._enable(table)
        for table in sorted(self.frozen):
            self._thaw(table, b"")
        for table, cells in self.garbled.items():
            for key, value in cells.items():
                self._lab.omid.put(table, *key, value)
        self.garbled.clear()

    def show_all(self) -> None:
        """None hides cells any more, all have their marks, and none is on servers that lose anything."""
        for table in sorted(self.loose):
            self._make_firm(Table(table), b"")
        for table in sorted(self.hidden):
            self._show(Table(table), b"")
        for table in sorted(self.unmarked):
            self._mark(Table(table), b"")

    def _enable(self, table: str) -> None:
        self._lab.omid.enable(table)
        del self.disabled[table]

    # -- the changes

    def _flush(self, table: Table, _: bytes) -> None:
        self._lab.omid.flush(table)

    def _compact(self, table: Table, _: bytes) -> None:
        self._lab.omid.compact(table, major=True)
        if table in self._compactor:
            self._judge.compacted(table, self._lab.omid.watermark())

    def _give_compactor(self, table: Table, _: bytes) -> None:
        self._lab.omid.attach_omid_compactor(table)
        self._compactor.add(table)

    def _compact_newer(self, table: Table, _: bytes) -> None:
        """Two files of each family and region. Of those that follow each other HBase takes the smallest: not the
        oldest, once all were compacted.
        """
        self._lab.omid.flush(table)
        self._lab.omid.set(table, **TWO_AT_A_TIME)
        try:
            self._lab.omid.compact(table, major=False)
        finally:
            self._lab.omid.set(table, **NO_COMPACTIONS)
        if table in self._compactor:
            self._judge.compacted(table, self._lab.omid.watermark())

    def _freeze(self, table: str, _: bytes) -> None:
        self._lab.omid.set(table, READONLY="true")
        self.frozen.add(table)

    def _thaw(self, table: str, _: bytes) -> None:
        if table in self.frozen:
            self._lab.omid.set(table, READONLY="false")
            self.frozen.discard(table)

    def _deafen(self, _: Table, key: bytes) -> str | None:
        if JOURNAL not in self._lab.omid.tables():
            return "there is none yet"
        self._freeze(JOURNAL, key)
        return None

    def _hear(self, _: Table, key: bytes) -> None:
        self._thaw(JOURNAL, key)

    def _lose(self, _: Table, key: bytes) -> str | None:
        if JOURNAL not in self._lab.omid.tables():
            return "there is none yet"
        self._hear(Table.A, key)
        self._emptied |= journal_entries(self._lab.journal()).keys()
        self._lab.omid.truncate(JOURNAL)
        self.journal_lost = True
        self._untell()
        return None

    def _untell(self) -> None:
        """Of what committed, and neither a shadow cell nor an entry here or in the journal says so, nothing need tell,
        where the journal may let go of what it has, or somebody has emptied it; elsewhere Lowtide has lost it.
        """
        if not (self._judge.sweeps or self._emptied):
            return
        proofs = commit_entries(self._lab.raw(COMMIT_TABLE)).keys() | journal_entries(self._lab.journal()).keys()
        for raw in self.raw().values():
            cells = standing(raw)
            if not self._judge.sweeps:
                cells = {key: value for key, value in cells.items() if start_of(key[3]) in self._emptied}
            self._judge.history.untold_where(cells, proofs)

    def _loosen(self, table: Table, _: bytes) -> None:
        self._lab.omid.set(table, DURABILITY="ASYNC_WAL")
        self.loose.add(table)

    def _make_firm(self, table: Table, _: bytes) -> None:
        if table in self.loose:
            self._lab.omid.set(table, DURABILITY="USE_DEFAULT")
            self.loose.discard(table)

    def _unmark(self, table: Table, _: bytes) -> None:
        self._lab.mark(table, FAMILIES[-1], on=False)
        self.unmarked.add(table)

    def _bare(self, table: Table, _: bytes) -> None:
        for family in FAMILIES:
            self._lab.mark(table, family, on=False)
        self.unmarked.add(table)

    def _mark(self, table: Table, _: bytes) -> None:
        if table in self.unmarked:
            for family in FAMILIES:
                self._lab.mark(table, family, on=True)
            self.unmarked.discard(table)

    def _garble(self, table: Table, key: bytes) -> str | None:
        """All shadow cells here of a transaction that they alone prove: of the first that has any in the row or after
        it, or else before; of one with cells elsewhere that lack theirs, if there is any.
        """
        torn = self._judge.history.torn & self._judge.history.commits.keys()
        cells = {k: v for k, v in standing(self._lab.raw(table)).items() if is_shadow(k[2]) and start_of(k[3]) in torn}
        known = self.garbled.get(table, {})
        others = (standing(raw) for other, raw in self.raw().items() if other != table)
        waiting = {start_of(k[3]) for each in others for k in unproved(each)}
        left = (k for k in cells if k not in known)
        chosen = min(left, key=lambda k: (start_of(k[3]) not in waiting, k[0] < key, k), default=None)
        if chosen is None:
            return "there is none"
        for each, value in cells.items():
            if start_of(each[3]) == start_of(chosen[3]) and each not in known:
                self.garbled.setdefault(table, {})[each] = value
                self._lab.omid.put(table, *each, b"\x00\x01")
        return None

    def _rename(self, table: Table, _: bytes) -> str | None:
        """As HBase renames tables: by an HBase snapshot, a clone, and the old one goes."""
        if table is Table.C or Table.C in self.there:
            return "the name is taken"
        self._take_snapshot(table, b"")
        self._lab.omid.clone(_snapshot(table), Table.C)
        self._judge.history.copied(table, Table.C)
        self._as_then(table, Table.C)
        self._drop(table, b"")
        self.there.add(Table.C)
        self.imported.add(Table.C)
        self._judge.came_back.add(Table.C)
        return None

    def _compact_some(self, table: Table, _: bytes) -> None:
        """Two files are enough for once; HBase takes those that it finds worth it, and drops no delete marker."""
        self._lab.omid.set(table, **dict.fromkeys(NO_COMPACTIONS, "2"))
        try:
            self._lab.omid.flush(table)
            self._lab.omid.compact(table, major=False)
        finally:
            self._lab.omid.set(table, **NO_COMPACTIONS)

    def _split(self, table: Table, key: bytes) -> None:
        self._lab.omid.split(table, key)
        self._compact(table, key)  # HBase would by itself, at some time: daughters refer to their parent's files

    def _merge(self, table: Table, key: bytes) -> None:
        self._compact(table, key)
        self._lab.omid.merge(table, key)
        self._compact(table, key)

    def _move(self, table: Table, key: bytes) -> None:
        self._lab.omid.move(table, key)

    def _add_family(self, table: Table, key: bytes) -> None:
        self._lab.omid.add_family(table, f"c{key.decode()}")

    def _disable(self, table: Table, _: bytes) -> None:
        self._lab.omid.flush(table)
        self.disabled[table] = self._lab.raw(table)
        self._lab.omid.disable(table)

    def _truncate(self, table: Table, _: bytes) -> None:
        self._lab.omid.truncate(table)
        self._judge.history.emptied(table)

    def _have_one_alone(self, table: Table, key: bytes) -> None:
        self._truncate(table, key)
        start, history = self._lab.omid.begin(), self._judge.history
        cell = (key, FAMILIES[0].encode(), b"p", start)
        self._lab.omid.put(table, *cell, b"alone")
        history.abandoned(start, table, cell, b"alone")
        history.committed(start, self._lab.omid.decide(start))

    def _make_anew(self, table: Table, _: bytes) -> None:
        self._lab.omid.drop(table)
        self._lab.make(table)
        self._judge.history.emptied(table)
        for said in (self.vetoed, self.hidden, self.unmarked, self.loose):
            said.discard(table)

    def _make(self, table: Table, _: bytes) -> None:
        self._lab.make(table)
        self.there.add(table)

    def _copy(self, table: Table, key: bytes) -> str | None:
        source = Table.A if key < row(ROWS // 2).encode() else Table.B
        history = self._judge.history
        told = history.copyable(source) or history.left_to_a_person_elsewhere(source)
        if source not in history.standing or not told:
            return "there is none that tells"
        self._lab.omid.clone(_snapshot(source), table)
        self.there.add(table)
        self.imported.add(table)
        history.copied(source, table)
        self._judge.came_back.add(table)
        self._as_then(source, table)
        return None

    def _drop(self, table: Table, _: bytes) -> None:
        self._lab.omid.drop(table)
        self.there.discard(table)
        self._judge.history.emptied(table)
        for said in (self.vetoed, self.hidden, self.unmarked, self.loose, self.imported, self._judge.came_back):
            said.discard(table)
        self._judge.dropped(table)

    def _make_plain(self, table: Table, _: bytes) -> None:
        """No transaction writes to it, and none is to: for clients it is not there."""
        self._lab.omid.create(table, ("plain",), omid_enabled=False)
        self._plain = True

    def _drop_plain(self) -> None:
        self._lab.omid.drop(Table.C)
        self._plain = False

    def _load(self, table: Table, _: bytes) -> str | None:
        """As a backup is put back into a table that is there, with what docs/safety.md asks of who does so."""
        if not self._judge.history.loadable(table, self._lab.raw(table)):
            return "there is none that tells"
        self._strikes.put_back(Kind.GATEWAY)  # a person says so through it
        self._lab.omid.bulk_load(table, [(*key, value) for key, value in self._exports[table].items()])
        self._judge.history.loaded(table)
        self._untell()
        self._judge.came_back.add(table)
        for said in (self._lab.forget, self._lab.confirm):
            with suppress(UsageError):  # nothing is recorded of it yet
                said(table)
        self._judge.recorded("a bulk load", "a person", self._lab.raw(STATE))
        return None

    def _hide(self, table: Table, key: bytes) -> None:
        """By a setting that takes nothing away from what is there."""
        few = key < row(ROWS // 2).encode()
        self._lab.omid.set(table, families={"VERSIONS": "1000"} if few else {"KEEP_DELETED_CELLS": "TRUE"})
        self.hidden.add(table)

    def _show(self, table: Table, _: bytes) -> None:
        self._lab.omid.set(table, families={"VERSIONS": str(ALL_VERSIONS), "KEEP_DELETED_CELLS": "FALSE"})
        self.hidden.discard(table)

    def _take_snapshot(self, table: Table, _: bytes) -> None:
        self._forget_snapshot(table)
        self._lab.omid.snapshot(table, _snapshot(table))
        self._judge.history.kept(table)
        self._exports[table] = standing(self._lab.raw(table))
        for then, now in self._said:
            then.discard(table)
            then |= now & {table}

    def _restore(self, table: Table, _: bytes) -> str | None:
        return self._bring_back(table, lambda: self._lab.omid.restore(_snapshot(table)))

    def _clone(self, table: Table, _: bytes) -> str | None:
        def cloned() -> None:
            self._lab.omid.drop(table)
            self._lab.omid.clone(_snapshot(table), table)

        return self._bring_back(table, cloned)

    _CHANGES: dict[Change, Callable] = {  # type: ignore[type-arg]  # noqa: RUF012
        Change.FLUSH: _flush,
        Change.COMPACT: _compact,
        Change.MINOR: _compact_some,
        Change.SPLIT: _split,
        Change.MERGE: _merge,
        Change.MOVE: _move,
        Change.FAMILY: _add_family,
        Change.DISABLE: _disable,
        Change.TRUNCATE: _truncate,
        Change.ANEW: _make_anew,
        Change.SNAPSHOT: _take_snapshot,
        Change.RESTORE: _restore,
        Change.CLONE: _clone,
        Change.HIDE: _hide,
        Change.SHOW: _show,
        Change.MAKE: _make,
        Change.COPY: _copy,
        Change.DROP: _drop,
        Change.PLAIN: _make_plain,
        Change.COMPACTOR: _give_compactor,
        Change.LOAD: _load,
        Change.UNMARK: _unmark,
        Change.BARE: _bare,
        Change.ALONE: _have_one_alone,
        Change.MARK: _mark,
        Change.GARBLE: _garble,
        Change.RENAME: _rename,
        Change.NEWER: _compact_newer,
        Change.FREEZE: _freeze,
        Change.THAW: _thaw,
        Change.DEAFEN: _deafen,
        Change.HEAR: _hear,
        Change.LOSE: _lose,
        Change.LOOSE: _loosen,
        Change.FIRM: _make_firm,
    }

    def _bring_back(self, table: Table, bring: Callable[[], None]) -> str | None:
        history = self._judge.history
        if table not in history.standing or not (history.restorable(table) or history.left_to_a_person(table)):
            return "there is none that tells"
        bring()
        self.there.add(table)
        self._as_then(table, table)
        history.restored(table)
        self._judge.came_back.add(table)
        self._untell()
        return None

    def _as_then(self, source: Table, table: Table) -> None:
        """The HBase snapshot has what the owner said then, and how the families kept cells."""
        for then, now in self._said:
            now.discard(table)
            if source in then:
                now.add(table)

    def _forget_snapshot(self, table: str) -> None:
        if _snapshot(table) in self._lab.omid.snapshots():
            self._lab.omid.delete_snapshot(_snapshot(table))
        self._judge.history.standing.discard(table)


def _snapshot(table: str) -> str:
    return f"of-{table}"
