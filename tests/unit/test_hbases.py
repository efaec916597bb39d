"""The version of HBase's servers: named, and noted where it was not tried."""

from __future__ import annotations

import pytest

from lowtide.run.hbases import TRIED, line_of, untried


@pytest.mark.parametrize("version", [f"{line}.0" for line in TRIED] + ["2.6.4-hadoop3", "2.6", ""])
def test_nothing_is_said_of_what_was_tried(version: str) -> None:
    """A vendor's suffix and the release within a line make no difference; what is not known is no note."""
    assert untried(version) == ""


@pytest.mark.parametrize("version", ["2.4.18", "2.7.0-hadoop3", "3.0.0-beta-1", "2.60.1", "1.6.0", "2", "unknown"])
def test_what_was_not_tried_is_named_with_what_to_do(version: str) -> None:
    """The version, those that were tried, and to look before anything acts."""
    note = untried(version)
    for word in (version, *TRIED, "dry run"):
        assert word in note


def test_the_line_is_of_two_numbers() -> None:
    """Whatever stands behind them."""
    assert [line_of(text) for text in ("2.6.4-hadoop3", "2.5.11", "2.10.1.7.3.1.0-197", "3")] == [
        "2.6",
        "2.5",
        "2.10",
        "3",
    ]
