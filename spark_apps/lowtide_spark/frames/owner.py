"""Which store a folder of sidelines, lists and audit log belongs to: the one that acted first.

Two stores in one folder may bear the same run ids, so that one would restore, or take for its own, what the other has
put aside; and each would sweep away what is older than its own ``sideline_keep``.

A store is known by HBase's cluster id and the name of its state table. Its claim is a file whose *name* says both:
nothing has to be made in one step, which object stores cannot, and half a file says as much as a whole one. Who claims
looks, puts its file there, and looks again, so that of two that come at once at least one sees the other.

A folder that nobody has claimed, though runs of this store put cells there, is not what it was: a share that is not
mounted, another file system of the same address, or a lifecycle rule's work. What was put aside next would vanish in
its turn.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from typing import Any

from py4j.protocol import Py4JError

from lowtide.errors import StoreError, UsageError
from lowtide.run.summary import myself
from lowtide_spark.frames import missed
from lowtide_spark.frames.folders import SHARED, Context, at, child, make_shared, name_of, root_of, safe, write_text
from lowtide_spark.frames.store import cause

#: In the folder of the sidelines.
FOLDER = f"{SHARED}store"
#: No name that :func:`safe` gives has it.
_BETWEEN = "~"


def check(run: Context) -> bool:
    """Refuse a sideline of another store; whether it is this one's already, else it is nobody's. Writes nothing.

    Raises:
        UsageError: it is another's.
        StoreError: that cannot be told.
    """
    try:
        folder, files = at(run, f"{root_of(run)}/{FOLDER}")
        there = [status.getPath() for status in files.listStatus(folder)] if files.exists(folder) else []
    except Py4JError as error:
        fact = f"whose the sideline {root_of(run)} is cannot be told: {cause(error)}; nothing was done"
        remedy = "let Spark's user read there, or name a place that driver and executors share; then run again"
        raise StoreError(fact, remedy) from error
    claims = {path.getName(): path for path in there if _BETWEEN in path.getName()[1:]}
    mine = _claim_of(run) if claims else ""
    for name in sorted(claims.keys() - {mine}):
        cluster, table = (name_of(part) for part in name.split(_BETWEEN, 1))
        here, ours = (name_of(part) for part in mine.split(_BETWEEN))
        fact = (
            f"the sideline {root_of(run)} belongs to another store, with the records {table} in HBase {cluster}; this "
            f"one has {ours} in HBase {here}. Nothing was done"
        )
        raise UsageError(
            fact,
            "Give each store a state.sideline of its own; or, where that store is gone or has become this one (moved "
            f"to another HBase, its state table renamed), remove {claims[name].toString()}",
        )
    return mine in claims


def check_remembered(run: Context) -> None:
    """Of a sideline without a claim: refuse to put anything there where the summaries say that runs did, seen from
    here, and no folder of theirs is left. Of a machine's own disk another machine's runs tell nothing; a URL is every
    machine's, ``file:`` included.

    Raises:
        StoreError: it has lost everything, or that cannot be told.
    """
    folder, files = at(run, f"{root_of(run)}/{FOLDER}")
    one_machines = "://" not in root_of(run) and files.getUri().getScheme() == "file"
    here = myself().rpartition("@")[2]
    wanted = {
        name: one
        for name, one in missed.recorded(run).items()
        for host, put in chain.from_iterable(one.places.values())
        if put.rpartition("/")[0] == f"{root_of(run)}/{safe(name)}" and (host == here or not one_machines)
    }
    try:
        if not wanted or any(files.exists(at(run, f"{root_of(run)}/{safe(name)}")[0]) for name in wanted):
            return
    except Py4JError as error:
        fact = f"whether the sideline {root_of(run)} has what was put there cannot be told: {cause(error)}"
        raise StoreError(f"{fact}; nothing was done", "let Spark's user read there, and run again") from error
    one = wanted[min(wanted)]
    table = min(one.cells)
    fact = (
        f"the sideline {root_of(run)} has lost what was put there: {one.sentence(table, 0)}, and so it is with all "
        f"{len(wanted)} runs whose cells ought to be there. Nothing was done"
    )
    raise StoreError(
        fact,
        "Mount or bring back what was there (HADOOP_CONF_DIR says which file system an address is of); or, where it is "
        f"gone for good, make the empty file {child(run, folder, _claim_of(run)).toString()} (and its folder)",
    )


def claim(run: Context) -> None:
    """Make the sideline this store's, unless it is already: before anything is put there, swept or restored.

    Raises:
        UsageError: it is another's.
        StoreError: that cannot be told, or the claim not be put there; or it has lost what runs put there. Nothing may
            be done then.
    """
    if check(run):
        return
    check_remembered(run)
    folder, files = at(run, f"{root_of(run)}/{FOLDER}")
    path = child(run, folder, _claim_of(run))
    try:
        make_shared(run, folder)
        _put(files, path)
    except Exception as error:  # a file system's
        fact = f"the sideline {root_of(run)} cannot be made this store's: {cause(error)}; nothing was done"
        raise StoreError(fact, "let Spark's user write there (state.sideline), and run again") from error
    try:
        check(run)
    except UsageError:  # it came at the same time, and sees this one's
        with suppress(Py4JError):
            files.delete(path, False)
        raise


def _put(files: Any, path: Any) -> None:
    """Make the file; another job of this store may do so at the same time."""
    try:
        write_text(files, path, "", over=False)
    except Py4JError:
        if not files.exists(path):
            raise


def _claim_of(run: Context) -> str:
    """The name of this store's claim.

    Raises:
        GatewayError: HBase's master does not answer.
        StoreError: it does not tell its cluster's id.
    """
    cluster = run.store.cluster().id
    if not cluster:
        msg = "HBase's master does not tell the id of its cluster, by which the sideline's store is known; run again"
        raise StoreError(msg)
    return f"{safe(cluster)}{_BETWEEN}{safe(run.config.state.table)}"
