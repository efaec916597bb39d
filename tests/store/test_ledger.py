"""The ledger on a real HBase, through a real Thrift gateway."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ledger_kit import Bomb, Books, made
from relay import Relay
from typer.testing import CliRunner

from lowtide.cli import transfers
from lowtide.cli.app import app
from lowtide.config import Config
from lowtide.errors import GatewayError, LedgerError, StoreError, TableError, UsageError
from lowtide.lab.stack import Stack, free_ports_config
from lowtide.ledger import State, init, ledger, user_id
from lowtide.ledger.model import ContradictionError, Table
from lowtide.ledger.steps import Write
from lowtide.ledger.store import Moment
from lowtide.store.gateway import connect

pytestmark = pytest.mark.usefixtures("swept")


@pytest.fixture
def books(configure: Callable[..., Path]) -> Books:
    return made(configure)


@pytest.mark.parametrize("how", ["before", "after", "answer lost"])
def test_stopped_at_any_write_and_repaired(books: Books, how: str) -> None:
    """A transfer is stopped at each of its writes, its repairs at their first, their second and so on, until nothing is
    left to do.
    """
    with books.open(whole := Bomb()) as book:
        book.transfer("issuer", "ann", 1000)
        paid_in = whole.writes
    moved = 0
    for at in range(1, paid_in + 1):
        assert books.stopped(lambda book: book.transfer("ann", "bob", 7), at, how)
        repairs = 0
        while entries := books.entries():
            (entry,) = entries
            # The first try of a step can be refused, as done already: each repair is let one write further than the
            # last.
            at_repair = repairs + (2 if how == "before" else 1)
            books.stopped(lambda book, entry=entry: book.repair(entry), at_repair, how)
            repairs += 1
        assert repairs <= paid_in + 1
        moved += at > 2 or (at == 2 and how != "before")
        assert (books.balances()[user_id("ann")], books.balances()[user_id("bob")]) == (1000 - 7 * moved, 7 * moved)
    transactions = books.rows(Table.TRANSACTIONS)
    assert len(transactions) == 1 + moved
    assert {cells["state"] for cells in transactions.values()} == {"finished"}
    assert sum(books.balances().values()) == 0


def test_the_second_of_two_that_overdraw_is_dropped(books: Books) -> None:
    """A transfer stopped after its claim stands before the next: what is left does not cover that one."""
    with books.open() as book:
        book.transfer("issuer", "ann", 10)
        assert books.stopped(lambda b: b.transfer("ann", "bob", 8), 2, "after")
        outcome = book.transfer("ann", "bob", 3)
        assert (outcome.state, outcome.reason) == (State.DROPPED, "the balance is 2, the amount 3")
        assert book.transfer("ann", "bob", 2).state is State.FINISHED
        (entry,) = books.entries()
        assert book.repair(entry).state is State.FINISHED  # type: ignore[union-attr]
        assert (book.balance("ann"), book.balance("bob"), book.balance("issuer")) == (0, 10, -10)


def test_a_paused_client_comes_back_to_a_finished_transfer(books: Books) -> None:
    """While it pauses before each of its writes after the claim, a repair ends the transaction; it ends with the same
    outcome.
    """

    def paused(write: Write, moment: Moment) -> None:
        if moment is Moment.BEFORE and write.table is not Table.OPEN and getattr(write, "column", "") != "request":
            with books.open() as other:
                for entry in books.entries():
                    other.repair(entry)

    with books.open(paused) as book:
        assert book.transfer("issuer", "ann", 5).state is State.FINISHED
    assert books.balances() == {user_id("ann"): 5, user_id("issuer"): -5}
    assert books.entries() == []


def test_bad_input_changes_nothing(books: Books) -> None:
    """Unknown users, bad amounts, a transfer to oneself, too small a balance: a clear error, and not a cell."""
    before = books.everything()
    with books.open() as book:
        for sender, recipient, amount, said in (
            ("ann", "eve", "1", "unknown user"),
            ("eve", "ann", "1", "unknown user"),
            ("ann", "ann", "1", "the same"),
            ("ann", "bob", "0", "whole number"),
            ("ann", "bob", "-1", "whole number"),
            ("ann", "bob", "a lot", "whole number"),
            ("ann", "bob", str(2**63), "whole number"),
            ("ann", "bob", "1", "balance is 0, the amount 1"),
        ):
            with pytest.raises(UsageError, match=said):
                book.transfer(sender, recipient, amount)
        with pytest.raises(UsageError, match="no transaction"):
            book.show(f"{user_id('ann')}-000000000009")
    assert books.everything() == before


def test_contradicting_rows_stay_as_they_are(books: Books) -> None:
    """A record that disagrees with its transaction, and a transaction without sender, are named and not touched."""
    with books.open() as book:
        assert books.stopped(lambda b: b.transfer("issuer", "ann", 5), 7, "after")
        (entry,) = books.entries()
        with connect(books.config.hbase.thrift) as connection:
            table = connection.table(f"{books.config.ledger.prefix}user_transactions")
            table.put(f"{user_id('issuer')}/{entry.id}".encode(), {b"l:amount": b"5"})
        before = books.everything()
        with pytest.raises(ContradictionError, match="amount is '5', its transaction says '-5'"):
            book.repair(entry)
        assert books.everything() == before
        with connect(books.config.hbase.thrift) as connection:
            connection.table(f"{books.config.ledger.prefix}transactions").delete(
                entry.id.encode(), columns=[b"l:sender"]
            )
        before = books.everything()
        with pytest.raises(ContradictionError, match="sender is missing"):
            book.repair(entry)
        assert books.everything() == before


def moved(config: Config, port: int) -> Config:
    """The configuration with the gateway at another port."""
    thrift = config.hbase.thrift.model_copy(update={"port": port})
    return config.model_copy(update={"hbase": config.hbase.model_copy(update={"thrift": thrift})})


def test_reads_outlive_a_connection_that_the_gateway_closed(books: Books, stack: Stack) -> None:
    """A node that was idle for long transfers as if nothing had been; without a gateway, or without tables, that is
    said.
    """
    relay = Relay(stack.config.thrift_port)
    try:
        with ledger(moved(books.config, relay.port), size=1) as book:
            assert relay.cut()
            assert book.transfer("issuer", "ann", 5).state is State.FINISHED
            relay.close()
            with pytest.raises(GatewayError, match=r"transfer of 5 from issuer to ann .*nothing was written"):
                book.transfer("issuer", "ann", 5)
    finally:
        relay.close()
    elsewhere = books.config.model_copy(
        update={"ledger": books.config.ledger.model_copy(update={"prefix": "nowhere_"})}
    )
    with pytest.raises(TableError, match=r"nowhere_users.*lowtide ledger init"), ledger(elsewhere):
        pass
    down = moved(books.config, free_ports_config(books.file.parent).thrift_port)
    with pytest.raises(GatewayError, match="does not answer"), ledger(down):
        pass


def test_the_command_line(books: Books) -> None:
    """What people do: make users, pay in, transfer, look."""

    def run(*words: str) -> Any:
        return CliRunner().invoke(app, ["ledger", *words, "--config", str(books.file)])

    assert "there already" in run("init").stdout
    assert f"cid has the id {user_id('cid')}" in run("user", "add", "cid").stdout.replace("\n", " ")
    assert "there already" in run("user", "add", "cid").stdout
    paid = run("transfer", "issuer", "cid", "250")
    assert paid.exit_code == 0, paid.output
    assert paid.stdout.startswith("finished: ")
    id = paid.stdout.split()[-1]
    assert run("balance", "cid").stdout.split() == ["250"]
    shown = json.loads(run("show", id, "--output", "json").stdout)
    assert [(shown[row]["state"], shown[row]["amount"]) for row in ("transaction", "debit", "credit")] == [
        ("finished", "250"),
        ("finished", "-250"),
        ("finished", "250"),
    ]
    assert f"│ transaction │ {id} " in run("show", id).stdout
    refused = run("transfer", "cid", "ann", "251")
    assert isinstance(refused.exception, UsageError)
    assert books.stopped(lambda b: b.transfer("cid", "ann", 200), 2, "after")
    dropped = run("transfer", "cid", "ann", "100")
    assert dropped.exit_code == 3
    assert "reason: the balance is 50, the amount 100" in dropped.stdout


@pytest.mark.parametrize("cause", [KeyboardInterrupt, ConnectionResetError])
def test_a_transfer_of_unknown_outcome_has_an_exit_code_of_its_own(
    books: Books, monkeypatch: pytest.MonkeyPatch, cause: type[BaseException]
) -> None:
    """Broken off after any of its writes: before the claim nothing moves, whatever repairs do, and the code is that of
    a refusal; from the claim on it is 4, not that of a dropped one, with the id by which to look. A repair pays it.
    """
    writes = 0

    def broken(config: Config, hook: Any, size: int) -> Any:
        def stop(write: Write, moment: Moment) -> None:
            nonlocal writes
            hook(write, moment)
            writes += moment is Moment.AFTER
            if moment is Moment.AFTER and writes == at:
                raise cause

        return ledger(config, stop, size)

    monkeypatch.setattr(transfers, "ledger", broken)
    command = ["ledger", "transfer", "issuer", "ann", "5", "--config", str(books.file)]
    seen: set[str] = set()
    for at in range(1, 16):
        writes = 0
        done = CliRunner().invoke(app, command)
        told = str(done.exception)
        if at == 1:
            assert isinstance(done.exception, LedgerError)
            assert (done.exception.exit_code, "nothing was transferred" in told) == (1, True)
            assert books.rows(Table.TRANSACTIONS) == {}
            continue
        assert isinstance(done.exception, LedgerError), f"write {at}"
        assert done.exception.exit_code == 4, told
        id, nonce = re.search(r"lowtide ledger show (\S+), which is this .* bears (\w+)$", told).groups()  # type: ignore[union-attr]
        assert nonce in books.rows(Table.TRANSACTIONS)[id]["request"]
        seen.add(id)
        with books.open() as book:
            for entry in books.entries():
                book.repair(entry)
        assert books.rows(Table.TRANSACTIONS)[id]["state"] == "finished"
    assert len(seen) == 14
    assert books.balances()[user_id("ann")] == 5 * len(seen)


@pytest.mark.parametrize("style", ["table", "json", "csv"])
def test_an_outcome_that_cannot_be_printed_is_told_on_stderr(books: Books, style: str) -> None:
    """A full disk under stdout, and a pipe that nobody reads: it is finished, and the exit code says nothing else."""
    words = ["ledger", "transfer", "issuer", "ann", "5", "--output", style, "--config", str(books.file)]
    command = [sys.executable, "-c", "from lowtide.cli import main; main()", *words]
    unread, pipe = os.pipe()
    os.close(unread)
    for stdout in (os.open("/dev/full", os.O_WRONLY), pipe):
        done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
        os.close(stdout)
        assert done.returncode == 0, done.stderr
        *_, told = done.stderr.splitlines()  # after which store it was
        id = max(books.rows(Table.TRANSACTIONS))
        assert told.startswith(f"lowtide: finished: {id}. That could not be printed on stdout")
    assert books.balances()[user_id("ann")] == 10


def test_no_node_works_where_the_issuers_row_is_gone(books: Books) -> None:
    """The index was emptied, or made anew: whoever a node takes for the issuer could go below zero, and what is open is
    in no index. The remedy brings both back.
    """
    with books.open() as book:
        book.transfer("issuer", "ann", 5)
    with connect(books.config.hbase.thrift) as connection:
        connection.table(f"{books.config.ledger.prefix}open_transactions").delete(b"issuer")
    other = books.config.model_copy(update={"ledger": books.config.ledger.model_copy(update={"issuer": "ann"})})
    for config in (other, books.config):
        with pytest.raises(StoreError, match=r"no row 'issuer'.*lowtide ledger init; then"), ledger(config) as b:
            b.transfer("ann", "bob", 10)
    assert books.balances() == {user_id("ann"): 5, user_id("issuer"): -5}
    assert init(books.config) == []
    with books.open() as book:
        assert book.transfer("ann", "bob", 5).state is State.FINISHED


def test_a_node_that_takes_another_for_the_issuer_refuses_to_work(books: Books) -> None:
    """Who may go below zero is the ledger's matter: neither its tables nor a client of another configuration can change
    it.
    """
    other = books.config.model_copy(update={"ledger": books.config.ledger.model_copy(update={"issuer": "ann"})})
    before = books.everything()
    with pytest.raises(UsageError, match=r"made with the issuer 'issuer', ledger\.issuer is 'ann'"), ledger(other):
        pass
    with pytest.raises(UsageError, match="set it to 'issuer' on every node"):
        init(other)
    assert books.everything() == before
