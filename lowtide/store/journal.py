"""What is remembered of the journal, so that one that lost rows is not taken for whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace

from lowtide.store.records import Journal
from lowtide.store.rows import VALUE, Rows, dump


class JournalRow(Rows):
    """The row ``journal``."""

    def journal(self) -> Journal:
        """What is remembered of the journal."""
        return Journal(**self._json(b"journal", {})) if self.exists() else Journal()

    def remember_journal(self, horizon: int = 0, pruned: int = 0, stated: int = 0) -> None:
        """Remember that the journal is there, that nothing up to *horizon*, a start timestamp, need be in it, and how
        far was *pruned*.

        Neither goes down. *stated*: the life of its table, where none is remembered yet.
        """
        self._change_journal(
            lambda known: replace(
                known,
                there=True,
                horizon=max(horizon, known.horizon),
                pruned=max(pruned, known.pruned),
                stated=known.stated or stated,
            )
        )

    def doubt_journal(self, why: str) -> None:
        """Remember *why* the journal may have lost rows, until :meth:`settle_journal`."""
        self._change_journal(lambda known: replace(known, doubt=why))

    def settle_journal(self, *, there: bool, horizon: int, stated: int) -> None:
        """Remember what a person declared: of the journal in this life of its table, or without one, all but what lies
        at or below *horizon* is known.
        """
        self._change_journal(
            lambda known: Journal(there, max(horizon, known.horizon), known.pruned, stated if there else 0)
        )

    def _change_journal(self, change: Callable[[Journal], Journal]) -> None:
        while True:
            raw = self._table.row(b"journal").get(VALUE)
            known = Journal(**json.loads(raw)) if raw else Journal()
            new = change(known)
            if new == known or self._check_and_put(b"journal", (VALUE, raw), (VALUE, dump(asdict(new)))):
                return
