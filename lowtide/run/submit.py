"""How a job is submitted: its program, its class path, its Spark settings. Shared by ``lowtide run`` and the DAGs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from lowtide import paths
from lowtide.config import Config, is_local
from lowtide.errors import UsageError
from lowtide.run import classic, deploy, installation, jars, keytabs, rate, tokens
from lowtide.run.jobs import JOBS
from lowtide.run.pins import contradictions
from lowtide.sources import site

#: By which executors that are programs of their own ask the driver for their turn, where a run keeps to a rate.
_PACING = "lowtide.connector.PacePlugin"
#: Airflow's pool that the tasks of all DAGs take a slot of.
POOL = "lowtide"


def application(job: str) -> Path:
    """The Spark program of *job*.

    Raises:
        UsageError: there is no such job.
    """
    if job not in JOBS:
        msg = f"unknown job {job!r}; the jobs are {', '.join(JOBS)}"
        raise UsageError(msg)
    return paths.spark_apps() / f"{job}.py"


def class_path(config: Config) -> list[str]:
    """The connector's jar and its dependencies, as entries of a Java class path.

    Raises:
        UsageError: the connector is neither configured nor built.
    """
    if config.spark.connector_class_path:
        return list(config.spark.connector_class_path)
    target = paths.connector()
    jar = target / "lowtide-connector.jar"
    if not jar.exists():
        msg = f"the connector is not built ({jar} is missing); run make setup, or set spark.connector_class_path"
        raise UsageError(msg)
    return [str(jar), str(target / "lib" / "*")]


def job_conf(config: Config, master: str | None = None, arguments: Sequence[str] = ()) -> dict[str, str]:
    """Spark settings for a job: the class path on driver and executors, then the configuration's own, which win.

    *master*: where the job goes, if not to the configured one. *arguments*: what it is told, as far as settings hang on
    it.

    Raises:
        UsageError: no connector, or two HBase clients, where the driver's class path can be looked at
            (:func:`lowtide.run.jars.check`); or the configuration contradicts what every job runs with.
    """
    check_conf(config.spark.conf, "spark.conf of the configuration")
    ours = class_path(config)
    jars.check(*jars.of_driver(config, ours))
    entries = os.pathsep.join(ours)
    # A driver on this machine alone needs no address that others can reach.
    here = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    where = master or config.spark.master
    is_alone = where == "local" or where.startswith("local[")
    plugins = config.spark.conf.get("spark.plugins", "")
    # Only then: an executor without the connector ends over it, before a check can say what it lacks.
    paced = {"spark.plugins": ",".join(filter(None, (plugins, _PACING)))} if rate.asked(config, arguments) else {}
    return {
        **(here if is_local(where) else {}),
        # The program's Python is this one, whatever comes first on PATH; executors run none.
        "spark.pyspark.driver.python": sys.executable,
        # Over what the defaults of this Spark may say: of a session of Spark Connect a job can use nothing.
        classic.SETTING: classic.CLASSIC,
        jars.SETTING: entries,
        "spark.executor.extraClassPath": entries,
        # Off: a job's page helps nobody after its half minute, and its port would be one more to open.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Off: to note of each column which line made it takes five more calls of the JVM, thousands in a run.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # By default a page is a 16th of a core's memory, and every operator takes one: plans of some thousand rows
        # would fill a small driver.
        "spark.buffer.pageSize": "1m",
        # A plan is small beside the table it comes from: by default every join would end in 200 near-empty tasks.
        "spark.sql.shuffle.partitions": "16",
        **config.spark.conf,
        **tokens.submitted(config, where),
        **({} if is_alone else paced),
    }


def check_conf(conf: Mapping[str, str], where: str) -> None:
    """Refuse settings that results would differ by, a driver elsewhere, and Spark Connect.

    *where* somebody gives them begins the message.

    Raises:
        UsageError: names each of them.
    """
    deploy.check_conf(conf, where)
    classic.check_conf(conf, where)
    if wrong := contradictions(conf):
        raise UsageError(f"{where} has {'; '.join(wrong)}", "Leave it out: what a job finds and removes depends on it")


def check_login(conf: Mapping[str, str]) -> None:
    """Refuse settings by which Spark would log in with a keytab that is of no use; it has a stack trace for it alone.

    Raises:
        UsageError: names the file, what it lacks, and what to do.
    """
    if file := conf.get(tokens.SPARK_KEYTAB, ""):
        names = f"{tokens.SPARK_KEYTAB} and {tokens.SPARK_PRINCIPAL}, or of HBase's properties {tokens.NAMES},"
        keytabs.check(urlsplit(file).path, conf.get(tokens.SPARK_PRINCIPAL, ""), names)


def command(config: Config, job: str, arguments: Sequence[str], program: Path | None = None) -> list[str]:
    """The ``spark-submit`` command line of a run of *job*, or of a *program* that is none.

    Raises:
        UsageError: no such job, no connector, no ``spark-submit``; a Spark that is not supported
            (:func:`lowtide.run.installation.find`), a setting that no job can run with, a driver that would run
            elsewhere (:mod:`lowtide.run.deploy`), Spark Connect (:mod:`lowtide.run.classic`), or a keytab that is of no
            use (:func:`check_login`).
    """
    conf = job_conf(config, arguments=arguments)
    settings = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    spark = installation.find(os.environ)
    deploy.check_surroundings(conf, os.environ, spark.home)
    classic.check_surroundings(os.environ, spark.home)
    check_login(conf)
    return [
        spark.submit,
        "--master",
        config.spark.master,
        "--driver-memory",
        config.spark.driver_memory,
        "--name",
        f"lowtide {job}",
        *settings,
        str(program or application(job)),
        *arguments,
    ]


def environment(config: Config | None = None) -> dict[str, str]:
    """The environment for :func:`command`: this one, with this Python's folder first on the path, the Spark named that
    was judged, what *config* adds (:func:`hadoop_environment`), and a locale that can name its files (:func:`locale`).

    pip's ``spark-submit`` looks for Spark by ``PYSPARK_PYTHON``, which is the executors', or whatever ``python3`` comes
    first on the path, also where this virtual environment is not active.
    """
    home = installation.find(os.environ).home
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    spark = {installation.VARIABLE: str(home)} if home else {}
    places = (sys.executable, os.getcwd(), str(paths.spark_apps()), str(paths.connector()), str(home))
    hadoop = hadoop_environment(config) if config else {}
    return {**os.environ, "PATH": path, **spark, **hadoop, **locale(os.environ, places)}


def locale(environment: Mapping[str, str], places: Sequence[str]) -> dict[str, str]:
    """The locale that Java needs to find files in *places*: it takes their names in the locale's encoding, and of ``C``
    or ``POSIX``, as cron and systemd have it, that is ASCII. Nothing where it does.
    """
    said = next((found for name in ("LC_ALL", "LC_CTYPE", "LANG") if (found := environment.get(name))), "C")
    if all(map(str.isascii, places)) or said.split(".")[0] not in ("C", "POSIX") or "UTF" in said.upper():
        return {}
    return {"LC_ALL": "C.UTF-8"}


def hadoop_environment(config: Config) -> dict[str, str]:
    """What leads Spark to the cluster's ``core-site.xml``: ``HADOOP_CONF_DIR``, where it is not set and
    ``hbase.conf_dir`` has that file. Its login and its file systems are Spark's business, and no option of a command
    line: it may hold secrets.
    """
    folder = config.hbase.conf_dir
    if os.environ.get("HADOOP_CONF_DIR") or folder is None or not (Path(folder) / site.CORE).is_file():
        return {}
    return {"HADOOP_CONF_DIR": folder}
