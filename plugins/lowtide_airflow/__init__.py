"""Lowtide in Airflow: the factory of the DAGs, the operator that submits the jobs, the plugin.

``arguments``, ``batches`` and ``report`` are pure and import no Airflow.
"""
