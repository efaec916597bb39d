"""History: how far back a table can be read, and holds that keep it readable.

::

    from lowtide.history import hold, read_options, read_point_at

    with hold(config, "orders", read_point_at(config, time), reason="month end") as held:
        ...  # every read point from held.timestamp on stays readable
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowtide.history.mark import Hold

if TYPE_CHECKING:
    from lowtide.history.holding import hold, read_options, read_point_at, release, renew, spark_settings, take

__all__ = ["Hold", "hold", "read_options", "read_point_at", "release", "renew", "spark_settings", "take"]


def __getattr__(name: str) -> object:
    """What reads and writes the store is imported when it is asked for.

    The store keeps marks and holds, so it imports this package's values; holds are taken in the store. Imported here at
    once, the two would go in a circle.
    """
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from lowtide.history import holding

    return getattr(holding, name)
