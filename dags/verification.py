"""# Verification

Looks, by code of its own, whether the store keeps the invariants that all other jobs rely on (docs/safety.md, *What the
verifier holds to*), and whether what was removed is in its sideline. Reads every transactional table; writes nothing.

| run | when | reads |
|---|---|---|
| **scheduled** | every Sunday at midnight UTC | everything |
| **by hand** | | the tables and the share of the form |
| **backfill** | possible, of no use: it always tells of now | |

Red: an invariant does not hold, and the task's message names table, row, transaction and remedy; prune nothing until it
is looked at. Or something could not be read, a disabled table for example; that is not tried again. The pool `lowtide`
must have **one** slot.
"""

import lowtide_airflow.required  # noqa: F401 - before Airflow's names, which a wrong one may lack
from airflow.sdk import DAG, Param
from lowtide_airflow.operator import LowtideSparkOperator
from lowtide_airflow.settings import dag_arguments, job_arguments, tables_param, weekly

with DAG(
    "verification",
    schedule=weekly(),
    params={
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
        "rate": Param(
            None,
            type=["null", "string"],
            pattern=r"^\s*\d+(\.\d+)?\s*([kKMGT]i?)?B\s*$",
            examples=["500KB", "20MB"],
            title="Rate",
            description="Read at most so many bytes a second, all tasks together. Empty: no limit.",
            section="Limits",
        ),
    },
    **dag_arguments(__doc__, "verification"),
):
    LowtideSparkOperator(task_id="verify", job="verify", **job_arguments())
