"""``--list``: the cells that a run writes or removes, or would. The first are printed, all go to a list."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.run.cell_lines import FIRST, line, shortened
from lowtide_spark.frames import cell_list, shown
from lowtide_spark.run.context import Run

#: Of a cell, what its writer chooses.
_KEYS = ("row", "family", "qualifier")


def list_cells(run: Run, table: str, cells: DataFrame, *, acts: bool) -> None:
    """List *cells* of *table*, where the run was asked to.

    They are the very frame by which the run acts, or would act. So a list is written before what it tells of is done:
    whatever of it then fails, or is refused by a guard, is counted in the run's summary.

    Args:
        run: the run.
        table: where the cells are.
        cells: :data:`lowtide_spark.frames.cell_list.COLUMNS`, computed once.
        acts: whether the run goes on to do it, step by step; else the list replaces an earlier try's.

    Raises:
        StoreError: the list cannot be written; nothing of it may be done then.
    """
    if not run.options.list:
        return
    number = cells.count()
    cell_list.write(run, table, cells, anew=not acts)
    listing = run.summary.listing
    if not listing.folder:  # where nothing ever acts, lists go with the next list
        cell_list.sweep(run)
    listing.folder = cell_list.folder_of(run, run.request.run)
    listing.cells[table] += number
    if room := FIRST - len(listing.first):
        _show(run, table, cells, room)


def _show(run: Run, table: str, cells: DataFrame, room: int) -> None:
    """Print the first, by their keys and from a cell's newest version on, and keep them for the summary. Long keys are
    cut, and so ordered, before they come to the driver; the list has them whole.
    """
    lengths = {name: f"{name}_bytes" for name in _KEYS}
    others = (F.col(name) for name in cell_list.COLUMNS if name not in _KEYS)
    keys = (shown.head(F.col(name)).alias(name) for name in _KEYS)
    told = cells.select(*others, *keys, *(F.length(name).alias(of) for name, of in lengths.items()))
    ordered = told.orderBy("row", "family", "qualifier", F.desc("timestamp")).limit(room)
    for found in cell_list.lines(table, ordered, *lengths.values()).collect():
        fields = found.asDict()
        cell = shortened(fields, {name: fields.pop(of) for name, of in lengths.items()})
        print(f"{run.summary.job}: list: {line(cell)}", flush=True)
        run.summary.listing.first.append(cell)
