"""Which cells may come back: those that readers see neither more nor less for."""

from __future__ import annotations

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from lowtide.run.jobs import OF_COMMITS
from lowtide_spark.frames import missed, sideline
from lowtide_spark.frames.computed import few, frozen_with
from lowtide_spark.frames.kinds import FAMILY_TOMBSTONE, PUT, SHADOW, TOMBSTONE, TOMBSTONES
from lowtide_spark.run.context import Run
from lowtide_spark.undo import live
from lowtide_spark.undo.live import KEY, PLACE

_SHOWN = "they would be visible again; restore the runs after this one first"
_BURIES = "their family tombstone would hide what lies there now; restore the runs after this one first"
_VANISHES = (
    "their tombstone would hide what the table shows, which was restored, made anew, or disabled and enabled since it "
    "was removed; what is to go there all the same its clients delete"
)
#: Of what the number alone keeps readers from.
_NUMBERED_ANEW = (
    "they were taken for aborted before the oracle was made anew: a transaction since may have their number, and "
    "readers would be shown them as its own. What committed all the same comes back with --as-committed"
)


def judge(
    run: Run, table: str, missing: DataFrame, there: DataFrame, mark: int, *, of_before: bool, came_back: bool
) -> tuple[DataFrame, list[Row]]:
    """*missing* cells of *table*, of which *there* is what it holds now, with what is thought of each; computed once.
    *of_before*: whether they were removed before the oracle was made anew; *came_back*: whether the table may have come
    back since, and be shown as it was before what they say.

    Returns:
        the cells with ``why`` it must not come back (null: it may), ``highest``: the family tombstone that counts in
        its family, and ``under``: for a put, the version that hides it, which is to be there when it is put.

        And for each ``why`` how many ``cells`` they are, how many of them are ``decided``, and how many others were
        ``committed``.
    """
    committed = F.col("commit_ts").isNotNull() & ~F.col("decided")
    figures = {"cells": F.lit(True), "decided": F.col("decided"), "committed": committed}
    counts = (F.count_if(which).alias(name) for name, which in figures.items())
    judged = _judged(missing, there, mark, *_bared(run, table, missing), came_back=came_back)
    if of_before:
        judged = judged.withColumn(
            "why", F.when(F.col("commit_ts").isNull(), F.lit(_NUMBERED_ANEW)).otherwise(F.col("why"))
        )
    return frozen_with(judged, ("why",), *counts)


def visible(back: DataFrame, there: DataFrame, mark: int) -> DataFrame:
    """Those of *back*, as judged, that are *there*, hidden by nothing that is there, and are not to be seen."""
    found = back.drop("why", "highest", "under").join(there.select(*PLACE), [*PLACE], "left_semi")
    others = there.join(found.select(*PLACE), [*PLACE], "left_anti")
    return _judged(found, others, mark).where(F.col("why") == _SHOWN)


def _bared(run: Run, table: str, missing: DataFrame) -> tuple[DataFrame, str | None]:
    """Puts of *missing* that were taken for an abort's, and whose tombstone another run removed, which is not back.

    While such a put is there history GC leaves the tombstone over it. When a cleanup had removed it the tombstone could
    go, and nothing would hide it. All sidelines are read for it, after the table is protected: until then they may
    grow.

    Returns:
        their key, and ``bared``, a sentence on it; and a sentence on why it cannot be known of the others, where it
        cannot.
    """
    puts = missing.where((F.col("kind") == PUT) & (F.col("commit_ts").isNull() | F.col("decided"))).select(*KEY)
    if puts.isEmpty():
        return puts.withColumn("bared", F.lit(None).cast("string")), None
    aside = sideline.kept(run, table=table)
    tombstone = F.col("kind").isin(*TOMBSTONES) & F.col("commit_ts").isNotNull()
    removed = aside.cells.where(tombstone & (F.col("table") == table) & (F.col("run") != run.options.restore))
    over = removed.join(puts.select("row", "family").distinct(), ["row", "family"], "left_semi")
    over, [counted] = frozen_with(over, (), F.count("*").alias("cells"))
    over = live.absent(run, table, over) if counted.cells else few(over, 0)
    hiding = over.select("row", "family", F.struct("run", "kind", "qualifier", "timestamp", "commit_ts").alias("over"))
    hides = F.when(
        F.col("over.kind") == TOMBSTONE,
        (F.col("over.qualifier") == F.col("qualifier")) & (F.col("over.timestamp") > F.col("timestamp")),
    ).otherwise(F.col("over.commit_ts") >= F.col("timestamp"))
    sentence = F.format_string(
        "a tombstone over them was removed since, without which they may be shown although they were deleted; first "
        f"run: lowtide restore %s --table {table} --execute",
        F.max("over.run"),
    )
    found = puts.join(hiding, ["row", "family"]).where(hides).groupBy(*KEY).agg(sentence.alias("bared"))
    lost = [each for each in aside.lost.get(table, ()) if each.run != run.options.restore]
    lost = [each for each in lost if each.may_hold(OF_COMMITS, 0)]
    if not lost:
        return found, None
    doubt = (
        f"{missed.summed(lost)}. There may have been a tombstone over them. {sideline.remedy(run, lost)}, if nothing "
        "of what comes back was ever deleted"
    )
    return found, doubt


