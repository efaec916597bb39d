"""# Transaction repair

Brings the ledger's transactions that clients left half-way to their end: `finished`, or `dropped` with the reason.
Checks before and after that no money was made or lost, and moves the settled mark, before which every transaction is
over. It runs {when}.

| run | works on | acts |
|---|---|---|
| **scheduled** | what began before its interval's end, older than the grace | where the ledger's `mode` is `execute` |
| **backfill** | each run what began in its own interval | the same; or by its form, if sent |
| **by hand** | the form's interval; empty: from the settled mark to the grace | only with *Execute* ticked |

By hand, a data interval that was specified counts where From and To are empty.

Once a day a run reads the tables whole, and names every row that contradicts another; so does a run with *Full check*
ticked. Such rows are left alone and make the run red. Money that does not add up stops a run before it repairs
anything.

Any number of repairs and of clients that come back to life end in one outcome. The pool `{pool}` must have **one**
slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowtide_airflow.operator import LowtideSparkOperator
from lowtide_airflow.settings import duration_param, execute_param, rate_params, switch_param, time_param

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from lowtide_airflow.wiring import Wiring


def make(wiring: Wiring) -> DAG:
    """The DAG of one store."""
    params = {
        "execute": execute_param("repairs, and moves the settled mark"),
        "full": switch_param(
            "Full check",
            "the run reads the ledger's tables whole, and finds what the index of open transactions does not know.",
        ),
        "from": time_param("From", "from the settled mark"),
        "to": time_param("To", "up to the beginning of the grace"),
        "grace": duration_param(
            "Grace",
            "How old a transaction must be before it is taken from its client, as in 15m or 1h. Empty: as configured. "
            "Less than that ends only what is claimed; the settled mark goes by what is configured.",
            ["15m", "1h"],
        ),
        **rate_params(),
    }
    settled = wiring.store.assets.settled
    with wiring.dag("transaction_repair", __doc__, "ledger", params=params) as dag:
        LowtideSparkOperator(task_id="repair", job="transaction_repair", outlets=[settled], **wiring.job())
    return dag
