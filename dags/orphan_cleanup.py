"""# Orphan cleanup

Finds the cells that crashed or aborted transactions left in transactional tables: it gives committed cells the shadow
cell they lack, invalidates and deletes what no commit proves, and records per key range what is clean now. Every day at
midnight UTC.

| run | works on | acts |
|---|---|---|
| **scheduled** | every table, from its regions' watermarks to the end of the day | tables whose `mode` is `execute` |
| **backfill** | every table, each run its own day; gaps between cleaned days close up | the same, or as its form says |
| **by hand** | the form's tables and interval; empty: all, up to the low watermark | only with *Execute* ticked |

Nothing above the oracle's low watermark is touched, whatever the interval. Cleaning a day twice changes nothing.

With *Ask for approval* ticked, a run that is to act makes its plan first (`plan`) and waits, in `approve`, until a
person approves it on Airflow's page under *Required Actions*. Then that plan is done, if it is still the same; refused
or late, nothing is.

`choose_tables` asks the store which tables there are. `clean` is one Spark job a batch: a large table alone, small ones
together. A table that fails makes its batch and the run red; the others are done all the same, and a retry goes on
where the try before it ended. `hand_over` starts `watermark_collection`, also after a failure (the prune bound counts
only what is recorded), not after a dry run.

All jobs share the pool `lowtide`, which must have **one** slot: a backfill then waits for the daily run and the other
way round.
"""

from typing import Any

import lowtide_airflow.required  # noqa: F401 - before Airflow's names, which a wrong one may lack
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Param, task
from airflow.sdk.exceptions import AirflowSkipException
from lowtide_airflow.approval import approval
from lowtide_airflow.choice import choose_tables
from lowtide_airflow.operator import SUMMARY_KEY, LowtideSparkOperator
from lowtide_airflow.settings import (
    BATCH_LABEL,
    CLEANED,
    approval_param,
    budget_param,
    dag_arguments,
    daily,
    execute_param,
    job_arguments,
    share_param,
    tables_param,
    time_param,
)

with DAG(
    "orphan_cleanup",
    schedule=daily(),
    params={
        "tables": tables_param(),
        "execute": execute_param("heals, deletes and records"),
        "approval": approval_param(),
        "full": Param(
            False,
            type="boolean",
            title="Full pass",
            description="Ticked, the run reads from 0, also what is recorded as cleaned.",
            section="What to do",
        ),
        "from": time_param("From", "from each region's watermark"),
        "to": time_param("To", "up to the oracle's low watermark"),
        "budget_rows": budget_param(),
        "budget_share": share_param(),
    },
    **dag_arguments(__doc__, "cleanup"),
):
    chosen = choose_tables()  # type: ignore[call-arg, misc] # Airflow puts in the params

    clean = LowtideSparkOperator.partial(
        task_id="clean",
        job="orphan_cleanup",
        trigger_rule="none_failed",  # plan and approve are skipped where no approval is asked for
        map_index_template=BATCH_LABEL,
        **job_arguments(),
    ).expand(tables=chosen)

    @task(outlets=[CLEANED], trigger_rule="all_done")
    def hand_over(ti: Any = None, outlet_events: Any = None) -> dict[str, Any]:
        """Say what was cleaned, to whoever listens; one event a run, however many batches it had."""
        from lowtide_airflow.report import merge

        digests = ti.xcom_pull(task_ids=["clean"], key=SUMMARY_KEY)
        done = merge(digest for digest in digests if digest and digest["execute"])
        if not done["jobs"]:
            raise AirflowSkipException("no batch acted: a dry run, or none got that far")
        outlet_events[CLEANED].extra = done
        return done

    # The run's colour is that of its last tasks. hand_over runs whatever came before it, so this one tells of failed
    # batches.
    all_cleaned = EmptyOperator(task_id="all_cleaned")

    approval(chosen, job="orphan_cleanup") >> clean >> [hand_over(), all_cleaned]
