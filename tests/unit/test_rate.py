"""The rate of a run: how it is told, cut and warned of. How tasks are held to it: the connector's own tests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.config import Config, Rate, load
from lowtide.errors import UsageError
from lowtide.run import rate, submit
from lowtide.run.arguments import arguments, understood
from tests.unit.test_arguments import NOW

COSTS = st.tuples(st.integers(0, 2 * rate.PORTION), st.integers(0, 2 * rate.PORTION))
NUMBERS = st.integers(1, 10**12)


@given(st.lists(COSTS), st.integers(1, 2 * rate.PORTION))
def test_what_is_cut_into_portions_is_all_there(costs: Sequence[tuple[int, int]], most: int) -> None:
    """Each operation once, in its order; no portion is empty, none takes a gate for longer than it may unless it is a
    single operation, and what it takes is the sum of what its operations do. No portion could have had the next one's
    first operation too.
    """
    found = list(rate.portions(costs, lambda cost: cost, most))
    assert [cost for portion, _, _ in found for cost in portion] == list(costs)
    for portion, reads, writes in found:
        assert portion
        assert (reads, writes) == tuple(map(sum, zip(*portion, strict=True)))
        assert len(portion) == 1 or max(reads, writes) <= most
    for (_, reads, writes), (following, _, _) in pairwise(found):
        assert max(reads + following[0][0], writes + following[0][1]) > most


@given(st.lists(st.integers(1, 1000), min_size=1), NUMBERS)
def test_what_is_paid_for_in_parts_takes_no_less(parts: Sequence[int], per_second: int) -> None:
    """However many are let through at a time, the gate is taken for as long as the rate says, rounded up."""
    assert sum(rate.nanos(part, per_second) for part in parts) * per_second >= sum(parts) * 10**9
    assert rate.nanos(sum(parts), per_second) <= sum(rate.nanos(part, per_second) for part in parts)
    assert rate.nanos(sum(parts), None) == 0


@given(st.integers(0, 10**15), NUMBERS)
def test_a_rate_that_takes_longer_than_a_day_is_warned_of(count: int, per_second: int) -> None:
    """With how long, and a rate by which it takes no longer; and not otherwise."""
    note = rate.slow_writing("orders", count, Rate(reads=1, writes=per_second))
    assert bool(note) is (count > per_second * 86_400)
    if note:
        within = int(note.split("--write-rate ")[1].split(",")[0])
        assert rate.slow_writing("orders", count, Rate(reads=1, writes=within)) == ""
        assert rate.slow_writing("orders", count, Rate(reads=1, writes=within - 1)) if within > 1 else True


def test_the_warning_is_a_sentence_with_a_remedy() -> None:
    """Of reads, by the table's size."""
    assert rate.slow_reading("orders", 7_000_000_000, Rate(reads=1000, writes=1)) == (
        "orders has about 100,000,000 cells by its size: at most 1,000 cells read a second, that takes 27 h 46 min. "
        "Within a day: --rate 1158, or rate.reads of orders or of defaults"
    )
    assert rate.slow_reading("orders", 7_000_000_000, Rate()) == ""


def test_a_warning_goes_by_the_time_that_airflow_gives_a_run() -> None:
    """Below a day, or above: the rate that is named ends in that time."""
    short = rate.slow_reading("orders", 70 * 60_000_000, Rate(reads=1000, writes=1), 43_200)
    assert short.endswith(
        "that takes 16 h 40 min. Airflow stops the run after 12 h 0 min ([lowtide] job_timeout). In that time: --rate "
        "1389, or rate.reads of orders or of defaults"
    )
    assert rate.slow_writing("orders", 60_000_000, Rate(reads=1, writes=1000), 43_200)
    assert rate.slow_reading("orders", 70 * 90_000_000, Rate(reads=1000, writes=1), 100_000) == ""


