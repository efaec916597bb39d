"""From a program's arguments to its exit code: what every job has in common."""

from __future__ import annotations

import argparse
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from lowtide.cleaning.planning import Request
from lowtide.config import Config, load, source
from lowtide.errors import LowtideError, StoreError, UsageError
from lowtide.run import approval
from lowtide.run.approval import Approved
from lowtide.run.submit import REMOVING
from lowtide.run.summary import Summary, here
from lowtide.store.gateway import failures, is_failure, no_answer
from lowtide.store.ports import nobody_answers
from lowtide.store.state import opened
from lowtide.values.durations import parse_duration, parse_time
from lowtide_spark.frames.store import Store, told
from lowtide_spark.run.arguments import arguments
from lowtide_spark.run.context import Run
from lowtide_spark.run.printing import report
from lowtide_spark.run.session import check_place, session

_ZOOKEEPER_SECONDS = 5.0


def run_job(
    job: str,
    body: Callable[[Run], None],
    argv: Sequence[str] | None = None,
    *,
    read_only: bool = False,
    blind: int = 1,
) -> int:
    """Run *body* and report: summary in the file, the state table and the terminal; returns the exit code.

    *read_only*: the job writes nothing to the store, the summary neither. *blind*: the least exit code of a job that
      could not do its work.
    """
    options = arguments(job, argv)
    started = time.monotonic()
    now = datetime.now(UTC)
    summary = Summary(
        job,
        options.run_id or now.strftime("manual-%Y%m%dT%H%M%S.%fZ"),
        options.execute or options.as_configured,
        by=here(source(options.config)),
    )
    run: Run | None = None
    code = 0
    try:
        check_place()
        run = _prepare(job, options, summary, now, started)
        run.read_only = read_only
        run.check_cluster()
        run.check_clock()
        run.note_hbase()
        body(run)
        code = 1 if summary.failed else 0
    except LowtideError as error:
        summary.problems.append(str(error))
        code = max(error.exit_code, blind)
    except Exception as error:  # whatever it is, the run ends red, with its summary
        traceback.print_exc()
        summary.problems.append(_told(error))
        code = blind
    finally:
        summary.seconds = round(time.monotonic() - started, 2)
    if run is not None and not read_only and not _keep(run):
        code = code or 1
    if options.summary:
        summary.write(options.summary)
    report(summary, problems_only=read_only)
    return code


def _prepare(job: str, options: argparse.Namespace, summary: Summary, now: datetime, began: float) -> Run:
    config = load(options.config)
    for name in options.table:
        config.table(name)
    summary.context = dict(_pair(text) for text in options.context)
    start = parse_time(options.start, "--from") if options.start else None
    end = parse_time(options.end, "--to") if options.end else None
    options.grace = _grace(options.grace, config.ledger.grace if job == "transaction_repair" else config.grace)
    request = Request(summary.run, now, start, end, options.full)
    request.check()
    _check_zookeeper(config)
    approved = _approved(job, options)
    spark = session(f"lowtide {job}")
    if (summary.execute and job in REMOVING) or getattr(options, "list", False):
        config.state.check_sideline(spark.sparkContext.master or "")
    run = Run(options, config, Store(spark, config, options.rate), request, summary, approved, phase_started=began)
    run.phase("start")  # Spark's own start is most of it
    return run


def _check_zookeeper(config: Config) -> None:
    """Say that HBase is away before Spark starts: its client would look for it for minutes."""
    addresses = config.hbase.zookeeper_addresses
    if nobody_answers(addresses, _ZOOKEEPER_SECONDS):
        msg = (
            f"ZooKeeper does not answer at {', '.join(addresses)}, so HBase cannot be found; start it, or set "
            "hbase.zookeeper_quorum and hbase.zookeeper_port"
        )
        raise StoreError(msg)


def _approved(job: str, options: argparse.Namespace) -> Approved | None:
    file = getattr(options, "approved", None)
    if file is None:
        return None
    if not options.execute and not options.as_configured:
        msg = "--approved holds a run that acts to a plan; give --execute with it"
        raise UsageError(msg)
    return approval.read(file, job)


def _grace(text: str | None, configured: timedelta) -> timedelta:
    try:
        return parse_duration(text) if text is not None else configured
    except ValueError as error:
        msg = f"--grace: {error}"
        raise UsageError(msg) from None


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        msg = f"--context: KEY=VALUE is expected, found {text!r}"
        raise UsageError(msg)
    return key, value


def _told(error: Exception) -> str:
    text = told(error)
    if not text.startswith(type(error).__name__):  # it is known what that means
        return text
    if is_failure(error):
        return str(no_answer("the records", error, "see that HBase is up, and run again"))
    return f"unexpected {text}"


def _keep(run: Run) -> bool:
    """Keep the summary in the state table, if there is one, where the page finds it; whether that went well. A gateway
    that leads to another store keeps it too: it is there that people look.
    """
    try:
        state = run.state()
        if state.exists():
            state.add_run(run.summary.to_keep())
        if run.crossed:
            with opened(run.config) as behind:
                behind.create()
                behind.add_run(run.summary.to_keep())
    except failures(LowtideError) as error:
        run.summary.problems.append(f"the summary is not in the state table: {error}")
        return False
    return True
