"""Lowtide: maintenance for transactional HBase (Apache Omid, Apache Phoenix), on Airflow and Spark.

This package holds the rules and the small effects: formats, intervals and watermarks, configuration, state, command
line. It imports neither Airflow nor Spark. The Spark programs live in ``lowtide_spark``, the Airflow plugin in
``lowtide_airflow``.
"""

__version__ = "0.2.0"
