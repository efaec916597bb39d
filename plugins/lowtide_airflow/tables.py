"""Which tables a cleanup run takes: two small reads through the Thrift gateway, before Spark starts.

Not a whole reading of the store (:mod:`lowtide.health.reader`), which is for people: a run must not fail for what it
does not need.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lowtide.errors import TableError
from lowtide.store.gateway import tables_there
from lowtide.store.state import opened
from lowtide.tables.inventory import Kind

if TYPE_CHECKING:
    from lowtide.config import Config
    from lowtide.tables.inventory import Entry

log = logging.getLogger(__name__)


def sizes(config: Config, named: Sequence[str]) -> dict[str, int]:
    """Bytes by table for the tables to clean; 0 where the size is not known.

    Args:
        config: where the store is, and the settings of its tables.
        named: tables that a person asked for; empty: all that may be transactional.

    Raises:
        GatewayError: the gateway does not answer.
        TableError: a named table does not exist or is disabled.
    """
    with opened(config) as state:
        listed = [name.decode() for name in tables_there(state.connection)]
        known = {entry.table: entry for entry in state.inventory()}
        if named:
            _check(state.connection, named, listed)
    chosen = list(dict.fromkeys(named)) or candidates(config, listed, known)
    return {name: known[name].bytes if name in known else 0 for name in chosen}


def candidates(config: Config, listed: Collection[str], known: Mapping[str, Entry]) -> list[str]:
    """The tables that may be transactional, of those *listed* in HBase.

    Left out: HBase's, Omid's, Lowtide's own and other oracles'; what the configuration calls plain; what the last
    inventory found plain. A table that no inventory has is taken: the job reads its marks and passes over it if it is
    plain. So are tables with shadow cells and no mark, and disabled ones: the job's report names them.
    """
    own = config.own_tables
    missing = sorted(set(config.tables) - set(listed))
    if missing:
        log.warning("configured but not in HBase: %s", ", ".join(missing))
    return sorted(
        name
        for name in listed
        if name not in own and not config.omid.is_foreign(name) and not _plain(name, config, known)
    )


def _plain(name: str, config: Config, known: Mapping[str, Entry]) -> bool:
    configured = config.table(name).kind
    if configured is not None:
        return configured is Kind.PLAIN
    return name in known and known[name].kind is Kind.PLAIN


def _check(connection: Any, named: Sequence[str], listed: Collection[str]) -> None:
    missing = sorted(set(named) - set(listed))
    if missing:
        msg = f"no such table: {', '.join(missing)}; HBase has {', '.join(sorted(listed)) or 'none'}"
        raise TableError(msg)
    disabled = [name for name in named if not connection.is_table_enabled(name)]
    if disabled:
        msg = (
            f"disabled: {', '.join(disabled)}; enable them, or leave them out (they keep the prune bound back until "
            "cleaned)"
        )
        raise TableError(msg)
