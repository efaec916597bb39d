"""``lowtide path``: where the parts lie that others need."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from lowtide import paths


class Place(StrEnum):
    """What ``lowtide path`` knows."""

    DAGS = "dags"
    SPARK_APPS = "spark_apps"
    CONNECTOR = "connector"
    MONITORING = "monitoring"


def path(what: Annotated[Place, typer.Argument(help="Which folder.")]) -> None:
    """Print the folder of the DAG files (for Airflow), of the Spark programs, of the connector's jars, or of what
    monitoring takes: rules for Prometheus, a dashboard for Grafana.
    """
    folders = {
        Place.DAGS: paths.dags,
        Place.SPARK_APPS: paths.spark_apps,
        Place.CONNECTOR: paths.connector,
        Place.MONITORING: paths.monitoring,
    }
    typer.echo(folders[what]())
