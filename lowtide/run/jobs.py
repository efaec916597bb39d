"""Which jobs there are, and what each is for. Pure."""

from __future__ import annotations

from collections.abc import Iterable

#: Each job by its name, with its purpose in a sentence.
JOBS = {
    "orphan_cleanup": "Heal committed cells, delete those of transactions that never committed, record what is clean.",
    "watermark_collection": "Compute every region's watermark, and the prune bound.",
    "commit_table_pruning": "Prune commit entries that the prune bound has passed for longer than the grace.",
    "history_gc": "Remove versions replaced longer ago than history_max_age; older read points are refused then.",
    "sideline_restore": "Put back what a run removed: lowtide restore RUN.",
    "journal_replay": "Put pruned entries back into the commit table: lowtide journal replay.",
    "transaction_repair": "Finish or drop the ledger's transactions that did not end.",
    "balances": "Compute everybody's balance in the ledger.",
    "survey": "Say what a cleanup would find and do, and what to know before. Reads only.",
    "verify": (
        "Verify, by code of its own, that the store keeps its invariants. Reads only; exit 1: one is broken, 2: "
        "something could not be read."
    ),
    "sideline": "Show what runs put aside before they removed it: lowtide sideline list, show. Reads only.",
    "why": "Say of each cell of a row what becomes of it, or became, and why: lowtide why. Reads only.",
}
#: Those that read tables by their share.
SCANS = ("survey", "verify")
#: Those that only read, each with arguments of its own.
INSPECTIONS = (*SCANS, "sideline", "why")
#: Those that remove cells, within a budget, and put them aside before.
REMOVING = ("orphan_cleanup", "history_gc")
#: Of them, who removes what no commit proves, and who removes what did commit: neither ever the other.
OF_ABORTS, OF_COMMITS = REMOVING
#: Those that, when they may act, remove sidelines and lists that were kept for long enough. None that puts back: what
#: it reads may be as old.
SWEEPING = (*REMOVING, "watermark_collection", "commit_table_pruning", "transaction_repair")

#: Those that read what runs put aside, whether they act or not.
ASIDE = ("sideline_restore", "verify", "sideline", "why")


def all_but(*others: Iterable[str]) -> tuple[str, ...]:
    """Every job that is in none of *others*."""
    left_out = {name for names in others for name in names}
    return tuple(name for name in JOBS if name not in left_out)
