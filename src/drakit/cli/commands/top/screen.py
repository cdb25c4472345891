"""What `drakit top` shows: nodes and their cards, pods that wait, events. Plain data, so that it can be made anywhere.

In:  the objects of a cluster, its events, what the user filters by.
Out: a ScreenContent.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from drakit.api import Event, Pod
from drakit.explain import ClusterObjects, DeviceRow, DeviceState, Totals, completed, device_rows, totals
from drakit.explain.pods import explained

SEVERAL = "(several nodes)"
_EVENTS = 200
_EXPLAINED = 8
"""How many pods get an explanation of our own; the others show what the scheduler wrote."""


class CardState(StrEnum):
    """Of a whole card: its partitions are alternatives, and are not counted one by one."""

    FREE = "free"
    PARTLY = "partly used"
    USED = "used"
    TAINTED = "tainted"
    UNHEALTHY = "unhealthy"


class Card(msgspec.Struct, frozen=True):
    driver: str
    name: str
    state: CardState


class HeatRow(msgspec.Struct, frozen=True):
    node: str
    cards: tuple[Card, ...]

    @property
    def is_free(self) -> bool:
        return any(card.state in (CardState.FREE, CardState.PARTLY) for card in self.cards)


class WaitingPod(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    reason: str


class EventLine(msgspec.Struct, frozen=True):
    time: str
    type: str
    reason: str
    object: str
    message: str


class ScreenFilter(msgspec.Struct, frozen=True):
    """`text` is looked for in names and messages; an empty driver is all of them."""

    text: str = ""
    driver: str = ""
    namespace: str = ""
    free_only: bool = False

    def __str__(self) -> str:
        parts = (
            f"/{self.text}" if self.text else "",
            f"driver {self.driver}" if self.driver else "",
            f"namespace {self.namespace}" if self.namespace else "",
            "nodes with free cards" if self.free_only else "",
        )
        return ", ".join(filter(None, parts)) or "everything"

    def finds(self, *texts: str) -> bool:
        return not self.text or any(self.text.lower() in each.lower() for each in texts)


class ScreenContent(msgspec.Struct, frozen=True):
    rows: tuple[HeatRow, ...] = ()
    waiting: tuple[WaitingPod, ...] = ()
    events: tuple[EventLine, ...] = ()
    totals: Totals = Totals(0, 0, 0, 0, 0)
    drivers: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()


def screen_content(cluster: ClusterObjects, events: Iterable[Event], wanted: ScreenFilter) -> ScreenContent:
    devices = device_rows(cluster)
    shown = [row for row in devices if not wanted.driver or row.driver == wanted.driver]
    return ScreenContent(
        rows=tuple(_heat(shown, wanted)),
        waiting=tuple(_waiting(cluster, wanted)),
        events=tuple(_lines(events, wanted)),
        totals=totals(shown),
        drivers=tuple(sorted({row.driver for row in devices})),
        namespaces=tuple(sorted({pod.metadata.namespace for pod in cluster.all(Pod)})),
    )


def _heat(devices: Sequence[DeviceRow], wanted: ScreenFilter) -> list[HeatRow]:
    by_node: dict[str, dict[tuple[str, str, str], list[DeviceRow]]] = defaultdict(lambda: defaultdict(list))
    for row in devices:
        by_node[row.node or SEVERAL][row.driver, row.pool, row.card].append(row)
    rows = (
        HeatRow(node, tuple(Card(driver, name, card_state(parts)) for (driver, _, name), parts in cards.items()))
        for node, cards in sorted(by_node.items(), key=lambda each: _natural(each[0]))
    )
    return [row for row in rows if wanted.finds(row.node) and (row.is_free or not wanted.free_only)]


def _natural(name: str) -> list[tuple[int, str]]:
    """`node-9` before `node-10`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def card_state(parts: Sequence[DeviceRow]) -> CardState:
    """A card with its partitions: what is wrong with it comes first, then how much of it is taken."""
    if any(not part.healthy for part in parts):
        return CardState.UNHEALTHY
    states = {part.state for part in parts}
    # All of them: one tainted partition leaves the others of the card usable.
    if states == {DeviceState.TAINTED}:
        return CardState.TAINTED
    if not states & {DeviceState.USED, DeviceState.SHARED}:
        return CardState.FREE
    return CardState.PARTLY if states & {DeviceState.FREE, DeviceState.SHARED} else CardState.USED


def _is_waiting(pod: Pod) -> bool:
    # By the node, not the phase: a pod of a file that no server has seen has no phase.
    return not pod.is_terminal and not pod.spec.node_name


def _waiting(cluster: ClusterObjects, wanted: ScreenFilter) -> list[WaitingPod]:
    pods = [pod for pod in cluster.all(Pod) if _is_waiting(pod) and wanted.namespace in ("", pod.metadata.namespace)]
    found = sorted((pod.metadata.namespace, pod.metadata.name, told_reason(pod)) for pod in pods)
    shown = [WaitingPod(*each) for each in found if wanted.finds(*each[1:])]
    return [*_explained(cluster, shown[:_EXPLAINED]), *shown[_EXPLAINED:]]


def _explained(cluster: ClusterObjects, pods: Sequence[WaitingPod]) -> Iterator[WaitingPod]:
    """Replace the reason that the scheduler wrote, which may be old, by our own explanation."""
    if not pods:
        return
    whole = completed(cluster)
    rehearsal = whole.rehearsal()
    for each in pods:
        pod = whole.find(Pod, each.name, each.namespace)
        if pod is not None:
            verdict = explained(whole, rehearsal, pod, suggest=False).verdict
            yield msgspec.structs.replace(each, reason=verdict.removeprefix(f"Pod {each.namespace}/{each.name} "))


def told_reason(pod: Pod) -> str:
    """What the scheduler wrote into the pod."""
    told = (each.message for each in pod.status.conditions if each.type == "PodScheduled" and each.message)
    return next(told, "not tried yet")


def _lines(events: Iterable[Event], wanted: ScreenFilter) -> list[EventLine]:
    """The newest first."""
    found = []
    for each in events:
        about = each.involved_object
        name = f"{about.kind.lower()}/{about.name}"
        if wanted.namespace in ("", about.namespace) and wanted.finds(name, each.reason, each.message):
            found.append(EventLine(_time(each), each.type, each.reason, name, each.message))
    return sorted(found, key=lambda line: line.time, reverse=True)[:_EVENTS]


def _time(event: Event) -> str:
    return (event.last_timestamp or event.event_time or event.metadata.creation_timestamp or "")[:19].replace("T", " ")
