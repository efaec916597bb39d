"""``lowtide commit-table``: what a person says of Omid's commit table."""

from __future__ import annotations

import typer

from lowtide.cli.by_hand import check_same, keep
from lowtide.cli.configuration import configured_to_act
from lowtide.cli.options import ConfigFile, Yes, ask
from lowtide.config import Config
from lowtide.errors import TableError
from lowtide.store.gateway import check_entries_kept, expiring_entries, table_state
from lowtide.store.state import StateStore, opened
from lowtide.terminal.console import new_console

commit_table_app = typer.Typer(no_args_is_help=True, help="Omid's commit table.")

console = new_console()


@commit_table_app.command("whole")
def commit_table_whole(config: ConfigFile = None, yes: Yes = False) -> None:
    """Say that the commit table has all its entries, though HBase cannot show it: it was only disabled and enabled, or
    moved with all that it held.

    Where entries are lost: lowtide state reset --same-oracle.
    """
    loaded = configured_to_act(config)
    name = loaded.omid.commit_table
    with opened(loaded) as state:
        lives = _lives(loaded, state)
    if lives[0] in (0, lives[1]):
        console.print(f"Nothing speaks against {name}; nothing was noted.", soft_wrap=True)
        return
    ask(
        f"{name} was disabled and enabled, restored or made anew, or had a TTL. Does it have every entry that it had? "
        "A committed cell whose only proof was lost is deleted.",
        yes=yes,
    )
    with opened(loaded) as state:
        check_same(lives, _lives(loaded, state), name)
        state.record_format()
        state.settle_commit_table(lives[1])
        keep(state, loaded, config, "commit-table whole", f"took {name} for whole")
    console.print(f"Noted. {name} is gone by again.", soft_wrap=True)


def _lives(config: Config, state: StateStore) -> tuple[int, int]:
    """When the commit table was made, enabled or restored last, ms: as runs remember it, and as it is now."""
    name = config.omid.commit_table
    if not state.has_table(name):
        raise TableError(f"there is no commit table {name}", "restore it, or correct omid.commit_table")
    check_entries_kept(expiring_entries(state.connection, config), config)
    enabled, stated = table_state(state.connection, name)
    if not enabled:
        raise TableError(f"the commit table {name} is disabled", f"in HBase's shell: enable '{name}'")
    return state.commit_table_life(), stated
