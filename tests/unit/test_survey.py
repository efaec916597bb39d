"""The survey: estimates with their error, what the owner is told, and pages that say what was found."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from io import StringIO
from itertools import accumulate, combinations
from statistics import variance

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lowtide.survey.estimate import LEAST_REGIONS, Estimate, draw, total, variance_of_total
from lowtide.survey.findings import AgeRow, CommitTableFindings, Notice, Severity, Survey, TableFindings
from lowtide.survey.notices import ALL_VERSIONS, table_notices, timestamp_store_notices, watermark_notices
from lowtide.survey.page import render
from lowtide.survey.terminal import print_survey
from lowtide.tables.inventory import OMID_COMPACTOR, Descriptor, Entry, Kind, classify
from tests import seeds

COUNTS = st.integers(min_value=0, max_value=1000)

# -- estimates


@given(st.lists(COUNTS, min_size=1))
def test_all_regions_give_the_exact_number(parts: list[int]) -> None:
    """When every region was read there is no error, whatever they hold."""
    assert total(parts, len(parts), 10**6) == Estimate.exact(sum(parts))


@given(st.lists(COUNTS, min_size=3, max_size=7), st.data())
def test_the_estimate_is_right_on_average_and_so_is_its_error(population: list[int], data: st.DataObject) -> None:
    """Over all samples of one size the mean of the estimates is the true total, and the mean of the variances that each
    sample states is the variance that the estimates really have."""
    size = data.draw(st.integers(2, len(population) - 1))
    samples = list(combinations(population, size))
    estimates = [Fraction(sum(s) * len(population), size) for s in samples]
    truth = sum(population)
    assert sum(estimates) / len(samples) == truth
    really = float(sum((e - truth) ** 2 for e in estimates) / len(samples))
    stated = sum(variance_of_total(variance(s), size, len(population)) for s in samples) / len(samples)
    assert stated == pytest.approx(really, abs=1e-6)


@given(st.lists(COUNTS, min_size=1, max_size=40), st.integers(1, 200), COUNTS)
def test_the_interval_holds_the_estimate_and_what_was_seen(parts: list[int], unread: int, more: int) -> None:
    """The interval is never below what was seen, never empty, and claims certainty only where nothing can differ."""
    most = max(parts) + more
    found = total(parts, len(parts) + unread, most)
    assert sum(parts) <= found.low <= found.high
    assert found.low <= max(found.value, sum(parts)) <= found.high
    if found.is_exact:
        assert set(parts) == {most} == {0}


def rarest(tries: int, chance: float, doubt: float = 1e-6) -> tuple[int, int]:
    """The fewest and the most successes in so many *tries* that are not less likely, at either end, than *doubt*."""
    each = [math.comb(tries, k) * chance**k * (1 - chance) ** (tries - k) for k in range(tries + 1)]
    below, above = list(accumulate(each)), list(accumulate(reversed(each)))
    fewest = next(k for k in range(tries + 1) if below[k] >= doubt)
    return fewest, tries - next(k for k in range(tries + 1) if above[k] >= doubt)


@pytest.mark.parametrize(("regions", "share"), [(60, 0.2), (60, 0.5), (12, 0.5), (400, 0.05)])
@seeds.each("intervals of a survey", always=[7])
def test_nineteen_of_twenty_intervals_hold_the_truth(seed: int, regions: int, share: float) -> None:
    """Of samples of a table whose orphans lie unevenly 95 % have the true number in their interval: no fewer and no
    more than chance allows an interval of 95 % once in a million such tests."""
    tries = 1000
    fewest, most = rarest(tries, 0.95)
    assert 900 < fewest < 950 < most < 990
    dice = random.Random(seed)
    hits = 0
    for n in range(tries):
        # Another table each time, or the tries were not independent.
        population = [round(max(0.0, dice.gauss(1000, 200))) for _ in range(regions)]
        found = total(draw(population, share, f"{seed}/{n}"), regions, 10_000)
        hits += found.low <= sum(population) <= found.high
    assert fewest <= hits <= most


@pytest.mark.parametrize("regions", [4, 5, 10, 37, 60, 200])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.9])
def test_equal_regions_leave_room_for_what_the_others_may_hold(regions: int, share: float) -> None:
    """Where all regions that were read hold the same, the interval may miss the truth of a table, whatever the others
    hold, in at most one of twenty draws: counted over all draws, for every number of regions that are otherwise, fuller
    or empty."""
    held, most = 3, 1000
    count = len(draw(range(regions), share, ""))
    found = total([held] * count, regions, most)
    for others in range(1, regions - count + 1):
        unseen = math.comb(regions - others, count) / math.comb(regions, count)
        for each in (0, most):
            truth = held * (regions - others) + each * others
            assert found.low <= truth <= found.high or unseen <= 0.05, (others, each, found)


def test_regions_without_orphans_do_not_prove_that_there_are_none() -> None:
    """Where no region that was read holds any, the interval still allows for those that were not."""
    found = total([0, 0, 0, 0], 40, 1000)
    assert (found.value, found.low) == (0, 0)
    assert found.high > 1000


@given(st.lists(st.integers(), unique=True, max_size=30), st.floats(0.001, 1), st.text(max_size=5))
def test_a_sample_is_drawn_in_order_without_repeating(regions: list[int], share: float, seed: str) -> None:
    """A sample keeps the regions' order, takes none twice, and is the same for the same seed; small tables are read
    whole.
    """
    drawn = draw(regions, share, seed)
    assert drawn == [r for r in regions if r in drawn]
    assert len(drawn) >= min(len(regions), LEAST_REGIONS)
    assert drawn == draw(regions, share, seed)
    assert draw(regions, None, seed) == regions


# -- notices

FOREVER = {"VERSIONS": str(ALL_VERSIONS), "TTL": "2147483647", "OMID_ENABLED": "true"}
PHOENIX = "org.apache.phoenix.coprocessor.OmidTransactionalProcessor"


def told(
    enabled: bool = True, coprocessors: tuple[str, ...] = (), shadowed: tuple[str, ...] = (), **family: str
) -> list[Notice]:
    descriptor = Descriptor("orders", enabled, {}, coprocessors, {"f": {**FOREVER, **family}})
    entry: Entry = classify(descriptor, None, frozenset(shadowed))
    return table_notices(entry, descriptor)


def test_a_table_in_order_needs_no_notice() -> None:
    """All versions, no time to live, enabled, marked: nothing to say."""
    assert told() == []
    assert told(TTL="FOREVER") == []


@pytest.mark.parametrize(
    ("notices", "severity", "words"),
    [
        (told(VERSIONS="3"), Severity.DANGER, ["3 versions", "alter 'orders'", "VERSIONS => 2147483647"]),
        (told(TTL="86400"), Severity.DANGER, ["time to live of 86400", "TTL => 'FOREVER'"]),
        (told(coprocessors=(OMID_COMPACTOR, PHOENIX)), Severity.DANGER, ["lose committed rows", OMID_COMPACTOR]),
        (told(coprocessors=(OMID_COMPACTOR,)), Severity.NOTE, ["collapse history"]),
        (told(enabled=False), Severity.CAUTION, ["disabled", "enable orders"]),
        (told(OMID_ENABLED="false", shadowed=("f",)), Severity.CAUTION, ["shadow cells", "kind: transactional"]),
    ],
)
def test_what_is_wrong_with_a_table_is_told_with_its_remedy(
    notices: list[Notice], severity: Severity, words: list[str]
) -> None:
    """Each fault is one notice that names the table, what happens, and what to do."""
    (notice,) = notices
    assert (notice.severity, notice.table) == (severity, "orders")
    for word in words:
        assert word in notice.what + notice.remedy


def test_view_indexes_that_show_orphans_are_told_of() -> None:
    """A table with Phoenix's indexer and without its snapshot filter is told of; with both it is not."""
    indexer = "org.apache.phoenix.index.PhoenixTransactionalIndexer"
    (notice,) = told(coprocessors=(indexer,))
    assert "never committed" in notice.what
    assert told(coprocessors=(PHOENIX, indexer)) == []


