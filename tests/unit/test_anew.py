"""When the records may be reset after the oracle was made anew."""

from __future__ import annotations

from datetime import UTC, datetime

from lowtide.cleaning.given import MILLIS, given, left
from lowtide.cleaning.renumbered import BEYOND, before_its_start, beginning, refusal, skipped
from lowtide.store.records import Epoch
from lowtide.values.clock import is_world
from lowtide.values.formats import CHECKPOINTS, encode_long
from lowtide.values.hbase_shell import quoted

OWN = ("LOWTIDE_STATE", "LOWTIDE_JOURNAL")


def test_of_the_same_oracle_nothing_is_reset_before_it_has_started() -> None:
    """A commit table that came back has the low watermark of then; the oracle is not to be set beyond anything."""
    assert before_its_start(1000, 1000) == before_its_start(0, 50) == ""
    told = before_its_start(1000, 950)
    assert "Start the oracle again, then reset" in told
    assert "let it begin" not in told


def test_an_oracle_that_is_past_every_number_of_before_stands_in_no_reset() -> None:
    """Its low watermark is the highest recorded, or higher."""
    assert refusal(1000, 1000, "T", OWN) == refusal(1000, 1050, "T", OWN) == refusal(0, 0, "T", OWN) == ""


def test_a_counter_is_told_where_to_begin() -> None:
    """The statement for HBase's shell, with the number's bytes, and what to do where nothing of before is left."""
    told = refusal(1000, 950, "OMID_TIMESTAMP_TABLE", OWN)
    number = beginning(1000)
    shell = quoted(encode_long(number))
    for word in (
        "low watermark 950, below 1000",
        f"begin at {number}",
        f'put \'OMID_TIMESTAMP_TABLE\', "MAX_TIMESTAMP_R", "MAX_TIMESTAMP_CF:MAX_TIMESTAMP_Q", {shell}; start it',
        "drop LOWTIDE_STATE and LOWTIDE_JOURNAL",
    ):
        assert word in told


def test_a_counter_begins_far_beyond_what_was_seen_and_stays_a_counter() -> None:
    """Beyond the highest low watermark lies what was given out above it; a world clock's timestamps are never
    reached.
    """
    for recorded in (0, 50, 10**12, 10**16, 10**17 - 5 * 10**14, 10**17 - 1000):
        number = beginning(recorded)
        assert recorded < number
        assert not is_world(number)
        assert number % CHECKPOINTS == 0
    assert beginning(10**12) - 10**12 == BEYOND


def test_what_a_counter_was_set_beyond_is_known() -> None:
    """From the highest low watermark seen to where the statement of the refusal lets it begin; one that was not set so
    skipped nothing that is known, nor did one that is a world clock now.
    """
    begins = beginning(1000)
    assert skipped(1000, begins) == skipped(1000, begins + 5000) == (1001, begins)
    assert skipped(1000, begins - 1) is skipped(1000, 1000) is skipped(1000, 900) is None
    assert skipped(1000, 10**18) is skipped(10**18, 10**18 + 50) is None


def test_who_meets_a_number_of_a_plain_cell_is_told_what_to_do() -> None:
    """How many, one of them, why, the mark for the other families, and the word that decides."""
    [doubt] = given(False, [], datetime(2026, 1, 1, tzinfo=UTC)).doubts
    told = left(doubt.why, 1200, doubt.start, "ns:t")
    for word in (
        "1,200 cells",
        MILLIS,
        "alter 'ns:t', {NAME => 'FAMILY', METADATA => {'OMID_ENABLED' => 'true'}}",
        f"lowtide resolve {10**12} --aborted",
    ):
        assert word in told


def test_a_world_clock_is_waited_for() -> None:
    """Its timestamps come by themselves."""
    told = refusal(1_700_000_000 * 10**9, 1_600_000_000 * 10**9, "T", OWN)
    assert "clock of the oracle's machine" in told
    assert "MAX_TIMESTAMP" not in told


def test_an_epoch_is_compared_whole() -> None:
    """Counter, nonce and generation are stored and read as one text; a counter alone is one of before there were
    others.
    """
    first = Epoch.parse(None).next("a1b2", 3)
    assert (str(first), Epoch.parse(str(first).encode())) == ("1/a1b2/3", first)
    old = Epoch.parse(b"41")
    assert (str(old), str(old.next("ff", 0))) == ("41", "42/ff/0")
    assert first != Epoch.parse(None).next("c3d4", 3)
    assert first != Epoch.parse(None).next("a1b2", 4)
