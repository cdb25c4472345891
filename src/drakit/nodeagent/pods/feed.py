"""Where the agent hears of its pods.

In:  a client, or one cache of all pods for many nodes of a process.
Out: the pods of one node: those that are there, and a word at every change.

A node of its own watches only its pods, which is all that it may see. Thousands of simulated nodes in one process share
one watch: a server would otherwise ask each of their selectors about each change of any pod.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from drakit.api import Partial, Pod
from drakit.client import PODS, Client
from drakit.informers import Informer

PodHandler = Callable[[Partial[Pod] | None, Partial[Pod] | None], None]


class PodCache(Protocol):
    def all(self) -> list[Partial[Pod]]: ...

    def named(self, name: str, namespace: str = "") -> Partial[Pod] | None: ...


class PodFeed(Protocol):
    """An informer of the node's pods is one."""

    @property
    def cache(self) -> PodCache: ...

    async def run(self) -> None:
        """Until cancelled."""
        ...

    async def wait_synced(self) -> None: ...

    def subscribe(self, handler: PodHandler) -> Callable[[], None]:
        """Tell of what is there, at once, and of every change from then on. The result ends that."""
        ...


class SharedPodFeeds:
    """One watch for all nodes of a process. Run it once; `of` gives each node its feed."""

    def __init__(self, client: Client) -> None:
        self._informer: Informer[Partial[Pod]] = Informer(client, PODS)
        self._informer.subscribe(self._route)
        self._feeds: dict[str, SharedPodFeed] = {}

    async def run(self) -> None:
        await self._informer.run()

    async def wait_synced(self) -> None:
        await self._informer.wait_synced()

    def of(self, node: str) -> SharedPodFeed:
        feed = self._feeds.get(node)
        if feed is None:
            feed = self._feeds[node] = SharedPodFeed(self)
            for pod in self._informer.cache.all():
                if pod.view.spec.node_name == node:
                    feed.tell(None, pod)
        return feed

    def _route(self, old: Partial[Pod] | None, new: Partial[Pod] | None) -> None:
        """To the node that has the pod, and to the one that had it."""
        nodes = {each.view.spec.node_name for each in (old, new) if each is not None}
        for node in nodes:
            if (feed := self._feeds.get(node)) is not None:
                before = old if old is not None and old.view.spec.node_name == node else None
                after = new if new is not None and new.view.spec.node_name == node else None
                feed.tell(before, after)


class SharedPodFeed:
    """The pods of one node, out of the shared watch."""

    def __init__(self, shared: SharedPodFeeds) -> None:
        self._shared = shared
        self._handlers: list[PodHandler] = []
        self._pods: dict[tuple[str, str], Partial[Pod]] = {}

    @property
    def cache(self) -> PodCache:
        return self

    def all(self) -> list[Partial[Pod]]:
        return list(self._pods.values())

    def named(self, name: str, namespace: str = "") -> Partial[Pod] | None:
        return self._pods.get((namespace, name))

    async def run(self) -> None:
        """The shared watch runs on its own."""

    async def wait_synced(self) -> None:
        await self._shared.wait_synced()

    def subscribe(self, handler: PodHandler) -> Callable[[], None]:
        self._handlers.append(handler)
        for pod in self.all():
            handler(None, pod)
        return lambda: self._handlers.remove(handler)

    def tell(self, old: Partial[Pod] | None, new: Partial[Pod] | None) -> None:
        for pod in (old, new):
            if pod is not None:
                key = (pod.view.metadata.namespace, pod.view.metadata.name)
                self._pods.pop(key, None)
                if pod is new:
                    self._pods[key] = pod
        for handler in self._handlers:
            handler(old, new)
