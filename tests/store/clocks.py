"""The clock of the machine that runs jobs, as a test sets it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import ModuleType

from lowtide_spark.run import base, oracle
from lowtide_spark.run import job as program

#: Where a job looks at it.
LOOKING: tuple[ModuleType, ...] = (base, oracle, program)


def set_off(off: timedelta, put: Callable[[ModuleType, str, type[datetime]], object] = setattr) -> None:
    """Let it be off by so much from here on, for jobs in this process; *put* replaces an attribute of a module."""

    class Clock(datetime):
        @classmethod
        def now(cls, _: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + off

    for module in LOOKING:
        put(module, "datetime", Clock)


def set_right() -> None:
    """It is right again."""
    for module in LOOKING:
        module.datetime = datetime  # type: ignore[attr-defined]
