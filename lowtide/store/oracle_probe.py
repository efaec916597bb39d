"""Whether the oracle is up, as far as a connection to its port tells.

For jobs and for people, from any machine: nothing of Omid's protocol is used, and no timestamp is taken. (The stack
on one machine asks its own oracle for a timestamp, :mod:`lowtide.lab.stack.probes`: it has started it and must know
that it works.)
"""

from __future__ import annotations

from collections.abc import Sequence

from lowtide.store.ports import nobody_answers


def unreachable(addresses: Sequence[str], seconds: float) -> str:
    """Why the oracle counts as down; empty where one of its addresses takes a connection, or none is configured.

    Args:
        addresses: of ``omid.oracle``, host:port, whose form the configuration has checked.
        seconds: how long each may take to answer.
    """
    return f"the oracle does not answer at {', '.join(addresses)}" if nobody_answers(addresses, seconds) else ""
