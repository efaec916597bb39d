"""History GC, of the store of ``LOWTIDE_CONFIG``: an Airflow DAG (lowtide_airflow/dags/history_gc.py)."""

from lowtide_airflow.factory import lowtide_dags

lowtide_dags(dags=["history_gc"])
