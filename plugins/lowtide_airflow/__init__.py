"""Lowtide in Airflow: the operator that submits the jobs, what the DAGs share, the plugin.

``arguments``, ``batches`` and ``report`` are pure and import no Airflow.
"""
