"""The demo's small bank: clients, each a process, transfer money until they are killed, and what the ledger then holds.

``python -m lowtide.lab.demo.bank CONFIG SEED`` is one such client.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from lowtide.config import Config, load
from lowtide.errors import LowtideError
from lowtide.lab.demo.settings import DemoError
from lowtide.lab.waiting import reached
from lowtide.ledger import State, init, ledger
from lowtide.ledger.model import Table
from lowtide.ledger.steps import Scan
from lowtide.ledger.store import Tables
from lowtide.report import Bank
from lowtide.store.gateway import connect

Tell = Callable[[str], None]

CUSTOMERS = ("ada", "bela", "cleo", "dora", "emil")
_FUNDS = 1000
_CLIENTS = 5
_SECONDS = 12.0
_PATIENCE_SECONDS = 60.0


def crash_clients(config_file: Path, seed: int, tell: Tell) -> int:
    """Open the bank, let clients work and be killed, every one of them in the end; how many were.

    Raises:
        DemoError: no client came to work.
    """
    config = load(config_file)
    init(config)
    with ledger(config) as book:
        for name in CUSTOMERS:
            book.add_user(name)
            book.transfer(config.ledger.issuer, name, _FUNDS)
    tell(f"{len(CUSTOMERS)} customers, {_FUNDS:,} paid in to each")
    chance = random.Random(seed)
    clients = [_start(config_file, chance) for _ in range(_CLIENTS)]
    killed = 0
    try:
        _await_work(config)
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            time.sleep(chance.uniform(0.3, 1.2))
            number = chance.randrange(len(clients))
            _kill(clients[number])
            killed += 1
            clients[number] = _start(config_file, chance)
    finally:
        for client in clients:
            _kill(client)
    return killed + len(clients)


def look(config: Config) -> tuple[tuple[str, int], ...]:
    """How many transactions are in which state, in the order of the states."""
    with connect(config.hbase.thrift) as connection:
        rows = Tables(connection, config.ledger.prefix)(Scan(Table.TRANSACTIONS, "", "~"))
    found = Counter(cells.get("state", "claimed") for _, cells in rows)
    return tuple((name, found[name]) for name in ("claimed", *State) if found[name])


def settle_up(config: Config, killed: int, before: tuple[tuple[str, int], ...]) -> Bank:
    """The bank after the repair, beside what it was."""
    with ledger(config) as book:
        balances = tuple((name, book.balance(name)) for name in CUSTOMERS)
        paid_in = -book.balance(config.ledger.issuer)
    return Bank(killed, before, look(config), balances, paid_in)


def _await_work(config: Config) -> None:
    """Until a client has done something: processes take their time to start beside much else."""

    def working() -> bool:
        return sum(number for _, number in look(config)) > len(CUSTOMERS)

    if not reached(working, _PATIENCE_SECONDS, pause=0.2):
        raise DemoError(
            f"no client of the bank came to work within {_PATIENCE_SECONDS:.0f} s; "
            "try again when the machine has less to do"
        )


def _start(config_file: Path, chance: random.Random) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "lowtide.lab.demo.bank", str(config_file), str(chance.randrange(10**9))]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _kill(client: subprocess.Popen[bytes]) -> None:
    client.kill()
    client.wait()


def main() -> None:
    """One client: random transfers, until it is killed."""
    chance = random.Random(int(sys.argv[2]))
    with ledger(load(Path(sys.argv[1])), size=1) as book:
        while True:
            sender, recipient = chance.sample(CUSTOMERS, 2)
            try:
                book.transfer(sender, recipient, chance.randint(1, 400))
            except LowtideError:
                time.sleep(0.05)  # too small a balance


if __name__ == "__main__":
    main()
