"""# Watermark collection

Computes from what the cleanups recorded, and from the regions as they are now, each region's watermark and the prune
bound: the timestamp below which every committed cell carries its own proof. Publishes both, with what holds the bound
back. Removes nothing.

It always tells of now: which day started it makes no difference, and a backfill is the same thing several times.

| run | when | publishes |
|---|---|---|
| **scheduled** | {when}, so that a stuck cleanup shows | yes |
| **by asset** | after each orphan cleanup that acted | yes |
| **backfill** | possible, of no use | yes |
| **by hand** | | only with *Execute* ticked |

A run that published starts `commit_table_pruning`. The pool `{pool}` must have **one** slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowtide_airflow.operator import LowtideSparkOperator
from lowtide_airflow.settings import execute_param, rate_params

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from lowtide_airflow.wiring import Wiring


def make(wiring: Wiring) -> DAG:
    """The DAG of one store."""
    params = {"execute": execute_param("publishes region watermarks and prune bound"), **rate_params()}
    assets = wiring.store.assets
    with wiring.dag("watermark_collection", __doc__, "watermark", params=params, assets=[assets.cleaned]) as dag:
        LowtideSparkOperator(task_id="collect", job="watermark_collection", outlets=[assets.marked], **wiring.job())
    return dag
