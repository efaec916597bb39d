"""Which tables a run takes, and in which batches: the first task of the mapped DAGs. Asks the store.

DAG files import this module: what reads the store is imported by the task.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk import task
from airflow.sdk.exceptions import AirflowFailException

from lowtide_airflow.arguments import check_conf
from lowtide_airflow.batches import batches
from lowtide_airflow.settings import number


@task(execution_timeout=timedelta(minutes=5))
def choose_tables(store: str, params: Mapping[str, Any], dag: Any, dag_run: Any) -> list[list[str]]:
    """The tables of a run with these *params*, in batches of one Spark job each. *store*: the name of theirs, or empty.

    Raises:
        AirflowFailException: the configuration is wrong, a table that was asked for is not there, or the run's ``conf``
            has what the form of its DAG has not: trying again cannot help.
    """
    from lowtide.errors import TableError, UsageError
    from lowtide_airflow import stores, tables

    try:
        check_conf(dag_run.conf, dag.params, params)
        most = number("batches", 300, least=1)
        sizes = tables.sizes(stores.store(store).load(), params["tables"] or [])
    except (UsageError, TableError) as error:
        raise AirflowFailException(str(error)) from error
    return batches(sizes, number("batch_bytes", 1 << 30), number("batch_tables", 200), most)
