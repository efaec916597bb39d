"""Waiting for what others do, by looking again."""

from __future__ import annotations

from collections.abc import Callable

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed


def reached(goal: Callable[[], bool], seconds: float, *, pause: float) -> bool:
    """Look every *pause* seconds, once at least, whether *goal* is reached; False if it was not within *seconds*.

    What *goal* raises ends the waiting.
    """
    looking = Retrying(
        retry=retry_if_result(lambda found: not found),
        stop=stop_after_delay(seconds),
        wait=wait_fixed(pause),
        retry_error_callback=lambda _: False,
    )
    return bool(looking(goal))
