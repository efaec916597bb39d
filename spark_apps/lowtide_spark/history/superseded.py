"""Which cells no read point at or after the ancient history mark needs, as column expressions. No effects.

Omid's reader (``SnapshotFilterImpl``) shows, of the versions of a column with a commit timestamp below its read point,
the one with the highest *cell* timestamp; a tombstone shows nothing. Of the family tombstones committed before that it
takes the highest one, and hides every cell of the row and family up to that one's *commit* timestamp. So, for a mark
that no commit timestamp equals:

- a version goes if it was hidden before the mark, by a higher version of its column or by a family tombstone:
  ``replaced_ts`` of the connector's view ``versions`` is the commit timestamp that hid it;
- a tombstone that is the newest version before the mark goes if every cell below it in its column goes;
- the highest family tombstone before the mark goes if no cell of its row and family is *there* up to its *commit*
  timestamp, and no family tombstone's shadow cell is alone in its row and family: it goes in the run after that which
  removed what it hid. A client that scans holds rows as they were; of a family tombstone that it may not see yet it
  asks for an older one when it comes to the row. Were that gone together with what it hid, the client would show that.
  Those below it hide nothing any more and go as replaced ones.

What stays, whatever the timestamps say: a cell without shadow cell (undecided: never healed, or never committed) and
every other cell of its transaction, whose shadow cell may be its only proof; a cell whose timestamp this oracle
cannot have given; in a row and family that has both family tombstones and other cells without qualifier, all of
these, because Omid's readers then disagree on what the family tombstones hide; and whatever began after a family
tombstone that is undecided: to a reader who finds out that it committed, be it by a sibling's shadow cell, it undoes an
older one.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lowtide.cleaning.evidence import Rule
from lowtide.values.formats import CHECKPOINTS
from lowtide_spark.cleaning.rules import FOREIGN
from lowtide_spark.frames.kinds import CELL_KINDS, FAMILY_TOMBSTONE, SHADOW, TOMBSTONE, UNKNOWN
from lowtide_spark.frames.omid import key_value_bytes, shadow_bytes, shadow_of

REMOVE = "remove"
KEEP = "keep"
#: The cell's key range is not touched.
STOP = "stop"

#: Why a cell before the mark stays.
UNDECIDED = "undecided"
DOUBTFUL = "of a transaction with an undecided cell"
BARE = "without qualifier, beside family tombstones"
OPEN_FAMILY = "after a family tombstone that is undecided"
COVERS = "a tombstone over something that is there"


def wanted(mark: int, first_ts: int) -> Column:
    """What :func:`plan` must be given of the view ``versions``, beside its ``traces``; the connector filters by it."""
    timestamp = F.col("timestamp")
    undecided = F.col("commit_ts").isNull() & (timestamp <= mark)
    return (F.col("replaced_ts") < mark) | undecided | (timestamp < first_ts)


def plan(cells: DataFrame, mark: int, first_ts: int) -> DataFrame:
    """What becomes of each cell.

    Args:
        cells: rows of the connector's view ``versions`` with ``value``: at least those that are :func:`wanted`, and
            all ``traces``. Ranges must not cut a row. A superset changes nothing.
        mark: the ancient history mark; no commit timestamp equals it.
        first_ts: the least timestamp that this oracle can have given, see :func:`lowtide.values.clock.first_timestamp`.

    Returns:
        the cells with ``action``, ``why`` (for keep, of cells before the mark only, and for stop), and for remove:
        ``up_to`` (the timestamp of the one delete marker for this and all lower cells of the column; null: this cell
        alone), ``last`` (whether it may go only after all others of its row and family), ``bytes`` (of the data
        and the shadow cell, as HBase stores them) and ``rule`` (a :class:`lowtide.cleaning.evidence.Rule`).
    """
    judged = _judged(cells, mark, first_ts)
    chosen = _chosen(judged)
    column = Window.partitionBy("region", "row", "family", "qualifier")
    from_below = column.orderBy("timestamp").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    is_data = F.col("kind").isin(*CELL_KINDS)
    # From the lowest cell of the column up to the first that stays.
    gapless = F.min("goes").over(from_below)
    marked = chosen.withColumn("_gapless", gapless).withColumn(
        "_top", F.max(F.when(F.col("_gapless") & is_data, F.col("timestamp"))).over(column)
    )
    under = F.coalesce(F.col("_gapless") & (F.col("timestamp") <= F.col("_top")), F.lit(False))
    # One version alone is deleted as such: a wider marker would say no more.
    several = F.count_if(F.col("_under")).over(column) > 1
    final = F.max(F.col("_final") & F.col("goes")).over(column)
    remove = F.col("goes")
    return (
        marked.withColumn("_under", under)
        .withColumn("_several", several)
        .withColumn("up_to", F.when(F.col("_under") & F.col("_several"), F.col("_top")))
        # In a step of its own: what failed or was refused before in its region keeps it.
        .withColumn("last", F.coalesce(remove & final, F.lit(False)))
        .withColumn("action", F.when(F.col("_stop").isNotNull(), STOP).when(remove, REMOVE).otherwise(KEEP))
        .withColumn("why", F.coalesce("_stop", F.when(~remove, F.col("_why"))))
        .withColumn("bytes", F.when(remove, _bytes()))
        .withColumn("rule", F.when(remove, F.col("_rule")))
        .select(*cells.columns, "action", "why", "up_to", "last", "bytes", "rule")
    )


def with_evidence(planned: DataFrame, mark: int) -> DataFrame:
    """Cells of :func:`plan` for that *mark*, with ``evidence``: what their ``rule`` goes by, in words."""
    said = {
        Rule.REPLACED: ("committed at %d, hidden since %d, before the mark %d", "commit_ts", "replaced_ts"),
        Rule.TOMBSTONE: ("committed at %d, before the mark %d, and all under it goes or is gone", "commit_ts"),
        Rule.FAMILY_TOMBSTONE: ("committed at %d, before the mark %d, and there is nothing under it", "commit_ts"),
        Rule.LONE_SHADOW: ("of a commit at %d, before the mark %d, and its data cell is gone", "commit_ts"),
    }
    words = (
        F.when(F.col("rule") == rule.value, F.format_string(text, *columns, F.lit(mark)))
        for rule, (text, *columns) in said.items()
    )
    return planned.withColumn("evidence", F.coalesce(*words))


def _rule(replaced: Column) -> Column:
    """By which rule a cell goes, if it does."""
    return (
        F.when(replaced & (F.col("kind") == SHADOW), Rule.LONE_SHADOW.value)
        .when(replaced, Rule.REPLACED.value)
        .when(F.col("kind") == FAMILY_TOMBSTONE, Rule.FAMILY_TOMBSTONE.value)
        .otherwise(Rule.TOMBSTONE.value)
    )


def _judged(cells: DataFrame, mark: int, first_ts: int) -> DataFrame:
    """Each cell by itself.

    ``_sure`` (nothing about it is in doubt), ``_hidden`` (hidden before the mark), ``_before`` (committed before it).
    """
    own, timestamp, start = F.col("commit_ts"), F.col("timestamp"), F.col("start_ts")
    is_data = F.col("kind").isin(*CELL_KINDS)
    is_bare = F.length("qualifier") == 0
    is_family = F.col("kind") == FAMILY_TOMBSTONE
    family = Window.partitionBy("region", "row", "family")
    mixed = F.max(is_data & is_family).over(family) & F.max(is_data & is_bare & ~is_family).over(family)
    undecided = is_data & own.isNull()
    is_open = undecided & (timestamp >= first_ts) & (timestamp <= mark)
    doubtful = cells.where(is_open).select("start_ts").distinct()
    stop = (
        F.when(F.col("kind") == UNKNOWN, F.concat(F.lit("unknown form: "), F.col("problem")))
        .when(~is_data & (F.col("kind") != SHADOW), F.concat(F.lit("unknown kind "), F.col("kind")))
        # Index population proves a cell with its own timestamp; any other commit comes after the start.
        .when((own != timestamp) & (own < start + CHECKPOINTS), F.lit("commit before the start"))
    )
    open_from = F.min(F.when(is_family & is_open, timestamp)).over(family)
    why = (
        F.when(timestamp < first_ts, F.lit(FOREIGN))
        .when(undecided, F.lit(UNDECIDED))
        .when(F.col("_doubtful"), F.lit(DOUBTFUL))
        .when(mixed & is_bare, F.lit(BARE))
        .when(~is_family & (timestamp > open_from), F.lit(OPEN_FAMILY))
    )
    before = own < mark
    return (
        cells.join(doubtful.withColumn("_doubtful", F.lit(True)), "start_ts", "left")
        .withColumn("_stop", stop)
        .withColumn("_why", F.when(timestamp < mark, why))
        .withColumn("_sure", F.col("_stop").isNull() & why.isNull())
        .withColumn("_before", F.coalesce(before, F.lit(False)))
        .withColumn(
            "_hidden",
            F.coalesce(F.when(F.col("kind") == SHADOW, before).otherwise(F.col("replaced_ts") < mark), F.lit(False)),
        )
    )


def _chosen(judged: DataFrame) -> DataFrame:
    """Each cell among the others: ``goes``; ``_final`` for the family tombstone that others must precede."""
    column = Window.partitionBy("region", "row", "family", "qualifier").orderBy("timestamp")
    below = column.rowsBetween(Window.unboundedPreceding, -1)
    family = Window.partitionBy("region", "row", "family")
    replaced = F.col("_sure") & F.col("_hidden")
    newest = F.col("_sure") & F.col("_before") & ~F.col("_hidden")
    is_family = F.col("kind") == FAMILY_TOMBSTONE
    freed = F.col("_replaced") | (
        newest & (F.col("kind") == TOMBSTONE) & F.coalesce(F.min("_replaced").over(below), F.lit(True))
    )
    # Family tombstones in no doubt hide no cell from one another: those above are not yet before the mark, those
    # below are replaced.
    lowest = F.min(F.when(~(is_family & F.col("_sure")), F.col("timestamp"))).over(family)
    covers_nothing = F.col("_lowest").isNull() | (F.col("_lowest") > F.col("commit_ts"))
    # A client that looks for an older family tombstone and finds such a shadow cell alone asks for the same cells for
    # ever.
    alone = F.max((F.col("kind") == SHADOW) & (F.length("qualifier") == 0)).over(family)
    final = newest & is_family
    return (
        judged.withColumn("_replaced", replaced)
        .withColumn("_freed", freed)
        .withColumn("_lowest", lowest)
        .withColumn("_final", final)
        .withColumn("goes", F.col("_freed") | (final & covers_nothing & ~alone))
        .withColumn("_rule", _rule(F.col("_replaced")))
        .withColumn(
            "_why",
            F.coalesce("_why", F.when(newest & (is_family | (F.col("kind") == TOMBSTONE)), F.lit(COVERS))),
        )
        .drop("_replaced", "_freed", "_lowest")
    )


def _bytes() -> Column:
    data = F.when(F.col("kind").isin(*CELL_KINDS), key_value_bytes()).otherwise(0)
    return (data + shadow_bytes()).cast("bigint")


def mutations(removed: DataFrame) -> DataFrame:
    """The connector's mutations for cells of :func:`plan` with the action ``remove``; with ``last`` as planned.

    One for each column whose lowest cells go, one for each other cell. A shadow cell without data goes only if no
    data cell is there.
    """
    up_to, is_shadow = F.col("up_to"), F.col("kind") == SHADOW
    single = up_to.isNull()
    op = F.when(~single, "remove_up_to").when(is_shadow, "delete_if_absent").otherwise("remove_version")
    alone = single & is_shadow
    return removed.where(single | (F.col("timestamp") == up_to)).select(
        op.alias("op"),
        "region",
        "row",
        "family",
        F.when(alone, shadow_of(F.col("qualifier"))).otherwise(F.col("qualifier")).alias("qualifier"),
        "timestamp",
        F.when(alone, F.col("family")).alias("guard_family"),
        F.when(alone, F.col("qualifier")).alias("guard_qualifier"),
        "last",
    )
