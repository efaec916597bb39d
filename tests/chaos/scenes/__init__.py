"""Scenes, by what plans are about: what has to meet in an order that hardly comes by itself. Pure."""

from __future__ import annotations

from tests.chaos.maker import Maker, Scene
from tests.chaos.scenes import back, compactor, history, late, ledger, oracle, swept, torn
from tests.chaos.worlds import World

_OF = {
    World.TORN: torn.scenes,
    World.BACK: back.scenes,
    World.LATE: late.scenes,
    World.COMPACTOR: compactor.scenes,
    World.SWEPT: swept.scenes,
    World.HISTORY: history.scenes,
    World.ORACLE: oracle.scenes,
    World.LEDGER: ledger.scenes,
}


def of_world(make: Maker) -> list[Scene]:
    """Those of the maker's world."""
    return _OF[make.world](make)
