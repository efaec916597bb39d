"""The Airflow plugin ``lowtide``, found by its entry point.

The scheduler, the API server and every worker import this module: it must stay free of Spark, of happybase and of the
metadata database. It registers no listener: one listener makes DAGs with ``end_from_trigger`` fail, in the whole installation.
"""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin


class LowtidePlugin(AirflowPlugin):
    """Names the plugin; operators are ordinary imports from :mod:`lowtide_airflow`."""

    name = "lowtide"
