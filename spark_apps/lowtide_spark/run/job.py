"""From a program's arguments to its exit code: what every job has in common."""

from __future__ import annotations

import argparse
import re
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from lowtide.config import Config, Rate, load, source
from lowtide.errors import LowtideError, StoreError, UsageError
from lowtide.run.arguments import arguments, understood
from lowtide.run.jobs import ASIDE, REMOVING, SWEEPING
from lowtide.run.summary import Summary, here
from lowtide.store.gateway import failures, is_failure, no_answer, text_of
from lowtide.store.ports import nobody_answers
from lowtide.store.state import opened
from lowtide.terminal.console import prepare_streams
from lowtide.values.clock import millis
from lowtide.values.skew import MARGIN
from lowtide_spark.frames import audit_log, owner, sideline
from lowtide_spark.frames.store import Store, meaning, told
from lowtide_spark.run.context import Run
from lowtide_spark.run.printing import report
from lowtide_spark.run.progress import progress
from lowtide_spark.run.session import check_place, session

_ZOOKEEPER_SECONDS = 5.0
#: In the context of runs that Airflow has submitted.
_AIRFLOWS = "dag_id"
#: How what HBase's client tried in vain begins; the attempts follow, line by line.
_IN_VAIN = re.compile(r"RetriesExhausted\w*: Failed after attempts=(\d+), exceptions:$")


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
    prepare_streams()
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
    code, entered = 0, False
    try:
        check_place()
        run = _prepare(job, options, summary, now, started)
        run.read_only = read_only
        if run.acting and not read_only:
            audit_log.began(run, summary, list(sys.argv[1:] if argv is None else argv))
            entered = True
        run.check_rights()
        run.check_cluster()
        run.check_clock()
        run.note_hbase()
        _check_owner(run, job)
        # An inspection shows it itself, and then what it found.
        with nullcontext() if read_only else progress(run.store.spark, job):
            body(run)
            if entered and summary.execute and job in SWEEPING:
                _sweep(run)
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
    if run is not None and entered:
        code = max(code, _end_entry(run, code))
    if run is not None and not read_only and not _keep(run):
        code = code or 1
    if options.summary and not _written(summary, options.summary):
        code = code or 1
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
    spark = session(f"lowtide {job}", config)
    _check_sideline(config, job, options, summary, spark.sparkContext.master or "")
    store = Store(spark, config, Rate(reads=options.rate, writes=options.write_rate))
    summary.by["principal"] = store.login()
    run = Run(options, config, store, asked.request, summary, asked.approved, phase_started=began)
    run.phase("start")  # Spark's own start is most of it
    return run


def _written(summary: Summary, file: Path) -> bool:
    """Whether its file has the summary; where not, what the run did is told all the same."""
    try:
        summary.write(file)
    except OSError as error:
        summary.problems.append(f"the summary cannot be written to {file}: {error.strerror}")
        return False
    return True


def _sweep(run: Run) -> None:
    """Whatever the run did: people's data do not lie there for longer because there was nothing to do. What it did is
    done, whether or not this goes well.
    """
    try:
        left = sideline.sweep(run)
    except Exception as error:  # the file system's
        run.summary.notes.append(f"what is older than state.sideline_keep was not removed: {told(error)}")
        return
    if left:
        run.summary.notes.append(
            f"{len(left)} folders in state.sideline are closed to this user, or cannot be removed, such as {left[0]}; "
            "once they are older than state.sideline_keep their owner has to remove them"
        )


def _end_entry(run: Run, code: int) -> int:
    """Enter the run's end into the audit log; the exit code that follows from that."""
    try:
        audit_log.ended(run, run.summary, code)
    except LowtideError as error:
        run.summary.problems.append(str(error))
        return 1
    return 0


def _check_sideline(config: Config, job: str, options: argparse.Namespace, summary: Summary, master: str) -> None:
    """Refuse one that executors do not share, where they write there; else it is of the driver's machine alone, and so
    is the audit log, which is said. So it is, with what is put aside, where the driver runs on a worker of Airflow's.
    """
    try:
        config.state.check_sideline(master)
    except UsageError as error:
        if (summary.execute and job in REMOVING) or getattr(options, "list", False):
            raise
        if summary.execute:
            summary.notes.append(f"the audit log of this run lies on the driver's machine alone: {error}")
        return
    if summary.execute and _AIRFLOWS in summary.context and "://" not in config.state.sideline:
        summary.notes.append(
            f"state.sideline is {config.state.sideline}, on this worker ({summary.by['host']}): what runs on other "
            "workers put aside is not seen from here, nor this from there, and a restore must run where the run was. "
            "Give a URL that all of them reach, such as hdfs://..., or, where there is one worker or the folder is "
            f"mounted on all, file://{config.state.sideline}"
        )


def _check_owner(run: Run, job: str) -> None:
    """Refuse another store's sideline, before anything is put aside, swept or read; all that is there of the run is
    that it began, and how it ended.
    """
    if (run.acting and not run.read_only) or getattr(run.options, "list", False):
        owner.claim(run)
    elif job in ASIDE:
        owner.check(run)


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
            _date(run.summary, state.server_time())
            state.add_run(run.summary.to_keep())
        if run.crossed:
            with opened(run.config) as behind:
                behind.create()
                behind.add_run(run.summary.to_keep())
    except failures(LowtideError) as error:
        why = _why(error)
        known = any(why in problem for problem in run.summary.problems)  # nobody is let in, say
        run.summary.problems.append(f"the summary is not in the state table{' either' if known else f': {why}'}")
        return False
    return True


def _date(summary: Summary, now: datetime) -> None:
    """Give the summary its place among the others', which are ordered by when they began: by HBase's clock, where this
    machine's is off. One that is ahead would be the newest for as long.
    """
    began = millis(now) - round(summary.seconds * 1000)
    if abs(summary.started - began) > MARGIN // timedelta(milliseconds=1):
        summary.started = began


def _why(error: Exception) -> str:
    said = text_of(error)
    # What HBase's client in the driver says has its first line only, and the rest behind it.
    if known := meaning(f"{said}\n{error.__cause__ or ''}"):
        return known
    first = (said.strip() or type(error).__name__).splitlines()[0]
    asked = _IN_VAIN.search(first)
    return f"HBase gave no answer in {asked[1]} attempts" if asked else first
