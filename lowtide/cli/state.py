"""``lowtide state``: Lowtide's own records."""

from __future__ import annotations

from typing import Annotated

import typer

from lowtide.cleaning import renumbered
from lowtide.cli.by_hand import keep
from lowtide.cli.configuration import configured_to_act
from lowtide.cli.options import ConfigFile, Yes, ask
from lowtide.config import Config
from lowtide.errors import WatermarkError
from lowtide.journal import life
from lowtide.store.gateway import low_watermark
from lowtide.store.state import StateStore, opened
from lowtide.terminal.console import new_console

state_app = typer.Typer(no_args_is_help=True, help="Lowtide's own records.")

console = new_console()


@state_app.command("reset")
def state_reset(
    config: ConfigFile = None,
    same_oracle: Annotated[
        bool,
        typer.Option(
            "--same-oracle",
            help="It lost no timestamps, only the commit table came back from a backup: the journal stays a proof.",
        ),
    ] = False,
    yes: Yes = False,
) -> None:
    """Forget all recorded ranges, bounds and time samples, after the oracle was made anew; all is then cleaned again
    from 0.

    What was journaled before decides nothing any more, except with --same-oracle. Refused, with what is to be done,
    while the low watermark is below one that was recorded.
    """
    loaded = configured_to_act(config)
    with opened(loaded) as state:
        _check_reset(loaded, state, same_oracle=same_oracle)
        _pruned(loaded, state, same_oracle=same_oracle)
    and_proofs = "" if same_oracle else ", and have what was journaled before prove nothing any more"
    ask(f"Forget every recorded watermark in {loaded.state.table}{and_proofs}?", yes=yes)
    with opened(loaded) as state:
        skipped = _check_reset(loaded, state, same_oracle=same_oracle)
        if same_oracle and not state.exists():
            console.print(f"Nothing is recorded in {loaded.state.table}.", soft_wrap=True)
            return
        state.reset(same_oracle=same_oracle, skipped=skipped, pruned=_pruned(loaded, state, same_oracle=same_oracle))
        oracle = ", of the same oracle" if same_oracle else ""
        keep(state, loaded, config, "state reset", f"forgot what was recorded of all tables{oracle}")
    console.print("Forgotten. The next orphan_cleanup reads from 0.", soft_wrap=True)


def _pruned(config: Config, state: StateStore, *, same_oracle: bool) -> int:
    """How far was pruned, as the journal says itself; refused where it is disabled, and cannot say. Of the same oracle
    that counts on, and is not asked for.
    """
    if same_oracle:
        return 0
    own_row = life.observe(state.connection, config.state.journal_table).own_row
    return own_row.pruned if own_row else 0


def _check_reset(config: Config, state: StateStore, *, same_oracle: bool) -> tuple[int, int] | None:
    """Refuse to reset while the oracle gives numbers that it has given before, or would seem to; the numbers that it
    has skipped.
    """
    recorded = state.recorded_low_watermark()
    if recorded is None:
        return None
    current = low_watermark(state.connection, config)
    if same_oracle:
        if why := renumbered.before_its_start(recorded.low_watermark, current):
            raise WatermarkError(why)
        return renumbered.skipped(recorded.low_watermark, current)
    own = (config.state.table, config.state.journal_table)
    if why := renumbered.refusal(recorded.low_watermark, current, config.omid.timestamp_table, own):
        raise WatermarkError(why)
    return renumbered.skipped(recorded.low_watermark, current)
