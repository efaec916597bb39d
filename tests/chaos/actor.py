"""A run of a job in a plan: a thread of its own, which moves only while it has the baton."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import deadman
from deadman import Die, Effect
from job_kit import Outcome

from tests.chaos.judge import ANEW, ENTRIES_BACK, Seen
from tests.chaos.nemeses import ANY
from tests.chaos.steps import ASKED, COUNTED, RECORD, TABLES, TIMED, TURN, Act, Moment, Run, Seam, Step, Table

if TYPE_CHECKING:
    from tests.chaos.director import Director

#: What an actor wishes that wants to stand still.
PARK = "park"
#: What happens while a write waits for its turn has to be over so many seconds after it began: what comes later may
#: come when the write was sent, which is judged by nobody then.
_IN_TIME = deadman.TURN / 2


@dataclass(eq=False)
class Actor(threading.Thread):
    """A run of a job, which goes on only while it has the baton."""

    director: Director
    step: Run
    run_id: str
    arguments: Sequence[str]
    outcome: Outcome | None = None
    error: BaseException | None = None
    life: deadman.Life[Outcome] | None = None
    over: bool = False
    #: What it wants of the director: nothing (it is over), steps, or to be parked.
    wish: Sequence[Step] | str = ()
    #: What there was when it began, and before the write that it is in.
    first: Seen | None = None
    before: Seen | None = None
    #: Tables that came back since it looked which there are: it cannot know of those.
    came_back_since: set[str] = field(default_factory=set)
    #: Those of them that it lists once more before the journal lets go of anything.
    listed_again: frozenset[str] = frozenset()
    #: Whether a relay has lied about a request of it.
    lied_to: bool = False
    #: The dry run that it is held to.
    approved: Actor | None = None
    #: Whether the oracle was made anew since it began.
    anew_since: bool = False
    #: Whether the commit table, which it had read, came back when it was a cleanup that was yet to record, or a restore
    #: that was yet to decide.
    entries_back: bool = False
    #: The run whose sideline it puts back, from when it is about to write first.
    puts_back: str = ""
    #: Tables that hid cells when it began.
    hidden_then: frozenset[str] = frozenset()
    #: Tables whose servers may have lost something when it began, and how often it has had each written to files.
    loose_then: frozenset[str] = frozenset()
    flushed: Counter[str] = field(default_factory=Counter)
    #: Whether the clock of its machine was wrong from its beginning until it looked which tables there are.
    clock_off: bool = False
    looked: bool = False
    _go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _back: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _met: Counter[str] = field(default_factory=Counter)
    #: The numbers of its seams that it came to.
    reached: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__(name=self.run_id, daemon=True)

    def run(self) -> None:
        """The thread's work."""
        self._go.acquire()
        try:
            session = self.director.lab.spark
            session._jvm.SparkSession.setActiveSession(session._jsparkSession)  # type: ignore[union-attr]
            turns = list(Table) if any(seam.kind == TURN for seam in self.step.seams) else ()
            self.life = deadman.run(self._work, self._watch, reads=True, turns=turns)
            self.outcome = self.life.result
        except BaseException as error:  # the director raises it
            self.error = error
        self.over = True
        self._back.release()

    @property
    def of_before(self) -> str:
        """Why it goes by what no longer holds; empty: it does not."""
        return ANEW if self.anew_since else ENTRIES_BACK if self.entries_back else ""

    def entries_came_back(self) -> None:
        """The commit table has come back. A cleanup asks for HBase's time four times before it decides."""
        records = self._met[TIMED] > 4 or self._met[RECORD] > 0
        cleans = self.looked and not records and self.step.job == "orphan_cleanup"
        self.entries_back |= cleans or (self._met[ASKED] > 0 and not self._met["connector"])

    def did(self, effect: Effect) -> None:
        """An effect has taken place. A run lists the tables after it has recorded the low watermark: what came back
        before that it knows. A pruning reads those that it listed once more when it has counted: what came back of them
        before that it sees. It lists all again before the journal lets go of anything.
        """
        if (effect.seam, effect.name) == ("hbase", "flush"):
            self.flushed[effect.on] += 1
        if effect.step.endswith("record_low_watermark"):
            self.came_back_since.clear()
            self.looked = True
        if effect.step.endswith(COUNTED):
            self.listed_again = frozenset(self.came_back_since)
            self.came_back_since -= set(TABLES)

    def _work(self) -> Outcome:
        return self.director.lab.job(self.step.job, self.run_id, *self.arguments)

    def go_on(self) -> None:
        """Called by the director: give it the baton, and wait until it comes back."""
        if not self.is_alive():
            self.start()
        self._go.release()
        self._back.acquire()

    def _hand_over(self, wish: Sequence[Step] | str) -> None:
        self.wish = wish
        self._back.release()
        self._go.acquire()

    def _watch(self, effect: Effect, moment: deadman.Moment) -> Die | None:
        if self.director.has_enough and threading.current_thread() is self:
            return Die()
        try:
            return self._met_at(effect, moment)
        except Exception as error:  # ours, and no matter for the run to handle: the director raises it
            self.error = self.error or error
            return Die()

    def _met_at(self, effect: Effect, moment: deadman.Moment) -> Die | None:
        if threading.current_thread() is not self:  # a hold that is renewed
            return None
        if moment is not deadman.Moment.BEFORE:
            self.director.strikes.ended(effect)
            if effect.number:
                self.director.happened(self, effect, failed=moment is deadman.Moment.FAILED)
            if moment is deadman.Moment.FAILED:  # the run goes on with its error, and no step comes first
                return None
        else:
            self._meets(effect)
        for seam in self._seams(effect, moment):
            self.reached.add(seam.number)
            self.director.note(f"{self.run_id} {moment} {effect.seam} {effect.name} of {effect.step}: it {seam.act}")
            if seam.steps:
                self._have_taken(seam)
            if seam.act is Act.PARK:
                self._hand_over(PARK)
            elif seam.act is not Act.ON:
                self._begins(effect)
                return Die(seam.share if seam.act is Act.PART else None, seam.seed)
        if moment is deadman.Moment.BEFORE:
            self._begins(effect)
        return None

    def _meets(self, effect: Effect) -> None:
        self._met.update(_kinds(effect))
        if effect.seam == "connector" and self.step.job == "sideline_restore":
            self.puts_back = self.arguments[self.arguments.index("--restore") + 1]

    def _have_taken(self, seam: Seam) -> None:
        began = time.monotonic()
        self._hand_over(seam.steps)
        if seam.kind == TURN and time.monotonic() - began > _IN_TIME:
            self.before = None

    def _begins(self, effect: Effect) -> None:
        self.director.strikes.begins(effect)
        if effect.seam == "connector":
            self.before = self.director.seen()

    def _seams(self, effect: Effect, moment: deadman.Moment) -> list[Seam]:
        here = Moment.AFTER if moment is deadman.Moment.AFTER else Moment.BEFORE
        met = {kind: self._met[kind] for kind in _kinds(effect)}
        return [s for s in self.step.seams if s.moment is here and met.get(s.kind) == s.nth]


def _kinds(effect: Effect) -> list[str]:
    """What seams call it."""
    step = effect.step.rpartition(".")[2]
    return [effect.seam, step, ANY] if effect.number else [effect.seam, f"{effect.seam} of {step}"]
