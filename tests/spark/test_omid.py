"""The commit table and the journal as column expressions."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lowtide_spark.frames import omid
from lowtide_spark.frames.omid import shadow_of
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lowtide.values import formats
from lowtide.values.formats import LOW_WATERMARK_ROW, commit_key, encode_long, shadow_qualifier
from tests.varints import encode_varint

CELLS = "row binary, family binary, qualifier binary, timestamp bigint, value binary, kind string"
MARK = formats.INVALID_VALUE
SECOND = 10**9
timestamps = st.integers(0, 2**63 - 1)

Cell = tuple[bytes, bytes, bytes, bytes, str]


def cell(row: bytes, qualifier: bytes, value: bytes, family: bytes = b"F", kind: str = "put") -> Cell:
    return row, family, qualifier, value, kind


def commit(start: int, tc: int) -> Cell:
    return cell(commit_key(start), b"C", encode_varint(tc - start))


def frame(spark: SparkSession, cells: Iterable[Cell]) -> DataFrame:
    rows = [
        (bytearray(row), bytearray(family), bytearray(qualifier), 1, bytearray(value), kind)
        for row, family, qualifier, value, kind in cells
    ]
    return spark.createDataFrame(rows, CELLS)


def entries(spark: SparkSession, *cells: Cell) -> list[Row]:
    return omid.entries(frame(spark, cells), "F").collect()


# -- key ranges


@settings(database=None, deadline=None)
@given(st.integers(0, 2**62), st.integers(0, 5000), st.lists(st.integers(-200, 6000), min_size=1, max_size=20))
def test_commit_ranges_hold_exactly_the_interval(start: int, length: int, offsets: list[int]) -> None:
    """A transaction's row lies in one of the sixteen ranges if its start is in [from, to), in none otherwise."""
    ranges = omid.commit_ranges(start, start + length)
    assert len({r.region for r in ranges}) == len(ranges) == 16
    assert not any(r.keys.start <= LOW_WATERMARK_ROW < r.keys.stop for r in ranges)
    for offset in (*offsets, 0, length):
        if start + offset >= 0:
            row = commit_key(start + offset)
            held = [r for r in ranges if r.keys.start <= row < r.keys.stop]
            assert len(held) == (1 if 0 <= offset < length else 0)


# -- codecs


@settings(settings.get_profile("spark"))
@given(st.lists(timestamps, min_size=50, max_size=200))
def test_codecs_agree_with_the_pure_ones(spark: SparkSession, numbers: list[int]) -> None:
    """Keys, longs and varints made and read by Spark are those of ``lowtide.values.formats``, for any timestamps."""
    rows = [(n, bytearray(encode_long(n)), bytearray(encode_varint(n))) for n in [0, 2**63 - 1, *numbers]]
    found = (
        spark.createDataFrame(rows, "n bigint, long binary, varint binary")
        .select(
            "n",
            omid.commit_key(F.col("n")).alias("key"),
            omid.bytes_of(F.col("n")).alias("bytes"),
            omid.long_of(F.col("long")).alias("long"),
            omid.varint_of(F.col("varint")).alias("varint"),
            omid.bytes_of_varint(F.col("n")).alias("made"),
        )
        .collect()
    )
    for r in found:
        assert bytes(r.key) == commit_key(r.n)
        assert bytes(r.bytes) == encode_long(r.n)
        assert r.long == r.varint == r.n
        assert bytes(r.made) == encode_varint(r.n)


@settings(settings.get_profile("spark"))
@given(st.lists(st.binary(max_size=11) | st.lists(st.integers(120, 135), max_size=11).map(bytes), min_size=100))
def test_varints_are_refused_as_the_pure_ones(spark: SparkSession, values: list[bytes]) -> None:
    """Bytes that ``decode_varint`` refuses are null; those it reads in at most nine bytes have its number."""
    data = spark.createDataFrame([(bytearray(v),) for v in values], "v binary")
    for r in data.select("v", omid.varint_of(F.col("v")).alias("n")).collect():
        try:
            expected = formats.decode_varint(bytes(r.v)) if len(r.v) <= 9 else None
        except ValueError:
            expected = None
        assert r.n == expected, bytes(r.v).hex()


def test_shadow_qualifiers_agree(spark: SparkSession) -> None:
    """The guard's qualifier is the one that Omid writes, for any data qualifier, empty and not of text too."""
    qualifiers = [b"", b"q", b"a\x00\xff", b"\xc2\x80"]
    data = spark.createDataFrame([(bytearray(q),) for q in qualifiers], "q binary")
    for r in data.select("q", shadow_of(F.col("q")).alias("s")).collect():
        assert bytes(r.s) == shadow_qualifier(bytes(r.q))


