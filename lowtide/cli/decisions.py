"""``lowtide forget``, ``resolve``, ``confirm`` and ``journal``: what a person decides of records, tables and
transactions, where nothing that is stored decides it.

Each command looks, asks with no connection open, and looks again before it acts on the answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lowtide.cli.by_hand import check_same, keep
from lowtide.cli.configuration import configured_to_act
from lowtide.cli.options import ConfigFile, Yes, ask
from lowtide.config import Config
from lowtide.errors import NAMES_OF_TABLES, UsageError
from lowtide.journal import life
from lowtide.journal.decision_lines import UNDECIDED, Decision, Filled, parse, row_of
from lowtide.journal.decisions import Decisions, became
from lowtide.store.gateway import low_watermark, table_state
from lowtide.store.state import StateStore, opened
from lowtide.terminal.console import new_console

journal_app = typer.Typer(no_args_is_help=True, help="What was pruned from the commit table.")

console = new_console()
#: So many decisions are named one by one.
_NAMED = 20


def forget(table: Annotated[str, typer.Argument(metavar="TABLE")], config: ConfigFile = None, yes: Yes = False) -> None:
    """Forget what was cleaned of a table: at the end of a bulk load, an hbase restore, an Import, or whatever else put
    old cells under it.
    """
    loaded = configured_to_act(config)
    with opened(loaded) as state:
        _check_recorded(loaded, state, table)
    ask(f"Forget what was cleaned of {table}? The next orphan_cleanup reads it from 0.", yes=yes)
    with opened(loaded) as state:
        _check_recorded(loaded, state, table)
        state.record_format()
        ranges = state.void(table)
        keep(state, loaded, config, "forget", f"forgot {ranges} key ranges of {table}")
    console.print(
        f"{ranges} key ranges of {table} forgotten. The next orphan_cleanup reads it from 0; until then the prune "
        "bound is 0.",
        soft_wrap=True,
    )


def _check_recorded(config: Config, state: StateStore, table: str) -> None:
    if not state.read(table).epoch.counter:
        msg = f"nothing is recorded of {table} in {config.state.table}; `lowtide status` lists what there is"
        raise UsageError(msg)


def resolve(
    starts: Annotated[
        list[int] | None, typer.Argument(metavar="[TRANSACTION]...", help="Start timestamps.", show_default=False)
    ] = None,
    config: ConfigFile = None,
    aborted: Annotated[bool, typer.Option("--aborted", help="They never committed: their cells go.")] = False,
    committed: Annotated[
        int | None, typer.Option("--committed", metavar="TIMESTAMP", help="It committed at this timestamp.")
    ] = None,
    shown_in: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--shown-in",
            metavar="TABLE ROW",
            help="With --committed: a shadow cell in this row (hexadecimal) says so, which overrules a mark and the "
            "journal.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Many at once: the file that a run wrote, with decisions put in."),
    ] = None,
    yes: Yes = False,
) -> None:
    """Say what became of transactions of which no proof is left. The next orphan_cleanup does accordingly: heals their
    cells, or puts them aside and deletes.

    All are checked before one is recorded. What was decided can be decided anew.
    """
    asked = _asked(starts or [], aborted, committed, shown_in, file)
    decisions = asked.decisions
    loaded = configured_to_act(config)
    name = loaded.state.journal_table
    with opened(loaded) as state:
        _, replaced = _allowed(loaded, state, asked)
    for old in replaced:
        console.print(
            f"This replaces {old}. Where a cleanup has acted on that already, `lowtide verify` names the cells that "
            "still say so, and what it deleted is in its sideline: `lowtide restore`.",
            soft_wrap=True,
        )
    decided = _summed_up(decisions)
    ask(f"Record in {name} that {decided}?", yes=yes)
    with opened(loaded) as state:
        allowed, now = _allowed(loaded, state, asked)
        check_same(replaced, now, f"what {name} says of these transactions")
        state.create()
        state.record_format()
        for each in decisions:
            allowed.record(each.start, each.commit, overrule=each.shown is not None)
        life.checked(state.connection, state, name, acting=True)
        keep(state, loaded, config, "resolve", f"decided that {decided}")
    console.print(f"Recorded in {name}. The next orphan_cleanup --execute acts on it.", soft_wrap=True)
    if asked.left:
        console.print(f"{asked.left} lines of {file} are still {UNDECIDED}; they were left out.", soft_wrap=True)


def _allowed(config: Config, state: StateStore, asked: Filled) -> tuple[Decisions, list[str]]:
    """By what these decisions are allowed, all of them, and what was decided before that they replace."""
    decisions, omid = asked.decisions, config.omid
    written = [omid.commit_table] if any(each.shown for each in decisions) else []
    state.check_not_paused(config.state.journal_table, *written)
    # As for a run: of which transactions the numbers are is not known while the oracle may be another.
    state.check_commit_table(omid.commit_table, table_state(state.connection, omid.commit_table)[1])
    state.check_low_watermark(low_watermark(state.connection, config))
    anew = state.numbered_anew()
    if asked.anew is not None and asked.anew < anew:
        msg = (
            "the oracle was made anew since the run that wrote the file, by the records: other transactions may have "
            "these numbers. Take the file of a newer run"
        )
        raise UsageError(msg)
    # A journal that is gone, or lost rows, is not made anew.
    life.checked(state.connection, state, config.state.journal_table, acting=False)
    allowed = Decisions(state.connection, config, anew)
    replaced = [allowed.check(each.start, each.commit, each.shown) for each in decisions]
    return allowed, [old for old in replaced if old]


def _asked(
    starts: list[int], aborted: bool, committed: int | None, shown_in: tuple[str, str] | None, file: Path | None
) -> Filled:
    """What the command was given."""
    if (bool(starts), aborted, committed is not None) not in (
        (False, False, False),
        (True, True, False),
        (True, False, True),
    ) or bool(starts) == (file is not None):
        msg = "give transactions with --aborted, one with --committed TIMESTAMP, or --from FILE"
        raise UsageError(msg)
    if len(starts) > 1 and committed is not None:
        msg = "no two transactions commit at one timestamp: give one with --committed, or several in a file (--from)"
        raise UsageError(msg)
    if shown_in is not None and committed is None:
        msg = (
            "--shown-in names a row in which a shadow cell shows a commit: give it with --committed; in a file, "
            "table and row stand behind the timestamp"
        )
        raise UsageError(msg)
    if file is None:
        shown = None if shown_in is None else (shown_in[0], row_of(shown_in[1]))
        return Filled([Decision(start, committed, shown) for start in dict.fromkeys(starts)])
    try:
        found = parse(file.read_text("utf-8"))
    except OSError as error:
        msg = (
            f"{file} cannot be read: {error.strerror}; one that a run wrote elsewhere (hdfs://...) is to be copied "
            "here first"
        )
        raise UsageError(msg) from None
    if not found.decisions:
        msg = f"{file} decides nothing: {found.left} lines are still {UNDECIDED}"
        raise UsageError(msg)
    return found


def _summed_up(decisions: list[Decision]) -> str:
    """In words: each of a few, the numbers of many."""
    if len(decisions) <= _NAMED:
        return ", ".join(f"transaction {each.start} {became(each.commit)}" for each in decisions)
    gone = sum(each.commit is None for each in decisions)
    return (
        f"of {len(decisions)} transactions, from {decisions[0].start} on, {gone} never committed and "
        f"{len(decisions) - gone} did"
    )


def confirm(
    table: Annotated[str, typer.Argument(metavar="TABLE")], config: ConfigFile = None, yes: Yes = False
) -> None:
    """Say that the transactions of a table that came from elsewhere were this store's oracle's: its cells are
    judged, and cleaned, like any other's.
    """
    loaded = configured_to_act(config)
    with opened(loaded) as state:
        _check_there(state, table)
    ask(
        f"Did the oracle of this store give every timestamp in {table}? A committed cell of another's has no proof "
        "here, and is deleted.",
        yes=yes,
    )
    with opened(loaded) as state:
        _check_there(state, table)
        state.create()
        state.record_format()
        state.confirm(table)
        keep(state, loaded, config, "confirm", f"took the transactions of {table} for this oracle's")
    console.print(f"Confirmed. The next orphan_cleanup takes {table} like any other table.", soft_wrap=True)


def _check_there(state: StateStore, table: str) -> None:
    if not state.has_table(table):
        msg = f"unknown table {table}: it is not in HBase; {NAMES_OF_TABLES}"
        raise UsageError(msg)


@journal_app.command("lost")
def journal_lost(
    config: ConfigFile = None,
    promoted: Annotated[
        bool,
        typer.Option(
            "--promoted",
            help="This cluster was replicated to, or lost logs or files, and lacks some of what it had: nor is absence "
            "proof of anything up to the low watermark, whatever was pruned.",
        ),
    ] = False,
    yes: Yes = False,
) -> None:
    """Go on without what the journal has lost for good, or without a journal: below the prune bound, absence of a
    proof decides nothing any more.
    """
    loaded = configured_to_act(config)
    name = loaded.state.journal_table
    with opened(loaded) as state:
        there, horizon = _lost(loaded, state, promoted=promoted)
    ask(
        f"Go on without {f'rows that {name} has lost' if there else name}? Of tables that come back from an HBase "
        f"snapshot, transactions up to {horizon} that have no shadow cell and no proof can then only be decided by "
        "hand.",
        yes=yes,
    )
    with opened(loaded) as state:
        still_there, horizon = _lost(loaded, state, promoted=promoted)  # no lower, and higher by what was pruned since
        check_same(there, still_there, f"whether there is a table {name}")
        state.create()
        state.record_format()
        life.settle(state.connection, state, name, lost_up_to=horizon)
        note = f"went on without what {name} has lost, of transactions up to {horizon}"
        keep(state, loaded, config, "journal lost", note)
    console.print(f"Noted. Horizon: {horizon}.", soft_wrap=True)


def _lost(config: Config, state: StateStore, *, promoted: bool) -> tuple[bool, int]:
    """Whether the journal is there, and up to which start timestamp, inclusive, it may lack what proved a commit: what
    was pruned, and of a cluster that was *promoted* also what clients removed themselves, before their shadow cells
    had come.
    """
    name = config.state.journal_table
    state.check_not_paused(name)
    known, observed = state.journal(), life.observe(state.connection, name)
    life.check_kept(observed, name)
    own_row = observed.own_row or life.OwnRow()
    horizon = max(known.pruned, own_row.pruned, *(bound.value for bound in state.bounds()))
    if promoted or (not known.pruned and observed.own_row is None):
        # Or neither side knows how far was pruned, as where both are lost. It was never beyond this.
        horizon = max(horizon, low_watermark(state.connection, config))
    return observed.listed, horizon


@journal_app.command("whole")
def journal_whole(config: ConfigFile = None, yes: Yes = False) -> None:
    """Say that the journal has all its rows, though HBase cannot show it: it was only disabled and enabled, or was
    restored from an HBase snapshot that has all.
    """
    loaded = configured_to_act(config)
    name = loaded.state.journal_table
    with opened(loaded) as state:
        doubted = _doubted(loaded, state)
    why, _ = doubted
    if not why:
        console.print(f"Nothing speaks against {name}; nothing was noted.", soft_wrap=True)
        return
    ask(
        f"{name}: {why}. Does it have every row that was ever pruned into it? Without its proof a committed cell that "
        "comes back is deleted.",
        yes=yes,
    )
    with opened(loaded) as state:
        check_same(doubted, _doubted(loaded, state), f"what speaks against {name}")
        state.record_format()
        life.settle(state.connection, state, name)
        keep(state, loaded, config, "journal whole", f"took {name} for whole: {why}")
    console.print(f"Noted. {name} is gone by again.", soft_wrap=True)


def _doubted(config: Config, state: StateStore) -> tuple[str, int]:
    """Why the journal, which is there, may have lost rows, and in which life of its table; empty: nothing says so."""
    name = config.state.journal_table
    state.check_not_paused(name)
    known, observed = state.journal(), life.observe(state.connection, name)
    life.check_kept(observed, name)
    if not observed.listed:
        msg = (
            f"HBase has no table {name}: restore it, correct state.journal_table, or, where it is lost for "
            "good: lowtide journal lost"
        )
        raise UsageError(msg)
    if lost := life.missing(known, observed):
        msg = (
            f"{name} is not whole: {lost}. Restore the HBase snapshot that has its rows; where they are lost for "
            "good: lowtide journal lost"
        )
        raise UsageError(msg)
    return life.doubt(known, observed), observed.stated
