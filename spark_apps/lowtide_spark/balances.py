"""Balances: what every user has, the total, and what is in flight."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.errors import StoreError, UsageError
from lowtide.ledger import steps
from lowtide.ledger.model import Table, user_id
from lowtide.ledger.store import Node, node
from lowtide.summary import TableReport
from lowtide_spark import ledger
from lowtide_spark.job import Run

#: Users whose balance is printed, the richest first.
_SHOWN = 20


def balances(run: Run) -> None:
    """The job ``balances``. Reads only.

    Raises:
        UsageError: a table was named.
        StoreError: a balance other than the issuer's is below zero.
    """
    if run.options.table:
        msg = (
            f"balances are the ledger's, not those of tables (found {', '.join(run.options.table)}); leave --table out"
        )
        raise UsageError(msg)
    run.summary.execute = False
    with node(run.config, size=1) as connections:
        frames = ledger.LedgerFrames(run.store)
        report = TableReport(frames.name(Table.RECORDS))
        run.summary.tables = [report]
        # Kept before the records are read: a finished transaction's records were finished before it, both or none are counted.
        moved = frames.transactions(("sender", "recipient", "amount", "state", "decision")).localCheckpoint(eager=True)
        found = by_user(moved, frames.records(("amount", "state"))).localCheckpoint(eager=True)
        issuer = user_id(run.config.ledger.issuer)
        _check(found, issuer, connections)
        named = found.join(frames.users().withColumnRenamed("key", "user"), "user", "outer").select(
            "user", "nickname", F.coalesce("balance", F.lit(0).cast(ledger.MONEY)).alias("balance")
        )
        _figures(run, named, moved, issuer)
        _show(run, named, issuer)
        if run.options.output:
            named.orderBy("user").coalesce(1).write.mode("errorifexists").option("header", "true").csv(
                run.options.output
            )
            report.notes.append(f"every balance is in {run.options.output}")
        run.phase("balances")


def by_user(transactions: DataFrame, records: DataFrame) -> DataFrame:
    """``user, balance`` by the model's definition: the sum over records that are finished and whose transaction is.

    *transactions* and *records* as :class:`~lowtide_spark.ledger.LedgerFrames` gives them. Users without such records are left out.
    """
    over = ledger.finished(transactions).select(F.col("key").alias("transaction"))
    sums = ledger.finished(records).join(over, "transaction").groupBy("user")
    return sums.agg(F.sum(ledger.money("amount")).alias("balance"))


def _figures(run: Run, named: DataFrame, moved: DataFrame, issuer: str) -> None:
    others = F.when(F.col("user") != F.lit(issuer), F.col("balance"))
    paid_in = F.when(F.col("user") == F.lit(issuer), -F.col("balance"))
    sums = named.agg(F.count("*"), F.sum(others), F.sum(paid_in)).first()
    runs = F.coalesce(F.get_json_object("decision", "$.reason") == "", F.lit(True))
    flying = moved.where(~ledger.is_over() & runs)
    flight = flying.agg(F.count("*"), F.sum(ledger.money("amount"))).first()
    assert sums is not None
    assert flight is not None
    run.summary.figures |= {
        "users": int(sums[0]),
        "total": int(sums[1] or 0),
        "paid in": int(sums[2] or 0),
        "transactions in flight": int(flight[0]),
        "amount in flight": int(flight[1] or 0),
    }


def _check(found: DataFrame, issuer: str, connections: Node) -> None:
    """Below zero at first sight can be a payment seen without the credit that it was paid from: such users are read once more."""
    below = [r.user for r in found.where((F.col("balance") < 0) & (F.col("user") != F.lit(issuer))).collect()]
    again = {user: connections.run(lambda user=user: steps.balance(user), f"balance of user {user}") for user in below}
    broke = [f"{user} has {balance}" for user, balance in again.items() if balance < 0]
    if broke:
        msg = f"balances below zero: {', '.join(broke[:20])}; run transaction_repair --full, which names the rows that contradict each other"
        raise StoreError(msg)


def _show(run: Run, named: DataFrame, issuer: str) -> None:
    richest = named.where(F.col("user") != F.lit(issuer)).orderBy(F.desc("balance"), "user").limit(_SHOWN).collect()
    for row in richest:
        print(f"  {row.user}  {int(row.balance):>20,}  {row.nickname}", flush=True)
    if run.summary.figures["users"] - 1 > len(richest):
        print(f"  and {run.summary.figures['users'] - 1 - len(richest):,} more; --output FOLDER writes all", flush=True)
