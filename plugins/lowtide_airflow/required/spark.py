"""Refuses, when it is imported, an Airflow without its Spark provider, which the operator stands on; sensors, triggers
and the hook do without.

Raises:
    UsageError: Airflow or the provider is missing, or Airflow does not fit (:mod:`lowtide.run.airflows`).
"""

from __future__ import annotations

from lowtide.run import airflows

airflows.require_provider()
