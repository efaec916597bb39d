"""Asking for things one by one where they could not be had together, and not for ever. Pure but for the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
#: From when on an answer was waited for in vain, s: who answers says no at once.
LONG = 20.0
#: So many in a row for which nobody answered, and nobody will.
IN_VAIN = 3


class Patience:
    """One thing that fails hides no other; a store that is away does not take two minutes for each of a thousand.

    After :data:`IN_VAIN` in a row that failed only after :data:`LONG` nothing more is asked: each that follows fails at
    once with the last one's error.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._in_vain = 0
        self._last: Exception | None = None

    def ask(self, question: Callable[[], T]) -> T:
        """What *question* answers.

        Raises:
            Exception: what it raises, or what the last one raised.
        """
        if self._last is not None and self._in_vain >= IN_VAIN:
            raise self._last
        began = self._clock()
        try:
            answer = question()
        except Exception as error:
            self._last = error
            self._in_vain = self._in_vain + 1 if self._clock() - began >= LONG else 0
            raise
        self._in_vain = 0
        return answer