def test_a_disabled_table_without_marks_is_told_of_once() -> None:
    """A disabled table cannot be sampled: that it is disabled is all that can be said."""
    (notice,) = told(enabled=False, OMID_ENABLED="false")
    assert "disabled" in notice.what


def test_a_timestamp_store_that_forgets_is_told_of() -> None:
    """No stored timestamp, or one behind the low watermark, says that the oracle keeps its timestamps elsewhere."""
    assert [n.severity for n in timestamp_store_notices("T", None, 100)] == [Severity.CAUTION]
    assert [n.severity for n in timestamp_store_notices("T", 99, 100)] == [Severity.CAUTION]
    assert list(timestamp_store_notices("T", 100, 100)) == []


def test_a_low_watermark_that_stands_still_is_told_of() -> None:
    """A low watermark of 0, or of more than a day, keeps the rest from being cleaned."""
    assert len(list(watermark_notices(0, None))) == 1
    assert len(list(watermark_notices(50, 2 * 86_400.0))) == 1
    assert list(watermark_notices(50, 3600.0)) == list(watermark_notices(50, None)) == []


# -- pages


def _survey(**changes: object) -> Survey:
    found = Survey(
        at=datetime(2026, 1, 31, 9, 30, tzinfo=UTC),
        run="survey-1",
        low_watermark=128_050,
        watermark_age=7300.0,
        tables=(
            TableFindings(
                "accounts",
                40,
                10,
                cells=Estimate(4000, 3500, 4500),
                orphans=Estimate(1234, 1111, 1357),
                orphan_bytes=Estimate(10_240, 9_000, 20_000),
                heals=Estimate(8, 2, 20),
                others={"committed": 5},
            ),
            TableFindings(
                "<orders>", 1, 1, cells=Estimate.exact(77), problems=("range x: 3 cells that no rule decides",)
            ),
        ),
        commit_table=CommitTableFindings(
            (AgeRow("up to a day", 31, 17, 2), AgeRow("older", 5, 0, 0)), 41, 4100, 12.5, 3.0
        ),
        marks_to_put=33,
        notices=(Notice(Severity.DANGER, "accounts", "family f keeps 3 versions", "alter it"),),
        sample=0.25,
        seconds=12.0,
    )
    return replace(found, **changes)


