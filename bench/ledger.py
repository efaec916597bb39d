"""The ledger's part of ``make bench``: repair against a bare count, a sensor's check against an empty ledger, transfers
against bare calls.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lowtide_spark.frames.store import Store
from lowtide_spark.ledger.repair import repair
from lowtide_spark.run.job import run_job
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bench.__main__ import HOME, Ratio, _config, _print, _spark, _store, _timed, anew, console
from lowtide.config import Config, load
from lowtide.health.conditions import TransactionsSettled, check
from lowtide.ledger import init, ledger, steps, user_id
from lowtide.ledger.model import FAMILY, Request, Table, entry_bound
from lowtide.ledger.settled import read_settled
from lowtide.ledger.steps import CheckAndPut, Put, Read, Scan
from lowtide.ledger.store import Tables
from lowtide.store.gateway import connect

#: Transactions of a user; the last of them is the one that was left half-way.
EACH = 100
#: Of what each user is paid in.
FUNDS = 1000


def main() -> int:
    """Load, measure, print, keep the numbers in ``.lowtide/bench/ledger.json``."""
    parser = argparse.ArgumentParser(prog="bench.ledger")
    parser.add_argument("--transactions", type=int, default=1_000_000, help="of which 1 in 100 is left half-way")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--transfers", type=int, default=300, help="of one client, in a round")
    options = parser.parse_args()
    anew()
    with _store() as stack, _spark() as spark:
        file = _config(stack)
        store = Store(spark, load(file))
        ratios = [*_scale(store, file, options), _transfers(load(file), options)]
    _print(ratios)
    (HOME / "ledger.json").write_text(json.dumps([{**r.__dict__, "ratio": r.value} for r in ratios], indent=2))
    return 0


def _scale(store: Store, file: Path, options: argparse.Namespace) -> list[Ratio]:
    config = load(file)
    init(config)
    users = options.transactions // EACH
    began = time.time_ns() // 1_000_000 - 86_400_000
    _load(store, users, range(1, EACH), began)
    for table in Table:  # into store files of its own, as a table has them whose history is older than an hour
        store._admin().flush(store._options, f"{config.ledger.prefix}{table}")
    loaded = time.monotonic()
    console.print(f"{users * (EACH - 1):,} finished transactions loaded")
    full = _repair(file, "--full")
    console.print(f"  full check and first mark: {full:.1f} s")
    # What was written less than two minutes before the last check is checked again, for the servers' clocks' sake: here
    # all.
    time.sleep(max(0.0, 130 - (time.monotonic() - loaded)))
    _repair(file)
    took = Ratio("hourly repair of 1 in 100 against a bare count of the table, Spark's start aside", "<= 2")
    for number in range(options.rounds):
        # Each round leaves a hundredth half-way again: the next number of each user.
        _load(store, users, range(EACH + number, EACH + number + 1), time.time_ns() // 1_000_000 - 1000, finished=False)
        seconds = _repair(file)
        count = _timed(lambda: store.cells(f"{config.ledger.prefix}{Table.TRANSACTIONS}").count())
        console.print(f"  repair of {users:,}: {seconds:.1f} s, bare count {count:.1f} s")
        took.ours.append(seconds), took.theirs.append(count)
    return [took, _checks(config)]


def _repair(file: Path, *arguments: str) -> float:
    summary = HOME / "summary.json"
    argv = ["--config", str(file), "--summary", str(summary), "--grace", "0s", "--execute", *arguments]
    if run_job("transaction_repair", repair, argv):
        sys.exit(summary.read_text())
    phases = json.loads(summary.read_text())["phases"]
    console.print(f"  {phases}")
    return float(sum(seconds for phase, seconds in phases.items() if phase != "start"))


def _checks(config: Config) -> Ratio:
    """One check each in turn; everything old is settled."""
    ratio = Ratio("a sensor's check against one at an empty ledger", "<= 5", unit="ms")
    empty = _prefixed(config, "empty_")
    init(empty)
    with connect(config.hbase.thrift) as connection:
        before = Tables(connection, config.ledger.prefix)
        mark, _ = steps.run(read_settled(), before)
        Tables(connection, "empty_")(Put(Table.OPEN, "settled", {"mark": mark.encode()}))
    condition = TransactionsSettled(past=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(mark.mark / 1000)))
    for _ in range(50):
        ratio.theirs.append(1000 * _timed(lambda: check(condition, empty)))
        ratio.ours.append(1000 * _timed(lambda: check(condition, config)))
    return ratio


def _transfers(config: Config, options: argparse.Namespace) -> Ratio:
    """Transfers a second of one client; theirs are the very same calls, made with happybase and nothing around them."""
    ratio = Ratio("transfers/s of a client against bare happybase with the same calls", ">= 0.8", unit="1/s")
    for number in range(options.rounds + 1):  # the first warms up
        asked = [_request(n) for n in range(options.transfers)]
        calls: list[Any] = []
        _transfer_all(_opened(config, f"seen{number}_"), asked, calls)
        sides = [
            (ratio.ours, partial(_transfer_all, _opened(config, f"ours{number}_"), asked, None)),
            (ratio.theirs, partial(_call_all, _opened(config, f"bare{number}_"), calls)),
        ]
        for speeds, side in sides if number % 2 else reversed(sides):  # who comes second finds the servers warmer
            speeds.append(options.transfers / side())
        if number:
            console.print(f"  {ratio.ours[-1]:.0f} transfers/s against {ratio.theirs[-1]:.0f}")
    del ratio.ours[0], ratio.theirs[0]
    ratio.note = f"{len(calls) / options.transfers:.1f} calls a transfer"
    return ratio


def _opened(config: Config, prefix: str) -> Config:
    """A new ledger with one user."""
    made = _prefixed(config, prefix)
    init(made)
    with ledger(made) as book:
        book.add_user("ann")
    return made


def _transfer_all(config: Config, asked: Sequence[Request], calls: list[Any] | None) -> float:
    """Seconds of the transfers; each operation goes into *calls* too."""
    with connect(config.hbase.thrift) as connection:
        tables = Tables(connection, config.ledger.prefix)

        def store(operation: Any) -> Any:
            if calls is not None:
                calls.append(operation)
            return tables(operation)

        return _timed(
            lambda: [steps.run(steps.transfer(r, user_id("issuer"), lambda r=r: r.timestamp), store) for r in asked]
        )


def _call_all(config: Config, calls: Sequence[Any]) -> float:
    """Seconds of the bare calls."""
    with connect(config.hbase.thrift) as connection:
        made = [_bare(connection, config.ledger.prefix, operation) for operation in calls]
        return _timed(lambda: [call() for call in made])


def _bare(connection: Any, prefix: str, operation: Any) -> Callable[[], object]:
    """The call that *operation* is, with its arguments made beforehand."""
    from Hbase_thrift import Mutation

    name = f"{prefix}{operation.table}"
    table = connection.table(name)
    family = FAMILY.encode() + b":"
    if isinstance(operation, Read):
        rows = [row.encode() for row in operation.rows]
        return lambda: table.rows(rows)
    if isinstance(operation, Scan):
        start, stop = operation.start.encode(), operation.stop.encode()
        limit, back = operation.limit, operation.reverse
        size = min(limit or 1000, 1000)
        return lambda: list(table.scan(start, stop, limit=limit, reverse=back, batch_size=size))
    row = operation.row.encode()
    if isinstance(operation, Put):
        cells = {family + k.encode(): v.encode() for k, v in operation.cells.items()}
        return lambda: table.put(row, cells)
    if isinstance(operation, CheckAndPut):
        column = family + operation.column.encode()
        expected = None if operation.expected is None else operation.expected.encode()
        cell = Mutation(isDelete=False, column=column, value=operation.value.encode())
        return lambda: connection.client.checkAndPut(name.encode(), row, column, expected, cell, {})
    return lambda: table.delete(row)


def _request(number: int) -> Request:
    at = time.time_ns() // 1_000_000
    return Request(user_id("issuer"), user_id("ann"), 1, at, f"{number:016x}")


def _prefixed(config: Config, prefix: str) -> Config:
    return config.model_copy(update={"ledger": config.ledger.model_copy(update={"prefix": prefix})})


# -- loading: rows as clients leave them, made by Spark


def _load(store: Store, users: int, numbers: range, began: int, finished: bool = True) -> None:
    """User i pays user i+1 one unit with each of *numbers*; the issuer has paid all of them their funds with number 1
    to *users*.

    Not finished, a third each has just been claimed, is in progress with one record, or is committed.
    """
    spark, prefix = store.spark, store.config.ledger.prefix
    issuer = F.lit(user_id(store.config.ledger.issuer))
    pairs = spark.range(users * len(numbers)).select(
        (F.col("id") % users).alias("user"), (F.floor(F.col("id") / users) + numbers.start).alias("number")
    )
    sender, recipient = _user(F.col("user")), _user((F.col("user") + 1) % users)
    paid = pairs.select(
        sender.alias("sender"), recipient.alias("recipient"), F.lit(1).alias("amount"), "number", "user"
    )
    if numbers.start == 1:
        one = spark.range(users)
        funded = one.select(
            issuer.alias("sender"), _user(F.col("id")).alias("recipient"), F.lit(FUNDS).alias("amount"),
            (F.col("id") + 1).alias("number"), F.col("id").alias("user"),
        )  # fmt: skip
        paid = paid.unionByName(funded)
        _put(
            store,
            f"{prefix}{Table.USERS}",
            one.select(_user(F.col("id")).alias("row"), _cells(id=_user(F.col("id")), nickname=_nick(F.col("id")))),
        )
    rows = paid.withColumn("id", F.concat("sender", F.lit("-"), F.lpad(F.col("number").cast("string"), 12, "0")))
    rows = rows.withColumn("at", F.lit(began) + F.col("number") % 1000)
    rows = rows.withColumn("nonce", F.lpad(F.hex(F.col("number")), 16, "0")).withColumn("nonce", F.lower("nonce"))
    stage = F.lit(3) if finished else F.col("user") % 3
    rows = rows.withColumn("stage", stage)
    _put_rows(store, prefix, rows, issuer, finished)


def _put_rows(store: Store, prefix: str, rows: DataFrame, issuer: Column, finished: bool) -> None:
    request = F.to_json(F.struct("amount", "nonce", "recipient", "sender", F.col("at").alias("timestamp")))
    spent = F.when(F.col("sender") == issuer, (F.col("number") - 1) * FUNDS).otherwise(F.col("number") - 1)
    credited = F.when(F.col("sender") == issuer, F.lit(0)).otherwise(F.lit(FUNDS))
    decision = F.to_json(F.struct(credited.alias("credited"), F.lit("").alias("reason"), spent.alias("spent")))
    names = F.element_at(
        F.array(*map(F.lit, ("initial", "in progress", "committed", "finished"))), F.col("stage").cast("int") + 1
    )
    columns = {
        "id": F.col("id"),
        "sender": F.col("sender"),
        "recipient": F.col("recipient"),
        "amount": F.col("amount").cast("string"),
        "timestamp": F.col("at").cast("string"), "request": request,
        "decision": F.when(F.col("stage") > 0, decision), "state": names,
    }  # fmt: skip
    if not finished:
        key = F.concat(
            F.lpad(F.col("at").cast("string"), len(entry_bound(0)), "0"), F.lit("/"), "id", F.lit("/"), "nonce"
        )
        _put(store, f"{prefix}{Table.OPEN}", rows.select(key.alias("row"), _cells(transaction=F.col("id"))))
    _put(store, f"{prefix}{Table.TRANSACTIONS}", rows.select(F.col("id").alias("row"), _cells(**columns)))
    for who, sign, least in (("sender", -1, 1), ("recipient", 1, 2)):
        key = F.concat(F.col(who), F.lit("/"), F.col("id"))
        state = F.when(F.col("stage") == 3, "finished").otherwise("pending")
        cells = _cells(
            id=key, user_id=F.col(who), transaction_id=F.col("id"), amount=(F.col("amount") * sign).cast("string"),
            timestamp=F.col("at").cast("string"), state=state,
        )  # fmt: skip
        _put(store, f"{prefix}{Table.RECORDS}", rows.where(F.col("stage") >= least).select(key.alias("row"), cells))


def _user(number: Column) -> Column:
    return F.sha1(_nick(number).cast("binary"))


def _nick(number: Column) -> Column:
    return F.concat(F.lit("user"), number.cast("string"))


def _cells(**columns: Column) -> Column:
    pairs = [F.struct(F.lit(name).alias("qualifier"), value.alias("value")) for name, value in columns.items()]
    return F.explode(F.array(*pairs)).alias("cell")


def _put(store: Store, table: str, rows: DataFrame) -> None:
    cells = rows.where("cell.value is not null").select(
        F.lit("put").alias("op"), F.lit("bench").alias("region"), F.col("row").cast("binary").alias("row"),
        F.lit(FAMILY.encode()).alias("family"), F.col("cell.qualifier").cast("binary").alias("qualifier"),
        F.lit(None).cast("bigint").alias("timestamp"), F.col("cell.value").cast("binary").alias("value"),
    )  # fmt: skip
    written = store.write(cells, table)
    if any(w.failed for w in written):
        sys.exit(f"loading {table} failed: {written}")


if __name__ == "__main__":
    sys.exit(main())
