"""Orphan cleanup, of the store of ``LOWTIDE_CONFIG``: an Airflow DAG (lowtide_airflow/dags/orphan_cleanup.py)."""

from lowtide_airflow.factory import lowtide_dags

lowtide_dags(dags=["orphan_cleanup"])
