"""The pools, each of one slot: made when Airflow's API server starts, for every store that this Airflow serves.

A task whose pool is not there stays *scheduled* for ever, and Airflow tells nobody. DAG files and tasks may not touch
Airflow's database, and cannot make a pool; the API server may, and loads the plugin.
"""

from __future__ import annotations

import logging
from typing import Any

from lowtide.errors import UsageError

log = logging.getLogger(__name__)


def with_pools(app: Any) -> Any:
    """*app* itself, after the pools were made. Airflow takes it for one of its server's middlewares, which it calls
    once, when the server starts.

    Never raises: a server without pools is better than none, and says what to do.
    """
    from lowtide.check.airflow import pool_command
    from lowtide_airflow import stores

    names = [stores.Store().pool]
    try:
        names += [store.pool for store in stores.named().values()]
    except UsageError as error:
        log.error("no pools are made for the stores: %s", error)
    for name in names:
        try:
            make(name)
        except Exception as error:  # whatever its database raises
            log.error(
                "the pool %s could not be made (%s), and tasks would wait for it for ever; %s",
                name,
                error,
                pool_command(name),
            )
    return app


def make(name: str) -> None:
    """The pool *name* with one slot, if there is none; one that is there is left as it is, and told of where it has
    another number of slots.
    """
    from airflow.models import Pool

    from lowtide.check.airflow import POOL_IS_FOR, pool_command

    pool = Pool.get_pool(name)
    if pool is None:
        Pool.create_or_update_pool(name, slots=1, description=POOL_IS_FOR, include_deferred=False)
        log.info("made the pool %s, of one slot", name)
    elif pool.slots != 1:
        log.error(
            "the pool %s has %d slots, and jobs would work on the store side by side; %s",
            name,
            pool.slots,
            pool_command(name),
        )
