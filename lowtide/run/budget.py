"""The budget: a run whose plan is out of proportion stops before it acts. Pure."""

from __future__ import annotations

from lowtide.config import Budget
from lowtide.errors import BudgetError


def check_budget(table: str, planned: int, examined: int, budget: Budget) -> None:
    """Let a plan pass that is within the budget.

    Args:
        table: name, for the message.
        planned: cells that the plan removes.
        examined: cells that were read for it, shadow cells included.
        budget: the limits.

    Raises:
        BudgetError: the plan removes more rows, or a larger share of what was examined, than allowed.
    """
    if planned > budget.rows:
        msg = (
            f"the plan removes {planned} cells of {table}, the budget allows {budget.rows}; "
            f"look at the dry run, then give --budget-rows {planned} or set budget.rows"
        )
        raise BudgetError(msg)
    share = planned / max(examined, 1)
    if share > budget.share and planned > budget.always:
        msg = (
            f"the plan removes {share:.0%} of the cells examined in {table} ({planned} of {examined}), "
            f"the budget allows {budget.share:.0%}; look at the dry run, then give --budget-share "
            f"{min(share + 0.01, 1):.2f} or set budget.share"
        )
        raise BudgetError(msg)
