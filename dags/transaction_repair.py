"""Transaction repair, of the store of ``LOWTIDE_CONFIG``, if its configuration has a ledger: an Airflow DAG
(lowtide_airflow/dags/transaction_repair.py).
"""

from lowtide_airflow.factory import has_ledger, lowtide_dags

if has_ledger():
    lowtide_dags(dags=["transaction_repair"])
