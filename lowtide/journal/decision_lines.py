"""What a person decides of transactions that nothing proves, as text: a line each, which a run writes and ``lowtide
resolve --from`` reads. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lowtide.errors import UsageError

#: What a run writes in the place of a decision.
UNDECIDED = "undecided"
#: Begins the line that tells since when numbers may have been given a second time.
ANEW = "anew"


@dataclass(frozen=True, slots=True)
class Decision:
    """Of the transaction that began at *start*: when it committed (None: never), and table and row of a shadow cell
    that shows it, where one has to.
    """

    start: int
    commit: int | None
    shown: tuple[str, bytes] | None = None


@dataclass(slots=True)
class Filled:
    """What a person has filled in.

    *left*: how many lines are not. *anew*: since when numbers may have been given a second time, wall-clock ms, as it
    was known when the file was written (0: they had not); None: it does not say so.
    """

    decisions: list[Decision] = field(default_factory=list)
    left: int = 0
    anew: int | None = None


def lines(run: str, table: str, anew: int, undecided: Iterable[tuple[int, int, str]]) -> Iterator[str]:
    """A file to be filled in.

    Args:
        run: that found them.
        table: where their cells are.
        anew: :meth:`lowtide.store.oracle.OracleRows.numbered_anew`, as of then.
        undecided: start timestamp, number of cells, the row of one of them in hexadecimal.
    """
    yield (
        f"# Transactions with cells in {table} of which run {run} found no proof. In the place of {UNDECIDED} "
        "write what became of each:"
    )
    yield "#   aborted        or        committed TIMESTAMP"
    yield f"# then: lowtide resolve --from FILE. Lines that say {UNDECIDED} are left out."
    yield f"{ANEW} {anew}  # since when numbers may have been given a second time, ms; 0: they were not"
    for start, cells, row in undecided:
        yield f"{start} {UNDECIDED}  # {cells} cells, such as in row {row}"


def parse(text: str) -> Filled:
    """What is in a file.

    Raises:
        UsageError: a line is none of these, or a transaction has two.
    """
    found: dict[int, Decision] = {}
    filled, of_files = Filled(), list[int]()
    for number, line in enumerate(text.splitlines(), 1):
        match line.partition("#")[0].split():
            case []:
                continue
            case [start, word] if start.isdecimal() and word == UNDECIDED:
                filled.left += 1
                continue
            case [word, anew] if word == ANEW and anew.isdecimal():
                of_files.append(int(anew))
                continue
            case [start, "aborted"] if start.isdecimal():
                decision = Decision(int(start), None)
            case [start, "committed", commit] if start.isdecimal() and commit.isdecimal():
                decision = Decision(int(start), int(commit))
            case [start, "committed", commit, table, row] if start.isdecimal() and commit.isdecimal():
                decision = Decision(int(start), int(commit), (table, row_of(row)))
            case _:
                msg = (
                    f"line {number}: START aborted, or START committed TIMESTAMP [TABLE ROW] is expected, found "
                    f"{line.strip()!r}; nothing was recorded"
                )
                raise UsageError(msg)
        if found.setdefault(decision.start, decision) != decision:
            msg = f"line {number}: transaction {decision.start} is decided twice, in two ways; nothing was recorded"
            raise UsageError(msg)
    filled.decisions = list(found.values())
    filled.anew = min(of_files, default=None)  # of files that were joined the oldest counts
    return filled


def row_of(text: str) -> bytes:
    """A row as the verifier and the runs name it.

    Raises:
        UsageError: *text* is not hexadecimal.
    """
    try:
        return bytes.fromhex(text)
    except ValueError:
        msg = f"a row in hexadecimal is expected, as `lowtide verify` names it, found {text}"
        raise UsageError(msg) from None
