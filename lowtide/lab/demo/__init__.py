"""The demo: a store full of crashed clients' leftovers, cleaned end to end through Airflow, before the reader's eyes.

It uses nothing that a deployment would not: the same DAGs, jobs and commands, on an embedded store and a local Airflow
of its own under ``.lowtide/demo``.
"""

from lowtide.lab.demo.settings import DemoError, DemoSettings

__all__ = ["DemoError", "DemoSettings"]
