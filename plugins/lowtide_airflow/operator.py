"""The operator that submits a job of Lowtide to Spark and brings its summary back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import lowtide_airflow.required.spark  # noqa: F401 - before Airflow's names, which a wrong one may lack

# isort: split
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowTaskTimeout,
)

from lowtide.config import Config
from lowtide.errors import UsageError
from lowtide.run import classic, deploy, installation, submit
from lowtide.run.rate import JOB_TIMEOUT
from lowtide.run.summary import APPROVED_BY
from lowtide.values.text import took_text
from lowtide_airflow import approved, arguments, metrics, report, stores
from lowtide_airflow.links import PageLink
from lowtide_airflow.settings import number

if TYPE_CHECKING:
    from airflow.sdk import Connection, Context

__all__ = [
    "SUMMARY_KEY",
    "LowtideSparkOperator",
]

#: The key under which a task's digest of its job's summary is found among its XComs, also when the task failed.
SUMMARY_KEY = "summary"
#: A job's exit code for bad arguments or configuration: trying again cannot help.
_USAGE = 2


class _StoppedError(AirflowException):
    """The task's time was over before the job was."""


class LowtideSparkOperator(SparkSubmitOperator):
    """Run a job of Lowtide through ``spark-submit`` in client mode.

    Program, class path and Spark settings are those of ``lowtide run`` (:mod:`lowtide.run.submit`); the arguments
    follow from the kind of run (:mod:`lowtide_airflow.arguments`). After the job the log has its summary as a table,
    XCom its digest, and every outlet's asset event carries the digest too, and Airflow's metrics get its numbers
    (:mod:`lowtide_airflow.metrics`). A run for which somebody chose a dry run sends no asset event: it has
    nothing to hand on. One that goes by the configuration does, also where the mode there is dry-run.

    The task fails when the job did not do all of its plan, with the list of problems as its message. A retry runs under
    the same run name and leaves out what the first try has recorded. Bad arguments or configuration fail without a
    retry.

    It does not free the worker while Spark works, and it does not survive the worker's death: since every action of a
    job is safe by itself, the retry goes on from there. A task that is told to end ends the driver first. One that is
    killed (``SIGKILL``, no memory left) leaves the driver at its work, unless its container goes too: the retry
    overtakes it, table by table, and who wants it gone sooner ends it on that host (docs/operating.md).

    :param job: name of the job, see docs/jobs.md
    :param store: which of ``stores`` of the section ``[lowtide]`` (:mod:`lowtide_airflow.stores`); empty: that of
        ``LOWTIDE_CONFIG``
    :param tables: tables for it (templated, may be mapped); none: all
    :param plans: a dry run, whatever the run is; its plan goes to XCom for a person to approve
    (:mod:`lowtide_airflow.approval`)
    :param only_form: refuse a run whose ``conf`` has a key that is no param of its DAG, as Lowtide's own DAGs do; a
        misspelt one would be ignored, and the run would act on more than was meant
    :param conn_id: a ``spark`` connection whose host is the master, in client mode. Where there is no such connection,
        the configuration's ``spark.master`` is used. (The provider would take YARN.)
    """

    operator_extra_links = (PageLink(),)
    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "tables")

    def __init__(
        self,
        *,
        job: str,
        store: str = "",
        tables: Sequence[str] = (),
        plans: bool = False,
        only_form: bool = False,
        conn_id: str = "spark_lowtide",
        **kwargs: Any,
    ) -> None:
        super().__init__(conn_id=conn_id, **{"name": f"lowtide {job}"} | kwargs)
        self.job = job
        self.store = store
        self.tables = tables
        self.plans = plans
        self.only_form = only_form
        self._shares_sideline = True
        #: Where the job goes, by which all was judged.
        self._master = ""

    def execute(self, context: Context) -> None:
        """Submit, wait, report."""
        try:
            if self.only_form:
                arguments.check_conf(context["dag_run"].conf, context["dag"].params, context["params"])
            run = arguments.Run.of(context)
            store = stores.store(self.store)
            self._prepare(store.load(), arguments.options(run, self.job))
            given = [*self._arguments(context, run), *(["--config", str(store.file)] if store.file else [])]
        except UsageError as error:
            raise AirflowFailException(str(error)) from error
        if run.dry or self.plans:
            self.outlets = []
        with TemporaryDirectory(prefix="lowtide-") as folder:
            file = Path(folder) / "summary.json"
            held = self._held(context, run, Path(folder) / "approved.json")
            self.application_args = [*given, *held, "--summary", str(file)]
            failure = self._submit(context)
            summary = json.loads(file.read_text()) if file.exists() else None
        if summary:
            self._report(context, summary)
        if failure:
            # Where the summary has what went wrong, the whole spark-submit command before it would only be in the way.
            raise self._explained(failure, summary) from (None if summary else failure)
        if not summary:
            msg = (
                f"{self.job} ended well and wrote no summary here; its driver must run on the worker (deploy mode "
                "client)"
            )
            raise AirflowException(msg)

    def on_kill(self) -> None:
        """Ask the driver to end before the provider kills it, so that Spark removes its work folders."""
        process = getattr(self._hook, "_submit_sp", None)
        if process and process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.log.warning("the driver does not end; it is killed")
        super().on_kill()

    def _get_hook(self) -> SparkSubmitHook:
        """The provider's, which looks the connection up for itself, and goes to YARN where it cannot read it just then.

        Raises:
            AirflowException: it would go elsewhere than all was judged for; a retry looks anew.
        """
        hook = super()._get_hook()
        asked = hook._connection["master"]
        if asked != self._master:
            msg = (
                f"the connection {self._conn_id} led to {self._master or 'no master'} and, when Airflow looked it up "
                f"again, to {asked}; nothing was submitted. Either it was changed just now, or could not be read"
            )
            raise AirflowException(msg)
        return hook

    def _prepare(self, config: Config, options: Sequence[str] = ()) -> None:
        self.application = self.application or str(submit.application(self.job))
        os.environ |= submit.hadoop_environment(config)
        master, program, mode = config.spark.master, None, None
        try:
            # What its driver listens on follows from where the job goes, not from what is configured for others.
            connection = BaseHook.get_connection(self._conn_id)
            master = _master(connection)
            extra = connection.extra_dejson or {}
            program, mode = extra.get("spark-binary"), extra.get("deploy-mode")
        except AirflowNotFoundException:
            self.log.info("no connection %s: spark.master of the configuration, %s", self._conn_id, master)
            os.environ[f"AIRFLOW_CONN_{self._conn_id.upper()}"] = json.dumps({"conn_type": "spark", "host": master})
        self._master = master
        given = {name: str(value) for name, value in (self.conf or {}).items()}
        submit.check_conf(given, "conf of the task")
        known = submit.job_conf(config, master, options)
        # Both: without Lowtide's own executors cannot keep to a rate.
        plugins = [conf["spark.plugins"] for conf in (given, known) if conf.get("spark.plugins")]
        self.conf = {
            "spark.driver.memory": config.spark.driver_memory,
            "spark.pyspark.driver.python": sys.executable,
            **known,
            **given,
            **({"spark.plugins": ",".join(dict.fromkeys(plugins))} if plugins else {}),
        }
        submit.check_login(self.conf)
        # A dry run needs no sideline, so it is not refused for want of one that all reach: it does without a list.
        with suppress(UsageError):
            self._shares_sideline = False
            config.state.check_sideline(master)
            self._shares_sideline = True
        self._judge_mode(mode)
        self._judge_spark(self._spark_binary or program or "spark-submit", self._deploy_mode or mode)

    def _judge_mode(self, mode: str | None) -> None:
        """Refuse a driver that would run elsewhere; *mode* is what the connection asks for."""
        remedy = f"Set it to {deploy.CLIENT}, or leave it out"
        deploy.check_mode(self._deploy_mode, f"the task has deploy mode {self._deploy_mode}", remedy)
        deploy.check_mode(mode, f"the connection {self._conn_id} has deploy mode {mode}", remedy)

    def _judge_spark(self, program: str, mode: str | None) -> None:
        """Refuse a Spark that Lowtide does not run on, and what of its surroundings would have the driver elsewhere, or
        a session of Spark Connect, before *program* starts it; say which one ``SPARK_HOME`` has. *mode* is what is
        asked for, and wins.
        """
        if shutil.which(program) is None:
            return  # the provider says so, in its own words
        found = installation.find(os.environ, program)
        environ = {**os.environ, **(self.env_vars or {})}
        classic.check_surroundings(environ, found.home, self.properties_file)
        if not mode:
            deploy.check_surroundings(self.conf or {}, environ, found.home, self.properties_file)
        for line in found.told():
            self.log.info(line)

    def _arguments(self, context: Context, run: arguments.Run) -> list[str]:
        ti = context["ti"]
        facts = {
            "dag_id": run.dag_id,
            "run_id": run.run_id,
            "task_id": ti.task_id,
            "map_index": _index(context),
            "try": ti.try_number,
        }
        if self.execution_timeout:
            facts[JOB_TIMEOUT] = round(self.execution_timeout.total_seconds())
        # Clearing a task gives it its retries anew, on top of the tries that are over.
        cleared = max(0, ti.max_tries - (self.retries or 0))
        return [
            *arguments.tables(run, self.job, self.tables),
            *([] if self.plans else arguments.how(run, self.job)),
            *arguments.interval(run, self.job),
            *arguments.options(run, self.job),
            *(arguments.listing(run, self.job, self.plans) if self.plans or self._shares_sideline else []),
            *("--run-id", arguments.run_name(run, ti.task_id, _index(context), cleared)),
            *(part for name, value in facts.items() for part in ("--context", f"{name}={value}")),
        ]

    def _held(self, context: Context, run: arguments.Run, file: Path) -> list[str]:
        """What holds a run that acts to the plan that a person approved, where the run asks for that, or did when the
        person was asked: it may have been switched off since, and they approved that plan and no other.
        """
        if self.plans or not (arguments.needs_approval(run) or approved.answered(context)):
            return []
        file.write_text(json.dumps(approved.approved_plan(context, _index(context))))
        return ["--approved", str(file), "--context", f"{APPROVED_BY}={approved.approver(context)}"]

    def _submit(self, context: Context) -> AirflowException | None:
        try:
            super().execute(context)
        except AirflowFailException:
            raise
        except AirflowException as error:
            return error
        except AirflowTaskTimeout:
            self.on_kill()
            return _StoppedError(self._stopped())
        return None

    def _stopped(self) -> str:
        after = took_text(self.execution_timeout.total_seconds()) if self.execution_timeout else "its time"
        return (
            f"{self.job} was stopped after {after}, which is all that its task has ([lowtide] {JOB_TIMEOUT} in "
            "airflow.cfg, or an execution_timeout). What it did is done, and stays so. A table is recorded when the "
            "run is through with it: a retry leaves those out, and begins again with the one that it was stopped in. "
            f"Where that table alone takes longer, no retry ends: set {JOB_TIMEOUT} higher, raise the rate that holds "
            "the run back, or run that table by itself (Tables of the form; or lowtide run with --table, which nothing "
            "stops)"
        )

    def _report(self, context: Context, summary: Mapping[str, Any]) -> None:
        for line in report.log_lines(summary):
            self.log.info(line)
        digest = report.digest(summary)
        context["ti"].xcom_push(SUMMARY_KEY, digest)
        if self.plans:
            context["ti"].xcom_push(approved.PLAN_KEY, report.plan(summary, number("approval_cells", 20)))
        for outlet in self.outlets:
            context["outlet_events"][outlet].extra = digest
        metrics.emit(metrics.metrics(summary, self.store), f"{summary['job']} {summary['run']}")

    def _explained(self, failure: AirflowException, summary: Mapping[str, Any] | None) -> AirflowException:
        process = getattr(self._hook, "_submit_sp", None)
        problems = list(report.all_problems(summary)) if summary else []
        text = "\n  ".join([f"{self.job} left {len(problems)} problem(s):", *problems]) if problems else str(failure)
        if isinstance(failure, _StoppedError):
            return AirflowException("\n  ".join([str(failure), *problems]))
        if process and process.returncode == _USAGE:
            return AirflowFailException(text)
        return AirflowException(text)


def _master(connection: Connection) -> str:
    """The master that the provider makes of a *connection*: its host, or, where that is a host alone, with its type and
    port.
    """
    host = connection.host or ""
    whole = connection.conn_type == "spark" and host and ("://" in host or not connection.port)
    return (host if whole else f"{connection.conn_type}://{host}") + (f":{connection.port}" if connection.port else "")


def _index(context: Context) -> int:
    """Of a mapped task its place, else -1: Airflow's own number for it, though its types allow None, too."""
    index = context["ti"].map_index
    return -1 if index is None else index
