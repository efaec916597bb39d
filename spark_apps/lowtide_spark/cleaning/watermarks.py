"""Watermark collection: region watermarks, the prune bound, and what holds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta

from lowtide.cleaning.facts import Blocker, Region, RegionMark, by_reason, prune_bound, region_watermark, valid
from lowtide.errors import StoreError
from lowtide.history.mark import at_most
from lowtide.run.summary import TableReport
from lowtide.store.records import Bound, TableState
from lowtide.store.state import StateStore
from lowtide.tables import consent
from lowtide.tables.consent import Pause
from lowtide.tables.inventory import Entry, Kind
from lowtide.values.clock import millis
from lowtide.values.skew import MARGIN
from lowtide_spark.frames.inventory import take_inventory, transactional
from lowtide_spark.run import own_tables
from lowtide_spark.run.context import Run

#: How long past runs and bounds are kept for the page, at least.
KEEP_RECORDS = timedelta(days=90)
_DAY = timedelta(days=1)


def collect(run: Run) -> None:
    """The job ``watermark_collection``.

    Reads no data; with ``--execute`` it publishes what it found and logs the bound.
    """
    watermark = run.read_low_watermark()
    inventory = take_inventory(run.store)
    run.check_names([e.table for e in inventory])
    marks, blocked = region_marks(run, inventory)
    sizes = Counter[str]()
    for mark in marks:
        sizes[mark.table] += mark.store_bytes
    inventory = [replace(e, bytes=sizes[e.table]) for e in inventory]
    bound, blockers = prune_bound(marks, blocked, watermark)
    run.summary.bound = bound
    run.summary.blockers = by_reason(blockers)
    run.phase("collect")
    wanted = run.summary.execute
    run.summary.execute = wanted and run.permitted(run.config.state.table)
    if wanted and not run.summary.execute:
        # What comes to the store while jobs wait must be known for what it is when they go on; nothing else is written.
        records = run.state()
        _list(run, _with_compactors(inventory, _had_compactor(records)))
    if run.summary.execute:
        _publish(run, inventory, marks, bound)
        state = run.config.state.table
        if notes := own_tables.mend(run, [state]):
            run.summary.tables.append(TableReport(state, execute=True, notes=notes))
        run.phase("record")


def follow_omids_compactor(run: Run, inventory: Sequence[Entry]) -> list[Entry]:
    """Raise the ancient history mark of tables on which Omid's compactor is, or was when they were listed last.

    Of the versions that began at or below the low watermark it keeps the one that began last, which may have
    committed later, though before now. What it leaves can be read from then on. Now is no timestamp where the oracle
    counts: there such a table stays one that the compactor was on, and nothing is read of it at a read point.

    Returns:
        the inventory to publish.
    """
    state = run.state()
    known = _had_compactor(state)
    if not run.world_clock:
        return _with_compactors(inventory, known)
    collapsed = [e.table for e in inventory if e.compactor or e.table in known]
    if collapsed:
        # The time after the tables were listed: until then it may have been at work, and the oracle's clock may
        # be ahead.
        mark = at_most(max(run.clock.timestamp(state.server_time() + MARGIN), run.summary.low_watermark))
        for table in collapsed:
            state.raise_mark(table, mark, run.request.run)
    return list(inventory)


def _had_compactor(state: StateStore) -> set[str]:
    """The tables on which Omid's compactor was when they were listed last."""
    return {e.table for e in state.inventory() if e.compactor}


def _with_compactors(inventory: Sequence[Entry], known: Collection[str]) -> list[Entry]:
    """*inventory*, in which a table of *known* still counts as one that the compactor is on."""
    return [replace(e, compactor=e.compactor or e.table in known) for e in inventory]


def region_marks(run: Run, inventory: Sequence[Entry]) -> tuple[list[RegionMark], list[Blocker]]:
    """The watermark of every region of every transactional table as listed now, and the tables that block as a whole.

    Disabled tables block at what is recorded of them: their cells cannot be read, and they may come back.
    """
    marks: list[RegionMark] = []
    blocked: list[Blocker] = []
    pauses = run.state().pauses()
    entries = transactional(inventory)
    tables = [entry.table for entry in entries]
    regions_of = run.store.regions_of(tables)
    states = run.state().read_all(tables)
    for entry in entries:
        report = TableReport(entry.table)
        run.summary.tables.append(report)
        if _lacks_marks(entry):
            blocked.append(_unmarked(entry))
        try:
            found = _table_marks(run, entry, regions_of(entry.table), states[entry.table], pauses)
        except StoreError as error:
            report.problems.append(str(error))
            blocked.append(
                Blocker(
                    entry.table,
                    None,
                    None,
                    0,
                    f"its regions cannot be listed: {error}",
                    "make the table readable again",
                )
            )
            continue
        report.regions = len(found)
        if entry.kind is Kind.TRANSACTIONAL:
            marks.extend(found)
        if not entry.workable:
            lowest = min((m.watermark for m in found), default=0) if entry.kind is Kind.TRANSACTIONAL else 0
            blocked.append(_left_alone(entry, lowest))
    return marks, blocked


