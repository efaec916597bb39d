"""# Commit table pruning

Removes the commit table's entries that nothing needs any more: those of transactions at or below the prune bound, once the bound
has passed them by the grace (24 hours unless configured). Every entry is written to the journal first.

| run | works on | acts |
|---|---|---|
| **scheduled** | all entries that may go | if the commit table's `mode` is `execute` |
| **by asset** | the same, after each watermark collection that published | the same |
| **backfill** | entries of transactions that began on its days | the same, or as its form says |
| **by hand** | the interval of the form; empty: all entries that may go | only with *Execute* ticked |

The prune bound and the grace hold for every run: a backfill prunes no entry that a scheduled run would keep. The pool `lowtide`
must have **one** slot.
"""

from airflow.sdk import DAG, AssetOrTimeSchedule, Param
from lowtide_airflow.operator import LowtideSparkOperator
from lowtide_airflow.settings import (
    MARKED,
    budget_param,
    dag_arguments,
    daily,
    execute_param,
    interval_params,
    job_arguments,
)

with DAG(
    "commit_table_pruning",
    schedule=AssetOrTimeSchedule(timetable=daily(), assets=[MARKED]),
    params={
        "execute": execute_param("journals and removes commit entries"),
        "grace": Param(
            None,
            type=["null", "string"],
            pattern=r"^\s*(\d+(\.\d+)?\s*(ms|s|m|h|d|w)\s*)+$",
            examples=["24h", "7d", "0s"],
            title="Grace",
            description="How long the bound must have passed an entry, as in 24h or 1d12h; 0s prunes at once. Empty: as configured.",
            section="Limits",
        ),
        "budget_rows": budget_param(),
        **interval_params("Entries are pruned"),
    },
    **dag_arguments(__doc__, "pruning"),
):
    LowtideSparkOperator(task_id="prune", job="commit_table_pruning", **job_arguments())
