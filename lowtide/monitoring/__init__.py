"""What monitoring systems are told of stores: metrics, defined once, and Prometheus's text of them.

They say what :mod:`lowtide.health` found and judge nothing themselves. ``lowtide status --prometheus`` and the endpoint
in Airflow give out the same; rules and dashboard that go with them are in the folder ``monitoring/``.
"""
