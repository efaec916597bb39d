"""The jobs ``transaction_repair`` and ``balances`` on a real store whose clients were stopped half-way."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import deadman
import pytest
import wreck
from conftest import Outcome
from ledger_kit import Bomb, Books, made
from lowtide_spark.frames.store import Store
from lowtide_spark.ledger import listing, money, repair
from lowtide_spark.ledger.books import Books as Books_
from lowtide_spark.ledger.dataframes import LedgerFrames, LedgerRows
from lowtide_spark.run import base, oracle
from lowtide_spark.run import job as lowtide_job
from typer.testing import CliRunner

from lowtide.cli.app import app
from lowtide.config import load
from lowtide.errors import LedgerError, StoreError, UsageError
from lowtide.health.conditions import TransactionIs, TransactionsSettled, TransactionsStuck, check
from lowtide.lab.workload import OmidClient
from lowtide.ledger import State, init, user_id
from lowtide.ledger.model import FAMILY, Table, parse_transaction, transaction_id
from lowtide.ledger.settled import Settled
from lowtide.ledger.steps import CheckAndPut, Put, Read, Remove, Scan, Write
from lowtide.ledger.store import Moment, Tables, node_on
from lowtide.run.submit import command, environment
from lowtide.store.gateway import connect
from lowtide.store.state import StateStore
from tests import seeds
from tests.prove import PROVE

pytestmark = pytest.mark.usefixtures("swept")

Job = Callable[..., Outcome]
NOW = ("--grace", "0s", "--execute")
WAYS = ("before", "after", "answer lost")


@pytest.fixture
def books(configure: Callable[..., Path]) -> Books:
    return made(configure)


@pytest.fixture
def run(job: Job, books: Books) -> Job:
    """A job on the test's ledger; where it is asked for no grace, the ledger has none either."""
    return lambda name, *arguments: job(name, *arguments, config=books.at_once if "0s" in arguments else books.file)


@contextmanager
def raw(books: Books, table: Table) -> Iterator[Any]:
    """A table of the ledger behind the ledger's back."""
    with connect(books.config.hbase.thrift) as connection:
        yield connection.table(f"{books.config.ledger.prefix}{table}")


def mark(books: Books) -> Settled:
    return Settled.decode(books.rows(Table.OPEN).get("settled", {}).get("mark"))


def stop_everywhere(books: Books, amount: int) -> tuple[int, int]:
    """A transfer from ann to bob stopped at each of its writes, in each way; how many there were, and how many
    began.
    """
    with books.open(whole := Bomb()) as book:
        book.transfer("issuer", "ann", 1_000_000)
    begun = 0
    for how in WAYS:
        for at in range(1, whole.writes + 1):
            assert books.stopped(lambda book: book.transfer("ann", "bob", amount), at, how)
            begun += at > 2 or (at == 2 and how != "before")
    return whole.writes * len(WAYS), begun


def listed(outcome: Outcome) -> dict[str, dict[str, Any]]:
    """The lines of the list that a run left, by row."""
    files = Path(outcome.summary["listing"]["folder"]).glob("*/*.json.gz")
    texts = (gzip.decompress(file.read_bytes()).decode() for file in sorted(files))
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    assert len({line["row"] for line in lines}) == len(lines)
    return {line["row"]: line for line in lines}


