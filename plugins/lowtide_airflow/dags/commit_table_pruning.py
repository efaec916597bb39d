"""# Commit table pruning

Removes the commit table's entries that nothing needs any more: those of transactions at or below the prune bound, once
the bound has passed them by the grace (7 days unless configured). Every entry is written to the journal first.

It always works on all entries that may go now: which day started it makes no difference, and a backfill is the same
thing several times.

| run | when | acts |
|---|---|---|
| **scheduled** | {when} | if the `mode` of the commit table is `execute` in the configuration |
| **by asset** | after each watermark collection that published | the same |
| **backfill** | possible, of no use | the same; or by its form, if sent |
| **by hand** | | only with *Execute* ticked |

The pool `{pool}` must have **one** slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowtide_airflow.operator import LowtideSparkOperator
from lowtide_airflow.settings import duration_param, execute_param, rate_params

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from lowtide_airflow.wiring import Wiring


def make(wiring: Wiring) -> DAG:
    """The DAG of one store."""
    params = {
        "execute": execute_param("journals and removes commit entries"),
        "grace": duration_param(
            "Grace",
            "How long the bound must have passed an entry, as in 24h or 1d12h; 0s prunes at once. Empty: as "
            "configured.",
            ["24h", "7d", "0s"],
        ),
        **rate_params(),
    }
    marked = wiring.store.assets.marked
    with wiring.dag("commit_table_pruning", __doc__, "pruning", params=params, assets=[marked]) as dag:
        LowtideSparkOperator(task_id="prune", job="commit_table_pruning", **wiring.job())
    return dag
