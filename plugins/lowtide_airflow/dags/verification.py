"""# Verification

Looks, by code of its own, whether the store keeps the invariants that all other jobs rely on (docs/safety.md, *What the
verifier holds to*), and whether what was removed is in its sideline. Reads every transactional table; writes nothing.

| run | when | reads |
|---|---|---|
| **scheduled** | {when} | everything |
| **by hand** | | the tables and the share of the form |
| **backfill** | possible, of no use: it always tells of now | |

Red: an invariant does not hold, and the task's message names table, row, transaction and remedy; prune nothing until it
is looked at. Or something could not be read, a disabled table for example; that is not tried again. The pool `{pool}`
must have **one** slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import Param

from lowtide_airflow.operator import LowtideSparkOperator
from lowtide_airflow.settings import rate_param, tables_param

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from lowtide_airflow.wiring import Wiring


def make(wiring: Wiring) -> DAG:
    """The DAG of one store."""
    params = {
        "tables": tables_param(),
        "sample": Param(
            None,
            type=["null", "number"],
            exclusiveMinimum=0,
            maximum=1,
            title="Share",
            description="Read only this share of each table's regions, such as 0.1. Empty: all.",
            section="What to do",
        ),
        "rate": rate_param(),
    }
    with wiring.dag("verification", __doc__, "verification", params=params) as dag:
        LowtideSparkOperator(task_id="verify", job="verify", **wiring.job())
    return dag