def test_a_list_is_what_the_repair_then_does(
    run: Job, books: Books, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which transactions would be finished or dropped, and which entries go that claimed none, each with what that goes
    by; a run that acts lists the same before it does it, some at a time. The dry run writes nothing to the ledger.
    """
    stop_everywhere(books, 7)
    with books.open() as book:
        book.add_user("eve")
    # Nobody sees what eve has before she claims: a transfer of hers is open.
    assert books.stopped(lambda book: book.transfer("issuer", "eve", 5), 1, "before")
    with books.open() as book:
        book.transfer("issuer", "eve", 5)
    assert books.stopped(lambda book: book.transfer("eve", "bob", 1), 3, "before")
    assert books.stopped(lambda book: book.transfer("eve", "bob", 9), 3, "before")
    monkeypatch.setattr(listing, "AT_ONCE", 7)
    before = {table: books.rows(table) for table in Table}
    dry = run("transaction_repair", "--grace", "0s", "--list")
    assert dry.code == 0, dry.problems
    assert {table: books.rows(table) for table in Table} == before
    told, printed = listed(dry), capsys.readouterr().out
    assert len(told) == dry.totals["candidates"] > 21
    prefix = books.config.ledger.prefix
    dropped = transaction_id(user_id("eve"), 2)
    line = told[dropped]
    assert (line["action"], line["rule"], line["table"]) == ("drop", "undecided", f"{prefix}transactions")
    assert line["evidence"].endswith("nobody has decided; as things are: the balance is 4, the amount 9")
    assert f'transaction_repair: list: drop {prefix}transactions "{dropped}" l:state at ' in printed

    done = run("transaction_repair", *NOW, "--list")
    assert done.code == 0, done.problems
    assert listed(done) == told
    ends = Counter(line["action"] for line in told.values())
    assert (ends["finish"], ends["drop"]) == (done.totals["finished"], done.totals["dropped"])
    assert ends["remove"] == done.totals["skipped"]["never claimed"] > 0
    for id, cells in books.rows(Table.TRANSACTIONS).items():
        if id in told:
            assert {"finish": "finished", "drop": "dropped"}[told[id]["action"]] == cells["state"]
    nothing = run("transaction_repair", "--grace", "0s", "--list")
    assert (nothing.code, listed(nothing), nothing.totals["candidates"]) == (0, {}, 0)


def test_a_repair_that_is_switched_off_under_a_wrong_name_changes_nothing(
    job: Job, books: Books, configure: Callable[..., Path]
) -> None:
    """Where the defaults act, a dry-run that stands under a name that is not the transactions' stops it."""
    prefix = books.config.ledger.prefix
    with books.open() as book:
        book.transfer("issuer", "ann", 100)
    assert books.stopped(lambda book: book.transfer("ann", "bob", 1), 3, "before")
    before = {table: books.rows(table) for table in Table}
    ledger = {"prefix": prefix, "grace": "0s", "allow_short_grace": True}
    sections = {"ledger": ledger, "defaults": {"mode": "execute"}}
    wrong = configure(**sections, tables={f"{prefix}transaction": {"mode": "dry-run"}})
    outcome = job("transaction_repair", "--grace", "0s", "--as-configured", config=wrong)
    assert {table: books.rows(table) for table in Table} == before
    assert outcome.code == 2
    assert f"({prefix}transactions may be meant), and HBase has no such table" in outcome.problems
    assert job("transaction_repair", "--grace", "0s", "--as-configured", config=configure(**sections)).code == 0
    assert books.entries() == []


def test_one_run_ends_what_was_stopped_anywhere(run: Job, books: Books) -> None:
    """Every write, in every way: each transfer that has a number is finished once, the mark moves up, and nothing is
    left to do.
    """
    stopped, begun = stop_everywhere(books, 7)
    open_before = len(books.entries())
    assert begun < stopped
    dry = run("transaction_repair", "--grace", "0s")
    assert (dry.code, dry.totals["candidates"], dry.totals["finished"]) == (0, open_before, 0)
    assert len(books.entries()) == open_before
    young = run("transaction_repair", "--execute")
    assert (young.code, young.totals["candidates"]) == (0, 0), "the grace protects living clients"
    before = time.time_ns() // 1_000_000
    done = run("transaction_repair", *NOW)
    assert done.code == 0, done.problems
    totals = done.totals
    assert (
        totals["finished"] + totals["dropped"] + sum(totals["skipped"].values()) == totals["candidates"] == open_before
    )
    assert (totals["dropped"], totals["failed"]) == (0, 0)
    assert books.entries() == []
    assert books.balances() == {
        user_id("issuer"): -1_000_000,
        user_id("ann"): 1_000_000 - 7 * begun,
        user_id("bob"): 7 * begun,
    }
    assert {cells["state"] for cells in books.rows(Table.TRANSACTIONS).values()} == {"finished"}
    assert before <= mark(books).mark <= time.time_ns() // 1_000_000
    again = run("transaction_repair", *NOW, "--full")
    assert (again.code, again.totals["candidates"]) == (0, 0), again.problems
    assert again.summary["figures"]["paid in"] == 1_000_000


@pytest.mark.turns(2)
@pytest.mark.parametrize("when", [Moment.BEFORE, Moment.AFTER], ids=["before a write", "after it, its answer lost"])
def test_repairs_that_are_stopped_themselves(
    run: Job, books: Books, monkeypatch: pytest.MonkeyPatch, when: Moment
) -> None:
    """The first loses its connection at the first write to each transaction, the second at the second: they end red,
    and the next goes on.
    """
    stop_everywhere(books, 7)
    writes: Counter[str] = Counter()
    allowed = 0

    def cut(write: Write, moment: Moment) -> None:
        name = write.row.split("/")[1] if "/" in write.row else write.row
        if moment is when and write.row != "settled":
            writes[name] += 1
            if writes[name] == allowed:
                raise ConnectionResetError("the connection was lost")

    with monkeypatch.context() as patched:
        patched.setattr(repair, "node_on", partial(node_on, hook=cut))
        while books.entries():
            writes.clear()
            allowed += 1
            outcome = run("transaction_repair", *NOW)
            assert sum(books.balances().values()) == 0
            assert outcome.code == 1 or not books.entries()
            told = "left as it is" if when is Moment.AFTER else "no answer from the store"
            assert told in outcome.problems or not outcome.code
    assert allowed > 3
    assert books.entries() == []
    final = run("transaction_repair", *NOW, "--full")
    assert (final.code, final.totals["candidates"]) == (0, 0), final.problems


@pytest.mark.turns(2, group="killed at any effect")
@seeds.each("transaction_repair killed at any effect")
def test_a_repair_killed_at_any_effect_and_run_again(
    run: Job, books: Books, connector: Store, state: StateStore, seed: int
) -> None:
    """Many transactions under way at once, some of their writes done and others not: the next repair ends each,
    once.
    """
    chance = random.Random(seed)
    moved = 0

    def left_half_way() -> None:
        nonlocal moved
        moved += 7 * stop_everywhere(books, 7)[1]

    state.create()  # or the first run had effects more than those after it
    state.record_format()
    wreck.make_shared_folders(connector)
    assert run("transaction_repair", *NOW).code == 0  # nor does one before it count as failing
    left_half_way()
    whole = deadman.run(lambda: run("transaction_repair", *NOW))
    assert whole.result is not None
    assert whole.result.code == 0, whole.result.problems
    batches = [effect for effect in whole.effects if effect.seam == "rows"]
    assert len(batches) > 5, whole.steps()
    for cut in deadman.cuts(whole.effects, chance, every=PROVE):
        before = moved
        left_half_way()
        dead = deadman.run(lambda: run("transaction_repair", *NOW), cut)
        told = f"{cut}: {dead.effects[-1]}"
        assert dead.killed, told
        assert before <= books.balances()[user_id("bob")] <= moved, told
        again = run("transaction_repair", *NOW)
        assert (again.code, books.entries()) == (0, []), (told, again.problems)
        assert books.balances()[user_id("bob")] == moved, told
        assert books.balances()[user_id("ann")] == -books.balances()[user_id("issuer")] - moved, told
    final = run("transaction_repair", *NOW, "--full")
    assert (final.code, final.totals["candidates"]) == (0, 0), final.problems


@pytest.mark.turns(2, group="killed through spark-submit")
def test_through_spark_submit_killed_and_run_again(books: Books) -> None:
    """A driver that is killed as soon as it has ended a transaction leaves the rest to the next, which exits with 0."""
    begun = sum(stop_everywhere(books, 7)[1] for _ in range(2))
    arguments = ["--config", str(books.at_once), *NOW]
    at_first = len(books.entries())
    submit = command(books.config, "transaction_repair", arguments)
    first = subprocess.Popen(submit, env=environment(), start_new_session=True)
    try:
        with connect(books.config.hbase.thrift) as connection:
            tables = Tables(connection, books.config.ledger.prefix)
            while len(tables(Scan(Table.OPEN, "0", ":"))) >= at_first and first.poll() is None:
                pass
        assert first.poll() is None, "it lived, and had begun to act"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    assert first.returncode == -signal.SIGKILL
    assert 0 < len(books.entries()) < at_first, "some are ended, others not"
    done = subprocess.run(submit, env=environment(), check=False)
    assert done.returncode == 0
    assert books.entries() == []
    assert books.balances()[user_id("bob")] == 7 * begun


def test_at_once_everything_is_answered_as_one_by_one(books: Books, configure: Callable[..., Path], spark: Any) -> None:
    """Reads, writes and checks of many rows in one call; what fails costs the others nothing, and is told apart from a
    refusal.
    """
    other = made(configure)
    first: list[Read | Write] = [
        Put(Table.RECORDS, "a", {"x": "1", "y": "Zoë"}),
        CheckAndPut(Table.RECORDS, "b", "state", None, "pending"),
        CheckAndPut(Table.TRANSACTIONS, "c", "state", "initial", "in progress"),
        Put(Table.USERS, "d", {"id": "d"}),
    ]
    second = [
        Read(Table.RECORDS, ("b", "gone", "z", "b")),
        CheckAndPut(Table.RECORDS, "a", "y", "Zoë", "Zoé"),
        CheckAndPut(Table.RECORDS, "b", "state", None, "again"),
        CheckAndPut(Table.RECORDS, "a", "x", "2", "3"),
        CheckAndPut(Table.RECORDS, "gone", "x", "2", "3"),
        Remove(Table.USERS, "d"),
        *(CheckAndPut(Table.OPEN, f"{n:03}", "n", None, str(n)) for n in range(200)),
    ]
    third = [
        *(CheckAndPut(Table.OPEN, f"{n:03}", "n", None, "late") for n in (7, 199)),
        Read(Table.RECORDS, ("a", "z")),
        Read(Table.USERS, ("d",)),
        Read(Table.OPEN, ("000", "199")),
    ]
    rows = LedgerRows(Store(spark, books.config))
    with raw(books, Table.RECORDS) as table:
        table.put(b"z", {b"l:q": b"\xff\x00"})
    with connect(other.config.hbase.thrift) as connection:
        tables = Tables(connection, other.config.ledger.prefix)
        connection.table(tables.name(Table.RECORDS)).put(b"z", {b"l:q": b"\xff\x00"})
        for part in (first, second, third):
            assert rows(part) == [tables(operation) for operation in part]
        assert books.everything() == other.everything()
        # Several cells by one check, all or none of them: what the Thrift gateway cannot do.
        together = {"y": "Zoë", "x": "4"}
        asked = [
            CheckAndPut(Table.RECORDS, "f", "id", None, "f", together),
            CheckAndPut(Table.RECORDS, "a", "state", None, "4", together),
            CheckAndPut(Table.RECORDS, "a", "x", "5", "6", {"z": "7"}),
        ]
        assert rows(asked) == [True, True, False]
        assert rows([Read(Table.RECORDS, ("f", "a"))]) == [[{"id": "f", **together}, {"state": "4", **together}]]
        with pytest.raises(ValueError, match="puts one cell by it"):
            tables(asked[0])
        # As an older version asks: HBase would say that it held, and put nothing.
        (answer,) = rows._store.work_rows("l", [["check", tables.name(Table.RECORDS), "g", "id", None, "g"]])
        assert "needs cells" in str(answer)
    too_long, good = Remove(Table.USERS, "x" * 40_000), CheckAndPut(Table.USERS, "e", "id", None, "e")
    answers = rows([too_long, good, Read(Table.USERS, ("e", "x" * 40_000))])
    assert [isinstance(answer, ConnectionError) for answer in answers] == [True, False, True]
    assert answers[1] is True
    assert "length" in str(answers[0])
    lost = LedgerRows(Store(spark, load(configure(ledger={"prefix": "nobody_"}))))
    (answer,) = lost([good])
    assert "nobody_users" in str(answer)


def test_what_contradicts_itself_is_listed_and_left_alone(run: Job, books: Books) -> None:
    """Others are repaired; the run is red and names each; the mark stays below it; nothing of it changed."""
    ann, bob = user_id("ann"), user_id("bob")
    with books.open() as book:
        book.transfer("issuer", "ann", 100)
        for _ in range(3):
            books.stopped(lambda b: b.transfer("ann", "bob", 1), 4, "after")
        books.stopped(lambda b: b.transfer("issuer", "bob", 5), 4, "after")
    first, second, third = (transaction_id(ann, n) for n in (1, 2, 3))
    lone = f"{bob}/{transaction_id(bob, 7)}"
    with raw(books, Table.TRANSACTIONS) as table:
        table.delete(second.encode(), columns=[b"l:sender"])
    with raw(books, Table.RECORDS) as table:
        cells = {
            "id": lone,
            "user_id": bob,
            "transaction_id": transaction_id(bob, 7),
            "amount": "5",
            "timestamp": "1",
            "state": "finished",
        }
        table.put(lone.encode(), {b"l:" + k.encode(): v.encode() for k, v in cells.items()})
    held = parse_transaction(first, books.rows(Table.TRANSACTIONS)[first]).entry.timestamp
    outcome = run("transaction_repair", *NOW, "--full")
    assert outcome.code == 1
    assert f"transaction {second}: sender is missing" in outcome.problems
    assert f"record {lone} has no transaction" in outcome.problems
    states = {id: cells["state"] for id, cells in books.rows(Table.TRANSACTIONS).items()}
    # The third waits for the second to be decided, which nobody can.
    assert (states[first], states[second], states[third]) == ("finished", "initial", "initial")
    assert states[transaction_id(user_id("issuer"), 2)] == "finished"
    assert lone in books.rows(Table.RECORDS)
    assert {entry.id for entry in books.entries()} == {second, third}
    assert held <= mark(books).mark <= books.entries()[0].timestamp


def test_money_that_does_not_add_up_stops_the_run(run: Job, books: Books) -> None:
    """A finished record whose amount was changed: the run ends before it repairs anything, and says which."""
    with books.open() as book:
        paid = book.transfer("issuer", "ann", 100)
        books.stopped(lambda b: b.transfer("ann", "bob", 1), 4, "after")
    row = f"{user_id('ann')}/{paid.id}"
    with raw(books, Table.RECORDS) as table:
        table.put(row.encode(), {b"l:amount": b"1000"})
    before = books.content()
    outcome = run("transaction_repair", *NOW)
    assert books.content() == before
    assert outcome.code == 1
    assert "does not add up before the repair" in outcome.problems
    assert f"record {row}: amount is '1000', its transaction says '100'" in outcome.problems
    with raw(books, Table.RECORDS) as table:
        table.put(row.encode(), {b"l:amount": b"100"})
    assert run("transaction_repair", *NOW).code == 0
    with raw(books, Table.RECORDS) as table:
        table.delete(row.encode())
    outcome = run("transaction_repair", *NOW)
    assert f"record {row} is missing, and its transaction is finished" in outcome.problems


def test_what_a_full_check_found_wrong_no_later_run_passes_over(
    run: Job, books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that is gone shows in nothing that was written since: the runs after it check in full until it is back,
    those of an interval too, repair nothing and move no mark. A dry run writes nothing.
    """
    monkeypatch.setattr(money, "SKEW", 0)  # so that the transfer is old to the next run
    with books.open() as book:
        paid = book.transfer("issuer", "ann", 100)
        assert run("transaction_repair", *NOW).code == 0
        settled = mark(books)
        assert settled.wrong_at == 0
        assert books.stopped(lambda b: b.transfer("ann", "bob", 1), 4, "after")
    row = f"{user_id('ann')}/{paid.id}".encode()
    with raw(books, Table.RECORDS) as table:
        kept = table.row(row)
        table.delete(row)
    before = books.everything()
    assert run("transaction_repair", "--grace", "0s", "--full").code == 1
    assert books.everything() == before, "a dry run"
    content = books.content()
    assert run("transaction_repair", *NOW, "--full").code == 1
    for more in ((), ("--from", "2020-01-01T00:00:00+00:00")):
        later = run("transaction_repair", *NOW, *more)
        assert later.code == 1, "it was asked for no full check"
        assert f"record {row.decode()} is missing, and its transaction is finished" in later.problems
        assert books.content() == content
        assert replace(mark(books), wrong_at=0) == settled
    with raw(books, Table.RECORDS) as table:
        table.put(row, kept)
    again = run("transaction_repair", *NOW)
    assert (again.code, again.totals["finished"]) == (0, 1), again.problems
    assert "transactions" in again.summary["figures"], "a full check"
    assert mark(books).wrong_at == 0
    assert "transactions" not in run("transaction_repair", *NOW).summary["figures"]


def test_a_full_check_finds_what_lies_below_the_mark(run: Job, books: Books) -> None:
    """An open transaction whose index entry is lost, and one from a slow clock: not seen by the day's runs, found by
    the full check.
    """
    with books.open() as book:
        book.transfer("issuer", "ann", 100)
        assert run("transaction_repair", *NOW).code == 0
        high = mark(books).mark
        books.stopped(lambda b: b.transfer("ann", "bob", 1), 4, "after")
        (entry,) = books.entries()
        with raw(books, Table.OPEN) as table:
            table.delete(entry.row.encode())
        book._now = lambda: 1_700_000_000_000
        slow = Books(books.file)
        with slow.open(Bomb(4, "answer lost")) as late:
            late._now = book._now
            with pytest.raises(Exception, match="left as it is"):
                late.transfer("ann", "bob", 2)
    hourly = run("transaction_repair", *NOW)
    assert (hourly.code, hourly.totals["candidates"]) == (0, 0)
    assert mark(books).mark > high
    full = run("transaction_repair", *NOW, "--full")
    assert (full.code, full.totals["finished"]) == (0, 2), full.problems
    notes = full.table(f"{books.config.ledger.prefix}transactions")["notes"]
    assert "1 open transactions lie below the settled mark, the oldest of 2023-11-14T22:13:20+00:00" in notes[0]
    (_, lost, back) = notes
    assert "1 open transactions had no index entry" in lost
    assert "the settled mark is moved back from" in back
    assert books.entries() == []
    after = mark(books)
    assert after.moved_back_from > high
    assert after.mark >= after.moved_back_from


def test_a_full_check_beside_busy_clients_doubts_nothing_of_theirs(
    run: Job, books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that was written after the transactions were read has its transaction all the same, however many there
    are: none is looked at one by one, and the run is green.
    """
    with books.open() as book:
        book.transfer("issuer", "ann", 100)
    looked: list[Any] = []
    read, audit = LedgerFrames.records, Books_.audit

    def late(frames: LedgerFrames, *arguments: Any, **named: Any) -> Any:
        with books.open() as book:
            book.transfer("ann", "bob", 1)
        return read(frames, *arguments, **named)

    def counted(these: Books_, keys: Any, *check: Any) -> Any:
        looked.extend(keys.collect())
        return audit(these, keys, *check)

    monkeypatch.setattr(LedgerFrames, "records", late)
    monkeypatch.setattr(Books_, "audit", counted)
    outcome = run("transaction_repair", "--grace", "0s", "--full")
    assert (outcome.code, outcome.summary["figures"]["contradictions"]) == (0, 0), outcome.problems
    assert looked == []
    assert books.balances()[user_id("bob")] == 2, "before and amid the full check"


def test_a_shorter_grace_takes_nothing_from_who_is_about_to_claim(job: Job, books: Books) -> None:
    """A run with less grace than the ledger's ends what is claimed; an entry alone is left to its client, by a list and
    a dry run too, and the mark does not pass it. So a client that goes on after it is in the index when it claims.
    """
    with books.open() as book:
        book.transfer("issuer", "ann", 100)
    assert books.stopped(lambda b: b.transfer("ann", "bob", 7), 4, "after")
    (claimed,) = books.entries()
    hurried: list[Outcome] = []

    def between(write: Write, moment: Moment) -> None:
        if moment is Moment.BEFORE and isinstance(write, CheckAndPut) and write.column == "request":
            (entry,) = set(books.entries()) - {claimed}
            for how in (("--list",), ("--list", "--execute")):
                hurried.append(job("transaction_repair", "--grace", "0s", *how, config=books.file))
            assert entry in books.entries(), "its client is about to claim"

    with books.open(between) as book:
        assert book.transfer("issuer", "bob", 1).state is State.FINISHED
    dry, done = hurried
    left = {"not claimed, and within the ledger's grace": 1}
    assert (done.code, done.totals["finished"], done.totals["skipped"]) == (0, 1, left), done.problems
    assert {line["action"] for each in hurried for line in listed(each).values()} == {"finish"}
    assert (dry.code, dry.totals["candidates"]) == (0, 2)
    grace = books.config.ledger.grace // timedelta(milliseconds=1)
    assert 0 < mark(books).mark <= time.time_ns() // 1_000_000 - grace, "transfers that begin now are not over"
    assert books.entries() == []


def test_a_transaction_from_a_fast_clock_does_not_wait_for_its_time(run: Job, books: Books) -> None:
    """What bears a time of the next century, or of none, is as old as HBase's clock says: repaired by the next run,
    with a word on the clock.
    """
    with books.open() as book:
        book.transfer("issuer", "ann", 100)
    leave_fast(books)
    assert run("transaction_repair", "--grace", "1h", "--execute").totals["candidates"] == 0
    outcome = run("transaction_repair", *NOW)
    assert (outcome.code, outcome.totals["finished"]) == (0, 2), outcome.problems
    (note,) = outcome.table(f"{books.config.ledger.prefix}transactions")["notes"]
    assert note.startswith(
        "2 entries of the index bear a later time than they were written at, the latest 999999999999999 ms"
    )
    assert books.entries() == []
    assert mark(books).mark < 4_102_444_800_000


@pytest.mark.parametrize("lost", [False, True], ids=["entries", "entries lost"])
def test_a_scheduled_run_ends_a_transaction_from_a_fast_clock(run: Job, books: Books, lost: bool) -> None:
    """Airflow gives each the end of its interval, before which no such transaction will ever lie: it is ended by
    HBase's clock, also by the full check that gives it back its entry. What HBase wrote after that end is left, as it
    is by a backfill, whose interval has a beginning.
    """
    with books.open() as book:
        book.transfer("issuer", "ann", 100)
    before = datetime.now(UTC).isoformat()
    leave_fast(books)
    for earlier in (("--to", before), ("--from", "2026-01-01T00:00:00Z", "--to", datetime.now(UTC).isoformat())):
        left = run("transaction_repair", *NOW, *earlier)
        assert (left.code, left.totals["finished"], len(books.entries())) == (0, 0, 2), left.problems
    if lost:
        with raw(books, Table.OPEN) as table:
            for entry in books.entries():
                table.delete(entry.row.encode())
    outcome = run("transaction_repair", *NOW, "--to", datetime.now(UTC).isoformat(), *(["--full"] * lost))
    assert (outcome.code, outcome.totals["finished"]) == (0, 2), outcome.problems
    assert books.entries() == []
    assert books.balances()[user_id("bob")] == 4


def leave_fast(books: Books) -> None:
    """Two transfers of 2 from ann to bob, of clients whose clocks are fast and that stopped."""
    for now in (4_102_444_800_000, 10**18):
        with books.open(Bomb(4, "answer lost")) as fast:
            fast._now = lambda now=now: now
            with pytest.raises(Exception, match="left as it is"):
                fast.transfer("ann", "bob", 2)


def test_a_restored_entry_changes_the_cell_of_the_mark(run: Job, books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that read mark and index before the entry was back must not move the mark over it: it finds another text,
    also where the mark stays.
    """
    with books.open() as book:
        book.transfer("issuer", "ann", 100)
    assert run("transaction_repair", *NOW).code == 0
    books.stopped(lambda b: b.transfer("ann", "bob", 1), 4, "after")
    with raw(books, Table.OPEN) as table:
        table.delete(books.entries()[0].row.encode())
    before = books.rows(Table.OPEN)["settled"]["mark"]

    def dies(*_: object) -> None:
        raise LedgerError("the run ends here")

    with monkeypatch.context() as patched:
        patched.setattr(repair, "_repair_open", dies)
        assert run("transaction_repair", *NOW, "--full").code == 1
    (entry,) = books.entries()
    assert entry.timestamp > mark(books).mark == Settled.decode(before).mark
    assert books.rows(Table.OPEN)["settled"]["mark"] != before
    assert run("transaction_repair", *NOW).totals["finished"] == 1


def test_money_that_does_not_add_up_after_the_repair(run: Job, books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody writes a record of his own while the repair is at work: the run is red, and the mark stays where it
    was.
    """
    with books.open() as book:
        book.transfer("issuer", "ann", 100)
    assert run("transaction_repair", *NOW).code == 0
    before = mark(books)
    books.stopped(lambda b: b.transfer("ann", "bob", 1), 4, "after")
    (entry,) = books.entries()

    def forge(write: Write, moment: Moment) -> None:
        if moment is Moment.AFTER and write.row == entry.row:
            with raw(books, Table.RECORDS) as table:
                table.put(f"{user_id('eve')}/{entry.id}".encode(), {b"l:state": b"finished", b"l:amount": b"5"})

    with monkeypatch.context() as patched:
        patched.setattr(repair, "node_on", partial(node_on, hook=forge))
        outcome = run("transaction_repair", *NOW)
    assert replace(mark(books), wrong_at=0) == before
    assert outcome.code == 1
    assert f"transaction {entry.id} has 1 finished record(s) of users that have no part in it" in outcome.problems
    assert "does not add up after the repair" in outcome.problems
    assert "the settled mark stays where it is" in outcome.problems


def test_a_driver_whose_clock_is_off_ages_nothing(run: Job, books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a minute, an hour or a day, fast or slow: no transfer in the making is touched, no mark is of a time to
    come, no money is left out.

    It is right, or, by more than the margin, refuses to act.
    """
    with books.open() as book:
        book.transfer("issuer", "ann", 100)
        assert books.stopped(lambda b: b.transfer("ann", "bob", 1), 1, "after")  # about to claim
        assert books.stopped(lambda b: b.transfer("ann", "bob", 1), 4, "after")
    young = books.entries()
    assert len(young) == 2
    grace = books.config.ledger.grace // timedelta(milliseconds=1)
    for off in (timedelta(seconds=s) for s in (3600, 86_400, 30, -30, -3600, -86_400)):

        class Off(datetime):
            @classmethod
            def now(cls, tz: Any = None, off: timedelta = off) -> datetime:
                return datetime.now(tz) + off

        before, found = time.time_ns() // 1_000_000, mark(books)
        with monkeypatch.context() as patched:
            for module in (base, oracle, lowtide_job):
                patched.setattr(module, "datetime", Off)
            outcome = run("transaction_repair", "--execute")
        now = time.time_ns() // 1_000_000
        assert books.entries() == young, off
        after = mark(books)
        assert max(after.mark, after.at, after.checked_at, after.full_at) <= now, off
        if outcome.code:
            assert abs(off) > timedelta(minutes=1)
            assert "the clock of this machine is" in outcome.problems
            assert after == found
        else:
            assert before - grace <= after.mark <= now - grace, off
            assert before <= after.checked_at, off


def test_a_mark_of_a_time_to_come_is_taken_back(run: Job, books: Books) -> None:
    """As a driver with a fast clock left it: what it passed is found by the next run, which checks everything, and says
    so.
    """
    with books.open() as book:
        book.transfer("issuer", "ann", 100)
        assert books.stopped(lambda b: b.transfer("ann", "bob", 1), 4, "after")
    soon = time.time_ns() // 1_000_000 + 3_600_000
    with raw(books, Table.OPEN) as table:
        table.put(b"settled", {b"l:mark": Settled(soon, "fast", soon, soon, soon).encode().encode()})
    outcome = run("transaction_repair", *NOW)
    assert (outcome.code, outcome.totals["finished"]) == (0, 1), outcome.problems
    assert outcome.summary["figures"]["transactions"] == 2, "the full check is due"
    told, back, *_ = outcome.table(f"{books.config.ledger.prefix}transactions")["notes"]
    assert "a run on a machine whose clock is fast" in told
    assert "the settled mark is moved back from" in back
    after = mark(books)
    assert max(after.mark, after.at, after.checked_at, after.full_at) <= time.time_ns() // 1_000_000
    assert after.moved_back_from == soon
    assert books.entries() == []
    again = run("transaction_repair", *NOW)
    assert again.code == 0
    assert "transactions" not in again.summary["figures"]


def test_a_record_that_comes_late_to_an_old_transaction_is_named(
    run: Job, books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a third user, or of another amount: by the next run and by ``balances``, not only by the day's full check."""
    with books.open() as book:
        book.add_user("eve")
        paid = book.transfer("issuer", "ann", 100)
    assert run("transaction_repair", *NOW).code == 0
    assert run("balances").code == 0
    monkeypatch.setattr(money, "SKEW", 0)  # so that the transfer is old to the next run
    eve, ann = (f"{user_id(name)}/{paid.id}" for name in ("eve", "ann"))
    finished = {"id": eve, "user_id": user_id("eve"), "transaction_id": paid.id, "amount": "5", "state": "finished"}
    for row, cells, said in (
        (eve, finished, f"record {eve} is of neither the transaction's sender nor its recipient"),
        (ann, {"amount": "1000"}, f"record {ann}: amount is '1000', its transaction says '100'"),
    ):
        with raw(books, Table.RECORDS) as table:
            kept = table.row(row.encode())
            table.put(row.encode(), {b"l:" + name.encode(): value.encode() for name, value in cells.items()})
        outcome = run("transaction_repair", *NOW)
        assert "transactions" not in outcome.summary["figures"], "no full check"
        assert outcome.code == 1
        assert "does not add up before the repair" in outcome.problems
        assert said in outcome.problems
        summed = run("balances")
        assert summed.code == 1
        assert (
            f"transaction {paid.id} has 1 finished debit(s) and {int(row == eve)} finished credit(s)" in summed.problems
        )
        with raw(books, Table.RECORDS) as table:
            table.delete(row.encode())
            if kept:
                table.put(row.encode(), kept)
        assert run("transaction_repair", *NOW).code == 0
        assert run("balances").code == 0


def test_a_third_users_record_is_named_before_its_transaction_ends(
    run: Job, books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would look at it again: the transaction ends after what is written since begins, the record lies before.
    A record whose transaction is not there yet is named too. The sender's and the recipient's records are in their
    order.
    """
    with books.open() as book:
        book.add_user("eve")
        book.transfer("issuer", "ann", 100)
    assert books.stopped(lambda b: b.transfer("ann", "bob", 7), 13, "after")
    (entry,) = books.entries()
    assert run("transaction_repair", "--execute").code == 0, "it is young, and one of its records may be finished"
    monkeypatch.setattr(money, "SKEW", 0)
    for id, said in (
        (entry.id, "is of neither the transaction's sender nor its recipient"),
        (transaction_id(user_id("ann"), 2), "has no transaction"),
    ):
        row = f"{user_id('eve')}/{id}"
        with raw(books, Table.RECORDS) as table:
            table.put(row.encode(), {b"l:amount": b"5", b"l:state": b"finished"})
        before = books.content()
        outcome = run("transaction_repair", "--execute")
        assert "transactions" not in outcome.summary["figures"], "no full check"
        assert outcome.code == 1, "it would count from the end of its transaction on"
        assert f"record {row} {said}" in outcome.problems
        assert books.content() == before
        with raw(books, Table.RECORDS) as table:
            table.delete(row.encode())
        assert run("transaction_repair", "--execute", "--full").code == 0
    assert run("transaction_repair", *NOW).code == 0
    assert books.balances()[user_id("bob")] == 7


def test_money_that_goes_to_another_is_no_balance(run: Job, books: Books) -> None:
    """A credit in a third user's name in place of the recipient's, and a transaction that lost both records: the sums
    are right, the money is not.
    """
    with books.open() as book:
        book.add_user("eve")
        book.transfer("issuer", "ann", 100)
        moved = book.transfer("ann", "bob", 7)
    eve, bob, ann = (f"{user_id(name)}/{moved.id}" for name in ("eve", "bob", "ann"))
    with raw(books, Table.RECORDS) as table:
        cells = table.row(bob.encode())
        table.delete(bob.encode())
        table.put(eve.encode(), cells)
    outcome = run("balances")
    assert outcome.code == 1, "a third user has it"
    assert "all users have 100, and 100 was paid in; 1 finished transactions" in outcome.problems
    assert f"{moved.id} has 1 finished debit(s) and 0 finished credit(s) of its amount, and 1" in outcome.problems
    with raw(books, Table.RECORDS) as table:
        table.delete(eve.encode())
        table.delete(ann.encode())
    outcome = run("balances")
    assert outcome.code == 1
    assert f"{moved.id} has 0 finished debit(s) and 0 finished credit(s) of its amount, and 0" in outcome.problems


def families(books: Books, *names: str) -> dict[str, tuple[bytes, bool, int]]:
    """Bloom filter, block cache and versions of the one family of each table."""
    with connect(books.config.hbase.thrift) as connection:
        told = {name: next(iter(connection.table(name).families().values())) for name in names}
    return {name: (f["bloom_filter_type"], f["block_cache_enabled"], f["max_versions"]) for name, f in told.items()}


def test_tables_are_read_by_bloom_filter_and_cache(job: Job, configure: Callable[..., Path]) -> None:
    """Those that are made; and those that the gateway made by its own defaults, by the next run that acts: it says so,
    once. A dry run alters nothing.
    """
    books = Books(configure(ledger={"prefix": "slow_"}, state={"table": "slow_state"}))
    names = [f"slow_{table}" for table in Table]
    with connect(books.config.hbase.thrift) as connection:
        for name, family in [*((name, FAMILY) for name in names), ("slow_state", "s")]:
            connection.create_table(name, {family: {"max_versions": 1}})
    init(books.config)
    with books.open() as book:
        book.add_user("ann")
        book.transfer("issuer", "ann", 100)
    slow = {name: (b"NONE", False, 1) for name in (*names, "slow_state")}
    right = {name: (b"ROW", True, 1) for name in slow}
    assert job("transaction_repair", config=books.file).code == 0
    assert families(books, *slow) == slow
    collected = job("watermark_collection", "--execute", config=books.file)
    assert families(books, *slow) == {**slow, "slow_state": (b"ROW", True, 1)}
    assert [t["notes"] for t in collected.summary["tables"] if t["table"] == "slow_state"] == [
        ["slow_state was made without bloom filter or block cache; it has both now, its files as they are written"]
    ]
    done = job("transaction_repair", *NOW, config=books.file)
    assert (done.code, families(books, *slow)) == (0, right), done.problems
    assert [note.partition(" was made without")[0] for note in done.table("slow_transactions")["notes"]] == names
    again = job("transaction_repair", *NOW, config=books.file)
    assert (again.code, again.table("slow_transactions")["notes"]) == (0, [])
    assert books.balances()[user_id("ann")] == 100
    new = made(configure)
    mine = [f"{new.config.ledger.prefix}{table}" for table in Table]
    assert families(new, *mine) == {name: (b"ROW", True, 1) for name in mine}


def test_a_ledger_whose_rows_expire_is_refused(run: Job, books: Books, omid: OmidClient) -> None:
    """A TTL on any of its tables takes both sides of a transfer at once, so that what is left adds up: repair,
    balances, sensors and clients say so with the statement that mends it, write nothing, and go on after it.
    """
    with books.open() as book:
        book.transfer("issuer", "ann", 100)
    assert run("transaction_repair", *NOW).code == 0
    assert books.stopped(lambda b: b.transfer("ann", "bob", 7), 4, "after")
    (entry,) = books.entries()
    sensors = TransactionIs(entry.id), TransactionsStuck(older_than="0s"), TransactionsSettled(every="1h")
    before = books.everything()
    for table in Table:
        name = f"{books.config.ledger.prefix}{table}"
        told = f"alter '{name}', {{NAME => 'l', TTL => 'FOREVER'}}"
        omid.set(name, families={"TTL": "86400"})
        try:
            for refused in (run("transaction_repair", *NOW), run("balances")):
                assert (refused.code, told in refused.problems) == (1, True), refused.problems
            with pytest.raises(StoreError, match=re.escape(told)), books.open() as book:
                book.transfer("ann", "bob", 1)
            with pytest.raises(StoreError, match=re.escape(told)):
                init(books.config)
            for sensor in sensors:
                with pytest.raises(StoreError, match=re.escape(told)):
                    check(sensor, books.config)
            assert books.everything() == before
        finally:
            omid.set(name, families={"TTL": str(2**31 - 1)})
    assert run("transaction_repair", *NOW).code == 0
    assert check(sensors[0], books.config).met
    assert run("balances").code == 0
    with books.open() as book:
        book.transfer("ann", "bob", 1)
        assert (book.balance("ann"), book.balance("bob")) == (92, 8)


def test_a_ledger_whose_servers_lose_what_they_acknowledged_is_refused(
    run: Job, books: Books, omid: OmidClient
) -> None:
    """A claim or a decision that goes with a region server has been gone by; the jobs say so before they read on."""
    name = f"{books.config.ledger.prefix}{Table.TRANSACTIONS}"
    assert books.stopped(lambda b: b.transfer("issuer", "ann", 7), 4, "after")
    before = books.everything()
    for durability in ("SKIP_WAL", "ASYNC_WAL"):
        omid.set(name, DURABILITY=durability)
        for refused in (run("transaction_repair", *NOW), run("balances")):
            assert refused.code == 1
            assert f"alter '{name}', DURABILITY => 'SYNC_WAL'" in refused.problems
        assert books.everything() == before
    omid.set(name, DURABILITY="SYNC_WAL")
    assert run("transaction_repair", *NOW).code == 0
    assert books.balances()[user_id("ann")] == 7


def test_finished_transactions_that_went_with_their_records_are_missed(run: Job, books: Books) -> None:
    """What expires, or is removed whole, leaves books that add up: the full check counts fewer finished transactions
    than the last one did, and repairs nothing until that is mended or accepted.
    """
    with books.open() as book:
        book.transfer("issuer", "ann", 100)
        lost = book.transfer("ann", "bob", 10)
        assert run("transaction_repair", *NOW, "--full").code == 0
        assert mark(books).finished == 2
        book.transfer("issuer", "bob", 1)
    assert books.stopped(lambda b: b.transfer("issuer", "ann", 1), 4, "after")
    rows = {Table.TRANSACTIONS: [lost.id], Table.RECORDS: [f"{user_id(name)}/{lost.id}" for name in ("ann", "bob")]}
    for table, gone in rows.items():
        with raw(books, table) as each:
            for row in gone:
                each.delete(row.encode())
    assert run("transaction_repair", *NOW).code == 0, "the day's runs do not count all"
    assert run("transaction_repair", *NOW, "--full").code == 0, "one went, one came, and one was repaired"
    assert mark(books).finished == 3
    with raw(books, Table.TRANSACTIONS) as each:
        each.delete(transaction_id(user_id("issuer"), 2).encode())
    with raw(books, Table.RECORDS) as each:
        for name in ("issuer", "bob"):
            each.delete(f"{user_id(name)}/{transaction_id(user_id('issuer'), 2)}".encode())
    before = books.content()
    for mode in (("--grace", "0s"), NOW):
        refused = run("transaction_repair", *mode, "--full")
        assert refused.code == 1
        assert "1 finished transactions are gone: the last full check counted 3, and there are 2" in refused.problems
        assert books.content() == before
    assert run("transaction_repair", *NOW).code == 1, "nor does the next, which was not asked to count all"
    assert books.content() == before
    told = f"deleteall '{books.config.ledger.prefix}open_transactions', 'settled'"
    assert told in refused.problems
    with raw(books, Table.OPEN) as each:
        each.delete(b"settled")
    assert run("transaction_repair", *NOW).code == 0
    assert mark(books).finished == 2


@pytest.mark.parametrize("first", [Table.TRANSACTIONS, Table.RECORDS])
def test_tables_that_came_back_from_different_times_are_set_right(
    run: Job, books: Books, omid: OmidClient, monkeypatch: pytest.MonkeyPatch, first: Table
) -> None:
    """Snapshots of two tables with transfers between them, restored: records without transactions lock their users out,
    transactions without records have lost their money, and no repair acts. The command lists each record whole, and
    does it when told so; then the full check is green and every call answers. Where it removed something it ends when
    no server's clock can be behind that any more.
    """
    waited: list[float] = []
    monkeypatch.setattr("lowtide.cli.ledger.sleep", waited.append)

    def command(*more: str) -> Any:
        return CliRunner().invoke(app, ["ledger", "mend", *more, "--config", str(books.file)])

    with books.open() as book:
        for name in ("ann", "bob"):
            book.transfer("issuer", name, 100)
    names = {table: f"{books.config.ledger.prefix}{table}" for table in Table}
    omid.snapshot(names[first], f"{names[first]}_then")
    with books.open() as book:
        between = book.transfer("ann", "bob", 4)
    assert run("transaction_repair", *NOW, "--full").code == 0
    assert books.stopped(lambda b: b.transfer("bob", "ann", 1), 9, "after")
    others = [table for table in Table if table is not first]
    for table in others:
        omid.snapshot(names[table], f"{names[table]}_then")
    for table in Table:
        omid.restore(f"{names[table]}_then")
        omid.delete_snapshot(f"{names[table]}_then")
    broken = books.content()
    if first is Table.TRANSACTIONS:
        with books.open() as book, pytest.raises(LedgerError, match=f"{between.id} has no transaction"):
            book.balance("ann")
    else:
        assert f"{between.id} has 0 finished debit(s) and 0 finished credit(s)" in run("balances").problems
    assert run("transaction_repair", *NOW, "--full").code == 1
    assert books.content() == broken, "no repair acts"

    listed = command("--output", "json")
    assert listed.exit_code == 1
    found = json.loads(listed.stdout)
    assert books.content() == broken, "a list alone"
    rows = {f"{user_id(name)}/{between.id}" for name in ("ann", "bob")}
    assert rows <= {each["record"] for each in found["records"]}
    for each in found["records"]:
        assert each["cells"] == broken[Table.RECORDS].get(each["record"], {}), "whole"
    assert {each["action"] for each in found["records"]} == {"remove" if first is Table.TRANSACTIONS else "write"}
    done = command("--yes")
    assert done.exit_code == 0, done.output
    assert waited == ([120] if first is Table.TRANSACTIONS else [])
    assert "No record contradicts" in command().output

    full = run("transaction_repair", *NOW, "--full")
    assert full.code == 0, full.problems
    assert run("balances").code == 0
    ann, bob = (100, 100) if first is Table.TRANSACTIONS else (97, 103)
    with books.open() as book:
        assert (book.balance("ann"), book.balance("bob")) == (ann, bob)
        assert book.transfer("ann", "bob", ann).state is State.FINISHED
        assert book.transfer("bob", "ann", 200).state is State.FINISHED
    assert run("transaction_repair", *NOW, "--full").code == 0


def test_an_interval_repairs_its_own_transactions(run: Job, books: Books) -> None:
    """A backfill takes those that began in its interval, [from, to); the mark does not pass the others."""
    times = {"day one": 1_767_225_600_000, "day two": 1_767_312_000_000}
    with books.open() as book:
        book.transfer("issuer", "ann", 100)
    for at in times.values():
        with books.open(Bomb(3, "answer lost")) as late:
            late._now = lambda at=at: at
            with pytest.raises(Exception, match="left as it is"):
                late.transfer("ann", "bob", 1)
    day_two = run("transaction_repair", *NOW, "--from", "2026-01-02T00:00:00Z", "--to", "2026-01-03T00:00:00Z")
    assert (day_two.code, day_two.totals["candidates"]) == (0, 1), day_two.problems
    assert [entry.timestamp for entry in books.entries()] == [times["day one"]]
    assert mark(books).mark <= times["day one"] or mark(books).mark == 0
    assert run("transaction_repair", *NOW, "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-02T00:00:00Z").code == 0
    assert books.entries() == []


def test_bad_arguments_and_no_ledger(job: Job, books: Books, configure: Callable[..., Path]) -> None:
    """A table name, and a store without a ledger, are refused with the remedy."""
    for name in ("transaction_repair", "balances"):
        refused = job(name, "--table", "orders", config=books.file)
        assert refused.code == 2
        assert "leave --table out" in refused.problems
        missing = job(name, config=configure(ledger={"prefix": "nobody_"}))
        assert missing.code == 1
        assert "nobody_users" in missing.problems
        assert "lowtide ledger init" in missing.problems


def in_sql(books: Books) -> dict[str, int]:
    """Balances as a SQL engine computes them, by the model's own query, over an export of the tables."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE transactions (id, sender, recipient, amount INTEGER, state)")
    database.execute("CREATE TABLE user_transactions (id, user_id, transaction_id, amount INTEGER, state)")
    for table, columns in (
        (Table.TRANSACTIONS, ("id", "sender", "recipient", "amount", "state")),
        (Table.RECORDS, ("id", "user_id", "transaction_id", "amount", "state")),
    ):
        for cells in books.rows(table).values():
            marks = ", ".join("?" * len(columns))
            database.execute(f"INSERT INTO {table} VALUES ({marks})", [cells.get(name) for name in columns])
    query = """
        SELECT sum(ut.amount)
        FROM user_transactions AS ut
        JOIN transactions AS t
        ON t.id = ut.transaction_id
        WHERE t.state = 'finished'
        AND ut.state = 'finished'
        AND ut.user_id = ?
    """
    return {user: database.execute(query, (user,)).fetchone()[0] or 0 for user in books.rows(Table.USERS)}


@seeds.each("balances", always=[7])
def test_balances_equal_those_of_a_sql_engine(run: Job, books: Books, tmp_path: Path, seed: int) -> None:
    """On a random history with transfers stopped at random writes: the job, the client, and SQLite with the model's
    query.
    """
    chance = random.Random(seed)
    names = ["issuer", "ann", "bob", "cid", "dan"]
    with books.open() as book:
        for name in names[3:]:
            book.add_user(name)
        for name in names[1:]:
            book.transfer("issuer", name, 50)
    refused: list[str] = []
    for _ in range(100):
        sender, recipient = chance.sample(names, 2)
        amount, at = chance.randint(1, 40), chance.choice([99, chance.randint(1, 17)])

        def attempt(book: Any, s: str = sender, r: str = recipient, a: int = amount) -> None:
            try:
                book.transfer(s, r, a)
            except UsageError as error:
                refused.append(str(error))

        books.stopped(attempt, at, chance.choice(WAYS))
    assert all("balance is" in text for text in refused)
    due = in_sql(books)
    folder = tmp_path / "balances"
    outcome = run("balances", "--csv", str(folder))
    assert outcome.code == 0, outcome.problems
    (part,) = folder.glob("*.csv")
    with part.open() as lines:
        rows = list(csv.DictReader(lines))
    assert {row["user"]: int(row["balance"]) for row in rows} == due
    assert {row["nickname"] for row in rows} == set(names)
    with books.open() as book:
        assert {user_id(name): book.balance(name) for name in names} == due
    figures = outcome.summary["figures"]
    assert figures["total"] == figures["paid in"] == -due[user_id("issuer")]
    flying = [
        transaction
        for id, cells in books.rows(Table.TRANSACTIONS).items()
        if (transaction := parse_transaction(id, cells)).state not in (State.FINISHED, State.DROPPED)
        and (transaction.decision is None or transaction.decision.runs)
        and transaction.complete
    ]
    assert figures["transactions in flight"] >= len(flying)
    assert figures["amount in flight"] == sum(transaction.request.amount for transaction in flying)
    assert run("transaction_repair", *NOW).code == 0
