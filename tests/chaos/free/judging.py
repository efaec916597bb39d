"""What must be true of processes that ran at the same time: own code, from what was recorded of them.

As :mod:`tests.chaos.judge`, of whose parts it is made, it imports nothing of Lowtide. The rules have the numbers of
docs/testing.md. Nothing stood still while it was looked at, so each is asked only where the order of events is certain:
what was read first, who was dead by then, which mark there was before and after.

Who committed is known of every transaction whose client told its end. Of one whose client was killed, or never got an
answer, nothing is known: it is taken for committed if anything at any time (a shadow cell, a commit entry without a
mark, the journal) says so, and then for all of its cells and all readers.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.judge import (
    LAST,
    Cell,
    Entry,
    History,
    Judge,
    Key,
    Raw,
    Records,
    Seen,
    commit_entries,
    is_shadow,
    journal_entries,
    low_watermark,
    proved,
    shown,
    standing,
    start_of,
    unproved,
)

#: Ends before which a client takes its cells away, or was about to.
_TAKEN_BACK = frozenset({"rolled back", "conflict", "watermark", ""})
#: So long after a client told its end, or was dead, a server may still do what it had asked for, ms: HBase's client
#: waits for an answer for a minute.
_LATE = 60_000
#: So long after a server is there again what it had may be elsewhere, or nowhere for a moment, ms.
_SHAKEN = 60_000
#: What HBase's client was told last where it looked for a region in vain, and the steps after which it may be.
_ASTRAY = "Region moved to: "
_REGIONS = ("has a region moved", "is split", "is merged")


def generation(records: Records) -> int:
    """How often the records were reset."""
    row = records.rows.get(b"generation", {})
    return int(json.loads(row[b"value"])["generation"]) if b"value" in row else 0


@dataclass
class Told:
    """What a folder has: lines of its history in their order, and what clients told."""

    lines: list[dict[str, Any]]
    history: History = field(default_factory=History)
    #: When a transaction's client told its end, or was dead, ms; and how it ended, empty: nobody knows.
    over: dict[int, int] = field(default_factory=dict)
    outcomes: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> Told:
        """Read a folder. Of a line that a kill cut off nothing was done."""
        told = cls([json.loads(line) for line in _whole_lines(folder / "history.jsonl")])
        for line in told.of_kind("client"):
            told._client(_whole_lines(folder / "clients" / line["log"]), line["to"])
        return told

    def of_kind(self, *what: str) -> Iterator[dict[str, Any]]:
        """The lines of these kinds."""
        return (line for line in self.lines if line["what"] in what)

    def _client(self, log: Iterable[str], dead: int) -> None:
        for line in log:
            event = json.loads(line)
            self.history.read(line)
            ended = event["event"] == "end"
            self.over[event["start"]] = event["at"] if ended else dead
            self.outcomes[event["start"]] = event["outcome"] if ended else ""
            if ended and event.get("crash") is not None:
                self.outcomes[event["start"]] += f" at {event['crash']}"


def _whole_lines(file: Path) -> list[str]:
    return file.read_text().split("\n")[:-1] if file.exists() else []


@dataclass
class Look:
    """All there was, as it was read: each part at its time, the records first and the journal last."""

    number: int
    parts: dict[str, Raw]
    begun: dict[str, int]

    @property
    def tables(self) -> dict[str, Raw]:
        """The clients' tables."""
        return {name: raw for name, raw in self.parts.items() if name not in _OTHERS}

    @property
    def commit_table(self) -> Raw:
        """Omid's."""
        return self.parts[_COMMITS]

    @property
    def journal(self) -> Raw:
        """Lowtide's."""
        return self.parts["journal"]

    @property
    def records(self) -> Records:
        """Lowtide's."""
        return Records.of(self.parts[_STATE])


_NOTHING = Entry(None, False)
_STATE, _COMMITS = "CHAOS_STATE", "OMID_COMMIT_TABLE"
_OTHERS = (_STATE, _COMMITS, "journal")


