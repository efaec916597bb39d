"""What folders are called."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from lowtide_spark.frames.folders import name_of, safe
from lowtide_spark.verification.sidelines import _file_name

#: Letters and digits of several lengths in UTF-8, and signs whose codes begin like others'.
NAMES = st.text(st.sampled_from("aZ09.-_=~/ %!§×÷ü→€\u2021\u05c0\x80😀92"), max_size=6)


@example("a→", "a!92")
@example("×\x80", "\u05c0")
@given(NAMES, NAMES)
def test_no_two_runs_share_a_folder(one: str, other: str) -> None:
    """Whatever signs their ids have; a folder's name leads back to its run, and the verifier gives it the same."""
    assert (safe(one) == safe(other)) is (one == other), "two runs share a folder"
    assert name_of(safe(one)) == one
    assert _file_name(one) == safe(one)


def test_plain_ids_have_the_folders_that_they_had() -> None:
    """What was put aside before is found."""
    assert safe("manual-20261125T192955.768719Z") == "manual-20261125T192955.768719Z"
    assert safe("scheduled__2026-07-28T00:00:00+00:00") == "scheduled__2026-07-28T00=3A00=3A00=2B00=3A00"
    assert (safe(".."), safe("für alle"), safe("a=b")) == ("=2E=2E", "für=20alle", "a=3Db")
