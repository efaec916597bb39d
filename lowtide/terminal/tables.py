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
    """Give each column the room of its longest word, and of what is left first what its cells ask for, then its title;
    whether that can be.
    """
    endless = console.options.update(width=_ENDLESS)
    titles = [Measurement.get(console, endless, column.header) for column in table.columns]
    cells = [[Measurement.get(console, endless, cell) for cell in column.cells] for column in table.columns]
    most = [max(m.maximum for m in (title, *inner)) for title, inner in zip(titles, cells, strict=True)]
    words = [max(m.minimum for m in (title, *inner)) for title, inner in zip(titles, cells, strict=True)]
    widths = [b if column.no_wrap else a for a, b, column in zip(words, most, table.columns, strict=True)]
    lines_and_padding = whole.maximum - sum(most)
    left = room - lines_and_padding - sum(widths)
    if left < 0:
        return False
    for wanted in ([max((m.maximum for m in inner), default=0) for inner in cells], most):
        given = _shares(left, [max(0, want - width) for want, width in zip(wanted, widths, strict=True)])
        widths = [width + more for width, more in zip(widths, given, strict=True)]
        left -= sum(given)
    for column, width in zip(table.columns, widths, strict=True):
        column.width = width
    return True


def _shares(left: int, asked: Sequence[int]) -> list[int]:
    """Of *left*, to each what it asks for, the most modest first; to those for whom it does not suffice, the same."""
    given = [0] * len(asked)
    for done, place in enumerate(sorted(range(len(asked)), key=asked.__getitem__)):
        given[place] = min(asked[place], (left - sum(given)) // (len(asked) - done))
    return given


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
