"""Many clients and repairs at once over few users, each a process that may be killed at any moment.

``LOWTIDE_LEDGER_SECONDS`` says for how long (300 unless given; `make soak` takes an hour).
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Outcome
from ledger_kit import Books, made

from lowtide.errors import LedgerError
from lowtide.ledger import user_id
from lowtide.ledger.model import State, Table, parse_transaction

pytestmark = pytest.mark.usefixtures("swept")

SECONDS = float(os.environ.get("LOWTIDE_LEDGER_SECONDS", "300"))
CLIENTS, REPAIRS = 20, 3
NAMES = ["issuer", "ann", "bob", "cid", "dan"]
WORKER = Path(__file__).with_name("ledger_worker.py")


class Crowd:
    """The processes; one that was killed is followed by another."""

    def __init__(self, books: Books, folder: Path) -> None:
        self.books, self.folder = books, folder
        self.chance = random.Random(20)
        self.killed = 0
        self.running = [self.start(slot) for slot in range(CLIENTS + REPAIRS)]

    def start(self, slot: int) -> subprocess.Popen[bytes]:
        role = "client" if slot < CLIENTS else "repair"
        words = [str(self.books.file), role, str(self.chance.randrange(10**9)), str(self.folder / f"{slot}.log")]
        with (self.folder / f"{slot}.err").open("ab") as errors:
            return subprocess.Popen([sys.executable, str(WORKER), *words, *NAMES], stderr=errors)

    def kill_one(self) -> None:
        slot = self.chance.randrange(len(self.running))
        assert self.running[slot].poll() is None, (self.folder / f"{slot}.err").read_text()
        self.running[slot].send_signal(signal.SIGKILL)
        self.running[slot].wait()
        self.running[slot] = self.start(slot)
        self.killed += 1

    def end(self) -> None:
        for process in self.running:
            process.kill()
        for process in self.running:
            process.wait()

    def told(self) -> dict[str, str]:
        """What clients were told, by transaction; a line cut off by a kill tells nothing."""
        lines = [line for log in self.folder.glob("*.log") for line in log.read_text().splitlines(keepends=True)]
        found = [line.split() for line in lines if line.endswith("\n")]
        assert len({id for id, _ in found}) == len(found)
        return {id: state for id, state in found}


def check(books: Books) -> int:
    """The money as it is now, while all go on; how many transactions are finished.

    Transactions first: a finished one's records were finished before it. A user below zero in that reading is read at one moment.
    """
    finished = {}
    for id, cells in books.rows(Table.TRANSACTIONS).items():
        if (transaction := parse_transaction(id, cells)).state is State.FINISHED:
            finished[id] = transaction
    records = books.rows(Table.RECORDS)
    sums: dict[str, int] = defaultdict(int)
    for transaction in finished.values():
        for record in transaction.records:
            assert records[record.row]["state"] == "finished"
            sums[record.user] += int(records[record.row]["amount"])
    assert sum(sums.values()) == 0
    with books.open() as book:
        for name in NAMES[1:]:
            if sums[user_id(name)] < 0:
                with contextlib.suppress(LedgerError):  # it changed at each reading: the next check looks again
                    assert book.balance(name) >= 0
    return len(finished)


def test_nothing_is_lost_doubled_or_overdrawn(
    configure: Callable[..., Path], job: Callable[..., Outcome], tmp_path: Path
) -> None:
    """At every check the sum is what was paid in and nobody is below zero; two repairs end everything, as the clients were told.

    The job runs all the while too, over and over: it asks many things at once, between the steps of clients that live and die.
    """
    books = made(configure, grace="2s")
    with books.open() as book:
        for name in NAMES[3:]:
            book.add_user(name)
        for name in NAMES[1:]:
            book.transfer("issuer", name, 100)
    folder = tmp_path / "crowd"
    folder.mkdir()
    crowd = Crowd(books, folder)
    jobs: list[Outcome] = []
    checks = 0
    with ThreadPoolExecutor(1) as aside:
        try:
            end = time.monotonic() + SECONDS
            repairing = aside.submit(job, "transaction_repair", "--execute", config=books.file)
            while time.monotonic() < end:
                for _ in range(crowd.chance.randint(1, 8)):
                    time.sleep(crowd.chance.uniform(0.05, 0.6))
                    crowd.kill_one()
                check(books)
                checks += 1
                if repairing.done():
                    jobs.append(repairing.result())
                    repairing = aside.submit(job, "transaction_repair", "--execute", config=books.file)
        finally:
            crowd.end()
        jobs.append(repairing.result())
    assert all(outcome.code == 0 for outcome in jobs), [outcome.problems for outcome in jobs]
    open_before = len(books.entries())
    for _ in range(2):
        outcome = job("transaction_repair", "--grace", "0s", "--full", "--execute", config=books.file)
        assert outcome.code == 0, outcome.problems
    transactions = {id: parse_transaction(id, cells) for id, cells in books.rows(Table.TRANSACTIONS).items()}
    states = Counter(str(transaction.state) for transaction in transactions.values())
    assert set(states) <= {"finished", "dropped"}
    assert books.entries() == []
    assert check(books) == states["finished"]
    assert all(amount >= 0 for user, amount in books.balances().items() if user != user_id("issuer"))
    told = crowd.told()
    assert {id: str(transactions[id].state) for id in told} == told
    assert len({transaction.request.nonce for transaction in transactions.values()}) == len(transactions)
    print(
        f"{SECONDS:.0f} s: {dict(states)}, {crowd.killed} killed, {open_before} left open, {checks} checks, {len(jobs)} jobs"
    )
    assert min(crowd.killed, checks, states["finished"], len(told)) > 3
