"""What has been cleaned where, and the marks that follow from it: region watermarks and the prune bound.

All functions are pure. A *fact* is written by a cleanup run after its actions on a key range were acknowledged; it says
that in this range, for these transactional families and these start timestamps, every committed cell has a durable
shadow cell and every orphan found was removed. It does not say that no orphan will ever appear there again: a paused
client can still land a write that never commits.

Facts speak of key ranges, not of regions: regions split, merge and move. They speak of one *incarnation* of the table:
one that was dropped and made again, or came back from an HBase snapshot, starts from nothing. And they speak of
families of one *shape*: versions that HBase hid from the run were never read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lowtide.tables.inventory import without_compactor
from lowtide.values.intervals import Intervals
from lowtide.values.keyranges import KeyRange

# Bounds are kept with these sentences, and their causes are known by them: a test holds them to their wording.

#: Why nothing that is recorded of a table counts.
VOID = (
    "what was recorded no longer counts: the table was made anew, restored, or disabled and enabled since, or its "
    "families were altered, or the records are of a version of Lowtide that did not check this"
)
#: What is reported with it of a table whose compactions Omid's compactor runs in.
DROPPING = (
    "Omid's compactor is on the table: if it came back from an HBase snapshot, that drops committed cells whose "
    "commit entries were pruned since, until a cleanup has healed them"
)
#: What lets readers see at once what only the cleanup would show them again.
REPLAY = "lowtide journal replay --since-snapshot SNAPSHOT --execute"
#: Why a region whose records count holds the prune bound, and one of which nothing is recorded from 0 on.
PARTLY, NEVER = "cleaned up to here only", "never cleaned"
#: What stands between that and what somebody says against cleaning the table.
OBJECTED = ", and waits: "
#: A run that is started again goes on from what it has recorded for so long, in ms; after that the id tells of another
#: run.
RESTART = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Region:
    """A region as the master lists it; *created* is its region id, the master's clock in ms at its creation.

    *compacted* is the time in ms of its oldest file that a major compaction made, 0 where there is none; *stated* the
    time in ms, by the clock of hbase:meta's server, of its table's state there, the same for all regions of a table, 0
    where it is not known.
    """

    name: str
    keys: KeyRange
    created: int
    store_bytes: int = 0
    compacted: int = 0
    stated: int = 0


@dataclass(frozen=True, slots=True)
class Fact:
    """A key range's cleaned intervals (of start timestamps, half-open), for these families of one incarnation and one
    shape.
    """

    keys: KeyRange
    intervals: Intervals
    families: frozenset[str]
    incarnation: int
    run: str = ""
    recorded_at: int = 0
    #: Wall-clock ms of the last pass over this range that read from 0; 0: never.
    full_pass_at: int = 0
    #: What of the intervals the run itself has read, and the wall-clock ms since when it has.
    read: Intervals = field(default_factory=Intervals)
    read_since: int = 0
    #: Of the families when they were read (``lowtide.tables.settings.shape_of``); empty: of a record of before there
    #: were shapes.
    shape: str = ""
    #: :func:`cleaned_before` of the table; None: of a record of before that was kept, which does not say.
    before: Intervals | None = field(default_factory=Intervals)


@dataclass(frozen=True, slots=True)
class Incarnation:
    """A number for one life of a table, and what it was known by when it was last read: its newest region id, and
    the time of its state.
    """

    number: int
    newest_region: int
    stated: int = 0

    @classmethod
    def unknown(cls) -> Incarnation:
        """Before a table was ever listed: whatever it is then is a new incarnation."""
        return cls(0, -1)

    def advance(self, regions: Sequence[Region]) -> Incarnation:
        """The incarnation that *regions*, listed now, belong to.

        A drop, a truncation or a re-creation replaces every region, so that all ids are newer than any seen before. An
        HBase snapshot that is restored, or cloned under the old name, keeps the ids, but not the time of the table's
        state in hbase:meta: that is written anew when the table is disabled, enabled or made. *Another* time, not a
        later one: the server's clock may have been set back. As long as one region is not newer and the state is of the
        same time, the table is the same; ids of regions born of splits and merges are then learned. A table that was
        only disabled and enabled, or whose regions were *all* replaced by splits alone, counts as a new one too: it is
        then cleaned again from 0, which costs time and no data.
        """
        created, stated = [r.created for r in regions], max((r.stated for r in regions), default=0)
        if not created:
            return self
        if min(created) <= self.newest_region and stated == self.stated:
            return Incarnation(self.number, max(self.newest_region, *created), stated)
        return Incarnation(self.number + 1, max(self.newest_region, *created), stated)

    def lives(self, regions: Sequence[Region]) -> bool:
        """Whether *regions*, listed while a run goes on, still belong to it: by the state alone, for splits may have
        replaced all of them.
        """
        return all(r.stated == self.stated for r in regions)


def valid(facts: Iterable[Fact], families: Iterable[str], incarnation: Incarnation, shape: str = "") -> list[Fact]:
    """The facts that still speak of this table: of its incarnation, of all families that are transactional now, and of
    their *shape*.
    """
    wanted = frozenset(families)
    return [f for f in facts if f.incarnation == incarnation.number and wanted <= f.families and f.shape == shape]


def cleaned_before(
    facts: Sequence[Fact], incarnation: Incarnation, bound: Callable[[], int], forgotten: Intervals
) -> Intervals:
    """The start timestamps for which cells of a table, be it in a part of its key ranges, were cleaned before it came
    as it is now; empty: none that is known of.

    Whatever had no proof then was marked. So of a cell of that time that has neither proof nor mark nobody knows: it
    may have had its shadow cell then, and have come back as it was before that. A time between two that were cleaned
    was under nobody's watch, and is not among them.

    Args:
        facts: all that is recorded of the table, what no longer counts too.
        incarnation: the table's now.
        bound: gives the greatest prune bound that is known. Up to it all tables were cleaned, so that a table of which
            nothing is recorded as it is now can have cells of before from elsewhere: a clone, be it under a name that
            another table had, an import, files put in by hand. Asked only then: a table that *was* cleaned in this life
            has it in its facts, but for those of before it was kept.
        forgotten: what was cleaned of it by facts that somebody had forgotten (``lowtide forget``).
    """
    here = [fact.before for fact in facts if fact.incarnation == incarnation.number]
    is_known = bool(here) and None not in here
    found = forgotten if is_known else forgotten | Intervals.up_to(bound())
    # Of the whole table: one transaction's cells lie in several ranges, and a mark for those in one condemns all.
    for fact in facts:
        found |= fact.before or Intervals()
        if fact.incarnation != incarnation.number:
            found |= fact.intervals
    return found


def cleaned_intervals(keys: KeyRange, facts: Sequence[Fact]) -> Intervals:
    """The timestamps for which *every* row of *keys* is known to be cleaned.

    The range is cut where facts begin and end; a piece has the union of the facts that contain it, the range the
    intersection over its pieces. So a daughter of a split has what its parent had, a merged region what both parents
    had, and a range that no fact covers has nothing.
    """
    near = [f for f in facts if f.keys.overlaps(keys)]
    result: Intervals | None = None
    for piece in keys.cut(edge for f in near for edge in (f.keys.start, f.keys.stop)):
        known = Intervals.of(p for f in near if f.keys.contains(piece) for p in f.intervals)
        result = known if result is None else result & known
        if not result:
            return Intervals()
    return result or Intervals()


def read_by(run: str, keys: KeyRange, facts: Sequence[Fact], now: int) -> tuple[Intervals, int]:
    """What the run of this id has read of *every* row of *keys* less than :data:`RESTART` ms ago, and the ms since
    when; nothing: ``now``.

    A run id may be used twice. What was recorded under it by another run a day ago, or for another interval, says
    nothing of this one.
    """
    # Either way: the clock of the machine that is asked may be behind that of the one that recorded.
    mine = [f for f in facts if f.run == run and f.read and abs(now - f.read_since) < RESTART]
    found = cleaned_intervals(keys, [replace(f, intervals=f.read) for f in mine])
    return found, min((f.read_since for f in mine if found and f.keys.overlaps(keys)), default=now)


def last_full_pass(keys: KeyRange, facts: Sequence[Fact]) -> int:
    """Wall-clock ms of the oldest full pass among the facts that tell of *keys*; 0 where some of it never had one."""
    near = [f for f in facts if f.keys.overlaps(keys)]
    pieces = keys.cut(edge for f in near for edge in (f.keys.start, f.keys.stop))
    return min(max((f.full_pass_at for f in near if f.keys.contains(piece)), default=0) for piece in pieces)


def region_watermark(keys: KeyRange, facts: Sequence[Fact]) -> int:
    """The region watermark, inclusive: every committed cell of *keys* with a start timestamp at or below it is healed.

    It is the end of the gap-free stretch of cleaned timestamps that begins at 0; 0 where nothing is known.
    """
    return max(0, cleaned_intervals(keys, facts).prefix_end(0) - 1)


@dataclass(frozen=True, slots=True)
class RegionMark:
    """A region's watermark as computed now."""

    table: str
    region: str
    keys: KeyRange
    watermark: int
    store_bytes: int = 0
    #: Whether something was recorded of its table that no longer counts.
    void: bool = False
    #: Whether Omid's compactor runs in its compactions.
    compactor: bool = False
    #: What stands against cleaning its table now, and what takes that away (``lowtide.tables.consent``).
    objection: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Blocker:
    """What keeps the prune bound where it is: a table, perhaps one of its regions, the reason and the remedy."""

    table: str
    region: str | None
    keys: str | None
    watermark: int
    reason: str
    remedy: str