def test_the_page_says_what_was_found_and_stands_alone() -> None:
    """Every number, notice and problem is on the page; names are escaped; it asks no other host and runs no script."""
    page = render(_survey())
    for text in (
        "1,234",
        "1,111",
        "family f keeps 3 versions",
        "alter it",
        "no rule decides",
        "128050",
        "12.5",
        "10 of 40",
    ):
        assert text in page
    assert "&lt;orders&gt;" in page
    assert "<orders>" not in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_terminal_says_what_was_found() -> None:
    """The same numbers in the terminal, and that nothing was written."""
    out = StringIO()
    print_survey(Console(file=out, width=200), _survey())
    for text in ("1,234 (1,111 to 1,357)", "family f keeps 3 versions", "10 of 40", "31", "17", "Nothing was written"):
        assert text in out.getvalue()


def test_the_json_can_be_read_back() -> None:
    """All of it is in the JSON, estimates with their ends."""
    read = json.loads(_survey().to_json())
    assert read["tables"][0]["orphans"] == {"value": 1234, "low": 1111, "high": 1357}
    assert read["commit_table"]["rows"][0]["marks"] == 17
    assert read["at"] == "2026-01-31T09:30:00+00:00"


@pytest.mark.parametrize(
    "empty", [_survey(tables=(), commit_table=None, notices=(), watermark_age=None), _survey(sample=None, rate=30_000)]
)
def test_little_can_be_shown_too(empty: Survey) -> None:
    """A store without transactional tables, or a commit table that cannot be read, still has its page."""
    assert "Lowtide" in render(empty)
    print_survey(Console(file=StringIO()), empty)


def test_the_time_for_a_cleanup_grows_with_what_was_not_read() -> None:
    """Reading a quarter of the cells in 12 seconds makes 48 for all, beside the start and the actions."""
    whole = TableFindings("t", 40, 10, cells=Estimate(4000, 4000, 4000), orphans=Estimate.exact(200_000))
    found = _survey(tables=(whole,), marks_to_put=0)
    assert found.cleanup_seconds == pytest.approx(20 + 48 + 10)


def test_kinds_are_what_the_inventory_says() -> None:
    """A plain table is nothing to the survey."""
    assert classify(Descriptor("t", True, {}, (), {"f": {}}), None, frozenset()).kind is Kind.PLAIN
