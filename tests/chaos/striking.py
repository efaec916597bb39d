"""How a nemesis strikes, and how what it broke is put back.

Networks lie, disks are full and folders are away for runs of jobs alone, as long as one of them moves: what the plan
does meanwhile, and what the judge looks at, they leave alone. Servers and clocks are what they are for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

import clocks
import disks
from deadman import Effect

from tests.chaos.laboratory import Laboratory
from tests.chaos.lying import WRITES, Lie, LyingRelay
from tests.chaos.nemeses import Kind, Nemesis

_AT_GATEWAY = {
    Kind.GATEWAY_CUT: Lie.CUT,
    Kind.GATEWAY_LOSE: Lie.LOSE,
    Kind.GATEWAY_DELAY: Lie.DELAY,
    Kind.GATEWAY_SWALLOW: Lie.SWALLOW,
}
_AT_HBASE = {
    Kind.CUT: Lie.CUT,
    Kind.LOSE: Lie.LOSE,
    Kind.DELAY: Lie.DELAY,
    Kind.SWALLOW: Lie.SWALLOW,
    Kind.LATE: Lie.LATE,
    Kind.TASK: Lie.CUT,
}


class Strikes:
    """The nemeses of one plan."""

    def __init__(self, lab: Laboratory) -> None:
        self._lab = lab
        self._driver = disks.driver(lab.spark)
        #: What puts back what a nemesis broke, by its kind, and after how many more steps.
        self._broken: dict[Kind, tuple[int, Callable[[], None]]] = {}
        self._disk_full = self._folder_away = False
        #: Whether the sideline's disk was ever full, or its folder away.
        self.at_the_sideline = False
        #: By how many seconds the driver's clock is off.
        self._off = 0
        #: Whether a server that readers ask was killed since they were answered last: what it had was nowhere then.
        self.shaken = False
        #: After how many steps of those to come what is late arrives.
        self._late_steps = 0
        #: How many gateways were killed: each had everybody's connections.
        self.gateways = 0
        self.counts: Counter[str] = Counter()

    @property
    def _relays(self) -> list[LyingRelay]:
        return [relay for relay in (self._lab.gateway, self._lab.servers) if relay is not None]

    def strike(self, nemesis: Nemesis) -> None:
        """It strikes. What of its kind is broken already is put back before."""
        kind = nemesis.kind
        self.put_back(kind)
        self.counts[f"nemesis: {kind}"] += 1
        self.shaken |= kind in _ASKED
        self.at_the_sideline |= kind in (Kind.DISK, Kind.FOLDER)
        if kind in _AT_GATEWAY:
            self._lie(self._lab.gateway, _AT_GATEWAY[kind], nemesis.size)
        elif kind in _AT_HBASE:
            self._late_steps = nemesis.lasts
            self._lie(self._lab.servers, _AT_HBASE[kind], nemesis.size, of_writes=kind in _OF_WRITES)
        else:
            self._broken[kind] = nemesis.lasts, self._put_back_of(nemesis)
            if nemesis.lasts == 0 and kind in _SERVERS:
                self.put_back(kind)

    def _lie(self, relay: LyingRelay | None, how: Lie, times: int, *, of_writes: bool = False) -> None:
        assert relay is not None, "the laboratory has no relay there"
        relay.orders.give(how, times, WRITES if of_writes else ())

    def _put_back_of(self, nemesis: Nemesis) -> Callable[[], None]:
        match nemesis.kind:
            case Kind.CLOCK:
                self._set_clock(nemesis.size)
                return lambda: self._set_clock(0)
            case Kind.DISK:
                self._disk_full = True
                return self._empty_disk
            case Kind.FOLDER:
                self._folder_away = True
                return self._bring_folder
            case kind:
                self.gateways += kind in (Kind.GATEWAY, Kind.HBASE)
                for part in self._parts(kind, nemesis.size):
                    self._lab.stack.kill(part)
                return lambda: self._start(kind)

    def _parts(self, kind: Kind, size: int) -> list[str]:
        servers = self._lab.stack.region_servers
        match kind:
            case Kind.GATEWAY:
                return ["thrift"]
            case Kind.ORACLE:
                return ["tso"]
            case Kind.HBASE:
                return [*servers, "master"] if servers else ["hbase"]
            case _:
                return [servers[size % len(servers)]]

    def _start(self, kind: Kind) -> None:
        self._lab.stack.up()
        if kind is Kind.ORACLE or (kind is Kind.HBASE and not self._lab.stack.region_servers):
            self._lab.new_oracle()

    def _set_clock(self, seconds: int) -> None:
        self._off = abs(seconds)
        clocks.set_right()
        if seconds:
            clocks.set_off(timedelta(seconds=seconds))

    def _empty_disk(self) -> None:
        self._disk_full = False

    def _bring_folder(self) -> None:
        self._folder_away = False

    def put_back(self, *kinds: Kind) -> None:
        """What is broken of these kinds works again."""
        for kind in kinds:
            if kind in self._broken:
                self._broken[kind][1]()
                self._broken.pop(kind, None)  # only now: what cannot be put back is tried again

    def pass_step(self) -> bool:
        """A step is taken: what has lasted long enough is put back. Whether what is late arrives now."""
        for kind, (lasts, put_back) in list(self._broken.items()):
            self._broken[kind] = lasts - 1, put_back
            if lasts <= 0 and kind not in _FOR_RUNS:
                self.put_back(kind)
        if not self.late:
            return False
        self._late_steps -= 1
        return self._late_steps < 0

    def end(self) -> None:
        """All is put back, and nobody lies any more; as much of that as can be, whatever of it fails."""
        with ExitStack() as each:
            for relay in self._relays:
                each.callback(self._calm, relay)
            for kind in list(self._broken):
                each.callback(self.put_back, kind)

    def _calm(self, relay: LyingRelay) -> None:
        relay.orders.give(Lie.CUT, 0)
        self.counts.update({f"requests: {how}": n for how, n in relay.orders.told.items()})
        relay.orders.told.clear()

    # -- while a run moves

    @contextmanager
    def loose(self) -> Iterator[None]:
        """A run moves: what is for runs alone is on."""
        self._switch(on=True)
        try:
            yield
        finally:
            self._switch(on=False)
            self.put_back(*(kind for kind in _FOR_RUNS if kind in self._broken and self._broken[kind][0] <= 0))
            disks.set_full(self._driver, full=False)
            if self.late:  # what else is to be late would be of another run
                self._lab.servers.orders.give(Lie.CUT, 0)  # type: ignore[union-attr]

    def _switch(self, *, on: bool) -> None:
        for relay in self._relays:
            relay.orders.on = on
        folder, away = self._lab.sideline, self._lab.sideline_away
        if self._folder_away and on:
            folder.mkdir(exist_ok=True)
            folder.rename(away)
            folder.write_text("no folder")
        elif away.exists():
            folder.unlink()
            away.rename(folder)

    def begins(self, effect: Effect) -> None:
        """A run is about to do this."""
        # Without its first entry in the audit log a run does nothing: there is more to see where that has room.
        if self._disk_full and effect.seam == "files" and not effect.step.startswith(("audit_log.", "owner.")):
            disks.set_full(self._driver, full=True)

    def ended(self, effect: Effect) -> None:
        """It has done it, or tried to."""
        if effect.seam == "files":
            disks.set_full(self._driver, full=False)

    def heard(self) -> None:
        """Readers were answered of every table."""
        self.shaken = any(kind in self._broken for kind in _ASKED)

    @property
    def clock_off(self) -> bool:
        """Whether the driver's clock is off by more than a minute."""
        return self._off > 60

    def told(self) -> int:
        """How many requests were lied about since the plan began."""
        return sum(sum(relay.orders.told.values()) for relay in self._relays)

    @property
    def late(self) -> int:
        """How many requests are late."""
        return 0 if self._lab.servers is None else len(self._lab.servers.late)

    def deliver(self) -> None:
        """What is late arrives."""
        assert self._lab.servers is not None
        self.counts["requests that came late"] += self._lab.servers.deliver()


#: Those that only a run feels: they last until one has moved.
_FOR_RUNS = (Kind.CLOCK, Kind.DISK, Kind.FOLDER)
#: Those that are killed. What starts them again waits until they answer.
_SERVERS = frozenset({Kind.GATEWAY, Kind.ORACLE, Kind.HBASE, Kind.SERVER})
#: Those of them that readers ask.
_ASKED = _SERVERS - {Kind.GATEWAY}
#: Those that are about what is written; whatever reads is hit by all others too.
_OF_WRITES = frozenset({Kind.LOSE, Kind.SWALLOW, Kind.LATE})
