"""``lowtide forget``, ``lowtide resolve``, ``lowtide journal``: what a person decides about records that no longer say what is so."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lowtide import journal
from lowtide.config import load, source
from lowtide.errors import UsageError
from lowtide.gateway import connect
from lowtide.screen import screen
from lowtide.state import StateStore
from lowtide.summary import by_hand

journal_app = typer.Typer(no_args_is_help=True, help="What was pruned from the commit table.")

console = screen()
ConfigFile = Annotated[Path | None, typer.Option("--config", help="The configuration file.", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def forget(table: Annotated[str, typer.Argument(metavar="TABLE")], config: ConfigFile = None, yes: Yes = False) -> None:
    """Forget what was cleaned of a table: after a bulk load, an incremental restore, or whatever else put old cells under it."""
    loaded = load(config)
    with connect(loaded.hbase.thrift) as connection:
        state = StateStore(connection, loaded.state.table)
        if not state.read(table).epoch.counter:
            msg = f"nothing is recorded of {table} in {loaded.state.table}; `lowtide tables` lists what there is"
            raise UsageError(msg)
        if not yes:
            typer.confirm(f"Forget what was cleaned of {table}? The next orphan_cleanup reads it from 0.", abort=True)
        ranges = state.void(table)
        state.add_run(by_hand("forget", f"forgot {ranges} key ranges of {table}", source(config)).to_json())
    console.print(
        f"{ranges} key ranges of {table} forgotten. The next orphan_cleanup reads it from 0; until then the prune bound is 0."
    )


def resolve(
    start: Annotated[int, typer.Argument(metavar="TRANSACTION", help="Its start timestamp.")],
    config: ConfigFile = None,
    aborted: Annotated[bool, typer.Option("--aborted", help="It never committed: its cells go.")] = False,
    committed: Annotated[
        int | None, typer.Option("--committed", metavar="TIMESTAMP", help="It committed at this timestamp.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Say what became of a transaction of which no proof is left. The next orphan_cleanup does accordingly: heals its cells, or puts them aside and deletes."""
    if aborted == (committed is not None):
        msg = "give one of --aborted and --committed TIMESTAMP"
        raise UsageError(msg)
    loaded = load(config)
    with connect(loaded.hbase.thrift) as connection:
        state = StateStore(connection, loaded.state.table)
        anew = state.numbered_anew()
        journal.check_decision(connection, loaded, start, committed, anew)
        became = "never committed" if committed is None else f"committed at {committed}"
        if not yes:
            typer.confirm(f"Record in {loaded.state.journal_table} that transaction {start} {became}?", abort=True)
        journal.decide(connection, loaded, start, committed, anew)
        state.remember_journal()
        state.add_run(by_hand("resolve", f"decided that transaction {start} {became}", source(config)).to_json())
    console.print(f"Recorded in {loaded.state.journal_table}. The next orphan_cleanup --execute acts on it.")


def confirm(
    table: Annotated[str, typer.Argument(metavar="TABLE")], config: ConfigFile = None, yes: Yes = False
) -> None:
    """Say that the transactions of a table that came from elsewhere were this store's oracle's: its cells are judged, and cleaned, like any other's."""
    loaded = load(config)
    with connect(loaded.hbase.thrift) as connection:
        state = StateStore(connection, loaded.state.table)
        if not state.has_table(table):
            msg = f"no such table: {table}; `lowtide tables` lists what there is"
            raise UsageError(msg)
        if not yes:
            typer.confirm(
                f"Did the oracle of this store give every timestamp in {table}? A committed cell of another's has no proof here, and is deleted.",
                abort=True,
            )
        state.create()
        state.confirm(table)
        state.add_run(
            by_hand("confirm", f"took the transactions of {table} for this oracle's", source(config)).to_json()
        )
    console.print(f"Confirmed. The next orphan_cleanup takes {table} like any other table.")


@journal_app.command("lost")
def journal_lost(config: ConfigFile = None, yes: Yes = False) -> None:
    """Go on without what the journal has lost for good, or without a journal: below the prune bound, absence of a proof decides nothing any more."""
    loaded = load(config)
    name = loaded.state.journal_table
    with connect(loaded.hbase.thrift) as connection:
        state = StateStore(connection, loaded.state.table)
        known, seen = state.journal(), journal.look(connection, name)
        journal.check_kept(seen, name)
        said = seen.said or journal.Said()
        horizon = max(known.pruned, said.pruned, *(bound.value for bound in state.bounds()))
        if not yes:
            typer.confirm(
                f"Go on without {'rows that ' if seen.listed else ''}{name}{' has lost' if seen.listed else ''}? Of tables that come back from a "
                f"snapshot, transactions up to {horizon} that have no shadow cell and no proof can then only be decided by hand.",
                abort=True,
            )
        state.create()
        journal.settle(connection, state, name, lost_up_to=horizon)
        note = f"went on without what {name} has lost, of transactions up to {horizon}"
        state.add_run(by_hand("journal lost", note, source(config)).to_json())
    console.print(f"Noted. Horizon: {horizon}.")


@journal_app.command("whole")
def journal_whole(config: ConfigFile = None, yes: Yes = False) -> None:
    """Say that the journal has all its rows, though HBase cannot tell: it was only disabled and enabled, or was restored from a snapshot that has all."""
    loaded = load(config)
    name = loaded.state.journal_table
    with connect(loaded.hbase.thrift) as connection:
        state = StateStore(connection, loaded.state.table)
        known, seen = state.journal(), journal.look(connection, name)
        journal.check_kept(seen, name)
        if not seen.listed:
            msg = f"HBase has no table {name}: restore it, correct state.journal_table, or, where it is lost for good: lowtide journal lost"
            raise UsageError(msg)
        if lost := journal.missing(known, seen):
            msg = f"{name} is not whole: {lost}. Restore the snapshot that has its rows; where they are lost for good: lowtide journal lost"
            raise UsageError(msg)
        why = journal.doubt(known, seen)
        if not why:
            console.print(f"Nothing speaks against {name}; nothing was noted.")
            return
        if not yes:
            typer.confirm(
                f"{name}: {why}. Does it have every row that was ever pruned into it? Without its proof a committed cell that comes back is deleted.",
                abort=True,
            )
        journal.settle(connection, state, name)
        state.add_run(by_hand("journal whole", f"took {name} for whole: {why}", source(config)).to_json())
    console.print(f"Noted. {name} is gone by again.")