def looks(told: Told) -> Iterator[Look]:
    """Every look that saw all; one that broke off is left out, and what it had seen counts for the next."""
    parts: dict[str, set[Cell]] = defaultdict(set)
    begun: dict[str, int] = {}
    for line in told.of_kind("sample"):
        of = parts[line["of"]]
        of -= set(map(_cell, line["went"]))
        of |= set(map(_cell, line["came"]))
        begun[line["of"]] = line["from"]
        if line["of"] == "journal":  # the last of a look
            yield Look(line["look"], {name: frozenset(cells) for name, cells in parts.items()}, dict(begun))


def _cell(fields: list[Any]) -> Cell:
    row, family, qualifier, timestamp, kind, value = fields
    return Cell(_raw(row), _raw(family), _raw(qualifier), timestamp, kind, _raw(value))


def _raw(text: str) -> bytes:
    return text.encode("iso-8859-1")


@dataclass
class Verdict:
    """What was found wrong, and how often something was looked at."""

    wrong: list[str]
    counts: Counter[str]

    def __str__(self) -> str:
        counts = "\n".join(f"{number:8,} {what}" for what, number in sorted(self.counts.items()))
        return "\n".join([counts, *(self.wrong or ["nothing is wrong"])])


def judged(folder: Path) -> Verdict:
    """Judge what a folder has."""
    told = Told.of(folder)
    court = _Court(told)
    court.who_committed()
    court.look_by_look()
    court.reads()
    court.runs()
    court.at_the_end()
    court.told_counts()
    return Verdict(court.wrong, court.counts)


def never_committed(folder: Path) -> set[int]:
    """The transactions in a folder of which nothing that was recorded says that they committed, when all clients are
    over: so a person may say of each.
    """
    court = _Court(Told.of(folder))
    court.who_committed()
    return court.history.begun - court.history.commits.keys()