def _lacks_marks(entry: Entry) -> bool:
    """Whether there are shadow cells where no mark of Omid is. Of a table without any mark, one that is in doubt blocks
    as a whole for that; of one with marks the doubt blocks at what is recorded of the families that bear them.
    """
    return not entry.doubt if entry.kind is Kind.UNMARKED else bool(entry.unmarked)


def _unmarked(entry: Entry) -> Blocker:
    families = f" in families {', '.join(sorted(entry.unmarked))}" if entry.unmarked else ""
    return Blocker(
        entry.table,
        None,
        None,
        0,
        f"it has shadow cells{families} but no mark of Omid",
        _kind_remedy(entry),
    )


def _kind_remedy(entry: Entry) -> str:
    """To call a table plain is refused where it bears a mark."""
    plain = " or plain" if entry.kind is Kind.UNMARKED else ""
    return f"say in the configuration what it is: tables: {{{entry.table}: {{kind: transactional}}}}{plain}"


def _left_alone(entry: Entry, lowest: int) -> Blocker:
    if entry.enabled:
        # A doubt of a table that bears a mark tells its own remedy.
        remedy = "mend that" if entry.kind is Kind.TRANSACTIONAL else f"mend that, or {_kind_remedy(entry)}"
        return Blocker(entry.table, None, None, lowest, entry.doubt, remedy)
    return Blocker(entry.table, None, None, lowest, "the table is disabled", f"enable {entry.table}, or drop it")


def _table_marks(
    run: Run, entry: Entry, regions: Sequence[Region], state: TableState, pauses: Sequence[Pause]
) -> list[RegionMark]:
    facts = valid(state.facts, entry.families, state.incarnation.advance(regions), entry.shape)
    void = bool(state.facts) and not facts
    concerning = [p for p in pauses if p.table in (None, entry.table)]
    objection = consent.objection(entry.table, entry.veto, concerning, run.request.now)
    return [
        RegionMark(
            entry.table,
            r.name,
            r.keys,
            region_watermark(r.keys, facts),
            r.store_bytes,
            void,
            entry.compactor,
            objection,
        )
        for r in regions
    ]


def _publish(run: Run, inventory: Sequence[Entry], marks: Sequence[RegionMark], bound: int) -> None:
    tables = [e.table for e in inventory if e.kind is Kind.TRANSACTIONAL]
    of_table: dict[str, list[RegionMark]] = {table: [] for table in tables}
    for mark in marks:
        of_table.setdefault(mark.table, []).append(mark)
    inventory = follow_omids_compactor(run, inventory)
    state = run.state()
    # Read then, so given out before: what starts later has a greater timestamp.
    state.add_sample(run.read_at, run.summary.low_watermark)
    state.add_bound(Bound(state.server_time(), bound, tuple(run.summary.blockers)))
    _list(run, inventory)
    state.sweep_confirmed(inventory)
    for table in tables:
        state.put_watermarks(
            table,
            {
                "at": run.summary.started,
                "low_watermark": run.summary.low_watermark,
                "regions": [
                    {
                        "region": m.region,
                        "start": m.keys.start.hex(),
                        "stop": m.keys.stop.hex(),
                        "watermark": m.watermark,
                    }
                    for m in of_table[table]
                ],
            },
        )
    state.drop_watermarks(tables)
    state.sweep(run.request.now - records_kept(run.config.grace, run.config.state.sideline_keep))


def _list(run: Run, inventory: Sequence[Entry]) -> None:
    """Publish the inventory, in which no table counts as transactional for the first time by the configuration's word
    alone without a mark: nobody asks whether its cells are older than it, and it may have been here under another name,
    as a clone, and lack what was removed of it then. The greatest mark of any tells; a hold that was taken before tells
    up to where it does not, as it was refused below the one of then.
    """
    state = run.state()
    known = {e.table for e in state.inventory() if e.kind is Kind.TRANSACTIONAL}
    greatest = max((history.applied for history in state.histories()), default=0)
    for entry in inventory:
        if entry.kind is Kind.TRANSACTIONAL and entry.mark == "configuration" and entry.table not in known:
            state.raise_mark_up_to_holds(entry.table, greatest, run.request.run, lambda: run.request.now)
    state.put_inventory(inventory, run.summary.low_watermark, millis(run.request.now))


def records_kept(grace: timedelta, sideline_keep: timedelta) -> timedelta:
    """How long past runs and bounds are kept: a bound until it has passed every grace, a run while its sideline is to
    be there. Only its summary tells that one is missing; a day more, since it began before it removed anything.
    """
    return max(KEEP_RECORDS, 2 * grace, sideline_keep + _DAY)
