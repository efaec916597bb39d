"""What plans are about. Pure."""

from __future__ import annotations

from enum import StrEnum


class World(StrEnum):
    """What a plan is about. As many seeds that follow each other have all of them."""

    TORN = "torn transactions"
    """Some have a sibling's shadow cell as the only proof, and that is where it is hard to see. No table loses any."""
    BACK = "tables that come back"
    LATE = "entries that land late"
    COMPACTOR = "Omid's own compactor"
    SWEPT = "a journal that lets go of what is old"
    """At once, where no HBase snapshot is there; a backup's cells come back after that. Or somebody empties it."""
    HISTORY = "history that goes"
    ORACLE = "an oracle that is made anew"
    """Its numbers come a second time. Or its commit table comes back, or another oracle's tables are beside it."""
    LEDGER = "the ledger"
    """Plans of the others have one now and then; here its scenes are most of what happens."""


#: By the seed's remainder. From seed 1 on the longest plan comes last: whoever has little time has begun all. The third
#: and the sixth have a ledger in any case, which takes its time: the third is about one, the sixth is short.
WORLDS = (World.HISTORY, World.TORN, World.LATE, World.LEDGER, World.BACK, World.SWEPT, World.COMPACTOR, World.ORACLE)


def of(seed: int) -> World:
    """The world of a seed."""
    return WORLDS[seed % len(WORLDS)]
