"""Many clients and repairs at once over few users, each a process that may be killed at any moment.

``LOWTIDE_LEDGER_SECONDS`` says for how long (45 unless given, 300 in `make prove`, an hour in `make soak`). What is
asserted of the money is computed here, from the cells and from what clients were told: nothing of the ledger's own code
judges it.
"""

from __future__ import annotations

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

from lowtide.ledger import user_id
from lowtide.ledger.model import Table, parse_transaction
from lowtide.store.gateway import connect
from tests import seeds
from tests.prove import PROVE

pytestmark = pytest.mark.usefixtures("swept")

SECONDS = float(os.environ.get("LOWTIDE_LEDGER_SECONDS") or (300 if PROVE else 45))
CLIENTS, REPAIRS = 20, 3
NAMES = ["issuer", "ann", "bob", "cid", "dan"]
#: How long all go on, unkilled, where nobody has come to anything.
_PATIENCE = 240
WORKER = Path(__file__).with_name("ledger_worker.py")


class Crowd:
    """The processes; one that was killed is followed by another."""

    def __init__(self, books: Books, folder: Path) -> None:
        self.books, self.folder = books, folder
        self.chance = random.Random(seeds.drawn("the ledger's crowd"))
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

    def has_paid(self) -> bool:
        """Whether users other than the issuer were told of a few transfers that are through."""
        told = self.told().values()
        return sum(state == "finished" and sender != "issuer" for state, sender, *_ in told) > 3

    def told(self) -> dict[str, list[str]]:
        """What clients were told, and what they had asked for, by transaction; a line cut off by a kill tells
        nothing.
        """
        lines = [line for log in self.folder.glob("*.log") for line in log.read_text().splitlines(keepends=True)]
        found = [line.split() for line in lines if line.endswith("\n")]
        assert len({id for id, *_ in found}) == len(found), "two clients were told of one transaction"
        return {id: rest for id, *rest in found}


Stamped = dict[str, dict[str, tuple[str, int]]]


def cells(books: Books, table: Table) -> Stamped:
    """A table's cells, each with HBase's time for it: by row and column."""
    with connect(books.config.hbase.thrift) as connection:
        rows = connection.table(f"{books.config.ledger.prefix}{table}").scan(include_timestamp=True)
        return {
            row.decode(): {
                name.decode().removeprefix("l:"): (value.decode(), at) for name, (value, at) in found.items()
            }
            for row, found in rows
        }


def check(books: Books) -> int:
    """The money as it is now, while all go on; how many transactions are finished.

    Transactions first: a finished one's two records were finished before it, for its amount and of its two users.
    """
    transactions, records = cells(books, Table.TRANSACTIONS), cells(books, Table.RECORDS)
    finished = {id: row for id, row in transactions.items() if row.get("state", ("",))[0] == "finished"}
    for id, row in finished.items():
        amount = int(row["amount"][0])
        for user, moved in ((row["sender"][0], -amount), (row["recipient"][0], amount)):
            record = records[f"{user}/{id}"]
            assert (record["state"][0], int(record["amount"][0])) == ("finished", moved), record
    return len(finished)


def replay(transactions: Stamped, records: Stamped) -> dict[str, int]:
    """Everybody's balance at the end, by the records; on the way, that nobody decided to pay what he had not.

    When a transaction was decided, and when a credit began to count, HBase's times of the cells say: a sender had then
    what was finished for him until then, less what was decided before.
    """
    credits: dict[str, list[tuple[int, int]]] = defaultdict(list)
    balances: dict[str, int] = defaultdict(int)
    for row, record in records.items():
        user, _, id = row.partition("/")
        state, at = transactions[id]["state"]
        if state == record["state"][0] == "finished":
            balances[user] += int(record["amount"][0])
            if int(record["amount"][0]) > 0:
                credits[user].append((at, int(record["amount"][0])))
    spent: dict[str, int] = defaultdict(int)
    decided = 0
    for id in sorted(transactions):  # a sender's lie together, by number
        row = transactions[id]
        sender, (_, at) = row["sender"][0], row["decision"]
        if row["state"][0] == "finished":
            spent[sender] += int(row["amount"][0])
            had = sum(amount for counted, amount in credits[sender] if counted <= at)
            assert sender == user_id("issuer") or had >= spent[sender], (
                f"{id}: {sender} had {had}, and spent {spent[sender]}"
            )
            decided += sender != user_id("issuer")
    assert decided > 3
    return dict(balances)


def test_nothing_is_lost_doubled_or_overdrawn(
    configure: Callable[..., Path], job: Callable[..., Outcome], tmp_path: Path
) -> None:
    """At every check each finished transaction has moved its amount; two repairs end everything, as the clients were
    told.

    At the end all users have what was paid in, and nobody ever decided to pay what he did not have at that moment.

    The job runs all the while too, over and over: it asks many things at once, between the steps of clients that live
    and die.
    """
    books = made(configure, grace="2s", allow_short_grace=True)
    with books.open() as book:
        for name in NAMES[3:]:
            book.add_user(name)
        for name in NAMES[1:]:
            book.transfer("issuer", name, 30)  # so little that many ask for more than they have
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
            # On a busy machine a client may have been killed before it came to anything, every time.
            while not crowd.has_paid() and time.monotonic() < end + _PATIENCE:
                time.sleep(1)
        finally:
            crowd.end()
        jobs.append(repairing.result())
    assert all(outcome.code == 0 for outcome in jobs), [outcome.problems for outcome in jobs]
    open_before = len(books.entries())
    for _ in range(2):
        outcome = job("transaction_repair", "--grace", "0s", "--full", "--execute", config=books.at_once)
        assert outcome.code == 0, outcome.problems
    transactions = {id: parse_transaction(id, cells) for id, cells in books.rows(Table.TRANSACTIONS).items()}
    states = Counter(str(transaction.state) for transaction in transactions.values())
    assert set(states) <= {"finished", "dropped"}
    assert books.entries() == []
    assert check(books) == states["finished"]
    raw = cells(books, Table.TRANSACTIONS)
    balances = replay(raw, cells(books, Table.RECORDS))
    issuer = user_id("issuer")
    moved = [
        (r["sender"][0], r["recipient"][0], int(r["amount"][0])) for r in raw.values() if r["state"][0] == "finished"
    ]
    paid_in = sum(a if s == issuer else -a if r == issuer else 0 for s, r, a in moved)
    assert sum(balance for user, balance in balances.items() if user != issuer) == paid_in == -balances[issuer]
    assert all(balance >= 0 for user, balance in balances.items() if user != issuer)
    told = crowd.told()
    for id, (state, sender, recipient, amount) in told.items():
        asked = (user_id(sender), user_id(recipient), amount)
        assert (raw[id]["state"][0], *(raw[id][name][0] for name in ("sender", "recipient", "amount"))) == (
            state,
            *asked,
        )
    assert len({transaction.request.nonce for transaction in transactions.values()}) == len(transactions)
    print(
        f"{SECONDS:.0f} s: {dict(states)}, {crowd.killed} killed, {open_before} left open, {checks} checks, "
        f"{len(jobs)} jobs"
    )
    assert min(crowd.killed, checks, states["finished"], len(told)) > 3
