"""The rate: how many cells a run reads, and mutations it writes, in a second, all of its tasks together. Pure.

Cells and mutations, and not bytes: they are what the summary counts, what a survey estimates and what a region server
spends its time on, one by one; a cell of a transactional table is some 70 bytes whatever is in it, and of its value a
cleanup mostly asks for nothing. How tasks are held to it: ``Gate`` and ``Pacer`` of the connector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from lowtide.config import Config, Rate
from lowtide.values.text import took_text

T = TypeVar("T")

READS, WRITES = "reads", "writes"
#: What is read or written in each of them, and with which word.
UNITS = {READS: ("cells", "read", "rate"), WRITES: ("mutations", "written", "write-rate")}
_DAY = 86_400
#: Of Airflow's section ``[lowtide]``, and in the context of the runs that it submits: after how many seconds it stops
#: them.
JOB_TIMEOUT = "job_timeout"
#: On disk, of the tables that were measured (docs/performance.md). Compressed, a cell is smaller, and there are more.
_CELL_BYTES = 70
_SECOND = 10**9
#: As ``Pacer.PORTIONS``: what is asked for at a time is what the rate allows in this part of a second.
PORTION = _SECOND // 20


def asked(config: Config, arguments: Sequence[str]) -> bool:
    """Whether a run with these *arguments* keeps to a rate, of some table at least."""
    options = tuple(f"--{option}" for _, _, option in UNITS.values())
    if any(word.partition("=")[0] in options for word in arguments):
        return True
    rates = [config.defaults.rate, *(config.table(name).rate for name in config.tables)]
    return any(rate.reads or rate.writes for rate in rates)


def without(config: Config) -> Config:
    """The configuration with no rate at all: what looks at executors must come up where they lack the connector."""
    tables = {name: {key: value for key, value in own.items() if key != "rate"} for name, own in config.tables.items()}
    defaults = config.defaults.model_copy(update={"rate": Rate()})
    return config.model_copy(update={"defaults": defaults, "tables": tables})


def nanos(count: int, per_second: int | None) -> int:
    """For how long so many take a gate, in ns; for no time where there is no rate."""
    return -(-count * _SECOND // per_second) if per_second else 0


def portions(
    operations: Sequence[T], costs: Callable[[T], tuple[int, int]], most: int = PORTION
) -> Iterator[tuple[list[T], int, int]]:
    """Cut *operations* into what is sent at a time.

    Args:
        operations: in their order, which stays.
        costs: for how many ns one takes the gate of the reads, and that of the writes.
        most: ns that one portion takes either of them, unless it is a single operation.

    Yields:
        the operations of a portion, none of them empty, and for how long they take the two gates.
    """
    portion: list[T] = []
    reads = writes = 0
    for operation in operations:
        more_reads, more_writes = costs(operation)
        if portion and (reads + more_reads > most or writes + more_writes > most):
            yield portion, reads, writes
            portion, reads, writes = [], 0, 0
        portion.append(operation)
        reads, writes = reads + more_reads, writes + more_writes
    if portion:
        yield portion, reads, writes


def slow_reading(table: str, store_bytes: int, rate: Rate, stopped_after: int | None = None) -> str:
    """A warning where reading all of *table* once takes longer than a day; empty where it does not.

    Args:
        table: name.
        store_bytes: of its store files.
        rate: of the table.
        stopped_after: in place of the day, the seconds after which Airflow stops the run. None: nobody does.
    """
    count = store_bytes // _CELL_BYTES
    return _slow(table, READS, count, rate.reads, f"{table} has about {{count}} cells by its size", stopped_after)


def slow_writing(table: str, mutations: int, rate: Rate, stopped_after: int | None = None) -> str:
    """The same of writing so many *mutations*."""
    return _slow(table, WRITES, mutations, rate.writes, f"the plan has {{count}} mutations of {table}", stopped_after)


def _slow(table: str, kind: str, count: int, per_second: int | None, says: str, stopped_after: int | None) -> str:
    most = stopped_after or _DAY
    if not per_second or count <= per_second * most:
        return ""
    unit, done, option = UNITS[kind]
    end = "Within a day"
    if stopped_after:
        end = f"Airflow stops the run after {took_text(most)} ([lowtide] {JOB_TIMEOUT}). In that time"
    return (
        f"{says.format(count=f'{count:,}')}: at most {per_second:,} {unit} {done} a second, that takes "
        f"{took_text(count / per_second)}. {end}: --{option} {-(-count // most)}, or rate.{kind} of {table} or of "
        "defaults"
    )


def sentences(pace: Mapping[str, Any]) -> Iterator[str]:
    """The rates that a run kept to, and how long somebody waited for them; nothing of a run without.

    *pace*: of its summary, the rates by table and the seconds by kind.
    """
    if not pace:
        return
    tables: dict[str, list[str]] = {}
    for table, rate in pace["rates"].items():
        text = " and ".join(
            f"{rate[kind]:,} {unit}/s {done}" for kind, (unit, done, _) in UNITS.items() if rate.get(kind)
        )
        tables.setdefault(text, []).append(table)
    for text, names in tables.items():
        of = f" of {', '.join(names)}" if len(tables) > 1 else ""
        yield f"rate: at most {text}{of}"
    waited = ", ".join(f"{took_text(pace['waited'][kind])} until it {verb}" for kind, verb in _VERBS.items())
    yield f"waited for it: {waited}"


_VERBS = {READS: "read", WRITES: "wrote"}
