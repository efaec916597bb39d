"""Tables that are read and decided together: which are, and that one that fails costs no other anything."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from lowtide_spark.cleaning import plan, rules, suspects
from lowtide_spark.cleaning import work as works
from lowtide_spark.cleaning.work import CleanupWork, together

from lowtide.cleaning.facts import Incarnation
from lowtide.errors import StoreError
from lowtide.run.summary import TableReport
from lowtide.store.records import TableState
from lowtide.tables.inventory import Entry, Kind


def table(name: str, candidates: int = 0) -> CleanupWork:
    entry = Entry(name, Kind.TRANSACTIONAL, True, frozenset("f"))
    state = TableState(name, 1, Incarnation.unknown(), ())  # type: ignore[arg-type]
    made = CleanupWork(TableReport(name, execute=True), entry, [], state, [], [])
    made.report.counts.candidates = candidates
    return made


def groups(*found: CleanupWork, failing: str = "") -> list[list[str]]:
    """What is done together, of what is done; what *failing* is in fails."""
    done: list[list[str]] = []

    def do(group: Sequence[CleanupWork]) -> None:
        names = [work.table for work in group]
        if failing in names:
            msg = f"{failing} cannot be read"
            raise StoreError(msg)
        done.append(names)

    together(found, do, lambda work: work.report.counts.candidates)
    return done


def test_tables_of_few_suspects_go_together_and_one_of_many_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, none left out, no more than so many and with no more than so many suspects."""
    monkeypatch.setattr(works, "FEW_SUSPECTS", 10)
    monkeypatch.setattr(works, "TOGETHER", 3)
    assert groups(table("a", 4), table("b", 6), table("c", 1), table("d", 11), table("e")) == [
        ["a", "b"],
        ["c"],
        ["d"],
        ["e"],
    ]
    assert groups(*(table(name) for name in "abcd")) == [["a", "b", "c"], ["d"]]
    assert groups() == []


def test_a_table_of_which_much_was_read_goes_by_itself() -> None:
    """Its suspects may be few and large."""
    few, large = table("few", 3), table("large", 3)
    large.report.counts.bytes_read = works.FEW_BYTES + 1
    assert few.weight == 3
    assert few.weight + large.weight > works.FEW_SUSPECTS
    half = table("half")
    half.report.counts.bytes_read = works.FEW_BYTES // 2 + 10_000
    assert half.weight * 2 > works.FEW_SUSPECTS - 2, "many of them are as one large one"


def test_a_large_table_or_one_with_a_long_filter_is_read_by_itself() -> None:
    """The filter counts for each table that has it; and a read that takes long is not lost with another's."""
    plain, restored, large = table("plain"), table("restored"), table("large")
    restored.filter, plain.filter = (SimpleNamespace(size=size) for size in (works.FEW_SUSPECTS, 1))  # type: ignore[assignment]
    large.regions.append(SimpleNamespace(store_bytes=works.SMALL + 1))  # type: ignore[arg-type]
    assert plain.weight_before == 1
    assert plain.weight_before + restored.weight_before > works.FEW_SUSPECTS
    assert large.weight_before > works.FEW_SUSPECTS


def test_a_table_that_was_given_up_when_it_was_read_with_others_is_not_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It keeps its first error, and has no other."""
    given_up = table("a")
    monkeypatch.setattr(suspects, "read_once", lambda _: pytest.fail("it was read"))
    suspects._read(SimpleNamespace(), [given_up])  # type: ignore[arg-type]
    assert given_up.report.problems == []


def test_a_table_that_fails_keeps_its_error_and_hides_no_other() -> None:
    """What fails for all of them is done to each; what fails for one ends the work on that one."""
    found = [table(name) for name in "abc"]
    for work in found:
        work.suspects = object()  # type: ignore[assignment]
    assert groups(*found, failing="b") == [["a"], ["c"]]
    assert [work.report.problems for work in found] == [[], ["b cannot be read"], []]
    assert [work.suspects is None for work in found] == [False, True, False]
    alone = table("b")
    assert groups(alone, failing="b") == []
    assert alone.report.problems == ["b cannot be read"]


def test_a_table_is_read_to_its_end_by_its_own_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tables that are read together one whose range was cut short is not cleaned, however many ends others have."""
    frame: Any = SimpleNamespace(**dict.fromkeys(("where", "limit"), lambda *_: frame))
    short, whole = table("short"), table("whole")
    for work, ranges in ((short, 2), (whole, 1)):
        work.filter, work.ranges = SimpleNamespace(size=1), [object()] * ranges  # type: ignore[assignment,list-item]
    read = [
        SimpleNamespace(table=of, region=region, cells=5, bytes=50, candidates=0, ends=1)
        for of, region in (("short", "s1"), ("whole", "w1"))
    ]
    monkeypatch.setattr(suspects, "_asked", lambda *_: frame)
    monkeypatch.setattr(suspects, "read_once", lambda _: (frame, read))
    monkeypatch.setattr(suspects, "F", SimpleNamespace(col=lambda name: name))
    suspects.read_all(SimpleNamespace(), [short, whole])  # type: ignore[arg-type]
    assert short.suspects is None, "2 key ranges were to be read"
    assert "2 key ranges of short were to be read, 1 were read to their end" in short.report.problems[0]
    assert (whole.suspects, whole.report.problems, whole.report.counts.cells_read) == (frame, [], 5)
    assert whole.read_by_region == {"w1": (5, 50)}


def test_what_is_to_go_is_counted_without_what_is_stopped() -> None:
    """So many cells must lie in the sideline before one goes."""
    work = table("a")
    work.planned.update({(rules.DELETE, "r1"): 3, (rules.DELETE, "r2"): 5, (rules.HEAL, "r1"): 7})
    work.stop(["r2"], "it holds what no rule decides")
    assert plan.number(work, rules.DELETE) == 3
    assert plan.number(work, rules.HEAL) == 7
