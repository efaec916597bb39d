"""Settings that would protect a table, under a name that HBase does not have: perhaps the misspelt name of a table that
is then acted on by the defaults. Pure.

A setting protects where it allows less than ``defaults``: what allows more costs nothing where it has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import timedelta
from difflib import get_close_matches
from typing import Any

from lowtide.config import Budget, Config, Mode, Rate
from lowtide.errors import UsageError
from lowtide.tables.inventory import Kind


def check(config: Config, job: str, there: Collection[str]) -> str:
    """Refuse what would protect a table of no name in *there*, the tables that HBase has, and may be the misspelt name
    of one; Omid's, Lowtide's own, other oracles' and the ledger's transactions need not be among them.

    A name that is like none of them may be of a table that is gone, or yet to be made, for which no other is to wait.
    History that goes does not come back: there every such name is refused.

    Returns:
        a note on those that are not refused; empty where there are none.

    Raises:
        UsageError: names each setting that *job* goes by, and the table that may be meant.
    """
    known = {*there, *config.own_tables, f"{config.ledger.prefix}transactions"}
    refused: list[str] = []
    noted: list[str] = []
    for name in sorted(config.tables):
        if name in known or config.omid.is_foreign(name):
            continue
        near = get_close_matches(name, known, n=1)
        found = refused if near or job == "history_gc" else noted
        meant = f" ({near[0]} may be meant)" if near else ""
        found += [f"tables.{name}.{key}{meant}" for key in _protecting(config, job, name)]
    if refused:
        fact = (
            f"the configuration has {', '.join(refused)}, and HBase has no such table: the one that is meant would be "
            "worked on without that. Nothing was done"
        )
        raise UsageError(fact, "Correct the name under tables:, or take it out")
    return f"the configuration has {', '.join(noted)}, and HBase has no such table" if noted else ""


def _protecting(config: Config, job: str, name: str) -> Iterator[str]:
    """The keys of table *name* by which *job* would do less to it than the defaults say."""
    own, defaults = config.table(name), config.defaults
    for key, allows_less in {**_OF_ALL, **_OF_JOBS.get(job, {})}.items():
        if key in config.tables[name] and allows_less(getattr(own, key), getattr(defaults, key)):
            yield key


def _is_dry(own: Mode, default: Mode) -> bool:
    return own is Mode.DRY_RUN and default is not Mode.DRY_RUN


def _is_longer(own: timedelta | str, default: timedelta | str) -> bool:
    if isinstance(own, str) or isinstance(default, str):  # forever
        return not isinstance(default, str)
    return own > default


def _is_tighter(own: Budget, default: Budget) -> bool:
    return own.rows < default.rows or own.share < default.share or own.always < default.always


def _is_slower(own: Rate, default: Rate) -> bool:
    pairs = ((own.reads, default.reads), (own.writes, default.writes))
    return any(mine is not None and (other is None or mine < other) for mine, other in pairs)


_Rules = dict[str, Callable[[Any, Any], bool]]
_OF_ALL: _Rules = {
    # Proofs are looked for, and bounds held back, in a table that is called transactional.
    "kind": lambda own, default: own is Kind.TRANSACTIONAL and default is not Kind.TRANSACTIONAL,
    "rate": _is_slower,
}
_OF_JOBS: dict[str, _Rules] = {
    "orphan_cleanup": {"mode": _is_dry, "budget": _is_tighter},
    "commit_table_pruning": {"mode": _is_dry},
    "transaction_repair": {"mode": _is_dry},
    "history_gc": {
        "history_mode": _is_dry,
        "history_max_age": _is_longer,
        "min_history_age": _is_longer,
        "budget": _is_tighter,
    },
}