# -- entries


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[bytes, Row]:
    """One commit table with every well-formed row and many that are not, read once; by row."""
    cells = [
        commit(50, 100),
        commit(1000, 1050),
        commit(1_700_000_000 * SECOND, 1_700_000_005 * SECOND),
        commit(1_700_000_000 * SECOND + 50, 1_700_086_400 * SECOND),
        cell(commit_key(150), b"IT", MARK),
        commit(200, 300),
        cell(commit_key(200), b"IT", MARK),
        commit(250, 250),
        cell(commit_key(400), b"C", b"\x32", kind="delete"),
        cell(LOW_WATERMARK_ROW, b"LWC", encode_long(99), family=b"LWF"),
        # Of forms that no rule names:
        cell(b"\x03" + encode_long(500), b"C", b"\x32"),
        cell(encode_long(550), b"C", b"\x32"),
        cell(commit_key(600) + b"\x00", b"C", b"\x32"),
        cell(b"", b"C", b"\x32"),
        cell(commit_key(650), b"C", b""),
        cell(commit_key(700), b"C", b"\x80"),
        cell(commit_key(750), b"C", b"\x32\x00"),
        cell(commit_key(800), b"C", b"\xff" * 9 + b"\x01"),
        cell(commit_key(850), b"IT", b"\x01"),
        cell(commit_key(900), b"X", b"\x32"),
        cell(commit_key(950), b"C", b"\x32", family=b"G"),
        commit(1003, 1050),
        commit(1100, 1150),
        cell(commit_key(1100), b"X", b"?"),
        commit(1200, 1300),
        cell(commit_key(1200), b"IT", b"\x00\x00\x00\x03"),
    ]
    rows = entries(spark, *cells)
    by_row = {bytes(r.row): r for r in rows}
    assert len(by_row) == len(rows)
    return by_row


@pytest.mark.parametrize(
    ("start", "tc", "key"),
    [
        (50, 100, "020000000000000032"),
        (1000, 1050, "0800000000000003e8"),
        (1_700_000_000 * SECOND, 1_700_000_005 * SECOND, "0017979cfe362a0000"),
        (1_700_000_000 * SECOND + 50, 1_700_086_400 * SECOND, None),
    ],
)
def test_commit_entries_are_decoded(found: dict[bytes, Row], start: int, tc: int, key: str | None) -> None:
    """A commit entry gives start and commit timestamp, for small numbers and a world clock's; keys are Omid's own."""
    r = found[bytes.fromhex(key) if key else commit_key(start)]
    assert (r.start_ts, r.commit_ts, r.invalid, r.fence, r.problem) == (start, tc, False, False, None)


def test_mark_alone(found: dict[bytes, Row]) -> None:
    """An invalidation mark alone is invalid, without commit timestamp."""
    r = found[commit_key(150)]
    assert (r.start_ts, r.commit_ts, r.invalid, r.problem) == (150, None, True, None)


def test_mark_beside_an_entry(found: dict[bytes, Row]) -> None:
    """A row with both is one row that shows both."""
    r = found[commit_key(200)]
    assert (r.commit_ts, r.invalid, r.problem) == (300, True, None)


def test_entry_that_commits_at_its_start_is_a_fence(found: dict[bytes, Row]) -> None:
    """A delta of 0 is a fence and nothing unknown."""
    r = found[commit_key(250)]
    assert (r.commit_ts, r.fence, r.problem) == (250, True, None)


def test_low_watermark_and_delete_markers_are_no_entries(found: dict[bytes, Row]) -> None:
    """The low watermark's row and delete markers of a raw read are left out."""
    assert LOW_WATERMARK_ROW not in found
    assert commit_key(400) not in found


@pytest.mark.parametrize("row", [b"\x03" + encode_long(500), encode_long(550), commit_key(600) + b"\x00", b""])
def test_bad_keys_are_named(found: dict[bytes, Row], row: bytes) -> None:
    """A key with the wrong bucket or another length belongs to no transaction, and is shown."""
    r = found[row]
    assert r.start_ts is None
    assert row.hex() in r.problem


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (650, "commit entry with value"),
        (700, "commit entry with value 80"),
        (750, "commit entry with value 3200"),
        (800, "commit entry with value ffffffffffffffffff01"),
        (850, "invalidation mark with value 01"),
        (900, "unknown column 46:58"),
        (950, "unknown column 47:43"),
        (1003, "start timestamp 1003 is no multiple of 50"),
        (1100, "unknown column 46:58"),
        (1200, "invalidation mark with value 00000003"),
    ],
)
def test_bad_cells_are_named(found: dict[bytes, Row], start: int, what: str) -> None:
    """A bad varint, a bad mark, an unknown column or an odd start is named, also beside cells that are right."""
    r = found[commit_key(start)]
    assert r.start_ts == start
    assert what in r.problem


