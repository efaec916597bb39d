"""Where the driver of a job runs: on the machine of who starts it. Deploy mode cluster is refused wherever it can be
asked for, before anything starts; and by a driver that finds itself in the cluster, before it reads anything.

Who starts a job must get its exit code and its summary, and end it when he ends: an Airflow task fails, retries and is
killed by these. YARN gives none of them to who asked it to run a driver.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from lowtide.errors import UsageError

SETTING = "spark.submit.deployMode"
#: What ``spark-submit`` goes by where neither an option nor a setting says anything.
VARIABLE = "DEPLOY_MODE"
CLIENT = "client"
#: Set for a driver in a pod, whose deploy mode Kubernetes' part of Spark sets back to client.
IN_POD = "spark.kubernetes.submitInDriver"
_DEFAULTS = "spark-defaults.conf"
_WHY = (
    "YARN would run a failed job a second time, its exit code would be lost, its summary would stay on a node, and it "
    "would go on when its caller is ended"
)
_OVER = f"Set {SETTING}: {CLIENT} in spark.conf, which wins over it"


def check_mode(mode: str | None, where: str, remedy: str) -> None:
    """Refuse any mode but client that *where*, the begin of a sentence, asks for; None: it asks for none.

    Raises:
        UsageError: says why, and *remedy*.
    """
    if mode is not None and mode.strip() not in ("", CLIENT):
        raise UsageError(f"{where}, and a job's driver runs where it is started: {_WHY}", remedy)


def check_conf(conf: Mapping[str, str], where: str) -> None:
    """Refuse what settings ask for; *where* somebody gives them.

    Raises:
        UsageError: says why, and what to do.
    """
    mode = conf.get(SETTING)
    check_mode(mode, f"{where} has {SETTING}={mode}", f"Set it to {CLIENT}, or leave it out")


def check_surroundings(
    conf: Mapping[str, str], environ: Mapping[str, str], home: Path | None, file: str | None = None
) -> None:
    """Refuse what Spark's defaults or the environment ask for, unless *conf* says client, which wins over both.

    Args:
        conf: the settings that ``spark-submit`` is given.
        environ: its environment.
        home: where its Spark lies, if that is known.
        file: of its settings, in place of Spark's defaults.

    Raises:
        UsageError: says why, and what to do.
    """
    if conf.get(SETTING):
        return
    settings = Path(file) if file else defaults(environ, home)
    mode = setting(settings, SETTING) if settings and settings.is_file() else None
    check_mode(mode, f"{settings} has {SETTING}={mode}", _OVER)
    if mode is None:
        mode = environ.get(VARIABLE)
        check_mode(mode, f"the environment has {VARIABLE}={mode}", f"{_OVER}, or unset it")


def check_driver(conf: Mapping[str, str]) -> None:
    """Refuse to be a driver in the cluster; *conf* is its own configuration.

    Raises:
        UsageError: says why, and what to do.
    """
    check_conf(conf, "this driver runs in the cluster: it")
    if conf.get(IN_POD) == "true":
        where = f"this driver runs in a pod that Spark made for it ({IN_POD})"
        check_mode("cluster", where, f"Set {SETTING}: {CLIENT}")


def defaults(environ: Mapping[str, str], home: Path | None) -> Path | None:
    """The file of Spark's defaults, where ``spark-submit`` looks for it."""
    folder = Path(environ["SPARK_CONF_DIR"]) if environ.get("SPARK_CONF_DIR") else home and home / "conf"
    return folder / _DEFAULTS if folder else None


def setting(file: Path, name: str) -> str | None:
    """What a file of Java's properties says of *name*: the last word counts."""
    lines = re.findall(
        rf"^[ \t]*{re.escape(name)}(?:[ \t]*[=:][ \t]*|[ \t]+)(.*)$",
        file.read_text("utf-8", "replace"),
        re.MULTILINE,
    )
    return lines[-1].strip() if lines else None
