"""The hops, what each depends on, and the walk over them. Pure but for what it is handed.

A hop is looked at by a function that returns a sentence where all is well, and else raises: a :class:`LowtideError`
with the fact and the remedy, or :class:`NotCheckedError` with the reason. What depends on a hop that is not well is not
looked at: its own sentence would only tell of the same fault a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from lowtide.errors import LowtideError

#: Looks at a hop.
Look = Callable[[], str]


class NotCheckedError(Exception):
    """A hop that cannot be looked at, or that nobody wants looked at; the text is the reason, after "because"."""


class Result(StrEnum):
    """What became of a hop."""

    OK = "ok"
    WRONG = "wrong"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Hop:
    """One thing that has to be well, and the hops that must be before it can be looked at."""

    name: str
    title: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """What is to be said of a hop: how it is, or what is wrong, or why it was not checked."""

    hop: str
    title: str
    result: Result
    text: str
    remedy: str = ""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Line:
        """What :meth:`to_json` made."""
        return cls(**{**value, "result": Result(value["result"])})

    def to_json(self) -> dict[str, Any]:
        """A plain mapping."""
        return asdict(self)


#: In the order in which they are looked at, where the gateway is the way to what is in the store.
HOPS = (
    Hop("configuration", "Configuration"),
    Hop("python", "Python"),
    Hop("java", "Java"),
    Hop("spark", "Spark"),
    Hop("connector", "Connector", ("configuration",)),
    Hop("zookeeper", "ZooKeeper", ("configuration",)),
    Hop("gateway", "Thrift gateway", ("configuration",)),
    Hop("gateway-login", "Login of the gateway", ("gateway",)),
    Hop("oracle", "Oracle", ("configuration",)),
    Hop("format", "State format", ("gateway",)),
    Hop("records", "State and journal tables", ("format",)),
    Hop("commit-table", "Commit table", ("gateway",)),
    Hop("oracle-store", "Oracle of the store", ("commit-table", "oracle")),
    Hop("gateway-rights", "Rights of the gateway", ("gateway", "commit-table")),
    Hop("driver", "Spark driver and executors", ("configuration", "java", "spark", "connector")),
    Hop("hbase", "HBase", ("zookeeper", "driver")),
    Hop("cluster", "The same HBase", ("gateway", "hbase", "format")),
    Hop("clocks", "Clocks", ("hbase", "format")),
    Hop("executors", "Connector on executors", ("hbase", "commit-table")),
    Hop("listing", "Listing of tables", ("hbase",)),
    Hop("rights", "Rights of Spark", ("listing",)),
    Hop("sideline", "Sideline", ("driver",)),
    Hop("airflow", "Airflow", ("configuration",)),
    Hop("airflow-pool", "Airflow's pool", ("airflow",)),
    Hop("airflow-connections", "Airflow's connections", ("airflow",)),
    Hop("airflow-settings", "Airflow's settings", ("airflow",)),
)
#: Of what is in the store: looked at through the gateway, else by a driver past it.
OF_THE_STORE = ("format", "records", "commit-table", "oracle-store")
_THROUGH = (*OF_THE_STORE, "gateway-rights")
_TITLES = {hop.name: hop.title for hop in HOPS}


def _past_the_gateway() -> tuple[Hop, ...]:
    """:data:`HOPS`, and what is in the store after HBase, which is what it needs then."""

    def otherwise(hop: Hop) -> Hop:
        return replace(hop, needs=tuple("hbase" if need == "gateway" else need for need in hop.needs))

    moved = [otherwise(hop) if hop.name in OF_THE_STORE else hop for hop in HOPS if hop.name in _THROUGH]
    rest = [hop for hop in HOPS if hop.name not in _THROUGH]
    after = 1 + next(at for at, hop in enumerate(rest) if hop.name == "hbase")
    return (*rest[:after], *moved, *rest[after:])


_PAST_THE_GATEWAY = _past_the_gateway()


def through_gateway(known: Iterable[Line]) -> bool:
    """Whether the gateway is the way to what is in the store: where it is not well, a driver has another one."""
    results = {line.hop: line.result for line in known}
    well = results.get("gateway", Result.OK) is Result.OK
    return well or results.get("configuration", Result.OK) is not Result.OK  # which way nobody knows


def hops_for(known: Iterable[Line]) -> tuple[Hop, ...]:
    """All hops in the order in which they are looked at, as far as the lines so far tell which way it goes."""
    return HOPS if through_gateway(known) else _PAST_THE_GATEWAY


def walk(looks: Mapping[str, Look], known: Sequence[Line] = ()) -> Iterator[Line]:
    """A line for each hop that *looks* has a function for, as soon as there is one, in the order of :func:`hops_for`.

    Args:
        looks: what looks at a hop, by its name.
        known: lines of hops that were looked at before; what depends on one that has none is looked at.
    """
    results = {line.hop: line.result for line in known}
    for hop in hops_for(known):
        if hop.name in looks:
            line = _line(hop, looks[hop.name], results)
            results[hop.name] = line.result
            yield line


def not_walked(names: Iterable[str], reason: str) -> Iterator[Line]:
    """The lines of hops that could not be looked at, for *reason*."""
    wanted = set(names)
    yield from (Line(hop.name, hop.title, Result.NOT_CHECKED, reason) for hop in HOPS if hop.name in wanted)


def exit_code(lines: Iterable[Line]) -> int:
    """0: nothing is wrong; 1: something is."""
    return int(any(line.result is Result.WRONG for line in lines))


def _line(hop: Hop, look: Look, results: Mapping[str, Result]) -> Line:
    for need in hop.needs:
        if (found := results.get(need, Result.OK)) is not Result.OK:
            how = "is wrong" if found is Result.WRONG else "was not checked"
            return Line(hop.name, hop.title, Result.NOT_CHECKED, f"{_TITLES[need]} {how}")
    try:
        return Line(hop.name, hop.title, Result.OK, look())
    except NotCheckedError as reason:
        return Line(hop.name, hop.title, Result.NOT_CHECKED, str(reason))
    except LowtideError as error:
        return Line(hop.name, hop.title, Result.WRONG, error.fact, error.remedy)
    except Exception as error:  # a server's, a library's: one hop that breaks never hides the others
        said = (str(error).strip() or "no text").splitlines()[0]
        remedy = "see the log of what it is about, then check again"
        return Line(hop.name, hop.title, Result.WRONG, f"{type(error).__name__}: {said}", remedy)