class _Court:
    def __init__(self, told: Told) -> None:
        self.told = told
        self.history = told.history
        self.wrong: list[str] = []
        self.counts: Counter[str] = Counter()
        self._said: Counter[str] = Counter()
        self._aside: dict[str, set[Key]] = defaultdict(set)
        for line in told.of_kind("aside"):
            self._aside[line["table"]] |= {(_raw(r), _raw(f), _raw(q), t) for r, f, q, t in line["keys"]}

    def _say(self, where: str, what: str, rule: str) -> None:
        """A few of a kind are enough."""
        self._said[f"{where.split(' ')[0]} {rule}"] += 1
        if self._said[f"{where.split(' ')[0]} {rule}"] <= 5:
            self.wrong.append(f"{where}: {what} ({rule})")

    # -- who committed

    def who_committed(self) -> None:
        """(2) Whatever says that a transaction committed is so, and says the same."""
        evidence: dict[int, set[int]] = defaultdict(set)
        for look in looks(self.told):
            for start, commit in _evidence(look):
                evidence[start].add(commit)
        history = self.history
        for start in sorted(evidence.keys() & history.begun):
            commits = evidence[start]
            known = history.commits.get(start)
            if start not in history.ended:
                self.counts["transactions without an answer that committed"] += 1
                history.commits[start] = min(commits)
                if len(commits) > 1:
                    self._say("commits", f"{start} committed at {sorted(commits)}, all of them", "2")
            elif commits != {known}:
                outcome = self.told.outcomes[start]
                self._say("commits", f"{start}, {outcome}, has {known}; the store said {sorted(commits)}", "2")
        unknown = {s for s in history.begun - history.ended if s not in history.commits}
        self.counts["transactions without an answer that did not commit"] = len(unknown)

    # -- what there was

    def look_by_look(self) -> None:
        """(1) to (4), (6), (7), from each look to the next."""
        before: Look | None = None
        for look in looks(self.told):
            self.counts["looks at everything"] += 1
            where = f"look {look.number}"
            self._commits(where, before, look)
            self._bounds(where, look)
            for table, raw in look.tables.items():
                was = before.tables[table] if before else frozenset()
                since = before.begun[table] if before else 0
                self._table(f"{where}, {table}", table, (standing(was), standing(raw)), since)
            if before:
                self._grown(where, before.records, look.records)
            before = look

    def _grown(self, where: str, was: Records, now: Records) -> None:
        again = generation(was) != generation(now)
        pairs = [("epoch", was.epochs(), now.epochs()), ("history mark", was.marks(), now.marks())]
        pairs += [] if again else [("bound", {"all": was.bound()}, {"all": now.bound()})]
        for what, old, new in pairs:
            for of, number in old.items():
                if new.get(of, 0) < number:
                    self._say(where, f"the {what} of {of} went from {number} back to {new.get(of)}", "6")

    def _bounds(self, where: str, look: Look) -> None:
        bound, of_regions = look.records.bound(), look.records.watermarks()
        if bound > (watermark := low_watermark(look.commit_table)):
            self._say(where, f"the bound {bound} is above the low watermark {watermark}", "3")
        for table, raw in look.tables.items():
            for key in unproved(standing(raw)):
                start = start_of(key[3])
                if start not in self.history.commits:
                    continue
                here = [w for t, a, b, w in of_regions if t == table and a <= key[0] and (not b or key[0] < b)]
                self.counts["unproved cells beside the bound"] += 1
                if start <= max([bound, *here]):
                    self._say(where, f"{table} {key} lacks its shadow cell: bound {bound}, watermark {here}", "3")

    def _commits(self, where: str, before: Look | None, look: Look) -> None:
        was = commit_entries(before.commit_table) if before else {}
        now, journal, commits = commit_entries(look.commit_table), journal_entries(look.journal), self.history.commits
        for start, entry in now.items():
            if entry.invalid and start in commits:
                self._say(where, f"{start} has a mark, and committed at {commits[start]}", "2")
        for start, commit in journal.items():
            if commit is not None and start in self.history.begun and commit != commits.get(start):
                self._say(where, f"the journal has {start} at {commit}, and it has {commits.get(start)}", "4")
        lacking = {start_of(key[3]): (t, key) for t, raw in look.tables.items() for key in unproved(standing(raw))}
        since = before.begun[_COMMITS] if before else 0
        for start, entry in was.items():
            new = now.get(start, _NOTHING)
            if new != entry and start in self.history.begun:
                self.counts["changes of the commit table"] += 1
                self._changed(f"{where}, {start}", start, (entry, new), journal, lacking, since)

    def _changed(
        self,
        where: str,
        start: int,
        entries: tuple[Entry, Entry],
        journal: Mapping[int, int | None],
        lacking: Mapping[int, tuple[str, Key]],
        since: int,
    ) -> None:
        old, new = entries
        if old.invalid:
            if not new.invalid and start not in journal and start not in self.history.commits:
                self._say(where, "its mark went, and the journal has nothing", "4")
        elif old.commit is not None and new.commit is None:
            if start in lacking:
                table, key = lacking[start]
                self._say(where, f"its entry went, and {table} {key} lacks its shadow cell", "4")
            # A client that lives takes its entry away when its shadow cells are there.
            if self.told.over[start] < since:
                self.counts["entries that were pruned"] += 1
                if journal.get(start) != old.commit:
                    self._say(where, f"its entry went, and the journal has {journal.get(start)}", "4")

    def _table(
        self, where: str, table: str, cells: tuple[Mapping[Key, bytes], Mapping[Key, bytes]], since: int
    ) -> None:
        was, now = cells
        ever, commits = self.history.ever[table], self.history.commits
        for key in now.keys() - was.keys():
            self.counts["cells that came"] += 1
            if not is_shadow(key[2]) and ever.get(key) != now[key]:
                self._say(where, f"{key} came, and no client wrote it", "2")
        for key in was.keys() - now.keys():
            start = start_of(key[3])
            self.counts["cells that went"] += 1
            if is_shadow(key[2]):
                if start in commits and proved(key) in now:
                    self._say(where, f"the shadow cell {key} went, and its data stands", "1")
            elif key not in self._aside[table] and not self._taken_back(start, since):
                self._say(where, f"{key} of {start}, {self._how(start)}, went and is in no sideline", "7")
            elif key in self._aside[table]:
                self.counts["cells that went aside"] += 1
        for key in now.keys() & was.keys():
            if now[key] != was[key]:
                self._say(where, f"{key} has another value", "2")

    def _how(self, start: int) -> str:
        return self.told.outcomes.get(start) or "without an answer"

    def _taken_back(self, start: int, since: int) -> bool:
        """Whether its own client may have taken away a cell that was there *since* then.

        It does so before it tells its end. What is there later it has left, but for a request that was on its way.
        """
        if start in self.history.commits:
            return False
        outcome, over = self.told.outcomes.get(start, ""), self.told.over[start]
        # A client that dies in its clean-up has taken a part away.
        takes = outcome in _TAKEN_BACK or " at 2" in outcome or " at 8" in outcome
        return over >= since or (takes and over >= since - _LATE)

    # -- readers

    def reads(self) -> None:
        """(5) What readers were shown, where the mark had not passed them; and what had to be refused. (9) They fail
        where a server does, and no other time.
        """
        asked, judged = 0, 0
        for line in self.told.of_kind("read"):
            how, table, point = line["how"], line["table"], line["point"]
            where = f"read ({how}) of {table} at {point} from {line['from']}"
            if "error" in line:
                self.counts[f"reads ({how}) that failed"] += 1
                # INTERNAL_ERROR is Spark's word for what nobody has foreseen.
                if "INTERNAL_ERROR" in line["error"] or not (self._shaken(line) or self._led_astray(line)):
                    self._say(where, line["error"].splitlines()[-1], "9")
                continue
            asked += 1
            if line["refused"]:
                self.counts[f"reads ({how}) that were refused"] += 1
                continue
            self.counts[f"reads ({how}) that were judged"] += 1
            if how == "as of" and point < line["mark_before"]:
                self._say(where, f"the mark was {line['mark_before']}, and it was not refused", "5")
            if point < line["mark_after"] and how == "omid":
                self.counts[f"reads ({how}) that were judged"] -= 1
                self.counts[f"reads ({how}) that the mark has passed"] += 1
                continue
            judged += 1
            got = {(_raw(r), _raw(f), _raw(q)): _raw(v) for r, f, q, v in line["cells"]}
            expected = shown(self.history.tables[table], self.history.commits, point)
            if got != expected:
                columns = sorted(c for c in got.keys() | expected.keys() if got.get(c) != expected.get(c))
                told = "; ".join(f"{c} is {got.get(c)!r} and was to be {expected.get(c)!r}" for c in columns[:2])
                self._say(where, f"{len(columns)} columns: {told}", "5")
        if asked and not judged:
            self._say("at the end", f"{asked} reads were answered, and none could be judged", "5")

    def _shaken(self, line: Mapping[str, Any]) -> bool:
        """Whether a server that this reader asks was dead while it did, or shortly before. Nobody reads through the
        gateway; whom the oracle does not answer has no read point, where Omid's client takes one.
        """
        others = {"thrift"} if line["how"] == "omid" else {"thrift", "tso"}
        down = [s for s in self.told.of_kind("server") if s["part"] not in others]
        return any(s["from"] <= line["to"] and line["from"] <= s["to"] + _SHAKEN for s in down)

    def _led_astray(self, line: Mapping[str, Any]) -> bool:
        """Whether HBase's own client ran out of patience where a server had it look for a region of the table that had
        moved, or was split or merged, shortly before: it goes there and back, as long as either still says so.
        """
        if line["how"] != "omid" or _ASTRAY not in line["error"]:
            return False
        return any(
            step["from"] <= line["to"] and line["from"] <= step["to"] + _SHAKEN
            for step in self.told.of_kind("step")
            if "error" not in step and step["step"].startswith(tuple(f"{line['table']} {what}" for what in _REGIONS))
        )

    # -- runs

    def runs(self) -> None:
        """A run ends well or says why not, in words that somebody wrote for it; and at last they all do (9)."""
        last: dict[int, list[int | None]] = defaultdict(list)
        for line in self.told.of_kind("run", "last run"):
            where = f"run {line['run']} ({line['job']})"
            code = line.get("code")
            self.counts[f"runs of {line['job']}"] += 1
            if line["what"] == "last run":
                last[line["round"]].append(code)
            if "error" in line or line.get("hung"):
                self._say(where, line.get("error", "it never ended"), "9")
                continue
            if line["what"] == "run":
                self._of_fate(line)
            if code is None or code < 0 or code > 128:
                continue
            for problem in line.get("problems", ()):
                if problem.startswith("unexpected "):
                    self._say(where, problem, "9")
            if "problems" not in line or (code and not line["problems"]):
                self._say(where, f"it ended with {code} and does not say why", "9")
        if not last or any(last[max(last)]):
            self._say("at the end", f"the jobs ended with {dict(last)}", "9")

    def _of_fate(self, line: Mapping[str, Any]) -> None:
        code = line.get("code")
        died = code is None or code < 0 or code > 128
        self.counts["runs that were killed" if died else f"runs with exit {code}"] += 1
        for blow in line.get("blows", ()):
            if "still" in blow["what"]:
                self.counts[f"runs that stood still after {', '.join(blow['phase'] or []) or 'their start'}"] += 1

    # -- the end

    def at_the_end(self) -> None:
        """(9), (1) By the last look, as of a plan of the baton."""
        last = None
        for look in looks(self.told):
            last = look
        if last is None or not any(self.told.of_kind("end")):
            self._say("at the end", "it was not recorded to its end", "9")
            return
        judge = Judge(self.history, self.wrong, _records=last.records)
        judge.at_the_end(Seen(last.tables, last.commit_table, last.journal))
        self.counts.update(judge.counts)

    def told_counts(self) -> None:
        """What happened, by kind."""
        counts, history = self.counts, self.history
        counts["transactions begun"] = len(history.begun)
        counts["transactions committed"] = len(history.commits)
        for line in self.told.of_kind("client"):
            counts[f"clients that {'were killed' if line['killed'] else 'ended in order'}"] += 1
        for line in self.told.of_kind("server"):
            counts[f"times that {line['kind']} was killed"] += 1
        for line in self.told.of_kind("step"):
            kind = line["step"].removeprefix("chaos_").partition(" (")[0]
            kind = f"a table {kind[2:]}" if line["step"].startswith("chaos_") else kind
            counts[f"times that {kind}{', refused' if 'error' in line else ''}"] += 1
        counts["looks that broke off"] = sum(1 for _ in self.told.of_kind("blind"))


