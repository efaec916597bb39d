"""Asking one by one: for all that somebody answers, and no longer than that."""

from __future__ import annotations

import pytest

from lowtide.run.patience import IN_VAIN, LONG, Patience


class Asked:
    """Tables, of which some fail, after some seconds of a clock of its own."""

    def __init__(self, *, takes: float, failing: set[int]) -> None:
        self.now, self.asked = 0.0, 0
        patience = Patience(lambda: self.now)

        def table(number: int) -> int:
            self.asked += 1
            if number in failing:
                self.now += takes
                msg = f"nobody answers for {number}"
                raise ConnectionError(msg)
            return number

        self.ended: list[object] = []
        for number in range(10):
            try:
                self.ended.append(patience.ask(lambda number=number: table(number)))  # type: ignore[misc]
            except ConnectionError as error:
                self.ended.append(str(error))


def test_one_that_fails_hides_no_other() -> None:
    """Nor do many that are refused at once, nor a few for which nobody answers here and there."""
    many = Asked(takes=LONG - 1, failing={0, 1, 2, 3, 4, 5, 6})
    assert (many.asked, many.ended[7:]) == (10, [7, 8, 9])
    here_and_there = Asked(takes=LONG, failing={0, 1, 3, 4, 6, 7})
    assert (here_and_there.asked, here_and_there.ended[2::3]) == (10, [2, 5, 8])


def test_a_store_that_is_away_is_not_asked_for_ever() -> None:
    """What is not asked any more has the last one's error."""
    away = Asked(takes=LONG, failing=set(range(10)))
    assert away.asked == IN_VAIN
    assert away.ended[IN_VAIN:] == [f"nobody answers for {IN_VAIN - 1}"] * (10 - IN_VAIN)


def test_the_first_one_is_asked() -> None:
    """Whatever it says."""
    with pytest.raises(ValueError, match="no"):
        Patience().ask(lambda: int("no"))