def prune_bound(
    marks: Sequence[RegionMark], blocked: Sequence[Blocker], low_watermark: int
) -> tuple[int, list[Blocker]]:
    """The prune bound, inclusive, and what holds it.

    The bound is the least of all region watermarks of all transactional tables, of what *blocked* tables (unreadable,
    or with shadow cells and no mark) allow, and of the low watermark. Without any transactional table it is 0: an empty
    list is more likely a failure to see than a store without tables.
    """
    if not marks and not blocked:
        reason = "no transactional table was found"
        return 0, [Blocker("", None, None, 0, reason, "check that the configuration points at the right cluster")]
    bound = min([m.watermark for m in marks] + [b.watermark for b in blocked] + [low_watermark])
    blockers = [b for b in blocked if b.watermark <= bound]
    for mark in marks:
        if mark.watermark == bound < low_watermark:
            reason = PARTLY if mark.watermark else VOID if mark.void else NEVER
            remedy = f"lowtide run orphan_cleanup --table {mark.table} --execute"
            if mark.void and mark.compactor:
                reason = f"{reason}; {DROPPING}"
                remedy = (
                    f"in HBase's shell: {without_compactor(mark.table)}; then, for readers, {REPLAY}; then {remedy}"
                )
            if mark.objection[0]:
                reason, remedy = f"{reason}{OBJECTED}{mark.objection[0]}", mark.objection[1]
            blockers.append(Blocker(mark.table, mark.region, str(mark.keys), mark.watermark, reason, remedy))
    return bound, blockers


def by_reason(blockers: Iterable[Blocker]) -> list[dict[str, Any]]:
    """The blockers as plain mappings, one a table and reason: its first region, and in ``regions`` how many there are.

    A store whose ten thousand regions were never cleaned would else fill every record and summary with them.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for blocker in blockers:
        known = found.setdefault((blocker.table, blocker.reason), {**asdict(blocker), "regions": 0})
        known["regions"] += 1
    return list(found.values())


def still_blocking(
    blockers: Iterable[Mapping[str, Any]], before: Iterable[Mapping[str, Any]], now: int
) -> list[dict[str, Any]]:
    """*blockers* (of :func:`by_reason`) with ``since``, ms: when each was first seen at its watermark, by the ones of
    the collection *before*.
    """

    def known_by(blocker: Mapping[str, Any]) -> tuple[str, str, int]:
        # A pause that begins or ends does not make it a new one.
        return blocker["table"], blocker["reason"].partition(OBJECTED)[0], blocker["watermark"]

    known = {known_by(b): b.get("since", now) for b in before}
    return [{**b, "since": min(known.get(known_by(b), now), now)} for b in blockers]