def test_commit_beyond_63_bits_is_named(spark: SparkSession) -> None:
    """A delta that leads beyond every timestamp is a problem of its row, and does not end the run."""
    start = 1_700_000_000 * SECOND
    good, bad = sorted(
        entries(spark, commit(50, 100), cell(commit_key(start), b"C", b"\xff" * 8 + b"\x7f")),
        key=lambda r: r.row,
        reverse=True,
    )
    assert (good.commit_ts, good.problem) == (100, None)
    assert (bad.start_ts, bad.commit_ts) == (start, None)
    assert "ffffffffffffffff7f" in bad.problem


def test_key_beyond_63_bits_is_named(spark: SparkSession) -> None:
    """A key whose number would be negative is none of a transaction, and does not end the run."""
    [r] = entries(spark, cell(b"\x0f" + b"\xff" * 8, b"C", b"\x32"))
    assert r.start_ts is None
    assert "0fffffffffffffffff" in r.problem


# -- how full it is


def test_the_tally_counts_entries_and_marks(spark: SparkSession) -> None:
    """Whatever their rows and values; a row with both counts as both; the low watermark, other families and delete
    markers are neither.
    """
    cells = [
        commit(50, 100),
        commit(100, 150),
        cell(commit_key(150), b"C", b"no varint\xff"),
        cell(commit_key(200), b"IT", MARK),
        commit(200, 250),
        cell(b"no key", b"IT", MARK),
        cell(commit_key(250), b"C", b"\x32", kind="delete_column"),
        cell(commit_key(250), b"C", b"\x32", family=b"G"),
        cell(LOW_WATERMARK_ROW, b"LWC", encode_long(100), family=b"LWF"),
    ]
    [found] = omid.tally(frame(spark, cells), "F").collect()
    assert (found.entries, found.marks) == (4, 2)
    [empty] = omid.tally(frame(spark, []), "F").collect()
    assert (empty.entries, empty.marks) == (0, 0)


# -- journal


def test_journal(spark: SparkSession) -> None:
    """One row a pruned transaction: the commit where one was journaled, also beside a mark; null where only a mark
    was.
    """
    cells = [
        cell(commit_key(50), b"C", encode_long(100)),
        cell(commit_key(100), b"IT", MARK),
        cell(commit_key(150), b"C", encode_long(1_700_000_000 * SECOND)),
        cell(commit_key(150), b"IT", MARK),
        cell(commit_key(200), b"C", encode_long(250), kind="delete_column"),
    ]
    journaled = omid.journal(frame(spark, cells)).collect()
    assert {r.start_ts: r.commit_ts for r in journaled} == {50: 100, 100: None, 150: 1_700_000_000 * SECOND}
    assert not any(r.odd for r in journaled)


def test_a_journal_row_of_before_the_oracle_was_made_anew_names_nobody(spark: SparkSession) -> None:
    """The number may be another transaction's since: what was pruned is not known; what was journaled from then on
    is.
    """
    cells = [cell(commit_key(50), b"C", encode_long(100)), cell(commit_key(100), b"IT", MARK)]
    for since, odd in ((0, False), (1, False), (2, True)):
        found = {r.start_ts: r.odd for r in omid.journal(frame(spark, cells), since).collect()}
        assert found == {50: odd, 100: odd}


def test_who_decided_is_no_word_of_its_own(spark: SparkSession) -> None:
    """Beside a decision it changes nothing; alone it says nothing of the transaction, which is then not known."""
    cells = [
        cell(commit_key(50), b"C", encode_long(100)),
        cell(commit_key(100), b"IT", MARK),
        *(cell(commit_key(start), b"by", b"somebody@host") for start in (50, 100, 150)),
    ]
    journaled = omid.journal(frame(spark, [*cells, cell(commit_key(200), b"IT", MARK)])).collect()
    found = {r.start_ts: (r.commit_ts, r.odd, r.decided) for r in journaled}
    assert found == {
        50: (100, False, True),
        100: (None, False, True),
        150: (None, True, True),
        200: (None, False, False),
    }


def test_a_journal_row_that_pruning_did_not_write_is_odd(spark: SparkSession) -> None:
    """A commit of another length or beyond 63 bits, another mark, column or key: nothing is known of the transaction,
    not even beside a right cell.
    """
    cells = [
        cell(commit_key(50), b"C", encode_long(100)[4:]),
        cell(commit_key(100), b"C", b""),
        cell(commit_key(150), b"C", b"\xff" * 8),
        cell(commit_key(200), b"IT", b"\x00\x00\x00\x03"),
        cell(commit_key(250), b"D", encode_long(300)),
        cell(b"\x0f" + encode_long(300), b"C", encode_long(350)),
        cell(commit_key(350) + b"\x00", b"C", encode_long(400)),
        cell(commit_key(400), b"C", encode_long(450)),
        cell(commit_key(400), b"X", b"?"),
        cell(commit_key(450), b"C", encode_long(500)),
    ]
    found = {r.start_ts: r.odd for r in omid.journal(frame(spark, cells)).collect()}
    assert found == {**dict.fromkeys(range(50, 450, 50), True), 450: False}
