"""The age that suits the reads."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from lowtide.history.advice import BUCKETS, advise, bucket, bytes_a_day, upper
from lowtide.values.durations import parse_duration

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@given(st.timedeltas(timedelta(0), timedelta(days=3000)))
def test_a_bucket_holds_ages_below_its_end(age: timedelta) -> None:
    """And not below the end of the one before."""
    number = bucket(age)
    assert age < upper(number) or number == BUCKETS - 1
    assert number == 0 or age >= upper(number - 1)


def test_the_shortest_age_that_serves_the_reads() -> None:
    """A few reads far back do not decide unless asked for; the lines say what each age refuses and keeps."""
    reads = {bucket(10 * HOUR): 9_995, bucket(6 * DAY): 5}
    best, lines = advise(reads, 1000.0, HOUR, 7 * DAY)
    assert best is not None
    assert best.age == timedelta(hours=18)  # the bucket ends at 17 h 4 min
    assert best.refused == 0.0005
    assert best.bytes < 0
    assert [line.refused for line in lines] == [0.0005, 0.0]
    longest, _ = advise(reads, 1000.0, HOUR, 7 * DAY, served=1.0)
    assert longest is not None
    assert longest.refused == 0
    assert longest.age >= 6 * DAY


def test_never_below_the_least_age_and_nothing_without_reads() -> None:
    """Reads of a minute ago advise no less than min_history_age; no reads advise nothing."""
    best, _ = advise({0: 5}, 0.0, HOUR, None)
    assert best is not None
    assert best.age == HOUR
    assert advise({}, 10.0, HOUR, DAY) == (None, [])


def test_what_a_day_brings() -> None:
    """The first run removes what had gathered before; after it, bytes over days. Dry runs and other tables say
    nothing.
    """
    day = 86_400_000

    def run(started: int, size: int, execute: bool = True, table: str = "t") -> dict[str, object]:
        report = {"table": table, "execute": execute, "counts": {"bytes_removed": size}}
        return {"job": "history_gc", "started": started, "tables": [report]}

    runs = [run(0, 10**9), run(day, 100), run(2 * day, 300), run(3 * day, 7, execute=False), run(0, 5, table="u")]
    assert bytes_a_day("t", runs) == 200
    assert bytes_a_day("u", runs) is None


def test_what_is_not_known_is_not_told_as_nothing() -> None:
    """Without two runs that removed something, or with history that is kept for ever, nobody knows what an age would
    keep more.
    """
    for known, now in ((None, 7 * DAY), (1000.0, None)):
        best, _ = advise({5: 1}, known, HOUR, now)
        assert best is not None
        assert best.to_json() == {"age": "1h", "refused": 0.0, "bytes": None}


@given(st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 100), min_size=1))
def test_ages_can_be_pasted_into_the_configuration(reads: dict[int, int]) -> None:
    """They are whole hours or days where they are more than two, and serve what they are said to serve."""
    _, lines = advise(reads, 1.0, timedelta(minutes=1), DAY)
    assert [parse_duration(line.to_json()["age"]) for line in lines] == [line.age for line in lines]
    assert all(len(line.to_json()["age"]) <= 5 for line in lines)
    assert lines[-1].refused == 0