def _evidence(look: Look) -> Iterator[tuple[int, int]]:
    """Transactions of which something says that they committed, and when."""
    for raw in look.tables.values():
        for key, value in standing(raw).items():
            commit = int.from_bytes(value, "big") if is_shadow(key[2]) else LAST
            if key[3] < commit < LAST:
                yield start_of(key[3]), commit
    for start, entry in commit_entries(look.commit_table).items():
        if entry.commit is not None and not entry.invalid:
            yield start, entry.commit
    for start, pruned in journal_entries(look.journal).items():
        if pruned is not None:
            yield start, pruned


# -- a run that stood still


def resumed(
    where: str,
    seen: tuple[Seen, Seen],
    records: tuple[Raw, Raw, Raw],
    *,
    by_epoch: bool,
    came_back: Collection[str],
    writing: bool,
) -> list[str]:
    """What a run did after it had stood still that was no longer its to do (6).

    Args:
        where: begins each line.
        seen: before it went on, and when it had ended; nothing else happened between.
        records: the state table when it stood still, before it went on, and when it had ended.
        by_epoch: whether its writes are under the epoch of their table, as a cleanup's are.
        came_back: tables that came back, or came anew, while it stood still.
        writing: whether it had stood still in the middle of writing: then one batch may have been on its way.
    """
    before, after = seen
    stop, then, now = (Records.of(raw) for raw in records)
    reset = generation(stop) != generation(then)
    epochs = (stop.epochs(), then.epochs())
    taken = {t for t in epochs[1] if epochs[0].get(t) != epochs[1][t]} if by_epoch else set()
    others = set(before.tables) if reset else {*came_back, *taken}
    why = "the records were reset" if reset else "it had another owner or was another"
    wrong = []
    if not writing:
        wrong += [f"{t} was written to, and {why}" for t in sorted(others) if before.tables[t] != after.tables[t]]
        if reset and commit_entries(before.commit_table) != commit_entries(after.commit_table):
            wrong.append("the commit table was written to, and the records were reset")
        if reset and before.journal != after.journal:
            wrong.append("the journal was written to, and the records were reset")
    own = (b"table/", b"history/", b"bound/", b"watermarks/", b"journal")
    rows = {row for row in then.rows.keys() | now.rows.keys() if then.rows.get(row) != now.rows.get(row)}
    for row in sorted(rows):
        kind, _, table = row.decode().partition("/")
        if (reset and row.startswith(own)) or (kind in ("table", "history") and table in others):
            wrong.append(f"the record {row.decode()} was written, and {why}")
    return [f"{where}: {line} (6)" for line in wrong]
