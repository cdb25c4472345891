"""The heat map: a line per node, a cell per card, drawn only where somebody looks.

Colours say how much is taken, and so do the characters: on a terminal without colours, and to those who see few.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from drakit.cli.commands.top.screen import CardState, HeatRow

CELLS = {
    CardState.FREE: ("·· ", Style(color="green")),
    CardState.PARTLY: ("▒▒ ", Style(color="yellow")),
    CardState.USED: ("██ ", Style(color="red")),
    CardState.TAINTED: ("xx ", Style(color="magenta")),
    CardState.UNHEALTHY: ("!! ", Style(color="bright_red", bold=True)),
}
_NAMES = Style(bold=True)
_COUNT = Style(dim=True)


class HeatMap(ScrollView, can_focus=True):
    DEFAULT_CSS = "HeatMap { height: 1fr; }"

    def __init__(self, *, id: str) -> None:  # noqa: A002 - as textual calls it
        super().__init__(id=id)
        self._rows: Sequence[HeatRow] = ()
        self._names = 4

    def show(self, rows: Sequence[HeatRow]) -> None:
        self._rows = rows
        self._names = max((len(row.node) for row in rows), default=4)
        cards = max((len(row.cards) for row in rows), default=0)
        self.virtual_size = Size(self._names + 2 + 3 * cards + 8, max(1, len(rows)))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        width, ground = self.size.width, self.rich_style
        if top + y >= len(self._rows):
            said = "no devices" if not self._rows and y == 0 else ""
            return Strip([Segment(said.ljust(width), ground)])
        return self._line(self._rows[top + y]).crop(left, left + width).adjust_cell_length(width).apply_style(ground)

    def _line(self, row: HeatRow) -> Strip:
        taken = sum(card.state in (CardState.USED, CardState.PARTLY) for card in row.cards)
        cells = [Segment(*CELLS[card.state]) for card in row.cards]
        name = Segment(row.node.ljust(self._names + 2), _NAMES)
        return Strip([name, *cells, Segment(f" {taken}/{len(row.cards)}", _COUNT)])


def legend() -> Text:
    return Text("   ").join(
        Text.assemble((cell.strip(), style), f" {state.value}") for state, (cell, style) in CELLS.items()
    )
