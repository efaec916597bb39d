"""What a demo fills its store with, and the days that it gives it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from lowtide.config import Config
from lowtide.lab.demo.settings import DemoSettings
from lowtide.lab.stack import Stack
from lowtide.lab.workload import Model, OmidClient, RemoteStore, Result, Shape, run
from lowtide.report import Workload
from lowtide.store.state import opened

#: A table of each size.
SHAPE = Shape(tables=("accounts", "audit", "orders"), rows=90)
#: Of each table.
REGIONS = 3


def work(
    store: Stack | RemoteStore,
    settings: DemoSettings,
    omid: OmidClient,
    history: Path,
    today: date,
    tell: Callable[[str], None],
) -> Result:
    """Let clients work, and one a day be killed, for the days before *today*; they are told as they begin. *history* is
    kept for the model.
    """
    dates = iter([today - timedelta(days=back) for back in range(settings.days, 0, -1)])
    return run(
        store,
        settings.seed,
        settings.transactions,
        history,
        shape=SHAPE,
        slices=settings.days,
        kills=settings.days,
        halts=0,
        regions=REGIONS,
        omid=omid,
        progress=lambda _slice: tell(f"{next(dates):%A, %d %B}"),
    )


def backdate(config: Config, boundaries: Sequence[int], today: date) -> None:
    """Say in the state table that the oracle reached *boundaries* at the last midnights, the last of them at that of
    *today*.

    Timestamps of an oracle that counts mean what these samples say; ``watermark_collection`` would have noted them day
    by day.
    """
    with opened(config) as state:
        state.create()
        for back, boundary in enumerate(reversed(boundaries)):
            state.add_sample(datetime.combine(today - timedelta(days=back), time(), UTC), boundary)


def outcomes(seed: int, model: Model) -> Workload:
    """For people: how each transaction ended."""
    counts = model.counts()
    told = [
        ("committed", counts["committed"]),
        ("rolled back", counts["rolled back"]),
        ("refused", counts["conflict"] + counts["watermark"]),
        ("only read", counts["read only"]),
        ("abandoned", counts["abandoned"]),
    ]
    return Workload(seed, tuple((name, number) for name, number in told if number))
