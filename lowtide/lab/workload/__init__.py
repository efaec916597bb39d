"""Workloads through the real Omid client, the history they leave, and a client to look at the store with.

::

    with OmidClient(stack) as omid:
        result = run(stack, seed=1, transactions=1000, out=Path("history.jsonl"), omid=omid)
        for timestamp in result.model.read_timestamps(50):
            assert omid.read("orders", timestamp) == result.model.shown_at("orders", timestamp)

``script`` says what is to be done (pure, from a seed), ``history`` what was done, ``model`` what must be seen.
"""

from lowtide.lab.workload import history, script
from lowtide.lab.workload.client import CommitEntry, OmidClient, RawCell, Region, WorkloadError
from lowtide.lab.workload.live import LiveClients
from lowtide.lab.workload.model import Cell, Model, Transaction
from lowtide.lab.workload.program import Store
from lowtide.lab.workload.remote import RemoteStore
from lowtide.lab.workload.runner import Result, make_tables, run
from lowtide.lab.workload.script import CRASH_POINTS, Shape

__all__ = [
    "CRASH_POINTS",
    "Cell",
    "CommitEntry",
    "LiveClients",
    "Model",
    "OmidClient",
    "RawCell",
    "Region",
    "RemoteStore",
    "Result",
    "Shape",
    "Store",
    "Transaction",
    "WorkloadError",
    "history",
    "make_tables",
    "run",
    "script",
]
