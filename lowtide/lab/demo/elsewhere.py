"""The demo's workload on a store whose servers run elsewhere: ``python -m lowtide.lab.demo.elsewhere ... fill``, and
later ``compare``.

Gateway and oracle are those of Lowtide's configuration. It is for stores that are there to be played with: ``fill``
lets clients crash in them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from lowtide.config import Config, load
from lowtide.errors import LowtideError
from lowtide.lab.demo import bank
from lowtide.lab.demo.filling import SHAPE, backdate, outcomes, work
from lowtide.lab.demo.proof import compare as compared
from lowtide.lab.demo.settings import DemoError, DemoSettings
from lowtide.lab.workload import Model, OmidClient, RemoteStore

_DEFAULTS = DemoSettings()

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class _Place:
    config_file: Path
    config: Config
    home: Path
    store: RemoteStore

    @property
    def history(self) -> Path:
        """What the clients did, for the model; it is there once they are done."""
        return self.home / "history.jsonl"


@app.callback()
def _place(
    context: typer.Context,
    config: Annotated[Path, typer.Option(envvar="LOWTIDE_CONFIG", help="Lowtide's configuration.")],
    home: Annotated[Path, typer.Option(help="Where it is kept what the clients did.")],
    conf: Annotated[Path, typer.Option(help="Folder of the hbase-site.xml that leads to the store.")],
    jars: Annotated[str, typer.Option(help="Class path of what embedded/ is built into.")],
) -> None:
    """The demo's workload, on a store that is there to be played with."""
    loaded = load(config)
    context.obj = _Place(config, loaded, home, RemoteStore(conf, (jars,), loaded.omid.oracle[0], home / "logs"))


@app.command()
def fill(context: typer.Context) -> None:
    """Let clients work and crash for some backdated days; nothing where that is done already."""
    place: _Place = context.obj
    if place.history.exists():
        print("The store was filled before.")
        return
    with OmidClient(place.store) as omid:
        _refuse_others(omid)
        _transactions(place, omid)
    killed = bank.crash_clients(place.config_file, _DEFAULTS.seed, print)
    print(f"{killed} clients of the bank killed")


@app.command()
def compare(
    context: typer.Context,
    snapshots: Annotated[int, typer.Option(min=1, help="How many read points are compared.")] = _DEFAULTS.snapshots,
) -> None:
    """Read tables at read points through Omid's client and compare every value with what the clients did. Exit code 1
    if one differs.
    """
    place: _Place = context.obj
    model = Model.load(place.history)
    with OmidClient(place.store) as omid:
        check = compared(omid, model, model.read_timestamps(snapshots), print)
    print(check.sentence)
    raise typer.Exit(1 if check.differences else 0)


def _refuse_others(omid: OmidClient) -> None:
    found = sorted(set(SHAPE.tables) & set(omid.tables()))
    if found:
        msg = f"the store has tables {', '.join(found)} that no finished workload made; begin with an empty store"
        raise DemoError(msg)


def _transactions(place: _Place, omid: OmidClient) -> None:
    today = datetime.now(UTC).date()
    draft = place.history.with_suffix(".new")
    made = work(place.store, _DEFAULTS, omid, draft, today, print)
    backdate(place.config, made.boundaries, today)
    print(", ".join(f"{number:,} {name}" for name, number in outcomes(_DEFAULTS.seed, made.model).outcomes))
    draft.rename(place.history)


if __name__ == "__main__":
    try:
        app()
    except LowtideError as error:  # meant for people: one message, not a traceback
        sys.exit(f"lowtide: {error}")
