"""Nodes that go while a pod is being bound to them.

In:  the node informer.
Out: news for those who wait for something on a node: it will not come, and the pod has to go elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drakit.client import NODES, metadata_of
from drakit.informers import Informers
from drakit.scheduler.framework import Nodes

DepartureListener = Callable[[], None]


class Departures:
    def __init__(self, informers: Informers, nodes: Nodes) -> None:
        self._nodes = nodes
        self._listeners: dict[str, list[DepartureListener]] = {}
        informers.of(NODES).subscribe(self._seen)

    def is_gone(self, node: str) -> bool:
        return self._nodes.get(node) is None

    def listen(self, node: str, news: DepartureListener) -> Callable[[], None]:
        """Tell when the node goes; the result ends that."""
        self._listeners.setdefault(node, []).append(news)

        def end() -> None:
            listeners = self._listeners[node]
            listeners.remove(news)
            if not listeners:
                del self._listeners[node]

        return end

    def _seen(self, old: Any, new: Any) -> None:
        if new is None:
            for news in tuple(self._listeners.get(metadata_of(old).name, ())):
                news()
