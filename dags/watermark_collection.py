"""# Watermark collection

Computes from what the cleanups recorded, and from the regions as they are now, each region's watermark and the prune
bound: the timestamp below which every committed cell carries its own proof. Publishes both, with what holds the bound
back. Removes nothing.

It always tells of now: which day started it makes no difference, and a backfill is the same thing several times.

| run | when | publishes |
|---|---|---|
| **scheduled** | every day at midnight UTC, so that a stuck cleanup shows | yes |
| **by asset** | after each orphan cleanup that acted | yes |
| **backfill** | possible, of no use | yes |
| **by hand** | | only with *Execute* ticked |

A run that published starts `commit_table_pruning`. The pool `lowtide` must have **one** slot.
"""

import lowtide_airflow.required  # noqa: F401 - before Airflow's names, which a wrong one may lack
from airflow.sdk import DAG, AssetOrTimeSchedule
from lowtide_airflow.operator import LowtideSparkOperator
from lowtide_airflow.settings import CLEANED, MARKED, dag_arguments, daily, execute_param, job_arguments

with DAG(
    "watermark_collection",
    schedule=AssetOrTimeSchedule(timetable=daily(), assets=[CLEANED]),
    params={"execute": execute_param("publishes region watermarks and prune bound")},
    **dag_arguments(__doc__, "watermark"),
):
    LowtideSparkOperator(task_id="collect", job="watermark_collection", outlets=[MARKED], **job_arguments())
