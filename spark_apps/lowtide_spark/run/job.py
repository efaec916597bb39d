"""From a program's arguments to its exit code: what every job has in common."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

from lowtide.config import Config, Rate, load, source
from lowtide.errors import LowtideError, StoreError, UsageError
from lowtide.run.arguments import arguments, understood
from lowtide.run.jobs import REMOVING
from lowtide.run.summary import Summary, here
from lowtide.store.gateway import failures, is_failure, no_answer
from lowtide.store.ports import nobody_answers
from lowtide.store.state import opened
from lowtide_spark.frames.store import Store, told
from lowtide_spark.run.context import Run
from lowtide_spark.run.printing import report
from lowtide_spark.run.progress import progress
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
    """Run *body* and report: summary in the file, the state table and the terminal; returns the exit code. Arguments
    that cannot be meant end the program.

    *read_only*: the job writes nothing to the store, the summary neither. *blind*: the least exit code of a job that
      could not do its work.
    """
    try:
        options = arguments(job, argv)
    except UsageError as error:  # there is nowhere yet to put a summary
        print(error, file=sys.stderr, flush=True)
        sys.exit(error.exit_code)
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
        # An inspection shows it itself, and then what it found.
        with nullcontext() if read_only else progress(run.store.spark, job):
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
        summary.pace = _pace(run)
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
    asked = understood(job, options, summary.run, now)
    summary.context = dict(asked.context)
    options.grace = asked.grace
    if asked.grace is None:
        options.grace = config.ledger.grace if job == "transaction_repair" else config.grace
    _check_zookeeper(config)
    spark = session(f"lowtide {job}")
    if (summary.execute and job in REMOVING) or getattr(options, "list", False):
        config.state.check_sideline(spark.sparkContext.master or "")
    store = Store(spark, config, Rate(reads=options.rate, writes=options.write_rate))
    run = Run(options, config, store, asked.request, summary, asked.approved, phase_started=began)
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


def _told(error: Exception) -> str:
    text = told(error)
    if not text.startswith(type(error).__name__):  # it is known what that means
        return text
    if is_failure(error):
        return str(no_answer("the records", error, "see that HBase is up, and run again"))
    return f"unexpected {text}"


def _pace(run: Run | None) -> dict[str, Any]:
    """What the run's summary says of its rate: nothing where the JVM that knows it is gone."""
    try:
        return run.store.pace() if run is not None else {}
    except Exception:  # why the run ended is told already
        return {}


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
