"""``python -m bench.scale``: what a store takes that is far larger than any machine here. Computed, not run.

From what was measured on two cores (docs/performance.md), as if everything grew in proportion. No store of this size
was cleaned; and executors on machines of their own share less than HBase, Spark and the rest did on that one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """What one core of that machine did in a second, and how large things were. Of docs/performance.md."""

    #: Cells of HBase's files that are gone through for suspects: 11.0 M a second by two cores.
    cells_from_files: float = 5.5e6
    #: The same through region servers, which have a part of the two cores: 3.5 M a second.
    cells_over_rpc: float = 1.75e6
    #: Bytes of a cell in store files that are neither compressed nor encoded: 1,393 MB for 20 M cells.
    cell_bytes: float = 70.0
    #: Guarded mutations: some 0.23 ms of processor time each, HBase's own part among it.
    mutations: float = 4_300.0
    #: What a table costs the driver that has nothing to do, in seconds.
    idle_table: float = 0.038


@dataclass(frozen=True)
class Store:
    """A store, and what lies in it."""

    stored: float = 10e12
    tables: int = 500
    #: Commit entries that nothing ever removed.
    entries: float = 1e9
    #: Cells that go, and are healed.
    cells_to_mend: float = 100e6
    #: Of what is stored, what a day adds.
    day: float = 0.002


#: Disks that read at so many bytes a second each; as many as there are machines with eight cores.
DISK, CORES_OF_A_DISK = 150e6, 8
CORES = (16, 64, 256)


def hours(store: Store, cores: int, measured: Measured) -> dict[str, float]:
    """Hours of each step on so many executors' cores, the driver beside them."""
    cells = store.stored / measured.cell_bytes
    disks = store.stored / (DISK * cores / CORES_OF_A_DISK)
    driver = store.tables * measured.idle_table
    mutations = measured.mutations * cores
    seconds = {
        "first cleanup, from files": max(cells / measured.cells_from_files / cores, disks)
        + store.cells_to_mend / mutations
        + driver,
        "first cleanup, through region servers": max(cells / measured.cells_over_rpc / cores, disks)
        + store.cells_to_mend / mutations
        + driver,
        # Into the journal, and off the commit table; and the gate reads of each table what is as old as they are: all.
        "first pruning, of every entry": max(cells / measured.cells_over_rpc / cores, disks)
        + 2 * store.entries / mutations
        + driver,
        "a day's cleanup, where files keep days apart": max(
            cells * store.day / measured.cells_over_rpc / cores, disks * store.day
        )
        + driver,
    }
    return {step: took / 3600 for step, took in seconds.items()}


def page() -> str:
    """The table of docs/performance.md."""
    found = [hours(Store(), cores, Measured()) for cores in CORES]
    lines = [
        "| step | " + " | ".join(f"{cores} cores" for cores in CORES) + " |",
        "|---|" + "---|" * len(CORES),
        *(f"| {step} | " + " | ".join(_told(each[step]) for each in found) + " |" for step in found[0]),
    ]
    return "\n".join(lines) + "\n"


def _told(hours: float) -> str:
    if hours < 1:
        return f"{hours * 60:.0f} min" if hours > 2 / 60 else f"{hours * 3600:.0f} s"
    return f"{hours:,.0f} h" if hours >= 10 else f"{hours:.1f} h"


if __name__ == "__main__":
    print(page(), end="")
