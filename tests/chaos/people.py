"""What people say of the tables of a plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from lowtide.errors import LowtideError
from tests.chaos.judge import Judge, is_shadow, standing, start_of, unproved
from tests.chaos.laboratory import STATE, Laboratory
from tests.chaos.nemeses import Kind
from tests.chaos.steps import Say, Table, Word
from tests.chaos.striking import Strikes
from tests.chaos.tables import Tables


class People:
    """Who pauses, vetoes and holds, forgets, confirms and decides. *in_flight*: transactions of which nobody can say
    what became of them.
    """

    def __init__(
        self,
        lab: Laboratory,
        judge: Judge,
        strikes: Strikes,
        tables: Tables,
        in_flight: Collection[int],
        points: Sequence[int],
    ) -> None:
        self._lab = lab
        self._judge = judge
        self._strikes = strikes
        self._tables = tables
        self._in_flight = in_flight
        self._points = points
        self._holds: dict[str, list[str]] = {table: [] for table in Table}
        #: The pauses, by table.
        self.paused: dict[str, str] = {}

    def silent(self, hidden_then: Collection[str]) -> set[str]:
        """The tables that a run may not write to now, of which these hid cells when it began."""
        tables = self._tables
        return {*self.paused, *tables.vetoed, *(tables.hidden & set(hidden_then))}

    def say(self, step: Say) -> str | None:
        """A word; why it was not said, if not."""
        if step.table not in self._tables.there:
            return "it is not there"
        self._strikes.put_back(Kind.GATEWAY)  # people say so through it
        try:
            return self._DECIDING.get(step.word, People._say_of_tables)(self, step)
        except LowtideError as error:
            return type(error).__name__

    def take_all_back(self) -> None:
        """Nothing is paused, vetoed, held, or to be confirmed, and of a journal that lost something it is known."""
        for table in Table:
            if table in self.paused:
                self._lab.resume(self.paused.pop(table))
            if table in self._tables.vetoed:
                self._lab.veto(table, on=True)
            if table in self._tables.imported:
                self._lab.confirm(table)
            for name in self._holds[table]:
                with suppress(LowtideError):
                    self._lab.release(table, name)
            self._judge.held[table].clear()
        self._accept()
        self._tables.vetoed.clear()
        self._tables.imported.clear()

    def lost_records(self) -> None:
        """Nothing is known of what people said."""
        self.paused.clear()
        for held in (*self._holds.values(), *self._judge.held.values()):
            held.clear()

    def _say_of_tables(self, step: Say) -> str | None:
        table = step.table
        match step.word:
            case Word.PAUSE if table not in self.paused:
                self.paused[table] = f"pause-{step.number}"
                self._lab.pause(table, self.paused[table])
            case Word.RESUME if table in self.paused:
                self._lab.resume(self.paused.pop(table))
            case Word.VETO if table not in self._tables.disabled:
                self._tables.vetoed.add(table)
                self._lab.veto(table, on=False)
            case Word.CONSENT if table in self._tables.vetoed and table not in self._tables.disabled:
                self._tables.vetoed.discard(table)
                self._lab.veto(table, on=True)
            case Word.HOLD | Word.KEEP if step.word is Word.HOLD or self._points:
                name, point = self._lab.hold(table, self._points[-1] if step.word is Word.KEEP else None)
                self._holds[table].append(name)
                self._judge.held[table].append(point)
            case Word.RELEASE if self._holds[table]:
                self._lab.release(table, self._holds[table].pop(0))
                self._judge.held[table].pop(0)
            case _:
                return "nothing to say"
        return None

    def _forget(self, step: Say) -> None:
        self._lab.forget(step.table)
        self._judge.recorded(f"step {step.number}", "a person", self._lab.raw(STATE))

    def _confirm(self, step: Say) -> None:
        self._lab.confirm(step.table)
        self._tables.imported.discard(step.table)

    def _resolve(self, step: Say) -> str:
        """What a person says of a transaction is so: of one that is over, and that the low watermark has passed."""
        history, watermark = self._judge.history, self._lab.omid.watermark()
        known = sorted(start for start in history.ended if start <= watermark and start not in self._in_flight)
        if not known:
            return "there is none"
        start = known[step.number * 7 % len(known)]
        self._lab.resolve(start, history.commits.get(start))
        return "it committed" if start in history.commits else "it never did"

    def _mistake(self, _: Say) -> str:
        """Somebody takes a transaction for aborted that committed: nothing in the store says otherwise."""
        history, cells = self._judge.history, [standing(raw) for raw in self._tables.raw().values()]
        shown = {start_of(key[3]) for each in cells for key in each if is_shadow(key[2])}
        over = [s for s in self._unproved_and_over(self._tables.there) if s in history.untold & history.commits.keys()]
        if not (over := [start for start in over if start not in shown]):
            return "there is none"
        self._lab.resolve(over[0], None)
        history.taken_for_aborted(over[0])
        return f"{over[0]} never did"

    def decide_the_rest(self) -> str:
        """What no proof decides in tables that came back: of each transaction that is over and never committed, so;
        and of those that committed and of which nothing in the store need tell.
        """
        history, over = self._judge.history, self._unproved_and_over(self._tables.there)
        never = [start for start in over if start not in history.commits]
        if never:
            self._lab.resolve_aborted(never)
        untold = [start for start in over if start in history.untold & history.commits.keys()]
        for start in untold:
            with suppress(LowtideError):  # something tells by now
                self._lab.resolve(start, history.commits[start])
        return f"{len(never)} never committed, {len(untold)} did"

    def _meet(self, step: Say) -> str:
        """Readers of Omid's mark a transaction of an earlier oracle's time of which they find a cell and no proof."""
        over = self._unproved_and_over({step.table})
        return f"{sum(self._lab.omid.invalidate(start) for start in over)} are marked"

    def _unproved_and_over(self, tables: Collection[str]) -> list[int]:
        """The transactions that are over, and have a cell in these tables that lacks its shadow cell."""
        history, watermark = self._judge.history, self._lab.omid.watermark()
        own = [raw for table, raw in self._tables.raw().items() if table in tables]
        bare = {start_of(key[3]) for raw in own for key in unproved(standing(raw))}
        return sorted(start for start in bare & history.ended if start <= watermark and start not in self._in_flight)

    def _accept(self, _: Say | None = None) -> str | None:
        if not self._tables.journal_lost:
            return "it has lost nothing"
        self._lab.journal_lost()
        self._tables.journal_lost = False
        return None

    def _reset(self, step: Say) -> None:
        self._lab.reset()
        self._judge.recorded(f"step {step.number}", "a person", self._lab.raw(STATE))

    _DECIDING: dict[Word, Callable] = {  # type: ignore[type-arg]  # noqa: RUF012
        Word.FORGET: _forget,
        Word.CONFIRM: _confirm,
        Word.RESOLVE: _resolve,
        Word.DECIDE: lambda self, _: self.decide_the_rest(),
        Word.MISTAKE: _mistake,
        Word.MEET: _meet,
        Word.ACCEPT: _accept,
        Word.RESET: _reset,
    }
