"""Cleaned intervals, region watermarks, incarnations and the prune bound."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lowtide.cleaning.facts import (
    DROPPING,
    NEVER,
    PARTLY,
    VOID,
    Blocker,
    Fact,
    Incarnation,
    Region,
    RegionMark,
    cleaned_before,
    cleaned_intervals,
    last_full_pass,
    prune_bound,
    region_watermark,
    valid,
)
from lowtide.tables.inventory import without_compactor
from lowtide.values.intervals import Intervals
from lowtide.values.keyranges import KeyRange

NOTHING = Intervals()
KEYS = 8
TIMES = 12
F = frozenset({"f"})


def key(n: int) -> bytes:
    """Key number *n*; 0 and KEYS are the open ends."""
    return b"" if n in (0, KEYS) else bytes([n])


def span(a: int, b: int) -> KeyRange:
    return KeyRange(key(a), key(b))


def fact(a: int, b: int, *pairs: tuple[int, int], families: frozenset[str] = F, number: int = 1, full: int = 0) -> Fact:
    return Fact(span(a, b), Intervals.of(pairs), families, number, full_pass_at=full)


# -- against a naive model: for each of eight keys the set of cleaned timestamps


class Model:
    """A table whose regions split and merge while runs record; facts as a run writes them, beside one plain set a
    key.
    """

    def __init__(self) -> None:
        self.edges = [0, KEYS]
        self.facts: dict[KeyRange, Fact] = {}
        self.truth: list[set[int]] = [set() for _ in range(KEYS)]

    def split(self, at: int) -> None:
        self.edges = sorted({*self.edges, at})

    def merge(self, at: int) -> None:
        inside = self.edges[1:-1]
        if inside:
            self.edges.remove(inside[at % len(inside)])

    def record(self, which: int, start: int, end: int) -> None:
        """What a run does at its end: the known and the new in one fact of the region, then facts that say nothing more
        go.
        """
        i = which % (len(self.edges) - 1)
        a, b = self.edges[i], self.edges[i + 1]
        new = fact(a, b, *cleaned_intervals(span(a, b), list(self.facts.values())), (start, end))
        self.facts[new.keys] = new
        for k in range(a, b):
            self.truth[k] |= set(range(start, end))
        for old in list(self.facts.values()):
            if old is not new and all(cleaned_intervals(old.keys, [new]).covers(x, y) for x, y in old.intervals):
                del self.facts[old.keys]


times = st.tuples(st.integers(0, TIMES), st.integers(0, TIMES)).map(sorted)
steps = st.one_of(
    st.tuples(st.just("split"), st.integers(1, KEYS - 1)),
    st.tuples(st.just("merge"), st.integers(0, KEYS)),
    st.tuples(st.just("record"), st.integers(0, KEYS), times),
)


@given(st.lists(steps, max_size=25))
def test_knowledge_is_exact_through_splits_and_merges(history: list[tuple]) -> None:
    """After any splits, merges, records out of order and repeated, each range has exactly what every one of its keys
    has.
    """
    model = Model()
    for step in history:
        match step:
            case ("split", at):
                model.split(at)
            case ("merge", at):
                model.merge(at)
            case ("record", which, (start, end)):
                model.record(which, start, end)
    facts = list(model.facts.values())
    for a in range(KEYS):
        for b in range(a + 1, KEYS + 1):
            everywhere = set.intersection(*model.truth[a:b])
            found = cleaned_intervals(span(a, b), facts)
            assert {n for x, y in found for n in range(x, y)} == everywhere
            prefix = next(n for n in range(TIMES + 1) if n not in everywhere)
            assert region_watermark(span(a, b), facts) == max(0, prefix - 1)


@given(st.lists(st.tuples(st.integers(0, KEYS - 1), st.integers(1, KEYS), st.integers(0, 9)), max_size=8))
def test_last_full_pass_is_the_oldest_of_the_newest(passes: list[tuple[int, int, int]]) -> None:
    """A range's last full pass is the least, over its keys, of the newest pass over that key; 0 where a key never had
    one.
    """
    facts = [fact(a, b, (0, 50), full=at) for a, b, at in passes if a < b]
    newest = [max((f for a, b, f in passes if a <= k < b), default=0) for k in range(KEYS)]
    assert last_full_pass(span(0, KEYS), facts) == min(newest)
    assert last_full_pass(span(2, 5), facts) == min(newest[2:5])


# -- by example, so that the boundaries can be read


def test_daughters_inherit_and_merged_regions_intersect() -> None:
    """A daughter has its parent's intervals; a merged region has what both parents had; beyond the facts there is
    nothing.
    """
    facts = [fact(0, 4, (0, 100)), fact(4, 8, (0, 60), (80, 120))]
    assert cleaned_intervals(span(1, 3), facts).pairs == ((0, 100),)
    assert cleaned_intervals(span(0, 8), facts).pairs == ((0, 60), (80, 100))
    assert not cleaned_intervals(span(0, 8), facts[:1])


def test_region_watermark_is_inclusive_and_stops_at_the_first_gap() -> None:
    """[0, 100) gives 99; a gap ends the prefix; what does not begin at 0 gives 0, as does nothing."""
    assert region_watermark(span(0, 8), [fact(0, 8, (0, 100))]) == 99
    assert region_watermark(span(0, 8), [fact(0, 8, (0, 100), (150, 200))]) == 99
    assert region_watermark(span(0, 8), [fact(0, 8, (50, 100))]) == 0
    assert region_watermark(span(0, 8), []) == 0


# -- validity


def test_facts_of_fewer_families_or_another_life_are_not_valid() -> None:
    """A fact counts if it is of this incarnation and cleaned at least the families that are transactional now."""
    both = frozenset({"f", "g"})
    one, two, old = (
        fact(0, 8, (0, 50)),
        fact(0, 8, (0, 50), families=both),
        fact(0, 8, (0, 50), families=both, number=0),
    )
    now = Incarnation(1, 7)
    assert valid([one, two, old], ["f"], now) == [one, two]
    assert valid([one, two, old], ["f", "g"], now) == [two]
    assert valid([one, two, old], ["h"], now) == []


def regions(*created: int, stated: int = 0) -> list[Region]:
    return [Region(f"r{i}", span(0, KEYS), at, stated=stated) for i, at in enumerate(created)]


def test_first_look_begins_a_life() -> None:
    """A table never looked at is a new one, whatever its regions; no regions at all tell nothing."""
    assert Incarnation.unknown().advance(regions(5, 3)) == Incarnation(1, 5)
    assert Incarnation.unknown().advance(regions(0)) == Incarnation(1, 0)
    assert Incarnation(4, 9).advance([]) == Incarnation(4, 9)


def test_splits_and_merges_go_on_with_the_same_life() -> None:
    """While one region is not newer than all seen, the table is the same, and the newer ids are learned."""
    same = Incarnation(1, 5).advance(regions(5, 8, 9))
    assert same == Incarnation(1, 9)
    assert same.advance(regions(9, 12)) == Incarnation(1, 12)
    assert same.advance(regions(2, 3)) == Incarnation(1, 9)


def test_drop_and_truncate_begin_a_new_life() -> None:
    """Where every region is newer than any seen, it is another table; so it is where all were replaced by splits
    alone.
    """
    assert Incarnation(1, 5).advance(regions(6)) == Incarnation(2, 6)
    assert Incarnation(1, 5).advance(regions(7, 6)) == Incarnation(2, 7)


def test_a_snapshot_that_is_restored_begins_a_new_life() -> None:
    """It keeps the ids of regions, also of some; the time of the table's state is another then, be it earlier: that is
    all that tells.
    """
    seen = Incarnation.unknown().advance(regions(5, 8, stated=70))
    assert seen.advance(regions(5, 9, stated=70)).number == seen.number
    for stated in (71, 69, 0):
        back = seen.advance(regions(5, 8, stated=stated))
        assert (back.number, back.stated) == (seen.number + 1, stated)
        assert back.advance(regions(5, 8, stated=stated)) == back


def test_a_run_knows_that_its_table_came_back_while_it_went_on() -> None:
    """By another state of it; splits are its own, also where they have replaced every region."""
    taken = Incarnation.unknown().advance(regions(5, 8, stated=70))
    assert [taken.lives(regions(5, 8, 9, stated=stated)) for stated in (70, 71, 69, 0)] == [True, False, False, False]
    assert taken.lives(regions(9, 10, stated=70))


def test_records_of_before_the_state_was_looked_at_are_void() -> None:
    """Nobody knows whether the table has come back since they were written."""
    assert Incarnation(3, 8).advance(regions(5, 8, stated=70)).number == 4


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 20), min_size=1, max_size=4), st.integers(0, 2)), min_size=1, max_size=8)
)
def test_incarnations_never_go_back(looks: list[tuple[list[int], int]]) -> None:
    """Number and newest id only grow, another state is another life, and looking twice at the same regions changes
    nothing.
    """
    seen = Incarnation.unknown()
    for created, stated in looks:
        following = seen.advance(regions(*created, stated=stated))
        assert following.number >= seen.number
        assert following.number > seen.number or following.stated == seen.stated
        assert following.newest_region >= max(seen.newest_region, *created)
        assert following.advance(regions(*created, stated=stated)) == following
        seen = following


def test_facts_of_another_shape_say_nothing() -> None:
    """Versions that HBase hid from the run were never read, and what they were a record of before there were shapes is
    not known.
    """
    hid, open_, before = (replace(fact(0, 8, (0, 50)), shape=shape) for shape in ("f: VERSIONS=1", "f: VERSIONS=9", ""))
    assert valid([hid, open_, before], ["f"], Incarnation(1, 7), "f: VERSIONS=9") == [open_]


def test_a_table_whose_records_are_void_says_so() -> None:
    """Not that it was never cleaned: whoever cleaned it yesterday must know why its watermark is gone."""
    _, blockers = prune_bound([RegionMark("t", "r", span(0, 8), 0, void=True)], [], 1000)
    assert blockers[0].reason == VOID


def test_omids_compactor_on_a_table_whose_records_are_void_is_named() -> None:
    """With the statement that takes it off, before the cleanup; on a table whose records count it is nobody's business,
    nor on one without any.
    """
    _, [held] = prune_bound([RegionMark("t", "r", span(0, 8), 0, void=True, compactor=True)], [], 1000)
    assert held.reason == f"{VOID}; {DROPPING}"
    assert "lowtide journal replay" in held.remedy
    assert held.remedy.index(without_compactor("t")) < held.remedy.index(
        "lowtide run orphan_cleanup --table t --execute"
    )
    for watermark, said in ((0, NEVER), (50, PARTLY)):
        _, [held] = prune_bound([RegionMark("t", "r", span(0, 8), watermark, compactor=True)], [], 1000)
        assert (held.reason, held.remedy) == (said, "lowtide run orphan_cleanup --table t --execute")


# -- the prune bound


def mark(watermark: int, table: str = "t") -> RegionMark:
    return RegionMark(table, "r", span(0, 8), watermark)


def blocked(watermark: int) -> Blocker:
    return Blocker("b", None, None, watermark, "the table is disabled", "enable it")


def test_bound_of_an_empty_store_is_zero() -> None:
    """Without any transactional table the bound is 0 and says why: a failure to see is likelier than an empty store."""
    bound, blockers = prune_bound([], [], 1000)
    assert bound == 0
    assert "no transactional table" in blockers[0].reason


@given(st.lists(st.integers(0, 500)), st.lists(st.integers(0, 500)), st.integers(0, 500))
def test_bound_is_the_least_of_all(marks: list[int], blocks: list[int], low_watermark: int) -> None:
    """The bound is never above a region's watermark, a blocker's or the low watermark, and everything named holds it
    there.
    """
    bound, blockers = prune_bound([mark(m) for m in marks], [blocked(b) for b in blocks], low_watermark)
    assert bound == (min([*marks, *blocks, low_watermark]) if marks or blocks else 0)
    if marks or blocks:
        assert all(b.watermark == bound for b in blockers)
        assert bool(blockers) >= (bound < low_watermark)


def test_blockers_name_what_to_do() -> None:
    """The region that holds the bound is named with its range, its watermark and the command that moves it on."""
    bound, [never] = prune_bound([mark(0, "a"), mark(99, "b")], [], 149)
    assert (bound, never.table, never.reason) == (0, "a", "never cleaned")
    assert "orphan_cleanup --table a --execute" in never.remedy
    bound, [partly] = prune_bound([mark(99, "b"), mark(149, "c")], [], 149)
    assert (bound, partly.table, partly.reason) == (99, "b", "cleaned up to here only")


def test_nothing_blocks_at_the_low_watermark() -> None:
    """Regions cleaned up to the low watermark or past it (its checkpoints) hold nothing."""
    assert prune_bound([mark(100), mark(149)], [], 100) == (100, [])


def test_how_far_a_table_was_cleaned_before_it_came_as_it_is() -> None:
    """By facts of another life, of all its ranges, also where a fact of this one has taken their place and tells of it;
    facts that are void for another reason, such as new families, tell of this life. One of which nothing is recorded
    *as it is now* may have what is older than the prune bound from elsewhere, whatever had its name before.
    """
    now = Incarnation(2, 7)

    def before(facts: list[Fact], forgotten: Intervals = NOTHING) -> list[tuple[int, int]]:
        return list(cleaned_before(facts, now, lambda: 30, forgotten))

    assert before([]) == [(0, 31)]
    of_now = fact(0, 4, (0, 90), families=frozenset({"other"}), number=2)
    assert before([of_now]) == []
    of_before = [fact(4, 6, (0, 50), number=1), fact(6, 8, (0, 20), number=1)]
    assert before([of_now, *of_before]) == [(0, 50)]
    assert before([replace(of_now, before=Intervals.up_to(70))]) == [(0, 71)]
    assert before([replace(of_now, before=Intervals.up_to(95), incarnation=1)]) == [(0, 96)], "it came back twice"
    assert before([of_now, replace(of_now, before=None)]) == [(0, 31)], "one of them does not say"
    assert before([fact(0, 8, (0, 20), number=1)]) == [(0, 31)], "another had its name"
    assert list(cleaned_before([], now, lambda: 0, NOTHING)) == []
    assert before([], Intervals.of([(0, 60)])) == [(0, 60)]
    assert before([of_now], Intervals.of([(0, 60)])) == [(0, 60)]


def test_a_time_that_was_skipped_between_two_that_were_cleaned_was_not_cleaned() -> None:
    """As by a run for an interval: below it nothing was marked, and what is there is an orphan like any other."""
    came = cleaned_before([fact(0, 8, (0, 20), (900, 1000))], Incarnation(2, 7), lambda: 10, NOTHING)
    assert list(came) == [(0, 20), (900, 1000)]
