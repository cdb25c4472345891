"""Tables: the same rows for people on a terminal and for the next program in a pipe.

In:  columns and rows of text.
Out: a drawn table on a terminal, or one row below the other where it is too narrow for that; plain columns, padded with
     blanks, anywhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

Rows = Sequence[Sequence[str]]
_MIN_SHARE = 2 / 3  # of the width that a table would have; folded into less, nobody can read it


def print_table(columns: Sequence[str], rows: Rows) -> None:
    if not sys.stdout.isatty():
        _print_plain(columns, rows)
        return
    from rich.console import Console

    console = Console()
    drawn = sum(_widths([columns, *rows])) + 3 * len(columns) + 1
    if console.width >= drawn * _MIN_SHARE:
        _print_drawn(console, columns, rows)
    else:
        _print_blocks(console, columns, rows)


def _print_drawn(console: Console, columns: Sequence[str], rows: Rows) -> None:
    from rich.box import ROUNDED
    from rich.table import Table
    from rich.text import Text

    table = Table(box=ROUNDED, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        # As Text: brackets in a cell are no markup.
        table.add_row(*map(Text, row))
    console.print(table)


def _print_blocks(console: Console, columns: Sequence[str], rows: Rows) -> None:
    """Every row by itself, a line per cell that holds anything."""
    from rich.text import Text

    width = max(map(len, columns))
    for number, row in enumerate(rows):
        if number:
            console.print()
        for column, cell in zip(columns, row, strict=True):
            if cell:
                console.print(Text.assemble((column.ljust(width + 2), "bold"), cell))


def _print_plain(columns: Sequence[str], rows: Rows) -> None:
    lines = [[column.upper() for column in columns], *rows]
    widths = _widths(lines)
    for line in lines:
        padded = "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        # No blanks at the ends of lines: they would show up in diffs.
        sys.stdout.write(padded.rstrip() + "\n")


def _widths(lines: Rows) -> list[int]:
    return [max(map(len, cells)) for cells in zip(*lines, strict=True)]
