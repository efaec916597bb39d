"""Balances: what every user has, the total, and what is in flight."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.errors import StoreError, UsageError
from lowtide.ledger import steps
from lowtide.ledger.model import Table, user_id
from lowtide.ledger.store import Node, node_on
from lowtide.run.summary import TableReport
from lowtide_spark.ledger import dataframes
from lowtide_spark.run.context import Run

#: Users whose balance is printed, the richest first.
_SHOWN = 20
#: What contradicts itself is named one by one up to this many.
_NAMED = 20


def balances(run: Run) -> None:
    """The job ``balances``. Reads only.

    Raises:
        UsageError: a table was named.
        StoreError: a balance other than the issuer's is below zero, or a finished transaction has not moved its
            amount exactly once.
    """
    if run.options.table:
        msg = (
            f"balances are the ledger's, not those of tables (found {', '.join(run.options.table)}); leave --table out"
        )
        raise UsageError(msg)
    run.summary.execute = False
    node = node_on(run.store.connections, run.config, size=1)
    frames = dataframes.LedgerFrames(run.store)
    frames.check_readable()
    report = TableReport(frames.name(Table.RECORDS))
    run.summary.tables = [report]
    # Kept before the records are read: a finished transaction's records were finished before it, both or none are
    # counted.
    moved = frames.transactions(("sender", "recipient", "amount", "state", "decision")).localCheckpoint(eager=True)
    records = frames.records(("amount", "state"))
    found = by_user(moved, records).localCheckpoint(eager=True)
    issuer = user_id(run.config.ledger.issuer)
    named = found.join(frames.users().withColumnRenamed("key", "user"), "user", "outer").select(
        "user", "nickname", F.coalesce("balance", F.lit(0).cast(dataframes.MONEY)).alias("balance")
    )
    _figures(run, named, moved, issuer)
    _check_conserved(run, found, moved, records)
    _check(found, issuer, node)
    _show(run, named, issuer)
    if run.options.csv:
        write_csv(named.orderBy("user"), run.options.csv)
        report.notes.append(f"every balance is in {run.options.csv}")
    run.phase("balances")


def write_csv(frame: DataFrame, folder: str) -> None:
    """One CSV file in *folder*, which must not be there, by RFC 4180: whoever reads it has every name as it is.

    A name may hold what separates fields and rows. Spark by itself writes a backslash before a quote, which readers of
    that format take for the field's end, and cuts off spaces.
    """
    writer = frame.coalesce(1).write.mode("errorifexists").option("header", "true")
    writer.option("escape", '"').option("quoteAll", "true").option("ignoreLeadingWhiteSpace", "false").option(
        "ignoreTrailingWhiteSpace", "false"
    ).csv(folder)


def by_user(transactions: DataFrame, records: DataFrame) -> DataFrame:
    """``user, balance`` by the model's definition: the sum over records that are finished and whose transaction is.

    And ``due, odd``: how many of those records are what their transactions ask for, and how many are not: of another
    amount, or of a user who has no part in it. *transactions* and *records* as
    :class:`~lowtide_spark.ledger.dataframes.LedgerFrames` gives them. Users without such records are left out.
    """
    over = _moved(transactions).withColumnRenamed("key", "transaction")
    counted = dataframes.finished(records).withColumn("moved", dataframes.money("amount")).join(over, "transaction")
    is_debit, is_credit = dataframes.sides()
    due = is_debit | is_credit
    return counted.groupBy("user").agg(
        F.sum("moved").alias("balance"), F.count(F.when(due, 1)).alias("due"), F.count(F.when(~due, 1)).alias("odd")
    )


def _moved(transactions: DataFrame) -> DataFrame:
    """Finished transactions: ``key, sender, recipient, money``."""
    return dataframes.finished(transactions).select("key", "sender", "recipient", dataframes.worth().alias("money"))


def _figures(run: Run, named: DataFrame, moved: DataFrame, issuer: str) -> None:
    others = F.when(F.col("user") != F.lit(issuer), F.col("balance"))
    sums = named.agg(F.count("*"), F.sum(others)).first()
    # By the transactions, where the total is by the records: money is neither made nor lost between the two.
    issued = _moved(moved).agg(F.sum(dataframes.paid_in(issuer))).first()
    runs = F.coalesce(F.get_json_object("decision", "$.reason") == "", F.lit(True))
    flying = moved.where(~dataframes.is_over() & runs)
    flight = flying.agg(F.count("*"), F.sum(dataframes.money("amount"))).first()
    assert sums is not None
    assert issued is not None
    assert flight is not None
    run.summary.figures |= {
        "users": int(sums[0]),
        "total": int(sums[1] or 0),
        "paid in": int(issued[0] or 0),
        "transactions in flight": int(flight[0]),
        "amount in flight": int(flight[1] or 0),
    }


def _check_conserved(run: Run, found: DataFrame, moved: DataFrame, records: DataFrame) -> None:
    """Every finished transaction has one debit, one credit and nothing else: then all users have what was paid in."""
    figures = run.summary.figures
    counted = found.agg(F.sum("due"), F.sum("odd")).first()
    over = dataframes.finished(moved)
    assert counted is not None
    due, odd = (int(number or 0) for number in counted)
    if not odd and due == 2 * over.count() and figures["total"] == figures["paid in"]:
        return
    wrong = dataframes.settled_sides(over, records).where(~dataframes.balanced()).orderBy("key")
    named = [
        f"transaction {r.key} has {r.debits} finished debit(s) and {r.credits} finished credit(s) of its amount, and "
        f"{r.foreign} finished record(s) of users that have no part in it"
        for r in wrong.limit(_NAMED).collect()
    ]
    msg = (
        f"the money does not add up: all users have {figures['total']}, and {figures['paid in']} was paid in; "
        f"{wrong.count()} finished transactions have not moved their amount exactly once: {'; '.join(named)}. Run "
        "transaction_repair --full, which names the rows"
    )
    raise StoreError(msg)


def _check(found: DataFrame, issuer: str, connections: Node) -> None:
    """Below zero at first sight can be a payment seen without the credit that it was paid from.

    So such users are read once more.
    """
    below = [r.user for r in found.where((F.col("balance") < 0) & (F.col("user") != F.lit(issuer))).collect()]
    again = {user: connections.run(partial(steps.balance, user), f"balance of user {user}") for user in below}
    broke = [f"{user} has {balance}" for user, balance in again.items() if balance < 0]
    if broke:
        msg = (
            f"balances below zero: {', '.join(broke[:_NAMED])}; run transaction_repair --full, which names the rows "
            "that contradict each other"
        )
        raise StoreError(msg)


def _show(run: Run, named: DataFrame, issuer: str) -> None:
    richest = named.where(F.col("user") != F.lit(issuer)).orderBy(F.desc("balance"), "user").limit(_SHOWN).collect()
    for row in richest:
        print(f"  {row.user}  {int(row.balance):>20,}  {row.nickname}", flush=True)
    if run.summary.figures["users"] - 1 > len(richest):
        print(f"  and {run.summary.figures['users'] - 1 - len(richest):,} more; --csv FOLDER writes all", flush=True)
