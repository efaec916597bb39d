"""Which regions a major compaction pays for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lowtide.compaction import Gain, worth_compacting

gains = st.lists(
    st.builds(
        Gain,
        region=st.uuids().map(str),
        removed=st.integers(0, 1000),
        examined=st.integers(0, 1000),
        store_bytes=st.integers(0, 1000),
    ),
    max_size=12,
)


@given(gains, st.floats(0, 1), st.integers(0, 5000))
def test_within_share_and_budget(found: list[Gain], share: float, budget: int) -> None:
    """Only regions that give back their share are chosen, within the budget, and none is left out that would still have fitted."""
    chosen = worth_compacting(found, share, budget)
    spent = sum(g.store_bytes for g in chosen)
    assert spent <= budget
    assert all(g.share >= share and g.removed for g in chosen)
    fits = [g for g in found if g not in chosen and g.removed and g.share >= share]
    assert all(g.store_bytes > budget - spent for g in fits)


def test_the_largest_share_comes_first() -> None:
    """A budget for one region goes to the one that gives back most of itself; the ratio says what that costs."""
    half, tenth = Gain("half", 50, 100, 1000), Gain("tenth", 10, 100, 1000)
    assert worth_compacting([tenth, half], 0.05, 1500) == [half]
    assert (half.reclaimed, half.ratio) == (500, 1.0)
    assert tenth.ratio == 9.0
    assert Gain("nothing", 0, 0, 10).ratio is None
