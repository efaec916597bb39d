"""Tables in which nothing is cut: who reads an id, a table's name or a row key wants to copy it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from rich.console import Console, JustifyMethod, RenderableType
from rich.measure import Measurement
from rich.segment import Segments
from rich.table import Table
from rich.text import Text

#: Wider than any line: what is written into a file or a pipe has the room that it needs.
_ENDLESS = 1_000_000


def new_table(title: str, *columns: str, numbers: Collection[str] = (), whole: Collection[str] = ()) -> Table:
    """An empty table: *numbers* are the columns that stand on the right, *whole* those whose lines are never broken."""
    table = Table(title=title or None, title_justify="left")
    for column in columns:
        justify: JustifyMethod = "right" if column in numbers else "left"
        table.add_column(column, justify=justify, no_wrap=column in whole, overflow="fold")
    return table


def print_table(console: Console, table: Table) -> None:
    """Print *table* with every word of it in one piece: side by side what fits, else a line a column, row by row.

    Lines are broken between words alone, those of a column with ``no_wrap`` nowhere, and none where no terminal limits
    them.
    """
    options = console.options.update(width=_ENDLESS)
    whole = Measurement.get(console, options, table)
    if console.is_terminal and console.width < whole.maximum:
        if not _fitted(console, table, console.width, whole):
            for line in _blocks(table):
                console.print(line, soft_wrap=True)
            return
        options = console.options
    else:
        options = options.update(width=whole.maximum)
    # Not print's own width, which is at most the console's.
    console.print(Segments(console.render(table, options)), soft_wrap=True, end="")


def _fitted(console: Console, table: Table, room: int, whole: Measurement) -> bool:
    """Give each column the room of its longest word, and of what is left a share of what it asks for; whether that can
    be.
    """
    endless = console.options.update(width=_ENDLESS)
    by_column = [
        [Measurement.get(console, endless, cell) for cell in (column.header, *column.cells)] for column in table.columns
    ]
    most = [max(m.maximum for m in cells) for cells in by_column]
    words = [max(m.minimum for m in cells) for cells in by_column]
    least = [b if column.no_wrap else a for a, b, column in zip(words, most, table.columns, strict=True)]
    lines_and_padding = whole.maximum - sum(most)
    left, missing = room - lines_and_padding - sum(least), sum(most) - sum(least)
    if left < 0:
        return False
    for column, low, high in zip(table.columns, least, most, strict=True):
        column.width = low + (left * (high - low) // missing if missing else 0)
    return True


def _blocks(table: Table) -> Iterator[RenderableType]:
    """Row by row, a line for each column that has a value."""
    titles = [_text(column.header) for column in table.columns]
    wide = max(title.cell_len for title in titles)
    if table.title:
        yield Text(str(table.title), "italic")
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        yield from _block(titles, [_text(cell) for cell in cells], wide)
        yield Text()
    if table.caption:
        yield Text(str(table.caption), "dim")


def _block(titles: Sequence[Text], cells: Sequence[Text], wide: int) -> Iterator[Text]:
    for title, cell in zip(titles, cells, strict=True):
        if cell.plain.strip():
            yield Text.assemble((title.plain.ljust(wide + 2), "bold"), cell)


def _text(cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))
