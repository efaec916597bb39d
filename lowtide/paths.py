"""Where the files lie that are no Python modules: the DAG files, the Spark programs, the connector, the rules and the
dashboard for monitoring. In a checkout beside the package, in an installed wheel inside it (setup.py puts them there).
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_SHIPPED = _PACKAGE / "shipped"
_CHECKOUT = _PACKAGE.parent


def installed() -> bool:
    """Whether this is an installed wheel rather than a checkout."""
    return _SHIPPED.is_dir()


def dags() -> Path:
    """The folder of DAG files, for Airflow's ``dags_folder`` or a DAG bundle."""
    return (_SHIPPED if installed() else _CHECKOUT) / "dags"


def spark_apps() -> Path:
    """The folder of the programs for ``spark-submit``."""
    return (_SHIPPED if installed() else _CHECKOUT) / "spark_apps"


def monitoring() -> Path:
    """The folder of the alert rules for Prometheus and of the dashboard for Grafana."""
    return (_SHIPPED if installed() else _CHECKOUT) / "monitoring"


def connector() -> Path:
    """The folder with the connector's jar and, in ``lib``, what it needs; in a checkout it is there once it was
    built.
    """
    return _SHIPPED / "connector" if installed() else _CHECKOUT / "connector" / "target"


def data() -> Path:
    """Where the stores and Airflows of this machine keep their files unless set otherwise: ``.lowtide`` in the
    checkout, or in the current folder.
    """
    return (Path.cwd() if installed() else _CHECKOUT) / ".lowtide"


def store() -> Path:
    """Where the embedded store is kept, unless it was started with another folder (``lowtide stack up --home``)."""
    return data() / "store"
