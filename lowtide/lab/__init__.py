"""A store, clients that crash in it, an Airflow and the demo, on one machine.

Nothing that runs in production imports it, and Lowtide's wheel leaves it out: pyproject.toml beside this file makes one
of its own.
"""
