"""What ``lowtide why`` answers: of each cell what it is, what becomes of it and why, and of those that went by whom.

The decisions are the jobs' own, as their frames have them; here they are put into words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lowtide.values.clock import from_millis
from lowtide.values.formats import base
from lowtide.values.keyranges import printable

#: Kinds of cells, as the connector has them, in words.
_KINDS = {
    "put": "a cell",
    "tombstone": "a tombstone",
    "family_tombstone": "a tombstone of the whole family",
}
#: HBase's own markers, which every delete leaves until a major compaction.
_MARKERS = {
    "delete": "exactly this version",
    "delete_column": "this column's versions up to this timestamp",
    "delete_family": "the family's cells up to this timestamp",
    "delete_family_version": "the family's cells at this timestamp",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A cell: where it is, what it is, and what becomes of it, or became, with the rule and what that goes by."""

    family: str
    qualifier: str
    timestamp: int
    transaction: int
    what: str
    becomes: str
    rule: str = ""
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """All that is known of a row's cells. Bytes are texts as in HBase's shell; times are ISO 8601."""

    table: str
    row: str
    low_watermark: int
    #: The highest ancient history mark that a run of history_gc could work with now; 0: none.
    mark: int
    notes: Sequence[str] = ()
    cells: Sequence[Line] = ()
    removed: Sequence[Line] = ()
    #: What runs that kept a list did to the row besides: each a sentence.
    done: Sequence[str] = ()
    #: Of each transaction with a commit entry, a mark, or a cell that was judged: what became of it, and the proof.
    transactions: Mapping[int, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping."""
        return asdict(self)


def marker(cell: Mapping[str, Any]) -> Line:
    """A delete marker of HBase's, as a raw read shows it."""
    return _line(
        cell,
        f"HBase's delete marker: hides {_MARKERS.get(cell['kind'], cell['kind'])}",
        "it goes with HBase's next major compaction",
    )


def present(
    cell: Mapping[str, Any],
    watermark: int,
    cleanup: Mapping[str, Any] | None,
    history: Mapping[str, Any] | None,
    describe: str = "",
    *,
    stopped: bool = False,
) -> Line:
    """A cell that is there.

    Args:
        cell: a row of the view ``versions``, without its value.
        watermark: the low watermark; younger transactions are nobody's to judge.
        cleanup: what orphan_cleanup decides of it (``action, tc, why, rule, evidence, verdict``); None: it needs
            nothing of it.
        history: what history_gc does (``action, why, rule, evidence``); None: it is too young for it.
        describe: why no rule decides it, with the statements that mend it; where cleanup's action is to stop.
        stopped: whether a cell of the row stops its key range, so that a cleanup does nothing in it.
    """
    what = _what(cell, watermark, cleanup)
    if cleanup is not None and cleanup["action"] in ("heal", "delete"):
        does = "writes it anew, with its shadow cell" if cleanup["action"] == "heal" else "puts it aside and deletes it"
        when = "once nothing stops its key range, orphan_cleanup" if stopped else "the next orphan_cleanup"
        return _line(cell, what, f"{when} {does}", cleanup["rule"], cleanup["evidence"])
    if cleanup is not None and cleanup["action"] == "stop":
        return _line(cell, what, "nothing is done to it, nor to its key range", evidence=describe or cleanup["why"])
    if history is not None and history["action"] == "remove":
        becomes = "the next history_gc puts it aside and removes it"
        return _line(cell, what, becomes, history["rule"], history["evidence"])
    if history is not None and history["why"]:
        return _line(cell, what, "it stays", evidence=f"history_gc leaves it: {history['why']}")
    if cleanup is not None and cleanup["action"] == "skip" and cleanup["why"] != "committed":
        return _line(cell, what, "it stays", evidence=f"orphan_cleanup leaves it: {cleanup['why']}")
    return _line(cell, what, "it stays")


def _what(cell: Mapping[str, Any], watermark: int, cleanup: Mapping[str, Any] | None) -> str:
    own, kind = cell["commit_ts"], cell["kind"]
    if kind == "shadow":
        return f"a shadow cell without its data cell, of a commit at {own}"
    if kind not in _KINDS:
        return f"of an unknown form: {cell['problem'] or kind}"
    name = _KINDS[kind]
    if own is not None:
        hidden = f"; hidden since {cell['replaced_ts']}" if cell["replaced_ts"] is not None else ""
        return f"{name}, committed at {own}, with its shadow cell{hidden}"
    if cell["start_ts"] > watermark:
        return f"{name} of a transaction above the low watermark {watermark}: it may be open, and is not judged"
    verdict = cleanup["verdict"] if cleanup else None
    if cleanup and cleanup["action"] == "heal":
        return f"{name}, committed at {cleanup['tc']}, without its shadow cell"
    if cleanup and cleanup["action"] == "skip":
        return f"{name}, {cleanup['why']}"
    if cleanup and cleanup["action"] == "delete":
        marked = ", and invalidated" if verdict == "aborted" else ""
        return f"an orphan: {name} whose transaction never committed{marked}"
    return f"{name}, undecided: no shadow cell, and nothing says what became of its transaction"


def removed(cell: Mapping[str, Any], run: Mapping[str, Any] | None, expires: str) -> Line:
    """A cell of a sideline.

    Args:
        cell: as the sideline has it, with its ``run``, without its value. Of sidelines of earlier versions ``rule`` and
            ``evidence`` are null.
        run: the summary of the run that removed it, if it is still recorded.
        expires: until when it is kept.
    """
    orphan = cell["commit_ts"] is None
    name = _KINDS.get(cell["kind"], "a shadow cell without its data cell")
    what = f"{name} of a transaction without a proof" if orphan else f"{name}, committed at {cell['commit_ts']}"
    job = run["job"] if run else ("orphan_cleanup" if orphan else "history_gc")
    when = f" on {from_millis(run['started']):%Y-%m-%d at %H:%M} UTC" if run else ""
    restore = f"lowtide restore {cell['run']} --table {cell['table']}"
    return _line(
        cell,
        what,
        f"put aside by {job} run {cell['run']}{when}; kept until {expires}; `{restore} --execute` brings the run's "
        "cells of the table back",
        cell["rule"] or ("orphan" if orphan else "replaced"),
        cell["evidence"] or "",
    )


def _line(cell: Mapping[str, Any], what: str, becomes: str, rule: str = "", evidence: str = "") -> Line:
    return Line(
        printable(bytes(cell["family"])),
        printable(bytes(cell["qualifier"])),
        cell["timestamp"],
        base(cell["timestamp"]),
        what,
        becomes,
        rule or "",
        evidence or "",
    )
