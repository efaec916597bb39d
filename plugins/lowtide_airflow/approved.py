"""The plan that a person approved, as the tasks before the one that acts left it (:mod:`lowtide_airflow.approval`).

The answer names the plans to which it was given, by their digests: a task that is cleared makes its plan anew, and the
answer to another plan stays beside it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import Context

#: Task ids, the same in every DAG; and the key of a plan among the XComs of the first.
PLAN, APPROVE = "plan", "approve"
PLAN_KEY = "plan"
#: In an answer: the digests of the plans that were shown.
SHOWN = "plans"


def digest(plan: Mapping[str, Any]) -> str:
    """Tells a plan from every other, that of the same tables by a later try included; hexadecimal."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()


def answered(context: Context) -> bool:
    """Whether a person was asked in this run, and answered."""
    return context["ti"].xcom_pull(task_ids=APPROVE, map_indexes=-1) is not None


def approver(context: Context) -> str:
    """Who gave the answer, as Airflow names them; asked after :func:`approved_plan`."""
    answer: Mapping[str, Any] | None = context["ti"].xcom_pull(task_ids=APPROVE, map_indexes=-1)
    return name_of((answer or {}).get("responded_by_user"))


def name_of(user: Any) -> str:
    """Somebody, as Airflow names them."""
    if not user:
        return "somebody"
    about = user if isinstance(user, Mapping) else {name: getattr(user, name, None) for name in ("name", "id")}
    return str(about.get("name") or about.get("id") or user)


def approved_plan(context: Context, map_index: int) -> dict[str, Any]:
    """The plan of a batch, which a person was shown and approved.

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
    if digest(plan) not in (answer.get(SHOWN) or ()):
        msg = (
            f"the plan of run {plan.get('run')} is not one that was approved: the task {PLAN} made it anew after that; "
            f"nothing was done. Clear the task {APPROVE}, and those after it, to have it shown, or trigger a new run"
        )
        raise AirflowFailException(msg)
    return plan
