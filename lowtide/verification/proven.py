"""V2, before and after: what commit table and journal said of transactions, they say. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from lowtide.verification.findings import Violation


@dataclass(frozen=True, slots=True)
class Proof:
    """What commit table and journal say of a transaction.

    *committed*: when it committed; None: they do not say that it did, or a mark outranks its entry. *marked*: whether
    it has a mark, there or pruned. *journaled*: when its row of the journal was written, wall-clock ms; None: it has
    none. *decided*: whether a person did.
    """

    start: int
    committed: int | None
    marked: bool
    journaled: int | None
    decided: bool = False


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the journal may let go of: of transactions up to the *horizon*, inclusive, what was written before *before*
    (wall-clock ms; 0: nothing may go).
    """

    horizon: int
    before: int


def lost(earlier: Iterable[Proof], at: int, now: Mapping[int, Proof], allowed: Allowed) -> list[Violation]:
    """Proofs that were there *at* some time (wall-clock ms), are there no more, and that the journal may not have let
    go of. A mark may go: it was wrong.
    """
    found = []
    for was in earlier:
        if was.committed is None or was.start in now:
            continue
        # What was in the commit table then came to the journal later.
        if (was.journaled or at) >= allowed.before or was.start > allowed.horizon:
            text = f"it committed at {was.committed}, as the commit table or the journal said; neither does any more"
            remedy = (
                "Prune nothing; look whether a backup of the commit table or the journal has it. Where none has, say "
                f"lowtide resolve {was.start} --committed {was.committed}"
            )
            found.append(Violation("V2", "", text, remedy, transaction=was.start))
    return found


def turned(earlier: Iterable[Proof], now: Mapping[int, Proof], shown: Collection[int]) -> Iterator[Violation]:
    """Transactions of which the opposite is said, or another commit timestamp. A person may have decided; and a mark
    beside one that is *shown*, by a shadow cell, was wrong.
    """
    for was in earlier:
        is_now = now.get(was.start)
        if is_now is None or is_now.decided:
            continue
        if was.committed is None and is_now.committed is not None and was.start not in shown:
            said, is_said = "it was aborted", f"it committed at {is_now.committed}"
        elif was.committed is not None and is_now.committed != was.committed:
            said = f"it committed at {was.committed}"
            is_said = f"at {is_now.committed}" if is_now.committed else "it was aborted"
        else:
            continue
        yield Violation(
            "V2",
            "",
            f"commit table and journal said that {said}, and say now that {is_said}",
            f"Prune nothing, clean nothing. Find out from the application which is right, and say lowtide resolve "
            f"{was.start} --committed TIMESTAMP, or --aborted",
            transaction=was.start,
        )
