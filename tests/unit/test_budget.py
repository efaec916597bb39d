"""The budget."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.config import Budget
from lowtide.errors import BudgetError
from lowtide.run.budget import check_budget

BUDGET = Budget(rows=100, share=0.5, always=10)


@pytest.mark.parametrize(("planned", "examined"), [(0, 0), (0, 100), (10, 10), (11, 22), (100, 200), (100, 10**9)])
def test_plans_in_proportion_pass(planned: int, examined: int) -> None:
    """At most ``rows`` and at most ``share`` of what was examined pass, both ends included; so do the few of
    ``always``.
    """
    check_budget("t", planned, examined, BUDGET)


@pytest.mark.parametrize(
    ("planned", "examined", "named"), [(101, 10**9, "budget.rows"), (11, 21, "budget.share"), (11, 0, "budget.share")]
)
def test_plans_out_of_proportion_stop(planned: int, examined: int, named: str) -> None:
    """One more row, or a larger share, is refused with table, number and the setting to change."""
    with pytest.raises(BudgetError, match=rf"{planned}.*accounts|accounts.*{planned}") as caught:
        check_budget("accounts", planned, examined, BUDGET)
    assert named in str(caught.value)


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.floats(0.001, 1), st.integers(1, 10**6))
def test_the_remedy_helps(planned: int, kept: int, share: float, rows: int) -> None:
    """Following the advice of the message, as often as one comes, lets the plan pass."""
    budget = Budget(rows=rows, share=share, always=0)
    for _ in range(3):
        try:
            check_budget("t", planned, planned + kept, budget)
        except BudgetError as error:
            option, value = re.search(r"--budget-(rows|share) ([\d.]+)", str(error)).groups()
            budget = budget.model_copy(update={option: int(value) if option == "rows" else float(value)})
        else:
            return
    pytest.fail("the advice does not help")
