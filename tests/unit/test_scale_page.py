"""What a store takes that is too large to be tried here is computed, and the page has what was computed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.scale import Measured, Store, hours, page

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_has_the_table_that_is_computed() -> None:
    """As ``python -m bench.scale`` prints it."""
    assert page() in (ROOT / "docs/performance.md").read_text()


@pytest.mark.parametrize("step", list(hours(Store(), 1, Measured())))
def test_a_step_takes_longer_of_more_and_shorter_on_more_cores(step: str) -> None:
    """Twice the store takes longer, and no more than twice as long; twice the cores never more than half again."""
    store = Store()
    twice = replace(store, stored=2 * store.stored, entries=2 * store.entries, cells_to_mend=2 * store.cells_to_mend)
    once, more, spread = (hours(s, n, Measured())[step] for s, n in ((store, 16), (twice, 16), (store, 32)))
    assert once < more <= 2 * once
    assert once / 2 <= spread < once
