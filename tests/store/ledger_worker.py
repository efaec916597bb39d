"""A process of the concurrency test: a client that transfers, or a repair, until it is killed.

``ledger_worker.py CONFIG client|repair SEED LOG NICKNAME...``; a client appends what it asked for and was told to LOG,
a line a transfer.
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

from lowtide.config import load
from lowtide.errors import LowtideError
from lowtide.ledger import Ledger, ledger, settled


def client(book: Ledger, chance: random.Random, log: Path, names: list[str]) -> None:
    """Random transfers between few users."""
    with log.open("a") as lines:
        while True:
            sender, recipient = chance.sample(names, 2)
            amount = chance.randint(1, 30)
            try:
                outcome = book.transfer(sender, recipient, amount)
            except LowtideError:
                continue  # too small a balance; or the store gave no answer
            lines.write(f"{outcome.id} {outcome.state} {sender} {recipient} {amount}\n")
            lines.flush()
            os.fsync(lines.fileno())


def repair(book: Ledger, chance: random.Random, grace_millis: int) -> None:
    """Everything that is open and older than the grace, in a random order."""
    while True:
        horizon = time.time_ns() // 1_000_000 - grace_millis
        entries = book._node.run(lambda end=horizon: settled.open_entries(0, end), "the index")  # type: ignore[misc]
        chance.shuffle(entries)
        for entry in entries:
            book.repair(entry)
        time.sleep(0.2)


def main() -> None:
    """Until a signal."""
    file, role, seed, log, *names = sys.argv[1:]
    config = load(Path(file))
    chance = random.Random(int(seed))
    with ledger(config, size=1) as book:
        if role == "client":
            client(book, chance, Path(log), names)
        else:
            repair(book, chance, int(config.ledger.grace.total_seconds() * 1000))


if __name__ == "__main__":
    main()
