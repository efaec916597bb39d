"""How a job is submitted: its program, its class path, its Spark settings. Shared by ``lowtide run`` and the DAGs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from lowtide import paths
from lowtide.errors import UsageError
from lowtide.run import approval, deploy, installation
from lowtide.run.pins import contradictions
from lowtide.sources import site
from lowtide.values.durations import parse_duration

if TYPE_CHECKING:
    from lowtide.config import Config

JOBS = (
    "orphan_cleanup",
    "watermark_collection",
    "commit_table_pruning",
    "history_gc",
    "sideline_restore",
    "journal_replay",
    "transaction_repair",
    "balances",
    "survey",
    "verify",
    "sideline",
    "why",
)
#: Those that read tables by their share, at a rate.
_SCANS = ("survey", "verify")
#: Those that only read, each with arguments of its own.
INSPECTIONS = (*_SCANS, "sideline", "why")

_INTERVAL = ("orphan_cleanup", "transaction_repair")
#: Those that remove cells, within a budget, and put them aside before.
REMOVING = ("orphan_cleanup", "history_gc")
#: Airflow's pool that the tasks of all DAGs take a slot of.
POOL = "lowtide"
#: The options that only some jobs have a use for, and which: those are offered and given to no other.
TAKEN_BY = {
    # The ledger's jobs say themselves why they take none.
    "--table": (*REMOVING, "sideline_restore", "transaction_repair", "balances", *INSPECTIONS),
    "--discovered": REMOVING,
    "--from": (*_INTERVAL, "journal_replay"),
    "--to": (*_INTERVAL, "history_gc"),
    "--full": _INTERVAL,
    "--grace": ("commit_table_pruning", "transaction_repair"),
    "--yes": ("commit_table_pruning",),
    "--budget-rows": REMOVING,
    "--budget-share": REMOVING,
    "--approved": approval.JOBS,
    "--list": (*REMOVING, "commit_table_pruning"),
    "--compact": ("history_gc",),
    "--output": ("balances",),
    "--sample": _SCANS,
    "--rate": _SCANS,
    "--show": ("sideline",),
    "--first": ("sideline",),
    "--row": ("sideline", "why"),
    "--restore": ("sideline_restore",),
    "--since-snapshot": ("journal_replay",),
    "--as-committed": ("sideline_restore",),
}


def takes(job: str, option: str) -> bool:
    """Whether *job* has a use for *option*."""
    return job in TAKEN_BY.get(option, JOBS)


def last_value(arguments: Sequence[str], option: str) -> str | None:
    """What *arguments* give for *option*, as ``--option VALUE`` or ``--option=VALUE``: the last of them, which is the
    one that the job goes by. None: nothing; empty: the value is missing.
    """
    value = None
    for name, following in pairwise([*arguments, ""]):
        if name == option:
            value = following
        elif name.startswith(f"{option}="):
            value = name.removeprefix(f"{option}=")
    return value


def without_grace(job: str, arguments: Sequence[str]) -> bool:
    """Whether the *arguments* of a run that acts ask to prune without grace, and not that this is meant
    (``--yes``).
    """
    if job != "commit_table_pruning" or "--execute" not in arguments or "--yes" in arguments:
        return False
    grace = last_value(arguments, "--grace")
    try:
        return grace is not None and not parse_duration(grace)
    except ValueError:  # the job says what is wrong with it
        return False


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


def job_conf(config: Config, master: str | None = None) -> dict[str, str]:
    """Spark settings for a job: the class path on driver and executors, then the configuration's own, which win.

    *master*: where the job goes, if not to the configured one.

    Raises:
        UsageError: no connector; or the configuration contradicts what every job runs with.
    """
    check_conf(config.spark.conf, "spark.conf of the configuration")
    entries = os.pathsep.join(class_path(config))
    # A driver on this machine alone needs no address that others can reach.
    here = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {
        **(here if (master or config.spark.master).startswith("local") else {}),
        # The program's Python is this one, whatever comes first on PATH; executors run none.
        "spark.pyspark.driver.python": sys.executable,
        "spark.driver.extraClassPath": entries,
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
    }


def check_conf(conf: Mapping[str, str], where: str) -> None:
    """Refuse settings that results would differ by, and a driver elsewhere.

    *where* somebody gives them begins the message.

    Raises:
        UsageError: names each of them.
    """
    deploy.check_conf(conf, where)
    if wrong := contradictions(conf):
        raise UsageError(f"{where} has {'; '.join(wrong)}", "Leave it out: what a job finds and removes depends on it")


def command(config: Config, job: str, arguments: Sequence[str], program: Path | None = None) -> list[str]:
    """The ``spark-submit`` command line of a run of *job*, or of a *program* that is none.

    Raises:
        UsageError: no such job, no connector, no ``spark-submit``; a Spark that is not supported
            (:func:`lowtide.run.installation.find`), a setting that no job can run with, or a driver that would run
            elsewhere (:mod:`lowtide.run.deploy`).
    """
    conf = job_conf(config)
    settings = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    spark = installation.find(os.environ)
    deploy.check_surroundings(conf, os.environ, spark.home)
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
    was judged, and what *config* adds (:func:`hadoop_environment`).

    pip's ``spark-submit`` looks for Spark by ``PYSPARK_PYTHON``, which is the executors', or whatever ``python3`` comes
    first on the path, also where this virtual environment is not active.
    """
    home = installation.find(os.environ).home
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    spark = {installation.VARIABLE: str(home)} if home else {}
    return {**os.environ, "PATH": path, **spark, **(hadoop_environment(config) if config else {})}


def hadoop_environment(config: Config) -> dict[str, str]:
    """What leads Spark to the cluster's ``core-site.xml``: ``HADOOP_CONF_DIR``, where it is not set and
    ``hbase.conf_dir`` has that file. Its login and its file systems are Spark's business, and no option of a command
    line: it may hold secrets.
    """
    folder = config.hbase.conf_dir
    if os.environ.get("HADOOP_CONF_DIR") or folder is None or not (Path(folder) / site.CORE).is_file():
        return {}
    return {"HADOOP_CONF_DIR": folder}
