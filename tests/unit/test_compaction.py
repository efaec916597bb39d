"""Which stores a major compaction pays for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lowtide.history.compaction import Gain, Uncompacted, gains, still_there, to_record, worth_compacting

A, B = ("r", "a"), ("r", "b")
found_gains = st.lists(
    st.builds(
        Gain,
        region=st.uuids().map(str),
        family=st.sampled_from("ab"),
        removed=st.integers(0, 1000),
        held=st.integers(0, 1000),
        store_bytes=st.integers(0, 1000),
    ),
    max_size=12,
)
stores = st.dictionaries(st.tuples(st.sampled_from("xyz"), st.sampled_from("ab")), st.integers(1, 1000))


@given(found_gains, st.floats(0, 1), st.integers(0, 5000))
def test_within_share_and_budget(found: list[Gain], share: float, budget: int) -> None:
    """Only stores that give back their share are chosen, within the budget, and none is left out that would still have
    fitted.
    """
    chosen = worth_compacting(found, share, budget)
    spent = sum(g.store_bytes for g in chosen)
    assert spent <= budget
    assert all(g.share >= share and g.removed for g in chosen)
    fits = [g for g in found if g not in chosen and g.removed and g.share >= share]
    assert all(g.store_bytes > budget - spent for g in fits)


def test_the_largest_share_comes_first() -> None:
    """A budget for one store goes to the one that gives back most of itself; the ratio says what that costs."""
    half, tenth = Gain("half", "f", 50, 100, 1000), Gain("tenth", "f", 10, 100, 1000)
    assert worth_compacting([tenth, half], 0.05, 1500) == [half]
    assert (half.reclaimed, half.ratio) == (500, 1.0)
    assert tenth.ratio == 9.0
    assert Gain("nothing", "f", 0, 0, 10).ratio is None


def test_a_family_that_loses_nothing_is_not_rewritten_with_one_that_does() -> None:
    """Of a region with a large family that was written once and a small one that loses its history, only the small one
    pays.
    """
    found = gains({A: 9_000, B: 1_000}, {B: 800}, {}, {"r": 500})
    assert [(g.family, g.removed, g.held, g.store_bytes) for g in found] == [
        ("a", 0, 9_000, 450),
        ("b", 800, 1_000, 50),
    ]
    assert [g.family for g in worth_compacting(found, 0.3, 1 << 30)] == ["b"]


def test_what_is_not_flushed_has_a_price_too() -> None:
    """A region without files is weighed by what it holds: it will be a file before it is compacted."""
    assert [g.store_bytes for g in gains({A: 600, B: 300}, {A: 300}, {B: 100}, {})] == [600, 400]


def test_what_earlier_runs_removed_counts() -> None:
    """A day's share is too small, thirty days' is not; what was removed before is no longer seen, and still on disk."""
    today = {A: 1_000}
    assert worth_compacting(gains(today, {A: 20}, {}, {"r": 100}), 0.3, 1 << 30) == []
    found = gains(today, {A: 20}, {A: 600}, {"r": 100})
    assert [(g.removed, g.held) for g in found] == [(620, 1_600)]
    assert worth_compacting(found, 0.3, 1 << 30) == found


def test_a_compaction_or_a_split_ends_what_is_recorded() -> None:
    """Once HBase tells of another major compaction of a region, or there is no such region, nothing is left of what was
    removed from it.
    """
    recorded = {"same": Uncompacted(5, {"a": 1}), "newer": Uncompacted(5, {"a": 2}), "gone": Uncompacted(5, {"a": 4})}
    assert still_there(recorded, {"same": 5, "newer": 6, "daughter": 0}) == {("same", "a"): 1}


@given(stores)
def test_what_is_recorded_comes_back(removed: dict[tuple[str, str], int]) -> None:
    """What is recorded of regions that there are comes back as it was."""
    compacted = dict.fromkeys("xyz", 7)
    assert still_there(to_record(removed, compacted), compacted) == removed
    assert to_record(removed, {}) == {}
