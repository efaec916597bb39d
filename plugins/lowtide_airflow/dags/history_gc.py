"""# History GC

Removes history that no read point at or after a table's *ancient history mark* needs: versions that were replaced
before it, deleted columns and rows, with their shadow cells. Readers are refused read points before the mark. It
runs {when}.

The mark is the least of: now minus the table's `history_max_age`; the oracle's low watermark; the prune bound; every
hold. It never moves back. What goes is put aside first: `lowtide restore RUN` brings it back.

| run | the mark as of | acts |
|---|---|---|
| **scheduled** | the end of its interval | on tables whose `history_mode` is `execute`; dry run on the others |
| **backfill** | the end of each interval; behind the applied mark nothing changes | the same; or by its form, if sent |
| **by hand** | *To* of the form, or the end of a specified data interval; neither: now | only with *Execute* ticked |

With *Ask for approval* ticked, a run that is to act makes its plan first (`plan`) and waits, in `approve`, until a
person approves it on Airflow's page under *Required Actions*. Then that plan is done, if it is still the same; refused
or late, nothing is.

`choose_tables` asks the store which tables there are; `remove` is one Spark job a batch. A table that fails makes its
batch and the run red, the others are done all the same. The pool `{pool}` must have **one** slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowtide_airflow.approval import approval
from lowtide_airflow.choice import choose_tables
from lowtide_airflow.operator import LowtideSparkOperator
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
    from airflow.sdk import DAG

    from lowtide_airflow.wiring import Wiring


def make(wiring: Wiring) -> DAG:
    """The DAG of one store."""
    params = {
        "tables": tables_param(),
        "execute": execute_param("moves the mark on and removes what lies before it"),
        "approval": wiring.approval_param(),
        "compact": switch_param(
            "Compact",
            "HBase is asked for the major compactions that pay: delete markers alone free no space. Unticked, only "
            "where compaction.always is configured.",
        ),
        "to": time_param("To", "the mark as of now", "The mark is computed as it would have been at this time. "),
        "budget_rows": budget_param(),
        "budget_share": share_param(),
        **rate_params(),
    }
    with wiring.dag("history_gc", __doc__, "history", params=params) as dag:
        chosen = choose_tables(wiring.store.name)  # type: ignore[call-arg, misc] # Airflow puts in the params
        remove = LowtideSparkOperator.partial(
            task_id="remove",
            job="history_gc",
            trigger_rule="none_failed",  # plan and approve are skipped where no approval is asked for
            map_index_template=BATCH_LABEL,
            **wiring.job(),
        ).expand(tables=chosen)
        approval(chosen, "history_gc", wiring) >> remove
    return dag