def _judged(
    missing: DataFrame,
    there: DataFrame,
    mark: int,
    bared: DataFrame | None = None,
    doubt: str | None = None,
    *,
    came_back: bool = False,
) -> DataFrame:
    """As :func:`judge` says.

    A version may come back if, before the mark, a higher version or a family tombstone hides it: one that is there,
    or a tombstone that comes back with it. Those hide what was put back whatever else is; a put that comes back is
    itself hidden by one of them. In a table that *came_back* a tombstone may not over what readers are shown there;
    elsewhere a run showed that by mistake. What was taken for an abort's may come back to be seen, but not *bared* of a
    tombstone, nor in *doubt* of that (:func:`_bared`).
    """
    both = there.withColumn("back", F.lit(False)).unionByName(
        missing.where(F.col("commit_ts").isNotNull()).withColumn("back", F.lit(True)), allowMissingColumns=True
    )
    before = F.coalesce(F.col("commit_ts") < mark, F.lit(False)) & (F.col("kind") != SHADOW)
    hides = before & (~F.col("back") | F.col("kind").isin(*TOMBSTONES))
    column = Window.partitionBy("row", "family", "qualifier").orderBy(F.desc("timestamp"))
    family = Window.partitionBy("row", "family")
    is_family = F.col("kind") == FAMILY_TOMBSTONE
    is_bare = (F.length("qualifier") == 0) & ~is_family & (F.col("kind") != SHADOW)
    top = F.max(F.when(is_family & before, F.struct("timestamp", "commit_ts", "back"))).over(family)
    # What is there, committed, and would vanish under a family tombstone that comes back as the highest.
    exposed = F.min(F.when(~F.col("back") & ~is_family & before, F.col("timestamp"))).over(family)
    lies = before & ~F.col("back")
    buried = F.max(F.when(is_family & lies, F.struct("timestamp", "commit_ts"))).over(family)
    beneath = F.first(F.when(lies & ~is_family, F.struct("timestamp", "kind")), ignorenulls=True)
    judged = (
        both.withColumn("_higher", F.max(hides).over(column.rowsBetween(Window.unboundedPreceding, -1)))
        .withColumn(
            "_hider",
            F.max(F.when(hides, F.struct("timestamp", "qualifier"))).over(
                column.rowsBetween(Window.unboundedPreceding, -1)
            ),
        )
        .withColumn("_top", top)
        .withColumn("_exposed", exposed)
        .withColumn("_bare", F.max(is_bare).over(family))
        .withColumn("_buried", buried)
        .withColumn("_over", F.max(lies).over(column.rowsBetween(Window.unboundedPreceding, -1)))
        .withColumn("_beneath", beneath.over(column.rowsBetween(1, Window.unboundedFollowing)))
        .where("back")
    )
    by_family = ~F.col("_bare") & F.coalesce(F.col("_top.commit_ts") >= F.col("timestamp"), F.lit(False))
    buries = F.coalesce(F.col("_top.back") & (F.col("_exposed") <= F.col("_top.commit_ts")), F.lit(False))
    shown = (F.col("kind") == PUT) & ~F.coalesce("_higher", F.lit(False)) & ~by_family
    hidden = ~F.col("_bare") & F.coalesce(F.col("_buried.commit_ts") >= F.col("_beneath.timestamp"), F.lit(False))
    has_shown = F.coalesce(F.col("_beneath.kind") == PUT, F.lit(False)) & ~hidden
    vanishes = F.lit(came_back) & (F.col("kind") == TOMBSTONE) & ~F.coalesce("_over", F.lit(False)) & has_shown
    # What committed after all is to hide, and to be seen.
    why = (
        F.when(buries & ~F.col("decided"), _BURIES)
        .when(vanishes & ~F.col("decided"), _VANISHES)
        .when(shown, F.when(~F.col("decided"), _SHOWN).when(F.col("timestamp") < mark, F.lit(doubt)))
    )
    highest = is_family & F.coalesce(F.col("_top.timestamp") == F.col("timestamp"), F.lit(False))
    hider = F.coalesce(
        F.col("_hider"), F.when(by_family, F.struct(F.col("_top.timestamp"), F.lit(b"").alias("qualifier")))
    )
    names = [*missing.columns, "why", "highest", "under"]
    orphans = missing.where(F.col("commit_ts").isNull())
    found = (
        judged.withColumn("why", why)
        .withColumn("highest", highest)
        .withColumn("under", F.when(F.col("kind") == PUT, hider))
        .select(*names)
        .unionByName(
            orphans.withColumn("why", F.lit(None).cast("string")).withColumn("highest", F.lit(False)),
            allowMissingColumns=True,
        )
    )
    if bared is None:
        return found
    return found.join(bared, [*KEY], "left").withColumn("why", F.coalesce("bared", "why")).select(*names)
