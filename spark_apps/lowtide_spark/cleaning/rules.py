"""The rules, as column expressions: what is known of a transaction, and what becomes of a cell. No effects.

They are sections 2.3, 2.5 and 2.6 of Omid's protocol as its reader and compactor apply it (``SnapshotFilterImpl``,
``CompactorScanner``), with the sibling proof that the compactor leaves out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lowtide.cleaning.evidence import Proof, Rule
from lowtide.cleaning.given import Given
from lowtide.values.formats import CHECKPOINTS
from lowtide.values.intervals import Intervals
from lowtide_spark.frames.kinds import CELL_KINDS, SHADOW, UNKNOWN
from lowtide_spark.frames.omid import base_of

#: Verdicts on a transaction.
COMMITTED = "committed"
ABORTED = "aborted"
#: Not committed as far as can be seen, and no invalidation mark yet that would make it so.
ABSENT = "absent"
UNDECIDED = "undecided"

#: Actions on a cell.
HEAL = "heal"
DELETE = "delete"
SKIP = "skip"
#: The cell's key range is neither acted on nor recorded.
STOP = "stop"

#: Why a cell is skipped whose timestamp the oracle cannot have given.
FOREIGN = "written by no oracle"

#: In reasons, for who names the cell: its transaction's start timestamp, and statements of HBase's shell that delete
#: its own shadow cell, the cell itself, and what commit table and journal have of its transaction.
START, OWN_SHADOW, OWN_CELL, PROOFS = "{start}", "{shadow}", "{cell}", "{proofs}"

#: How to decide what nothing in the store does.
RESOLVE = f"say what became of its transaction: lowtide resolve {START} --aborted, or --committed TIMESTAMP"
#: How to mend what contradicts itself.
COMPARE = "`lowtide verify` names which says what, and the statements that mend it"
_WRONG_SHADOW = f"{RESOLVE}, where nothing else proves that; then in HBase's shell"
_WRONG_ROW = f"{RESOLVE}; then in HBase's shell: {PROOFS}"
#: Why nothing is done about a cell that may have come back after its proof was removed.
UNPROVED = (
    "the journal has let go of what it held of its time, and the cell may have come back since, so that no proof is no "
    "proof of an abort, nor is a mark of Omid's, which a reader may have put since; " + RESOLVE
)
#: The same where the proof need not have been the journal's: the client may have removed it itself.
CAME_BACK = (
    "it began before the table came back (or was disabled and enabled, or came from elsewhere), at a time for which "
    "some of it at least had been cleaned: what never committed was marked there, and it has no mark of Lowtide's. Its "
    "client may have completed it after the HBase snapshot was made, so that no proof is no proof of an abort, nor is "
    "a mark of Omid's, which a reader may have put since; " + RESOLVE
)
#: Why a shadow cell in a table that has to be confirmed decides nothing, with that table for each ``%1$s``.
UNCONFIRMED = (
    "a shadow cell of it lies in table %1$s, which may have come from elsewhere: it may be another oracle's, of a "
    "transaction with the same number. If the table's transactions were this oracle's, run: lowtide confirm %1$s. If "
    "not, move the table away, or put it under omid.foreign"
)
ODD_JOURNAL = (
    "its row in the journal is of an unknown form, or older than the oracle, which has given the number again; "
    f"{RESOLVE}"
)

ODD_ENTRY = (
    f"its commit-table row is of an unknown form; {RESOLVE}; then in HBase's shell what the run tells with that row"
)
ODD_SHADOW = (
    "a shadow cell of it is of an unknown form; lowtide run orphan_cleanup --full of all tables names that, and what "
    "to do"
)
#: Why nothing is done about a cell whose transaction was absent and bears no mark all the same.
UNREAD = "its invalidation mark cannot be read back; run again"
OTHER_VERSION = "; the connector's jar is of another version of Lowtide: put this version's beside it"
BLIND = "a transactional table cannot be searched for its shadow cells; enable it, or drop it"


def verdicts(
    starts: DataFrame, entries: DataFrame, journal: DataFrame, siblings: DataFrame, hidden: DataFrame, blind: bool
) -> DataFrame:
    """What is known of each transaction, in the order of precedence: shadow cell, journal, mark, entry, nothing.

    Args:
        starts: ``start_ts`` of the transactions in question.
        entries: the commit table's rows, see :func:`lowtide_spark.frames.omid.entries`.
        journal: ``start_ts, commit_ts, odd, decided, own`` of pruned rows, see
            :func:`lowtide_spark.frames.omid.journal`.
        siblings: shadow cells of these transactions in any table: ``start_ts, timestamp, commit_ts``; null where the
            shadow cell is of an unknown form. ``unconfirmed`` is the table where it may be another oracle's
            (:attr:`lowtide.tables.inventory.Entry.unconfirmed`), else null: such a shadow cell is no proof, and
            nothing is absent beside it.
        hidden: ``start_ts`` of transactions whose commit-table row lies behind a delete marker, so that a mark put
            there could not be read back.
        blind: whether some transactional table could not be searched for sibling shadow cells.

    Returns:
        ``start_ts, verdict, tc`` (commit timestamp, for committed), ``marked`` (an invalidation mark is there),
        ``why``, ``proof`` (what the verdict goes by, a :class:`lowtide.cleaning.evidence.Proof`; null: undecided).
    """
    known = _evidence(starts, entries, journal, siblings, hidden)
    shadow, invalid = F.col("shadow_low"), F.coalesce("invalid", F.lit(False))
    verdict = (
        F.when(
            shadow != F.col("shadow_high"),
            _of(UNDECIDED, why=f"its shadow cells name different commit timestamps; {COMPARE}"),
        )
        .when(F.col("entry_problem").isNotNull(), _of(UNDECIDED, why=ODD_ENTRY))
        .when(F.col("odd_shadow"), _of(UNDECIDED, why=ODD_SHADOW))
        .when(shadow.isNotNull(), _of(COMMITTED, tc=shadow, proof=Proof.SHADOW))
        .when(F.col("odd_journal"), _of(UNDECIDED, why=ODD_JOURNAL))
        .when(F.col("pruned").isNotNull(), _of(COMMITTED, tc=F.col("pruned"), proof=Proof.JOURNAL))
        .when(F.col("fence"), _of(UNDECIDED, why=f"its commit-table row is a table fence; {_WRONG_ROW}"))
        .when(~invalid & F.col("entry").isNotNull(), _of(COMMITTED, tc=F.col("entry"), proof=Proof.ENTRY))
        .when(F.col("unconfirmed").isNotNull(), _of(UNDECIDED, why=F.format_string(UNCONFIRMED, "unconfirmed")))
        .when(F.lit(blind), _of(UNDECIDED, why=BLIND))
        .when(F.coalesce("decided", F.lit(False)), _of(ABORTED, proof=Proof.DECIDED))
        .when(F.coalesce("own_mark", F.lit(False)), _of(ABORTED, proof=Proof.OWN_MARK))
        .when(F.coalesce("journaled_own", F.lit(False)), _of(ABORTED, proof=Proof.JOURNALED_OWN_MARK))
        .when(invalid, _of(ABORTED, proof=Proof.MARK))
        .when(F.col("in_journal"), _of(ABORTED, proof=Proof.JOURNALED_MARK))
        .when(F.col("hidden"), _of(UNDECIDED, why=f"its commit-table row lies behind a delete marker; {RESOLVE}"))
        .otherwise(_of(ABSENT, proof=Proof.NONE))
    )
    return known.select("start_ts", verdict.alias("v"), invalid.alias("marked")).select("start_ts", "v.*", "marked")


def _evidence(
    starts: DataFrame, entries: DataFrame, journal: DataFrame, siblings: DataFrame, hidden: DataFrame
) -> DataFrame:
    """All that was found of each transaction in question, in one row; null where nothing was."""
    ours = F.col("unconfirmed").isNull()
    parts = (
        starts.select("start_ts", F.lit(True).alias("asked")),
        # A row of an odd start (older than Omid 1.0) has a problem, and speaks of the cells of its base all the same.
        entries.select(
            base_of(F.col("start_ts")).alias("start_ts"),
            F.col("commit_ts").alias("entry"),
            "invalid",
            "own_mark",
            "fence",
            F.col("problem").alias("entry_problem"),
        ),
        journal.select(
            "start_ts",
            F.col("commit_ts").alias("pruned"),
            F.col("odd").alias("odd_journal"),
            F.lit(True).alias("in_journal"),
            "decided",
            F.col("own").alias("journaled_own"),
        ),
        # A shadow cell with its own timestamp is index population's and proves its own cell only.
        siblings.select(
            "start_ts",
            F.when(ours & (F.col("commit_ts") > F.col("timestamp")), F.col("commit_ts")).alias("shadow"),
            (ours & F.col("commit_ts").isNull()).alias("odd_shadow"),
            F.when(~F.coalesce(F.col("commit_ts") <= F.col("timestamp"), F.lit(False)), F.col("unconfirmed")).alias(
                "unconfirmed"
            ),
        ),
        hidden.select("start_ts", F.lit(True).alias("hidden")),
    )
    # One union and one grouping: five joins would shuffle five times.
    everything = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)
    most = (
        "asked",
        "entry",
        "invalid",
        "own_mark",
        "fence",
        "entry_problem",
        "pruned",
        "in_journal",
        "journaled_own",
        "decided",
        "odd_journal",
        "odd_shadow",
        "unconfirmed",
        "hidden",
    )
    return (
        everything.groupBy("start_ts")
        .agg(
            F.min("shadow").alias("shadow_low"),
            F.max("shadow").alias("shadow_high"),
            *(F.max(name).alias(name) for name in most),
        )
        .where("asked and start_ts is not null")
    )


def _of(verdict: str, tc: Column | None = None, why: Column | str | None = None, proof: Proof | None = None) -> Column:
    return F.struct(
        F.lit(verdict).alias("verdict"),
        (F.lit(None).cast("bigint") if tc is None else tc).alias("tc"),
        (why if isinstance(why, Column) else F.lit(why).cast("string")).alias("why"),
        _word(proof).alias("proof"),
    )


def _word(word: Proof | Rule | None) -> Column:
    return F.lit(None if word is None else word.value).cast("string")


def after_marking(known: DataFrame, again: DataFrame) -> DataFrame:
    """Verdicts once marks were put for the absent: what their commit-table rows say *now*.

    Args:
        known: :func:`verdicts`.
        again: the commit table's rows of the transactions that were marked, read after the marks were put.

    Returns:
        *known* with no ``absent`` left: marked ones are aborted; those whose entry was found, committed; the rest
        undecided.
    """
    now = (
        F.when(
            F.col("problem").isNotNull() | F.col("fence"),
            _of(UNDECIDED, why=ODD_ENTRY),
        )
        .when(F.col("invalid"), _of(ABORTED, proof=Proof.FRESH_MARK))
        .when(F.col("commit_ts").isNotNull(), _of(COMMITTED, tc=F.col("commit_ts"), proof=Proof.ENTRY))
    )
    unread = _of(UNDECIDED, why=UNREAD)
    before = F.struct("verdict", "tc", "why", "proof")
    fresh = again.select("start_ts", now.alias("now"))
    verdict = F.when(F.col("verdict") == ABSENT, F.coalesce("now", unread)).otherwise(before)
    return (
        known.join(fresh, "start_ts", "left")
        .select("start_ts", verdict.alias("v"), "marked")
        .select("start_ts", "v.*", "marked")
    )


def cell_actions(
    suspects: DataFrame,
    known: DataFrame,
    given: Given,
    horizon: int = 0,
    unwatched: Sequence[str] = (),
    before: Mapping[str, Intervals] | None = None,
) -> DataFrame:
    """What becomes of each suspect cell.

    Args:
        suspects: rows of the connector's view ``versions`` with start timestamps at or below the low watermark.
        known: :func:`verdicts`; suspects of transactions not in it are those with a shadow cell and no commit entry
            any more.
        given: which timestamps this oracle can have given.
        horizon: what the journal let go of, inclusive.
        unwatched: regions into which cells at or below it may have come since
            (:func:`lowtide.journal.life.unwatched`): there absence of a proof decides nothing, nor does a mark of
            Omid's, in the commit table or pruned from there: a reader may have put it for the very cell that came back,
            now or when it was back before. One of Lowtide's does, for whoever put it had found the transaction's cell,
            still unhealed, in a range that was under watch.
        before: regions into which cells may have come back, by the start timestamps for which what never committed had
            been marked by then (:func:`lowtide.cleaning.facts.cleaned_before`): there it is the same.

    Returns:
        the suspects with ``action``, ``tc`` (for heal), ``why`` (for skip and stop), ``marked``; and for heal and
        delete ``rule`` and ``proof``, of :mod:`lowtide.cleaning.evidence`.
    """
    committed = F.col("verdict") == COMMITTED
    own = F.col("commit_ts")
    doubted = _doubted(given)
    # No mark is put for what is doubted, so that it is not absent any more once the others' were.
    # Nobody who says that its transaction never committed is known to have looked for its proofs while they were there.
    omids = F.coalesce(F.col("v_proof").isin(Proof.MARK.value, Proof.JOURNALED_MARK.value), F.lit(False))
    unwitnessed = (F.col("verdict") == ABSENT) | omids
    unproved = F.col("verdict").isin(ABORTED, ABSENT) | F.col("v_why").eqNullSafe(UNREAD)
    action = (
        F.when(
            F.col("kind") == UNKNOWN,
            _do(STOP, why=F.concat(F.lit("unknown form: "), F.col("problem"), F.lit(f"; {_WRONG_SHADOW}: {OWN_CELL}"))),
        )
        .when(F.col("kind") == SHADOW, _do(SKIP, why=F.lit("shadow cell without data")))
        .when(
            ~F.col("kind").isin(*CELL_KINDS),
            _do(STOP, why=F.concat(F.lit("unknown kind "), F.col("kind"), F.lit(OTHER_VERSION))),
        )
        # Index population proves a cell with its own timestamp; such a cell needs no healing.
        .when(own.isNotNull() & (own == F.col("timestamp")), _do(SKIP, why=F.lit("committed")))
        .when(
            own.isNotNull() & committed & (own != F.col("v_tc")),
            _do(STOP, why=F.lit(f"shadow cell and commit entry differ; {COMPARE}")),
        )
        .when(own.isNotNull() & committed, _do(HEAL, tc=F.col("v_tc"), rule=Rule.REWRITE, proof=F.col("v_proof")))
        .when(
            own.isNotNull() & (own < F.col("start_ts") + CHECKPOINTS),
            _do(STOP, why=F.lit(f"by its shadow cell a commit before the start; {_WRONG_SHADOW}: {OWN_SHADOW}")),
        )
        # Its own shadow cell outranks a mark; rewritten so that no compaction parts the two.
        .when(own.isNotNull(), _do(HEAL, tc=own, rule=Rule.REWRITE, proof=_word(Proof.OWN_SHADOW)))
        .when(
            committed & (F.col("v_tc") < F.col("start_ts") + CHECKPOINTS),
            _do(STOP, why=F.lit(f"by what proves it a commit before the start; {_WRONG_ROW}")),
        )
        .when(committed, _do(HEAL, tc=F.col("v_tc"), rule=Rule.HEAL, proof=F.col("v_proof")))
        # Behind what is proved: an oracle that went over to the world's clock has entries of when it counted, and
        # readers go by them. Else nobody knows whose it is.
        .when(F.col("timestamp") < given.first, _do(SKIP, why=F.lit(FOREIGN)))
        .when(
            unwitnessed & (F.col("start_ts") <= horizon) & F.col("region").isin(list(unwatched)),
            _do(STOP, why=F.lit(UNPROVED)),
        )
        .when(unproved & doubted.isNotNull(), _do(SKIP, why=doubted))
        .when(unwitnessed & _began_before(before or {}), _do(STOP, why=F.lit(CAME_BACK)))
        .when(F.col("verdict").isin(ABORTED, ABSENT), _do(DELETE, rule=Rule.ORPHAN, proof=F.col("v_proof")))
        .otherwise(_do(STOP, why=F.coalesce("v_why", F.lit("nothing is known of its transaction; run again"))))
    )
    verdict = known.select(
        "start_ts", "verdict", *(F.col(name).alias(f"v_{name}") for name in ("tc", "why", "marked", "proof"))
    )
    return (
        suspects.join(verdict, "start_ts", "left")
        .withColumn("a", action)
        .select(*suspects.columns, "a.*", F.coalesce("v_marked", F.lit(False)).alias("marked"), "verdict")
    )


def _doubted(given: Given) -> Column:
    """Why a cell that nothing proves may be nobody's orphan all the same; null: it is one, as far as its number tells.

    Only a person's word decides such a cell. A mark does not: a reader of an oracle in low-latency mode puts one for
    whatever it meets without shadow cell.
    """
    timestamp = F.col("timestamp")
    spans = (F.when((timestamp >= d.start) & (timestamp < d.stop), F.lit(d.why)) for d in given.doubts)
    return F.when(~F.col("v_proof").eqNullSafe(Proof.DECIDED.value), F.coalesce(*spans, F.lit(None).cast("string")))


def _began_before(times: Mapping[str, Intervals]) -> Column:
    """Whether a cell's transaction began at one of the times of the cell's region."""
    regions: dict[Intervals, list[str]] = defaultdict(list)
    for region, spans in times.items():
        regions[spans].append(region)
    start = F.col("start_ts")
    each = (
        reduce(or_, ((start >= a) & (start < b) for a, b in spans), F.lit(False)) & F.col("region").isin(names)
        for spans, names in regions.items()
    )
    return reduce(or_, each, F.lit(False))


def _do(
    action: str,
    tc: Column | None = None,
    why: Column | None = None,
    rule: Rule | None = None,
    proof: Column | None = None,
) -> Column:
    return F.struct(
        F.lit(action).alias("action"),
        (F.lit(None).cast("bigint") if tc is None else tc).alias("tc"),
        (F.lit(None).cast("string") if why is None else why).alias("why"),
        _word(rule).alias("rule"),
        (_word(None) if proof is None else proof).alias("proof"),
    )
