"""Commit table pruning, of the store of ``LOWTIDE_CONFIG``: an Airflow DAG
(lowtide_airflow/dags/commit_table_pruning.py).
"""

from lowtide_airflow.factory import lowtide_dags

lowtide_dags(dags=["commit_table_pruning"])
