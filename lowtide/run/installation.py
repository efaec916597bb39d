"""Which Spark a ``spark-submit`` starts: found and judged before anything runs, without starting it.

Spark's own programs go by ``SPARK_HOME``, where it is set, for the JVM and for the package ``pyspark`` alike; only else
by what lies around them. So is it looked up here. What cannot be told from files is left to the driver, which looks
again (``lowtide_spark.run.session``).
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from lowtide.errors import UsageError
from lowtide.run import sparks

VARIABLE = "SPARK_HOME"


@dataclass(frozen=True, slots=True)
class Installation:
    """The Spark that *submit*, a ``spark-submit``, starts."""

    submit: str
    #: Where it lies; None: its program does not show.
    home: Path | None
    #: Whether ``SPARK_HOME`` says so.
    chosen: bool = False

    @property
    def where(self) -> str:
        """How it was found, for messages."""
        return f"{VARIABLE} ({self.home})" if self.chosen else self.submit

    @property
    def version(self) -> str | None:
        """Its version, as its files tell it; None: they do not."""
        return version_in(self.home) if self.home else None

    def told(self) -> list[str]:
        """What to say before a run: that it obeys ``SPARK_HOME``, and of a Spark that was not tried."""
        version = self.version or "of a version that its files do not tell"
        obeyed = [f"Spark {version}, by {self.where}"] if self.chosen else []
        newer = sparks.note(version)
        return [*obeyed, *([newer] if newer else [])]


def find(environ: Mapping[str, str], submit: str | None = None) -> Installation:
    """The Spark that a run starts, by *submit* where that is given, else by the ``spark-submit`` that is found first:
    in ``SPARK_HOME``, beside this Python, on ``PATH``.

    Raises:
        UsageError: there is none; ``SPARK_HOME`` names no Spark; or it is one that Lowtide does not run on.
    """
    found = _found(environ, submit)
    if found.version and (why := sparks.refusal(found.version, found.where)):
        raise UsageError(why, _remedy(found))
    return found


def version_in(home: Path) -> str | None:
    """The version of the Spark that lies in *home*: by the name of its own jar, else by its file ``RELEASE``."""
    for jar in sorted(home.glob("jars/spark-core_*.jar")):
        if named := re.fullmatch(r"spark-core_[\d.]+-(.+)\.jar", jar.name):
            return named[1]
    release = home / "RELEASE"
    said = re.match(r"Spark (\S+)", release.read_text("utf-8", "replace")) if release.is_file() else None
    return said[1] if said else None


def hadoop_in(home: Path) -> str:
    """The version of the Hadoop client that the Spark in *home* brings; empty: its files do not tell."""
    jar = next(home.glob("jars/hadoop-client-api-*.jar"), None)
    return jar.stem.removeprefix("hadoop-client-api-") if jar else ""


def _found(environ: Mapping[str, str], submit: str | None) -> Installation:
    beside = Path(sys.executable).parent / "spark-submit"
    if environ.get(VARIABLE):
        home = Path(environ[VARIABLE])
        if not (home / "bin" / "spark-class").is_file():
            msg = f"{VARIABLE} is {home}, where no Spark lies ({home / 'bin' / 'spark-class'} is missing)"
            raise UsageError(msg, f"Correct it{_or_unset()}")
        return Installation(submit or str(home / "bin" / "spark-submit"), home, chosen=True)
    if submit is None and beside.is_file():
        return Installation(str(beside), _packaged())
    program = shutil.which(submit or "spark-submit", path=environ.get("PATH"))
    if program is None:
        msg = f"{submit or 'spark-submit'} is not on PATH; install pyspark, or put Spark's bin folder on PATH"
        raise UsageError(msg)
    if Path(program).parent == beside.parent:
        return Installation(program, _packaged())
    above = Path(program).resolve().parent.parent
    return Installation(program, above if version_in(above) else None)


def _packaged() -> Path | None:
    """The Spark of this Python's package ``pyspark``, as its ``find_spark_home.py`` finds it."""
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        return None
    module = Path(package.origin).parent
    return next((home for home in (module / "spark-distribution", module) if version_in(home)), None)


def _remedy(found: Installation) -> str:
    if found.chosen:
        return f"Let it name another{_or_unset()}"
    return f"Install another, or name one by {VARIABLE}"


def _or_unset() -> str:
    own = _packaged()
    return f", or unset it: this Python has Spark {version_in(own)}" if own else ""
