"""A small Airflow on this machine, for the demo and the tests: started, asked for runs, ended.

::

    airflow = LocalAirflow(AirflowConfig(home=Path(".lowtide/airflow"), lowtide_config=Path("lowtide.yaml")))
    airflow.up(progress=print)
    runs = airflow.dags.backfill("orphan_cleanup", date(2026, 1, 1), date(2026, 1, 3))
    airflow.dags.wait(runs, progress=print)
    airflow.down()

It listens on the loopback interface only, keeps everything under ``home`` and outlives the program that started it. It
is no installation for production: its database is SQLite, its one user's password lies in a file.
"""

from lowtide.lab.airflow.config import AirflowConfig, AirflowError, free_port_config
from lowtide.lab.airflow.dags import Dags, Run, Task
from lowtide.lab.airflow.server import LocalAirflow
from lowtide.lab.servers import Part

__all__ = [
    "AirflowConfig",
    "AirflowError",
    "Dags",
    "LocalAirflow",
    "Part",
    "Run",
    "Task",
    "free_port_config",
]
