"""Lowtide in Airflow: operator, plugin."""
