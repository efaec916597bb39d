"""Approval by a person, where a run asks for it: plan, show the plan, wait, and only then the job that acts.

::

    approve = approval(chosen, "orphan_cleanup", wiring)
    approve >> LowtideSparkOperator.partial(..., trigger_rule="none_failed").expand(tables=chosen)

The three tasks stand in a task group, which gives their ids no prefix: runs that wait, and whatever names the tasks,
know them as ``plan`` and ``approve``. Where no approval is asked for, both are skipped, and the job runs. The job is
not only behind these tasks: it asks for the answer by itself (:mod:`lowtide_airflow.approved`), and whether that was
given to this plan, so that neither a task that was marked as done by hand nor one that was cleared lets it act unasked.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import TaskGroup, task
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput

from lowtide.errors import UsageError
from lowtide_airflow import arguments, report
from lowtide_airflow.approved import APPROVE, PLAN, PLAN_KEY, SHOWN, digest, name_of
from lowtide_airflow.operator import LowtideSparkOperator
from lowtide_airflow.settings import BATCH_LABEL, number

if TYPE_CHECKING:
    from airflow.sdk import Context, XComArg

    from lowtide_airflow.wiring import Wiring


class PlanApproval(ApprovalOperator):
    """Show the plans of a run and wait for a person, in the state ``awaiting_input``, which holds no worker.

    Approved: the tasks after it run. Refused: they are skipped. No answer in time: it fails, and they do not run. It is
    not tried again: who was late triggers a new run.
    """

    def __init__(self, *, job: str, **kwargs: Any) -> None:
        timeout = timedelta(seconds=number("approval_timeout", 8 * 3600))
        super().__init__(subject=f"{job}: the plan", body="", **{"response_timeout": timeout} | kwargs)
        self.job = job

    def execute(self, context: Context) -> None:
        """Put the question."""
        found = context["ti"].xcom_pull(task_ids=[PLAN], key=PLAN_KEY)
        plans = [plan for plan in found if plan]
        run = arguments.Run.of(context)
        self.subject = f"{self.job}: act on the plan of {run.run_id}?"
        self.body = report.plan_text(plans, "execute" not in run.params)
        self.log.info("asked for approval:\n%s", self.body)
        try:
            super().execute(context)
        except TaskAwaitingInput as waits:
            # By what was shown, not by what is there when the answer comes: a plan may be made anew meanwhile.
            waits.kwargs = {**(waits.kwargs or {}), SHOWN: [digest(plan) for plan in plans]}
            raise

    def execute_complete(self, context: Context, event: dict[str, Any], plans: Sequence[str] = ()) -> Any:
        """Say what was answered, first: the skipping of tasks is an exception. *plans*: of what was shown.

        Returns:
            the answer, and to which plans it was given.
        """
        if "error" not in event:
            approves = list(event["chosen_options"]) == [self.APPROVE]
            answer = "approved the plan" if approves else "refused the plan; nothing was done"
            self.log.info("%s %s", name_of(event["responded_by_user"]), answer)
        return {**super().execute_complete(context, event), SHOWN: list(plans)}

    def process_trigger_event_error(self, event: dict[str, Any]) -> None:
        """Without a retry, which would only ask again.

        Raises:
            AirflowFailException: nobody answered in time, or the answer was lost.
        """
        if event["error_type"] == "timeout":
            msg = (
                f"nobody approved the plan within {self.response_timeout}; nothing was done. Trigger a new run to "
                "have a new plan"
            )
        else:
            msg = f"the answer cannot be read ({event['error']}); nothing was done. Trigger a new run"
        raise AirflowFailException(msg)


def approval(chosen: XComArg, job: str, wiring: Wiring) -> PlanApproval:
    """The tasks before the one that acts: which batches to plan, their plans, the approval.

    Args:
        chosen: the batches of tables of the run, one job each.
        job: the job that plans and acts.
        wiring: of the DAG; its approvers alone may answer, its notifiers are called when the run begins to wait.
    """

    @task(execution_timeout=timedelta(minutes=5))
    def choose_to_plan(batches: list[list[str]], params: dict[str, Any], dag_run: Any = None) -> list[list[str]]:
        """The batches whose plans a person is to see: all or, where no approval is asked for, none."""
        try:
            run = arguments.Run.of({"params": params, "dag_run": dag_run})
        except UsageError as error:
            raise AirflowFailException(str(error)) from error
        return batches if arguments.needs_approval(run) else []

    with TaskGroup("approval", prefix_group_id=False, tooltip="The plan, shown to a person where the run asks for it"):
        # Airflow puts in the run's params, and for what another task returns its value; its types know of neither.
        planned = choose_to_plan(chosen)  # type: ignore[call-arg, arg-type, misc]
        plan = LowtideSparkOperator.partial(
            task_id=PLAN,
            job=job,
            plans=True,
            map_index_template=BATCH_LABEL,
            **wiring.job(),
        ).expand(tables=planned)
        approve = PlanApproval(
            task_id=APPROVE,
            job=job,
            assigned_users=[dict(user) for user in wiring.approvers] or None,
            notifiers=list(wiring.notifiers),
        )
        plan >> approve
    return approve
