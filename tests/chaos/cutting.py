"""From a plan that fails to a small one that still does: delta debugging over the numbers of its steps and seams."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def cut_down(numbers: Sequence[int], fails: Callable[[Sequence[int]], bool], tries: int = 60) -> list[int]:
    """The numbers that are left when nothing more can go, or after so many *tries*.

    *fails*: whether a plan of these numbers alone fails. All of them do; that is not tried. What is given back was
    tried, or is all. (Zeller and Hildebrandt's ``ddmin``, which leaves pieces out and takes what still fails.)
    """
    left, pieces = list(numbers), 2
    while len(left) > 1 and tries > 0:
        size = -(-len(left) // pieces)
        for begin in range(0, len(left), size):
            rest = left[:begin] + left[begin + size :]
            tries -= 1
            if rest and fails(rest):
                left, pieces = rest, max(pieces - 1, 2)
                break
            if tries <= 0:
                break
        else:
            if size == 1:
                break
            pieces = min(2 * pieces, len(left))
    return left
