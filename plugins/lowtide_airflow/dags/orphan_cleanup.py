"""# Orphan cleanup

Finds the cells that crashed or aborted transactions left in transactional tables: it gives committed cells the shadow
cell they lack, invalidates and deletes what no commit proves, and records per key range what is clean now. It runs
{when}.

| run | works on | acts |
|---|---|---|
| **scheduled** | every table, from its regions' watermarks to the interval's end | tables whose `mode` is `execute` |
| **backfill** | every table, each run its own interval; cleaned ones join up | the same; or by its form, if sent |
| **by hand** | the form's tables and interval; empty: all, up to the low watermark | only with *Execute* ticked |

By hand, a data interval that was specified counts where From and To are empty. Nothing above the oracle's low
watermark is touched, whatever the interval. Cleaning an interval twice changes nothing.

With *Ask for approval* ticked, a run that is to act makes its plan first (`plan`) and waits, in `approve`, until a
person approves it on Airflow's page under *Required Actions*. Then that plan is done, if it is still the same; refused
or late, nothing is.

`choose_tables` asks the store which tables there are. `clean` is one Spark job a batch: a large table alone, small ones
together. A table that fails makes its batch and the run red; the others are done all the same, and a retry goes on
where the try before it ended. `hand_over` starts `watermark_collection`, also after a failure (the prune bound counts
only what is recorded), not after a dry run.

All jobs share the pool `{pool}`, which must have **one** slot: a backfill then waits for the daily run and the other
way round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import task
from airflow.sdk.exceptions import AirflowSkipException

from lowtide_airflow.approval import approval
from lowtide_airflow.choice import choose_tables
from lowtide_airflow.operator import SUMMARY_KEY, LowtideSparkOperator
from lowtide_airflow.settings import (
    BATCH_LABEL,
    budget_param,
    execute_param,
    rate_params,
    share_param,
    switch_param,
    tables_param,
    time_param,
)

if TYPE_CHECKING:
    from airflow.sdk import DAG, Asset, XComArg

    from lowtide_airflow.wiring import Wiring


def make(wiring: Wiring) -> DAG:
    """The DAG of one store."""
    params = {
        "tables": tables_param(),
        "execute": execute_param("heals, deletes and records"),
        "approval": wiring.approval_param(),
        "full": switch_param("Full pass", "the run reads from 0, also what is recorded as cleaned."),
        "from": time_param("From", "from each region's watermark"),
        "to": time_param("To", "up to the oracle's low watermark"),
        "budget_rows": budget_param(),
        "budget_share": share_param(),
        **rate_params(),
    }
    with wiring.dag("orphan_cleanup", __doc__, "cleanup", params=params) as dag:
        chosen = choose_tables(wiring.store.name)  # type: ignore[call-arg, misc] # Airflow puts in the params

        clean = LowtideSparkOperator.partial(
            task_id="clean",
            job="orphan_cleanup",
            trigger_rule="none_failed",  # plan and approve are skipped where no approval is asked for
            map_index_template=BATCH_LABEL,
            **wiring.job(),
        ).expand(tables=chosen)

        # The run's colour is that of its last tasks. hand_over runs whatever came before it, so this one tells of
        # failed batches.
        all_cleaned = EmptyOperator(task_id="all_cleaned")

        approval(chosen, "orphan_cleanup", wiring) >> clean >> [hand_over(wiring.store.assets.cleaned), all_cleaned]
    return dag


def hand_over(cleaned: Asset) -> XComArg:
    """The task that says what was cleaned, to whoever listens; one event a run, however many batches it had."""

    @task(task_id="hand_over", outlets=[cleaned], trigger_rule="all_done")
    def tell(ti: Any = None, outlet_events: Any = None) -> dict[str, Any]:
        from lowtide_airflow.report import merge

        digests = ti.xcom_pull(task_ids=["clean"], key=SUMMARY_KEY)
        done = merge(digest for digest in digests if digest and digest["execute"])
        if not done["jobs"]:
            raise AirflowSkipException("no batch acted: a dry run, or none got that far")
        outlet_events[cleaned].extra = done
        return done

    return tell()
