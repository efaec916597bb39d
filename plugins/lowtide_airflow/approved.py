"""The plan that a person approved, as the tasks before the one that acts left it (:mod:`lowtide_airflow.approval`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import Context

#: Task ids, the same in every DAG; and the key of a plan among the XComs of the first.
PLAN, APPROVE = "plan", "approve"
PLAN_KEY = "plan"


def approved_plan(context: Context, map_index: int) -> dict[str, Any]:
    """The plan of a batch, which a person approved.

    Raises:
        AirflowFailException: there is none, or nobody did.
    """
    ti = context["ti"]
    answer: Mapping[str, Any] | None = ti.xcom_pull(task_ids=APPROVE, map_indexes=-1)
    plan: dict[str, Any] | None = ti.xcom_pull(task_ids=PLAN, key=PLAN_KEY, map_indexes=map_index)
    if not answer or list(answer["chosen_options"]) != [ApprovalOperator.APPROVE]:
        msg = f"the run needs an approval, and the task {APPROVE} has none; nothing was done. Trigger a new run"
        raise AirflowFailException(msg)
    if not plan:
        msg = f"the task {PLAN} has left no plan of these tables; nothing was done. Trigger a new run"
        raise AirflowFailException(msg)
    return plan
