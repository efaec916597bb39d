"""Where the audit log lies: beside the sidelines, a folder a month, one file an entry, so that it only grows on any
file system.

What the entries say is in :mod:`lowtide.run.audit`. No file is written to again, and none is removed by Lowtide.
"""

from __future__ import annotations

from datetime import UTC, datetime

from lowtide.errors import StoreError
from lowtide.run import audit
from lowtide.run.summary import Summary
from lowtide_spark.frames.connector import cause
from lowtide_spark.frames.folders import SHARED, Context, at, child, make_shared, root_of, safe, write_text

#: In the folder of the sidelines.
FOLDER = f"{SHARED}audit"


def began(run: Context, summary: Summary, arguments: list[str]) -> None:
    """Enter that a run begins; when it returns, that is kept.

    Raises:
        StoreError: it cannot be entered; nothing may be changed then.
    """
    now = datetime.now(UTC)
    try:
        _enter(run, audit.BEGAN, audit.began(summary, arguments, now), now)
    except Exception as error:  # a file system's
        fact = f"the audit log in {root_of(run)}/{FOLDER} takes no entry: {cause(error)}; nothing was done"
        raise StoreError(fact, "let Spark's user write there (state.sideline), and run again") from error


def ended(run: Context, summary: Summary, code: int) -> None:
    """Enter what came of it.

    Raises:
        StoreError: it cannot be entered.
    """
    now = datetime.now(UTC)
    try:
        _enter(run, audit.ENDED, audit.ended(summary, code, now), now)
    except Exception as error:  # a file system's
        fact = f"the audit log in {root_of(run)}/{FOLDER} does not say how this run ended: {cause(error)}"
        raise StoreError(fact, "its summary does; let Spark's user write there (state.sideline)") from error


def _enter(run: Context, event: str, line: str, now: datetime) -> None:
    folder, files = at(run, f"{root_of(run)}/{FOLDER}/{now:%Y-%m}")
    for each in (folder.getParent(), folder):
        make_shared(run, each)
    write_text(files, child(run, folder, audit.name(event, safe(run.request.run), now)), line, over=False)
