"""Which tables share a Spark job."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from lowtide_airflow.batches import batches

GIB = 1 << 30

sizes = st.dictionaries(st.text("abcdefgh", min_size=1, max_size=4), st.integers(0, 4 * GIB), max_size=60)


@given(sizes, st.integers(0, 2 * GIB), st.integers(1, 50), st.integers(1, 40))
def test_every_table_is_in_exactly_one_batch_and_batches_are_few(
    tables: dict[str, int], batch_bytes: int, batch_tables: int, most: int
) -> None:
    """Whatever the limits, no table is lost or done twice, no batch is empty, and Airflow's limit on mapped tasks
    holds.
    """
    found = batches(tables, batch_bytes, batch_tables, most)
    assert sorted(name for batch in found for name in batch) == sorted(tables)
    assert all(found)
    assert len(found) <= most


def test_no_batches_at_all_are_one() -> None:
    """A limit below 1 cannot be kept, and the choice ends all the same."""
    assert batches({"a": 1, "b": GIB, "c": 3}, 0, 1, 0) == [["b", "c", "a"]]
    assert batches({}, 0, 1, -1) == []


@given(sizes, st.integers(1, 2 * GIB), st.integers(1, 50))
def test_a_batch_keeps_its_limits(tables: dict[str, int], batch_bytes: int, batch_tables: int) -> None:
    """A table at the limit is alone; tables that share stay below the limits together."""
    for batch in batches(tables, batch_bytes, batch_tables, most=1000):
        assert len(batch) <= batch_tables
        if len(batch) > 1:
            assert sum(tables[name] for name in batch) < batch_bytes


@given(sizes, st.randoms())
def test_the_order_of_the_listing_does_not_matter(tables: dict[str, int], random) -> None:
    """A second try of the choice gives every mapped task the tables that it had."""
    shuffled = list(tables.items())
    random.shuffle(shuffled)
    assert batches(tables, GIB, 20, 30) == batches(dict(shuffled), GIB, 20, 30)


def test_hundreds_of_idle_tables_cost_two_spark_starts() -> None:
    """Idle tables share jobs, up to the number of names on a command line; a large one has its own."""
    tables = {f"idle{n:03}": 0 for n in range(400)} | {"large": 5 * GIB}
    found = batches(tables, GIB, 200, 300)
    assert found[0] == ["large"]
    assert [len(batch) for batch in found] == [1, 200, 200]


def test_no_bytes_a_batch_gives_each_table_its_own() -> None:
    """A limit of 0 switches sharing off."""
    assert batches({"a": 0, "b": 7}, 0, 200, 300) == [["b"], ["a"]]


def test_nothing_to_do_makes_no_batch() -> None:
    """A store without tables starts no Spark job."""
    assert batches({}, GIB, 200, 300) == []
