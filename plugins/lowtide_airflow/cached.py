"""A value that is costly to get, kept for a while and got anew in the background. No Airflow import."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Cached(Generic[T]):
    """What *get* returned last, got again when it is older than *seconds*; thread-safe.

    At most one call of *get* runs at a time, in a thread of its own. A caller waits *patience* seconds at most, and
    only while there is no value at all; then it has None. An old value is returned at once while a new one is fetched;
    a caller that wants a fresh one waits for it as long. *get* must not raise.
    """

    def __init__(
        self,
        get: Callable[[], T],
        seconds: float,
        patience: float = 3,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._get = get
        self._seconds = seconds
        self._patience = patience
        self._clock = clock
        self._lock = threading.Lock()
        self._value: T | None = None
        self._until = 0.0
        self._fetching: threading.Event | None = None

    def get(self, *, fresh: bool = False) -> T | None:
        """The value; None where there is none yet. *fresh*: one that is not older than it may be, if it comes in
        time: who asks seldom would otherwise always have the one of the time before.
        """
        with self._lock:
            if self._fetching is None and (self._value is None or self._clock() >= self._until):
                self._fetching = threading.Event()
                threading.Thread(target=self._fetch, args=(self._fetching,), name="lowtide page", daemon=True).start()
            fetching, known = self._fetching, self._value
        if (fresh or known is None) and fetching is not None:
            fetching.wait(self._patience)
        return self._value

    def _fetch(self, done: threading.Event) -> None:
        try:
            value = self._get()
            with self._lock:
                self._value, self._until = value, self._clock() + self._seconds
        finally:
            with self._lock:
                self._fetching = None
            done.set()
