"""Scenes, by what plans are about: what has to meet in an order that hardly comes by itself. Pure."""

from __future__ import annotations

from tests.chaos.maker import Maker, Scene
from tests.chaos.scenes import back, compactor, history, late, oracle, swept, torn
from tests.chaos.scenes import ledger as ledger_scenes
from tests.chaos.worlds import World

_OF = {
    World.TORN: torn.scenes,
    World.BACK: back.scenes,
    World.LATE: late.scenes,
    World.COMPACTOR: compactor.scenes,
    World.SWEPT: swept.scenes,
    World.HISTORY: history.scenes,
    World.ORACLE: oracle.scenes,
    World.LEDGER: ledger_scenes.scenes,
}


def of_world(make: Maker, *, ledger: bool) -> list[Scene]:
    """Those of the maker's world; then, where it has a *ledger* that it is not about, one of that."""
    beside = [ledger_scenes.overtaken] if ledger and make.world is not World.LEDGER else []
    return [*_OF[make.world](make), *beside]
