"""# Commit table pruning

Removes the commit table's entries that nothing needs any more: those of transactions at or below the prune bound, once
the bound has passed them by the grace (7 days unless configured). Every entry is written to the journal first.

It always works on all entries that may go now: which day started it makes no difference, and a backfill is the same
thing several times.

| run | when | acts |
|---|---|---|
| **scheduled** | every day at midnight UTC | if the `mode` of the commit table is `execute` in the configuration |
| **by asset** | after each watermark collection that published | the same |
| **backfill** | possible, of no use | the same, or as its form says |
| **by hand** | | only with *Execute* ticked |

The pool `lowtide` must have **one** slot.
"""

import lowtide_airflow.required  # noqa: F401 - before Airflow's names, which a wrong one may lack
from airflow.sdk import DAG, AssetOrTimeSchedule
from lowtide_airflow.operator import LowtideSparkOperator
from lowtide_airflow.settings import MARKED, dag_arguments, daily, duration_param, execute_param, job_arguments

with DAG(
    "commit_table_pruning",
    schedule=AssetOrTimeSchedule(timetable=daily(), assets=[MARKED]),
    params={
        "execute": execute_param("journals and removes commit entries"),
        "grace": duration_param(
            "Grace",
            "How long the bound must have passed an entry, as in 24h or 1d12h; 0s prunes at once. Empty: as "
            "configured.",
            ["24h", "7d", "0s"],
        ),
    },
    **dag_arguments(__doc__, "pruning"),
):
    LowtideSparkOperator(task_id="prune", job="commit_table_pruning", **job_arguments())
