"""Lowtide's own tables, kept as they ought to be."""

from __future__ import annotations

from collections.abc import Iterable

from lowtide.errors import StoreError
from lowtide.store.gateway import without_bloom_or_cache
from lowtide_spark.run.base import RunBase


def mend(run: RunBase, names: Iterable[str]) -> list[str]:
    """Give tables of our own that the gateway made by its defaults what these leave out; notes on what was done.
    Those that are right cost a read.
    """
    with run.store.connections.connection() as connection:
        there = connection.tables()
        slow = {name: without_bloom_or_cache(connection, name) for name in names if name.encode() in there}
    notes = []
    for name, families in slow.items():
        if not families:
            continue
        try:
            run.store.give_bloom_and_cache(name, families)
        except StoreError as error:
            ddl = ", ".join(f"{{NAME => '{f}', BLOOMFILTER => 'ROW', BLOCKCACHE => 'true'}}" for f in families)
            notes.append(
                f"{name} has no bloom filter or no block cache, so that reads of it are slow, and {error}; "
                f"in HBase's shell: alter '{name}', {ddl}"
            )
        else:
            notes.append(
                f"{name} was made without bloom filter or block cache; it has both now, its files as they are written"
            )
    return notes
