"""This machine: Python, Java, Spark and the connector, as ``lowtide run`` would take them."""

from __future__ import annotations

import glob
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lowtide.config import DEFAULTS, Config
from lowtide.errors import UsageError
from lowtide.run import installation, sparks
from lowtide.run.submit import class_path
from lowtide.sources import secrets, site, variables

#: Of the connector's classes; Spark 4 asks for no less.
JAVA_LEAST = 17
_SECONDS = 30


def configuration(config: Config, source: str, environment: Mapping[str, str] = os.environ) -> str:
    """Which file counts, what else does, and which store is meant; *source* is :func:`lowtide.config.source`'s."""
    hbase = config.hbase
    parts = [
        source if source != DEFAULTS else f"{DEFAULTS}: there is no lowtide.yaml here, and LOWTIDE_CONFIG is not set"
    ]
    if given := variables.names(environment):
        parts.append(f"with {', '.join(given)}")
    if hbase.conf_dir:
        parts.append(f"over {hbase.conf_dir}/{site.HBASE}")
    elif ignored := site.found(environment):
        parts.append(f"{ignored}/{site.HBASE} does not count: hbase.conf_dir would name it")
    if called_so := sorted(filter(secrets.is_secret, config.spark.conf)):
        parts.append(
            f"spark.conf has {', '.join(called_so)}: spark-submit takes it on its command line, where every user of "
            "this machine can read it; have it in spark-defaults.conf or in a credential provider of Hadoop's instead"
        )
    return f"{'; '.join(parts)}. The store is {hbase.address}"


def python(version: tuple[int, int] = sys.version_info[:2]) -> str:
    """Which Python runs this, and so a job's driver."""
    if version < (3, 11):
        found = ".".join(map(str, version))
        raise UsageError(f"{sys.executable} is Python {found}", "Lowtide needs 3.11 or newer: install it there")
    return f"{platform.python_version()}, {sys.executable}"


def java(environment: Mapping[str, str] = os.environ) -> str:
    """Which Java Spark would start here: ``JAVA_HOME``'s, else the one on the path, as Spark's own script has it."""
    home = environment.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java", path=environment.get("PATH"))
    remedy = f"install a JDK {JAVA_LEAST} and set JAVA_HOME to it"
    if not found or not os.access(found, os.X_OK):
        raise UsageError(f"there is no Java at JAVA_HOME={home}" if home else "there is no Java on the path", remedy)
    try:
        said = subprocess.run([found, "-version"], capture_output=True, text=True, check=False, timeout=_SECONDS).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{found} -version does not answer ({type(error).__name__})", remedy) from error
    return judge_java(found, said, remedy)


def judge_java(program: str, banner: str, remedy: str) -> str:
    """Whether the Java that says *banner* of itself is new enough."""
    match = re.search(r'version "(?:1\.)?(\d+)([^"]*)"', banner)
    if not match:
        raise UsageError(f"{program} says {(banner.splitlines() or ['nothing'])[0]!r} of its version", remedy)
    if int(match[1]) < JAVA_LEAST:
        raise UsageError(f"{program} is Java {match[1]}, and the connector needs {JAVA_LEAST}", remedy)
    return f"{match[1]}{match[2]}, {program}"


def spark(environment: Mapping[str, str] = os.environ) -> str:
    """Which Spark would run, and whether its line was tried (:mod:`lowtide.run.sparks`)."""
    found = installation.find(environment)
    version = found.version
    newer = sparks.note(version) if version else None
    told = f"{version or 'of a version that its files do not tell'}, {found.where}, by {found.submit}"
    return f"{told}; {newer}" if newer else told


def connector(config: Config) -> str:
    """The connector's jar, and the HBase client that it is paired with, on the class path that the jobs get."""
    entries = class_path(config)
    return judge_connector(entries, [file for entry in entries for file in glob.glob(entry)])


def judge_connector(entries: Sequence[str], files: Sequence[str]) -> str:
    """Whether the *files* of the class path *entries* are a connector with its HBase client."""
    names = sorted({Path(file).name for file in files})
    where = os.pathsep.join(entries)
    remedy = "name the jar and lib/* of the folder that `lowtide path connector` prints, or leave the key out"
    jars = [name for name in names if re.fullmatch(r"lowtide-connector.*\.jar", name)]
    if not jars:
        raise UsageError(f"spark.connector_class_path is {where}, and there is no connector in it", remedy)
    clients = [m[1] for name in names if (m := re.fullmatch(r"hbase-shaded-mapreduce-(.+)\.jar", name))]
    if len(clients) != 1:
        found = f"{len(clients)} of them ({', '.join(clients)})" if clients else "none"
        raise UsageError(f"the connector wants one HBase client beside it, and {where} has {found}", remedy)
    return f"{jars[0]} with HBase's client {clients[0]}, {where}"


def hbase_client(config: Config) -> str:
    """The version of that HBase client; empty where it cannot be told."""
    files = (Path(file).name for entry in class_path(config) for file in glob.glob(entry))
    return next((m[1] for name in files if (m := re.fullmatch(r"hbase-shaded-mapreduce-(.+)\.jar", name))), "")