@pytest.mark.parametrize("given", ["0", "-5", "abc", "1.5", "20MB", "nan", ""])
@pytest.mark.parametrize("option", ["--rate", "--write-rate"])
def test_a_rate_is_a_whole_number_above_nothing(option: str, given: str) -> None:
    """And whatever else is written, the message names option, value, and what is expected."""
    with pytest.raises(UsageError, match=rf"{option}: so many a second .* a whole number above 0 .* found {given}"):
        arguments("orphan_cleanup", [f"{option}={given}"])


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--rate", "30000"], "--rate 30000 holds back its reads alone, .* Give --write-rate"),
        (["--write-rate", "2000"], "--write-rate 2000 holds back its writes alone, .* Give --rate"),
    ],
)
@pytest.mark.parametrize("acts", ["--execute", "--as-configured"])
def test_a_run_that_acts_takes_both_rates_or_none(argv: list[str], says: str, acts: str) -> None:
    """Whoever is careful with the one would be surprised by the other. A dry run writes nothing."""

    def told(*given: str) -> None:
        understood("orphan_cleanup", arguments("orphan_cleanup", given), "r", NOW)

    told(*argv)
    told(acts)
    told(acts, "--rate", "30000", "--write-rate", "2000")
    with pytest.raises(UsageError, match=says):
        told(acts, *argv)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("defaults: {rate: {reads: 5}}", "defaults.rate: reads are held to 5 .*writes to nothing: give rate.writes"),
        ("tables: {orders: {rate: {writes: 5}}}", "tables.orders.rate: writes are held to 5 .*give rate.reads as well"),
        ("defaults: {rate: {reads: 0, writes: 5}}", "defaults.rate.reads: .*greater than 0 .found 0"),
        ("defaults: {rate: {reads: 20MB, writes: 5}}", "defaults.rate.reads: .*found '20MB'"),
        ("defaults: {rate: {bytes: 5}}", "defaults.rate.bytes: unknown key"),
    ],
)
def test_a_configured_rate_is_whole(tmp_path: Path, text: str, says: str) -> None:
    """Of reads and of writes, each above nothing, where it stands; a table's may be completed by the defaults'."""
    file = tmp_path / "lowtide.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=says):
        load(file)


def test_a_tables_rate_is_laid_over_the_defaults(tmp_path: Path) -> None:
    """As its budget is."""
    file = tmp_path / "lowtide.yaml"
    file.write_text("defaults: {rate: {reads: 5, writes: 6}}\ntables: {orders: {rate: {writes: 7}}}")
    config = load(file)
    assert config.table("orders").rate == Rate(reads=5, writes=7)
    assert config.table("stock").rate == Rate(reads=5, writes=6)


PACED = Config.model_validate({"tables": {"orders": {"rate": {"reads": 5, "writes": 6}}}})


@pytest.mark.parametrize(
    ("config", "master", "argv", "has"),
    [
        (Config(), "yarn", ["--rate", "5"], True),
        (Config(), "yarn", ["--write-rate=5"], True),
        (PACED, "k8s://https://here", [], True),
        (Config(), "yarn", ["--row", "rate"], False),
        (Config(), "local[2]", ["--rate", "5"], False),  # the driver need not ask itself
    ],
)
def test_executors_have_a_way_to_the_driver_where_there_is_a_rate(
    monkeypatch: pytest.MonkeyPatch, config: Config, master: str, argv: list[str], has: bool
) -> None:
    """And only then: an executor that lacks the connector would end over it."""
    monkeypatch.setattr(submit, "class_path", lambda _: ["connector.jar"])
    assert ("spark.plugins" in submit.job_conf(config, master, argv)) is has


def test_an_installations_plugins_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way to the driver comes beside them."""
    monkeypatch.setattr(submit, "class_path", lambda _: ["connector.jar"])
    theirs = PACED.model_copy(update={"spark": PACED.spark.model_copy(update={"conf": {"spark.plugins": "a.B"}})})
    assert submit.job_conf(theirs, "yarn")["spark.plugins"] == "a.B,lowtide.connector.PacePlugin"
    assert submit.job_conf(theirs, "local[2]")["spark.plugins"] == "a.B"


def test_a_run_says_its_rate_and_how_long_it_waited() -> None:
    """Once where all tables have the same, by table where not; nothing where there is none."""
    waited = {"reads": 75.2, "writes": 0.0}
    one = {"reads": 33_000, "writes": 2_000}
    assert list(rate.sentences({"rates": {"orders": one, "stock": one}, "waited": waited})) == [
        "rate: at most 33,000 cells/s read and 2,000 mutations/s written",
        "waited for it: 1 min 15 s until it read, 0 s until it wrote",
    ]
    assert list(rate.sentences({"rates": {"orders": one, "stock": {"reads": 5}}, "waited": waited}))[:2] == [
        "rate: at most 33,000 cells/s read and 2,000 mutations/s written of orders",
        "rate: at most 5 cells/s read of stock",
    ]
    assert list(rate.sentences({})) == []


def test_a_check_goes_without_a_rate() -> None:
    """An executor that lacks the connector is to come up and say so: no plug-in, whatever is configured; all else
    stays.
    """
    one = {"rate": {"reads": 5, "writes": 5}, "read": "rpc"}
    config = Config(defaults={"rate": {"reads": 7, "writes": 7}, "read": "rpc"}, tables={"orders": one})  # type: ignore[arg-type]
    assert rate.asked(config, ())
    bare = rate.without(config)
    assert not rate.asked(bare, ())
    assert (bare.table("orders").rate, bare.table("stock").rate) == (Rate(), Rate())
    assert bare.table("orders").read == config.table("orders").read
    assert config.table("orders").rate == Rate(reads=5, writes=5), "the one that was given is as it was"
