"""Lowtide's own table in the store: what was cleaned, the marks, the runs.

One row a table for everything that a run records about it, so that each write can check the table's *epoch* in the same
row atomically: a late, killed or second run cannot move state. Rows (family ``s``, JSON values, numbers in names
zero-padded so that they sort):

``format``                the records' format, since when, and which version of Lowtide wrote it; without the row: 1
``table/NAME``            epoch, incarnation, one ``fact/START-STOP`` (hex) per cleaned key range, what was forgotten
``oracle``                the highest low watermark seen, how far it ever went back, the commit table's life
``generation``            how often the records were reset, and since when, and from where on, the journal is of today's
                          oracle
``cluster``               the newest run's token: through the gateway and past it the same must be read
``clock/MILLIS``          a sample: the oracle's timestamp at that wall-clock time
``bound/INVERTED-MILLIS`` the prune bound computed then, newest first
``journal``               whether the journal was ever made, what it records of itself, in which life it was whole
``commits``               commit entries and invalidation marks as counted, one column a count, the newest few hundred
``inventory``             the tables found last, with their settings, the low watermark that was read before, and when
``confirmed/NAME``        that somebody confirmed that a table's transactions are this oracle's
``watermarks/NAME``       region watermarks computed last
``history/NAME``          the ancient history mark applied, and the one that a run intends to apply
``hold/NAME/ID``          a hold on a table's history; an empty value is one that was let go
``uncompacted/NAME``      what history GC removed and no major compaction has dropped yet, one column a region
``reads/NAME``            read points of a table that were read: a counter an age, of eight bytes (``history.advice``)
``pauses``                what is paused until when: a column a table, and one for all
``now/TOKEN``             written and removed again: for the time of HBase's clock, and to be read past the gateway
``run/INVERTED-MILLIS/JOB/RUN``   a run's summary, newest first

Of its rows nobody's consent is asked, with one exception: what ``watermark_collection`` publishes waits for a pause of
this table or of the store. The pauses are rows of it themselves; and the rest says what was done, by whom, and what
must not be done: a fact that was not recorded, a hold that was not taken would make less safe, not more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lowtide.errors import StoreError
from lowtide.history.mark import at_most
from lowtide.store.bounds import BoundRows
from lowtide.store.commit_counts import CommitCountRows
from lowtide.store.facts import FactRows
from lowtide.store.gateway import connect
from lowtide.store.history import HistoryRows, HoldRows, UncompactedRows
from lowtide.store.journal import JournalRow
from lowtide.store.listing import ListingRows
from lowtide.store.pauses import PauseRows
from lowtide.store.records import Journal
from lowtide.store.rows import MAX_MILLIS, VALUE, dump
from lowtide.store.runs import RunRows
from lowtide.values.clock import millis, now_millis

if TYPE_CHECKING:
    from lowtide.config import Config


class StateStore(
    FactRows,
    BoundRows,
    CommitCountRows,
    ListingRows,
    JournalRow,
    HistoryRows,
    HoldRows,
    UncompactedRows,
    PauseRows,
    RunRows,
):
    """The state table: all subjects, and what concerns more than one."""

    def reset(self, *, same_oracle: bool = False, skipped: tuple[int, int] | None = None, pruned: int = 0) -> None:
        """Forget all cleaned ranges, bounds, samples and the low watermark seen; epochs and past runs stay.

        For an oracle that was made anew: after it, everything is cleaned again from 0, and what the journal holds of a
        transaction proves nothing of another that the oracle gave the same number since: that is remembered also where
        nothing else was, as where the records were lost.
        ``lowtide.cleaning.renumbered`` says when it may be done. With *same_oracle* no number was given twice, as where
        only the commit table came back: what the journal holds stays a proof, and how far was pruned into it tells up
        to where all tables were cleaned once (:meth:`greatest_bound`); nor does it change for which times a table was
        cleaned. *skipped*: the numbers [from, to) that the oracle was set beyond, which are remembered beside those of
        the resets before. *pruned*: what the journal says of itself; the records may know less.
        """
        if not self.exists():
            if same_oracle:
                return
            self.create()
        since = self.numbered_anew() if same_oracle else millis(self.server_time())
        pruned = self.pruned_before() if same_oracle else max(pruned, self.journal().pruned)
        found = self._table.row(b"generation", [VALUE]).get(VALUE)
        value: dict[str, Any] = {"generation": self.generation() + 1, "since": since, "pruned": pruned}
        if spans := [*self.skipped(), *([skipped] if skipped else ())]:
            value["skipped"] = spans
        # First: a run under way reads it before it acts. In the place of what was read, which it may not come beneath.
        if not self._change(b"generation", VALUE, found, dump(value)):
            msg = "somebody else resets the records: look what they say now (lowtide status), and say it again"
            raise StoreError(msg)
        self.record_format()
        known = self.listing()
        # Its low watermark says nothing of another life's timestamps.
        self.put_inventory(known.entries, known.low_watermark if same_oracle else 0, known.at)
        for row, _ in list(self._scan(b"table/")):
            self.void(row.removeprefix(b"table/").decode(), entirely=not same_oracle)
        for prefix in (b"oracle", b"clock/", b"bound/", b"watermarks/"):
            for row, _ in list(self._scan(prefix)):
                self._table.delete(row)

    def mark_of_any(self, table: str) -> int:
        """The greatest mark that was ever applied to any table, where *table* may have been here under another name:
        marks are kept by name, and a clone lacks what was removed of the table that it was made of. 0: it was not.
        """
        entry = next((e for e in self.inventory() if e.table == table), None)
        if entry is not None and not entry.unconfirmed:
            return 0
        return max((history.applied for history in self.histories()), default=0)

    def raise_mark_up_to_holds(self, table: str, mark: int, run: str, now: Callable[[], datetime]) -> None:
        """Apply *mark*, as far as the holds on *table* allow that count *now*, which is asked only where there are
        any; nothing happens where a higher one holds.
        """
        if holds := self.holds(table):
            at = now()
            mark = min([mark, *(at_most(hold.timestamp) for hold in holds if hold.counts(at))])
        self.raise_mark(table, mark, run)

    def confirm(self, table: str) -> None:
        """Remember that the transactions of *table* are this oracle's; first, as its mark, :meth:`mark_of_any`, as far
        as holds on it allow, which were refused below the one of then: it is a table like any other then.
        """
        self.raise_mark_up_to_holds(table, self.mark_of_any(table), "lowtide confirm", self.server_time)
        super().confirm(table)

    def record_cluster(self) -> None:
        """Write a new token: whoever reaches the same table otherwise reads it, or a newer run's."""
        self._table.put(b"cluster", {VALUE: dump({"token": self._nonce(), "at": now_millis()})})

    def cluster(self) -> bytes | None:
        """The token, as it is stored; None before a run has acted."""
        return self._table.row(b"cluster").get(VALUE) if self.exists() else None

    def sweep(self, before: datetime) -> None:
        """Drop runs, what they left undone, and bounds but the newest and the greatest, that are older than *before*. A
        bound that old has passed every grace; and up to the greatest one all tables were cleaned, however long one has
        held it since.
        """
        self._sweep_failing(millis(before))
        runs, bounds = ([*self._scan(prefix)] for prefix in (b"run/", b"bound/"))
        greatest = max(bounds, key=lambda found: json.loads(found[1][VALUE])["value"], default=None)  # the newest such
        for row, _ in [*runs, *(found for found in bounds[1:] if found is not greatest)]:
            if MAX_MILLIS - int(row.split(b"/")[1]) < millis(before):
                self._table.delete(row)

    def greatest_bound(self, journal: Journal) -> int:
        """The start timestamp up to which, inclusive, all tables are known to have been cleaned once; 0: none.

        By the bounds that were logged, and by the *journal*, which is pruned without a collection, too: not by what it
        says of before the oracle was made anew.
        """
        pruned = journal.pruned if journal.pruned > self.pruned_before() else 0
        return max(pruned, *(bound.value for bound in self.bounds()), 0)


@contextmanager
def opened(config: Config) -> Iterator[StateStore]:
    """The configured state table over a connection of its own, which is closed at the end of the block; the gateway
    closes one that idles for a minute.

    Raises:
        GatewayError: nothing answers at the gateway's address.
    """
    with connect(config.hbase.thrift) as connection:
        yield StateStore(connection, config.state.table)
