"""Tables: the same rows for people on a terminal and for the next program in a pipe.

In:  columns and rows of text.
Out: a drawn table on a terminal; plain columns, padded with blanks, anywhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if sys.stdout.isatty():
        _print_drawn(columns, rows)
    else:
        _print_plain(columns, rows)


def _print_drawn(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import ROUNDED
    from rich.console import Console
    from rich.table import Table

    table = Table(box=ROUNDED, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _print_plain(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [[column.upper() for column in columns], *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        padded = "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write(padded.rstrip() + "\n")
