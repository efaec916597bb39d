"""The check of an installation: every hop from the configuration to Airflow, ok or what is wrong and the remedy."""
