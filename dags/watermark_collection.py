"""Watermark collection, of the store of ``LOWTIDE_CONFIG``: an Airflow DAG
(lowtide_airflow/dags/watermark_collection.py).
"""

from lowtide_airflow.factory import lowtide_dags

lowtide_dags(dags=["watermark_collection"])
