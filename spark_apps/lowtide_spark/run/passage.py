"""What every job does with a table."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from lowtide.errors import LowtideError


class TableWork(Protocol):
    """What a job does for one table."""

    def give_up(self, reason: str) -> None:
        """Do nothing more for this table, and tell why."""


@contextmanager
def failures_kept(work: TableWork) -> Iterator[None]:
    """One failing table never hides the others, nor costs them their records: its error is kept and its work ends."""
    try:
        yield
    except LowtideError as error:
        work.give_up(str(error))
    except Exception as error:  # Spark's, Thrift's, Java's
        traceback.print_exc()
        work.give_up(f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}")
