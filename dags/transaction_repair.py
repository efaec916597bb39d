"""# Transaction repair

Brings the ledger's transactions that clients left half-way to their end: `finished`, or `dropped` with the reason.
Checks before and after that no money was made or lost, and moves the settled mark, before which every transaction is
over. Every hour.

| run | works on | acts |
|---|---|---|
| **scheduled** | what began before the hour's end, older than the grace | where the ledger's `mode` is `execute` |
| **backfill** | each run what began in its own hour | the same, or as its form says |
| **by hand** | the form's interval; empty: from the settled mark to the grace | only with *Execute* ticked |

Once a day a run reads the tables whole, and names every row that contradicts another; so does a run with *Full check*
ticked. Such rows are left alone and make the run red. Money that does not add up stops a run before it repairs
anything.

Any number of repairs and of clients that come back to life end in one outcome. The pool `lowtide` must have **one**
slot.
"""

import lowtide_airflow.required  # noqa: F401 - before Airflow's names, which a wrong one may lack
from airflow.sdk import DAG, Param
from lowtide_airflow.operator import LowtideSparkOperator
from lowtide_airflow.settings import (
    SETTLED,
    dag_arguments,
    duration_param,
    execute_param,
    hourly,
    job_arguments,
    time_param,
)

with DAG(
    "transaction_repair",
    schedule=hourly(),
    params={
        "execute": execute_param("repairs, and moves the settled mark"),
        "full": Param(
            False,
            type="boolean",
            title="Full check",
            description="Ticked, the run reads the ledger's tables whole, and finds what the index of open "
            "transactions does not know.",
            section="What to do",
        ),
        "from": time_param("From", "from the settled mark"),
        "to": time_param("To", "up to the beginning of the grace"),
        "grace": duration_param(
            "Grace",
            "How old a transaction must be before it is taken from its client, as in 15m or 1h. Empty: as configured.",
            ["15m", "1h"],
        ),
    },
    **dag_arguments(__doc__, "ledger"),
):
    LowtideSparkOperator(task_id="repair", job="transaction_repair", outlets=[SETTLED], **job_arguments())
