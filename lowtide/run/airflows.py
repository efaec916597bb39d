"""Which Airflow the DAGs, the operator and the plugin are written for, and what is said of another. Imports no Airflow:
one that is too old, or half installed, is known by its packages before a name is asked for that it lacks.
"""

from __future__ import annotations

import re
from importlib import metadata

from lowtide.errors import UsageError

#: The first in which the DAGs load. In 3.2 (tried: 3.2.2) the alert of a deadline has no name, and a question to a
#: person waits in another way; before, ``airflow.sdk`` lacks names that are used.
LEAST = (3, 3)
#: The first that is refused until it was tried: names may go with a new major version.
BELOW = (4, 0)
#: What the operator stands on; Airflow itself does not bring it.
SPARK_PROVIDER = "apache-airflow-providers-apache-spark"

# Airflow 3 is the meta-package `apache-airflow` and the core under it, which may be there alone; 2 has no core.
_AIRFLOW = ("apache-airflow-core", "apache-airflow")


def problem() -> UsageError | None:
    """What is wrong with the Airflow that is installed here; None: nothing."""
    return judge(next(filter(None, map(_installed, _AIRFLOW)), None))


def require() -> None:
    """Pass where DAG files can be loaded.

    Raises:
        UsageError: in one sentence, what is there, what is needed, and what to install.
    """
    if wrong := problem():
        raise wrong


def require_provider() -> None:
    """Pass where the operator can be loaded, in an Airflow that fits.

    Raises:
        UsageError: in one sentence, what is missing, and what to install.
    """
    if wrong := judge_provider(_installed(SPARK_PROVIDER)):
        raise wrong


def judge(version: str | None) -> UsageError | None:
    """What is wrong with Airflow *version*, None if it is not installed. Pure."""
    wanted = f"Airflow {_text(LEAST)} or newer, below {BELOW[0]}"
    remedy = f'install one that fits: pip install "apache-airflow>={_text(LEAST)},<{BELOW[0]}"'
    if version is None:
        return UsageError(f"Lowtide's DAGs and plugin need {wanted}, and there is none here", remedy)
    if not LEAST <= _numbers(version) < BELOW:
        return UsageError(f"Lowtide's DAGs and plugin need {wanted}, and this is Airflow {version}", remedy)
    return None


def judge_provider(version: str | None) -> UsageError | None:
    """What is wrong with the Spark provider's *version*, None if it is not installed. Pure."""
    if version is not None:
        return None
    return UsageError(
        "Lowtide's DAGs start their jobs through Airflow's Spark provider, and it is not installed here",
        f"install it: pip install {SPARK_PROVIDER}",
    )


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, int]:
    """Major and minor number; of a text that begins with none, numbers that fit nothing."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _text(numbers: tuple[int, int]) -> str:
    return ".".join(map(str, numbers))
