"""A job's session is Spark's classic one. Spark Connect is refused wherever it can be asked for: its client has no JVM
of its own, and the connector, what jobs tell Hadoop's file systems and the guards all go through that.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lowtide.errors import UsageError
from lowtide.run import deploy

#: Which API a program gets, since Spark 4.0; older lines do not know the name and go on.
SETTING = "spark.api.mode"
CLASSIC = "classic"
REMOTE = "spark.remote"
#: By these ``spark-submit``, or the driver's Python, goes to a server of Spark Connect where no setting says so.
VARIABLES = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
_WHY = "jobs need Spark's own session, not Spark Connect's, which has no JVM for the connector"


def check_conf(conf: Mapping[str, str], where: str) -> None:
    """Refuse what settings ask for; *where* somebody gives them.

    Raises:
        UsageError: says why, and what to do.
    """
    mode = conf.get(SETTING, CLASSIC)
    if mode.strip().lower() != CLASSIC:
        raise UsageError(f"{where} has {SETTING}={mode}, and {_WHY}", f"Set it to {CLASSIC}, or leave it out")
    if REMOTE in conf:
        raise UsageError(f"{where} has {REMOTE}={conf[REMOTE]}, and {_WHY}", "Leave it out; spark.master says where to")


def check_surroundings(environ: Mapping[str, str], home: Path | None, file: str | None = None) -> None:
    """Refuse a server of Spark Connect that the environment or Spark's defaults name: no setting of ours outranks it.

    Which API the defaults ask for is not looked at: the setting that jobs are submitted with wins over it.

    Args:
        environ: of ``spark-submit``.
        home: where its Spark lies, if that is known.
        file: of its settings, in place of Spark's defaults.

    Raises:
        UsageError: says why, and what to do.
    """
    for name in VARIABLES:
        if environ.get(name):
            raise UsageError(f"the environment has {name}={environ[name]}, and {_WHY}", "Unset it for Lowtide's jobs")
    settings = Path(file) if file else deploy.defaults(environ, home)
    remote = deploy.setting(settings, REMOTE) if settings and settings.is_file() else None
    if remote:
        remedy = "Take it out, or let SPARK_CONF_DIR name a folder without it for Lowtide's jobs"
        raise UsageError(f"{settings} has {REMOTE}={remote}, and {_WHY}", remedy)
