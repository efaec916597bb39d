"""This machine: Python, Java, Spark and the connector, as ``lowtide run`` would take them."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from lowtide.config import DEFAULTS, Config
from lowtide.errors import UsageError
from lowtide.run import installation, jars, sparks
from lowtide.run.submit import class_path
from lowtide.sources import secrets, site, variables

#: Of the connector's classes; Spark 4 asks for no less. The most: 23 takes from Hadoop what its login calls
#: (``Subject.getSubject``), until a client of this version.
JAVA_LEAST, JAVA_MOST, WITHOUT_SUBJECT = 17, 22, (3, 5)
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
    return judge_java(found, said, remedy, _hadoop(environment))


def _hadoop(environment: Mapping[str, str]) -> str:
    """The version of the Hadoop client that a run would have; empty where that cannot be told."""
    try:
        home = installation.find(environment).home
    except UsageError:  # told at a hop of its own
        home = None
    return installation.hadoop_in(home) if home else ""


def judge_java(program: str, banner: str, remedy: str, hadoop: str = "") -> str:
    """Whether the Java that says *banner* of itself is new enough, and not too new for this *hadoop* client (empty: not
    known which).
    """
    match = re.search(r'version "(?:1\.)?(\d+)([^"]*)"', banner)
    if not match:
        raise UsageError(f"{program} says {(banner.splitlines() or ['nothing'])[0]!r} of its version", remedy)
    if int(match[1]) < JAVA_LEAST:
        raise UsageError(f"{program} is Java {match[1]}, and the connector needs {JAVA_LEAST}", remedy)
    client = re.match(r"(\d+)\.(\d+)", hadoop)
    if int(match[1]) > JAVA_MOST and (not client or (int(client[1]), int(client[2])) < WITHOUT_SUBJECT):
        named = hadoop or "(which is not known)"
        fact = (
            f"{program} is Java {match[1]}, and the login of Hadoop {named} on this Spark ends there (getSubject is "
            "not supported)"
        )
        raise UsageError(fact, remedy)
    return f"{match[1]}{match[2]}, {program}"


def spark(environment: Mapping[str, str] = os.environ) -> str:
    """Which Spark would run, and whether its line was tried (:mod:`lowtide.run.sparks`)."""
    found = installation.find(environment)
    if not found.chosen:
        check_packages(package_versions())
    version = found.version
    newer = sparks.note(version) if version else None
    told = f"{version or 'of a version that its files do not tell'}, {found.where}, by {found.submit}"
    return f"{told}; {newer}" if newer else told


def package_versions() -> dict[str, str]:
    """The versions of this Python's packages that bring a Spark, as far as they are there."""
    found = {}
    for name in ("pyspark", "pyspark-client"):  # the second comes with Airflow's provider
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def check_packages(versions: Mapping[str, str]) -> None:
    """Refuse a Python with two Sparks in one folder: each has written over files of the other.

    Raises:
        UsageError: names both, and the command that mends it.
    """
    if len(set(versions.values())) > 1:
        both = " and ".join(f"{name} {version}" for name, version in versions.items())
        wanted = " ".join(f"{name}=={versions['pyspark']}" for name in versions)
        fact = f"this Python has {both}, which share a folder: it has files of either"
        raise UsageError(fact, f"{sys.executable} -m pip install --force-reinstall --no-deps {wanted}")


def connector(config: Config) -> str:
    """The connector's jar, and the HBase client that it is paired with, on the class path that jobs' drivers get."""
    key, entries = jars.of_driver(config, class_path(config))
    return judge_connector(key, entries, jars.names(entries))


def judge_connector(key: str, entries: Sequence[str], names: Sequence[str]) -> str:
    """Whether the files of these *names*, of the class path *entries* of *key* (empty: where Lowtide finds them), are a
    connector with its HBase client.
    """
    where = os.pathsep.join(entries)
    remedy = "name the jar and lib/* of the folder that `lowtide path connector` prints, or leave the key out"
    if not (connectors := jars.connectors(names)):
        raise UsageError(f"{key or 'the class path of jobs'} is {where}, and there is no connector in it", remedy)
    clients = jars.clients(names)
    if not clients:
        raise UsageError(f"the connector wants one HBase client beside it, and {where} has none", remedy)
    if len(clients) > 1:
        raise UsageError(*jars.several(key, entries, clients))
    return f"{connectors[0]} with HBase's client {clients[0]}, {where}"


def hbase_client(config: Config) -> str:
    """The version of that HBase client; empty where it cannot be told."""
    _, entries = jars.of_driver(config, class_path(config))
    return next(iter(jars.clients(jars.names(entries))), "")
