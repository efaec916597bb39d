"""By which rule a job writes or removes a cell, and what that goes by: the words of lists, of the sideline and of
``lowtide why``. Pure.

A job decides by column expressions, which give these words beside the decision: there is no second opinion.
"""

from __future__ import annotations

from enum import StrEnum


class Rule(StrEnum):
    """Why a cell is written or goes; docs/jobs.md has a sentence on each."""

    #: Of a transaction that never committed.
    ORPHAN = "orphan"
    #: Of one that committed, without shadow cell: it gets one.
    HEAL = "heal"
    #: Of one that committed, with its shadow cell: both are written anew, so that no compaction parts them.
    REWRITE = "rewrite"
    #: The mark without which a transaction might still commit while its cells go.
    INVALIDATE = "invalidate"
    #: The mark of a transaction that committed after all.
    TAKE_BACK = "take-back"
    #: An entry or a mark in the commit table that no cell needs any more.
    PRUNE = "prune"
    #: A version that was hidden before the ancient history mark.
    REPLACED = "replaced"
    #: A tombstone before the mark under which nothing is left.
    TOMBSTONE = "tombstone"
    #: The same of a whole family.
    FAMILY_TOMBSTONE = "family-tombstone"
    #: A shadow cell before the mark whose data cell is gone.
    LONE_SHADOW = "lone-shadow"


class Proof(StrEnum):
    """What a cleanup's verdict on a transaction goes by, in the order of precedence."""

    OWN_SHADOW = "own shadow cell"
    SHADOW = "shadow cell"
    JOURNAL = "journal"
    ENTRY = "commit entry"
    DECIDED = "decision"
    OWN_MARK = "own mark"
    JOURNALED_OWN_MARK = "journaled own mark"
    MARK = "mark"
    JOURNALED_MARK = "journaled mark"
    NONE = "nothing"
    FRESH_MARK = "fresh mark"


#: Each in words; ``%d`` stands for the commit timestamp.
IN_WORDS = {
    Proof.OWN_SHADOW: "its shadow cell says that its transaction committed at %d",
    Proof.SHADOW: "a shadow cell of its transaction says that it committed at %d",
    Proof.JOURNAL: "the journal says that its transaction committed at %d",
    Proof.ENTRY: "the commit table says that its transaction committed at %d",
    Proof.DECIDED: "a person decided that its transaction never committed (lowtide resolve)",
    Proof.OWN_MARK: "its transaction bears an invalidation mark of Lowtide's in the commit table",
    Proof.JOURNALED_OWN_MARK: "the journal has an invalidation mark of Lowtide's, of its transaction",
    Proof.MARK: "its transaction bears an invalidation mark in the commit table",
    Proof.JOURNALED_MARK: "the journal says that its transaction never committed",
    Proof.NONE: (
        "nothing proves that its transaction committed: no shadow cell of it in any transactional table, no commit "
        "entry, nothing in the journal; a run that acts puts an invalidation mark first"
    ),
    Proof.FRESH_MARK: (
        "nothing proved that its transaction committed, and the run's invalidation mark keeps it from doing so"
    ),
}
