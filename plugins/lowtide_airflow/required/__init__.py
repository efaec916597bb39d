"""Refuses, when it is imported, an Airflow that the DAGs are not written for.

DAG files, and the modules that they may import, import this one first: so Airflow's page shows a sentence with the
remedy, and not the name that this Airflow happens to lack. What starts jobs imports
:mod:`lowtide_airflow.required.spark`.

Raises:
    UsageError: Airflow is missing or does not fit (:mod:`lowtide.run.airflows`).
"""

from __future__ import annotations

from lowtide.run import airflows

airflows.require()
