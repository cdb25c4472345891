"""The full-screen view: heat map, pods that wait, events; keys to filter. It needs no mouse and works over ssh.

In:  a feed.
Out: the screen, made anew at most once a second, and only when something has changed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import ClassVar

import msgspec
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Input, Static

from drakit.base.errors import DrakitError
from drakit.cli.commands.top.feed import TopFeed
from drakit.cli.commands.top.heatmap import HeatMap, legend
from drakit.cli.commands.top.screen import ScreenContent, ScreenFilter, WaitingPod, screen_content
from drakit.explain import ClusterObjects, explain_pod
from drakit.explain.lines import explanation_lines

_SECONDS = 1.0
_REST = 4.0
"""Pause after a refresh, as a multiple of the time it took: at most a fifth of a core is used."""


class TopApplication(App[None]):
    CSS = """
    #summary { height: 1; background: $primary-background; }
    #legend { height: 1; color: $text-muted; }
    #filter { display: none; height: 3; }
    .heading { height: 1; text-style: bold; }
    #pods { height: 30%; }
    #events { height: 25%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        # With priority: it takes effect before the next key is given to anybody. Over ssh keys come several at once.
        Binding("slash", "find", "Find", key_display="/", priority=True),
        Binding("d", "driver", "Driver"),
        Binding("n", "namespace", "Namespace"),
        Binding("f", "free", "Free only"),
        Binding("p", "pods", "Pods, Enter explains"),
        Binding("escape", "all", "Everything"),
        Binding("tab", "focus_next", "Next", show=False),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, feed: TopFeed) -> None:
        super().__init__()
        self._feed = feed
        self.wanted = ScreenFilter()
        self.content = ScreenContent()
        self._shown: tuple[int, str, ScreenFilter] | None = None
        self._rest_until = 0.0

    def compose(self) -> ComposeResult:
        yield Static(id="summary", markup=False)
        yield Static(legend(), id="legend", markup=False)
        yield HeatMap(id="heat")
        with Vertical(id="pods"):
            yield Static("Pending pods", classes="heading")
            yield DataTable(id="waiting", cursor_type="row")
        with Vertical(id="events"):
            yield Static("Events", classes="heading")
            yield DataTable(id="happened", cursor_type="row")
        yield Input(placeholder="part of a name, reason or message; Enter to go back", id="filter")
        yield Footer()

    async def on_mount(self) -> None:
        self.query_one("#waiting", DataTable).add_columns("NAMESPACE", "POD", "WHY")
        self.query_one("#happened", DataTable).add_columns("TIME", "TYPE", "REASON", "OBJECT", "MESSAGE")
        self.query_one(HeatMap).focus()
        await self.look()
        self.set_interval(_SECONDS, self._look_again)

    async def look(self) -> None:
        """Refresh the screen if the cluster or the filter has changed."""
        now = (self._feed.revision, self._feed.problem, self.wanted)
        if now == self._shown:
            return
        # Set before the work: keys that are pressed meanwhile differ from it, and lead to another look.
        self._shown = now
        cluster, events, wanted = self._feed.objects(), self._feed.events(), self.wanted
        # A large cluster takes a while: keys are heard meanwhile.
        self.content = await asyncio.to_thread(screen_content, cluster, events, wanted)
        self._draw()

    async def _look_again(self) -> None:
        """A cluster that takes long to look at is looked at less often."""
        if time.monotonic() < self._rest_until:
            return
        begun = time.monotonic()
        await self.look()
        self._rest_until = time.monotonic() + _REST * (time.monotonic() - begun)

    def _draw(self) -> None:
        content, total = self.content, self.content.totals
        problem = f"{self._feed.problem} · " if self._feed.problem else ""
        # The title last: it is known, and may be long. What is behind the edge of the terminal nobody sees.
        self.query_one("#summary", Static).update(
            f"{problem}{total.cards} cards: {total.used} used, {total.free} free, {total.tainted} tainted"
            f" · {counted(len(content.waiting), 'pod')} pending · showing {self.wanted} · {self._feed.title}"
        )
        self.query_one(HeatMap).show(content.rows)
        _fill(
            self.query_one("#waiting", DataTable),
            [(each.namespace, each.name, each.reason) for each in content.waiting],
        )
        lines = [(each.time, each.type, each.reason, each.object, each.message) for each in content.events]
        _fill(self.query_one("#happened", DataTable), lines)

    async def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter on a pod that waits: everything about it."""
        if event.data_table.id == "waiting" and event.cursor_row < len(self.content.waiting):
            pod = self.content.waiting[event.cursor_row]
            found = await asyncio.to_thread(_explanation, self._feed.objects(), pod)
            await self.push_screen(ExplanationScreen(found))

    # Keys

    async def action_driver(self) -> None:
        await self._filter(driver=_next(self.wanted.driver, self.content.drivers))

    async def action_namespace(self) -> None:
        await self._filter(namespace=_next(self.wanted.namespace, self.content.namespaces))

    async def action_free(self) -> None:
        await self._filter(free_only=not self.wanted.free_only)

    async def action_all(self) -> None:
        self._hide_input()
        self.wanted = ScreenFilter()
        await self.look()

    def action_pods(self) -> None:
        self.query_one("#waiting", DataTable).focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A slash in the field is a letter like any other, and an explanation in front is not filtered."""
        if action == "find":
            return not isinstance(self.screen, ModalScreen) and not self.query_one("#filter", Input).display
        return super().check_action(action, parameters)

    def action_find(self) -> None:
        field = self.query_one("#filter", Input)
        field.display = True
        self.set_focus(field)

    async def on_input_changed(self, event: Input.Changed) -> None:
        await self._filter(text=event.value)

    def on_input_submitted(self) -> None:
        self._hide_input()

    def _hide_input(self) -> None:
        self.query_one("#filter", Input).display = False
        self.query_one(HeatMap).focus()

    async def _filter(self, **fields: object) -> None:
        self.wanted = msgspec.structs.replace(self.wanted, **fields)
        await self.look()


class ExplanationScreen(ModalScreen[None]):
    CSS = """
    ExplanationScreen { align: center middle; }
    #explanation { border: round $accent; padding: 0 1; height: 90%; width: 95%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter", "dismiss", "Back")]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="explanation"):
            yield Static(self._text, markup=False)


def _explanation(cluster: ClusterObjects, pod: WaitingPod) -> str:
    try:
        return "\n".join(explanation_lines(explain_pod(cluster, pod.name, pod.namespace)))
    except DrakitError as error:
        return str(error)


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _next(current: str, names: Sequence[str]) -> str:
    """The name after this one; after the last one none, which is all of them."""
    around = ["", *names]
    return around[(around.index(current) + 1) % len(around)] if current in around else ""


def _fill(table: DataTable[str], rows: Sequence[tuple[str, ...]]) -> None:
    """Replace the rows of a table. Cursor and scroll position stay."""
    row, offset = table.cursor_row, table.scroll_y
    table.clear()
    table.add_rows(rows)
    if rows:
        table.move_cursor(row=min(row, len(rows) - 1), scroll=False)
        table.scroll_to(y=offset, animate=False)
