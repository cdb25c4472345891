"""A cluster as one viewer may see it, kept current.

In:  watches with the viewer's credentials.
Out: the objects of this moment; the cells of the map, and what changed of them since a resource version.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import chain
from typing import Any

import msgspec

from drakit.api import Event, Partial, Pod, ResourceClaim
from drakit.base.errors import DrakitError, Forbidden
from drakit.base.gates import FeatureGates
from drakit.client import (
    CLAIMS,
    CLASSES,
    EVENTS,
    NODES,
    POD_GROUPS,
    PODS,
    SLICES,
    TAINT_RULES,
    TEMPLATES,
    Client,
    NotServed,
    Resource,
)
from drakit.dashboard.cells import MapCells, map_cells
from drakit.dashboard.gone import GoneObjects
from drakit.explain import ClusterObjects, NodeTemplates
from drakit.informers import Informer, Informers, ListScope

KINDS: tuple[Resource[Any], ...] = (NODES, SLICES, CLASSES, CLAIMS, PODS, TEMPLATES, TAINT_RULES, POD_GROUPS, EVENTS)
GATHER_SECONDS = 0.25
"""Changes that come within this time are sent together."""
_PING_SECONDS = 5.0
_REMEMBERED = 50
_RELEASED = 1000
_TOLD_AFTERWARDS: dict[type[Any], Resource[Any]] = {Pod: PODS, ResourceClaim: CLAIMS}
"""Kinds whose life can be told when they are gone."""


class CellChanges(msgspec.Struct, frozen=True, omit_defaults=True):
    """Changes to the map. If `whole`, `cells` is the complete map, and all other cells are gone."""

    id: str
    whole: bool
    cells: tuple[Any, ...] = ()
    gone: tuple[str, ...] = ()
    summary: Any = None


class LiveView:
    """Use `live_view`, which starts and ends it."""

    def __init__(
        self,
        client: Client,
        user: str,
        informers: dict[Resource[Any], Informer[Any]],
        templates: NodeTemplates | None = None,
    ) -> None:
        self.client = client
        self.user = user
        self.forbidden: tuple[str, ...] = ()
        """Kinds that the viewer may not list, each with what the server said."""
        self.problem = ""
        """Why the view may be out of date; empty while the server answers."""
        self.revision = 0
        self.seconds = 0.0
        """How long it took to compute the map the last time."""
        self.released: dict[str, str] = {}
        """When claims were seen to be given back, by uid."""
        self.gone = GoneObjects()
        """Pods and claims that were deleted while somebody looked."""
        self._informers = informers
        self._templates = templates
        self._highest = 0
        self._cluster: tuple[int, ClusterObjects] | None = None
        self._cells: tuple[int, MapCells] | None = None
        self._told: deque[CellChanges] = deque(maxlen=_REMEMBERED)
        self._unsure = ""
        """A version for which two different maps were computed: a page that has it gets the whole map."""
        self._waiting: set[asyncio.Event] = set()
        self._counting = asyncio.Lock()
        self._subscriptions = [each.subscribe(self._changed) for each in informers.values()]

    @property
    def version(self) -> str:
        """The highest resource version that was seen."""
        return str(self._highest)

    async def cluster(self) -> ClusterObjects:
        """The objects of this moment. The lists are copied without an await; a thread indexes them beside the loop."""
        # The revision before the thread runs: after a change in the meantime the next caller reads again.
        revision, known = self.revision, self._cluster
        if known is None or known[0] != revision:
            lists = [each.cache.all() for kind, each in self._informers.items() if kind is not EVENTS]
            made = await asyncio.to_thread(_cluster_of, lists, self._templates)
            known = self._cluster = revision, made
        return known[1]

    def events(self) -> list[Event]:
        found = self._informers.get(EVENTS)
        return [each.view for each in found.cache] if found is not None else []

    def follow_pods(self, handler: Callable[[Pod | None, Pod | None], None]) -> None:
        """Call the handler with every pod that there is, and then with each that changes, as (old, new)."""
        found = self._informers.get(PODS)
        if found is not None:
            self._subscriptions.append(found.subscribe(lambda old, new: handler(_view(old), _view(new))))

    def close(self) -> None:
        """Take part in no more changes: the informers may have other users, who go on. Idempotent."""
        subscriptions, self._subscriptions = self._subscriptions, []
        for end in subscriptions:
            end()

    def document(self, kind: Resource[Any], name: str, namespace: str) -> Any:
        """An object as it was last seen; None if it is not there, or may not be seen."""
        found = self._informers.get(kind)
        return found.cache.named(name, namespace) if found is not None else None

    @asynccontextmanager
    async def news(self) -> AsyncIterator[asyncio.Event]:
        """An event that is set at every change while the context is open."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            yield event
        finally:
            self._waiting.discard(event)

    async def cells(self) -> MapCells:
        """The map of this moment, computed in a thread, once for all pages of the viewer."""
        async with self._counting:
            known, revision, version = self._cells, self.revision, self.version
            if known is None or known[0] != revision:
                begun = self.client.clock.monotonic()
                cells = await asyncio.to_thread(map_cells, await self.cluster())
                self._cells = revision, cells
                self.seconds = self.client.clock.monotonic() - begun
                if known is not None:
                    self._tell(version, known[1], cells)
                known = revision, cells
            return known[1]

    async def changes_since(self, id_: str) -> list[CellChanges]:
        """What to send to a page that has everything up to `id_`: the changes since, or the whole map."""
        current = await self.cells()
        told = list(self._told)
        for position, each in enumerate(told):
            if each.id == id_ != self._unsure:
                return told[position + 1 :]
        id_now = told[-1].id if told else self.version
        if not told:
            self._told.append(CellChanges(id=id_now, whole=True))
        return [CellChanges(id=id_now, whole=True, cells=tuple(current.cells.values()), summary=current.summary)]

    def wake(self) -> None:
        for event in self._waiting:
            event.set()

    def _tell(self, version: str, before: MapCells, after: MapCells) -> None:
        if any(each.id == version for each in self._told):
            # After a new list objects may be gone without a newer version: a page with this version gets the whole map.
            self._told.clear()
            self._unsure = version
            return
        cells = tuple(cell for key, cell in after.cells.items() if before.cells.get(key) != cell)
        gone = tuple(key for key in before.cells if key not in after.cells)
        self._told.append(CellChanges(id=version, whole=False, cells=cells, gone=gone, summary=after.summary))

    def _changed(self, old: Any, new: Any) -> None:
        self._note_version(new if new is not None else old)
        view = _view(old)
        if new is None and type(view) in _TOLD_AFTERWARDS:
            self.gone.add(_TOLD_AFTERWARDS[type(view)], old, self._now())
        if isinstance(view, ResourceClaim) and view.status.allocation is not None:
            after = _view(new)
            if after is None or after.status.allocation is None:
                self._release(view)
        # Events are not on the map: they must not make every page read it again.
        if isinstance(_view(new if new is not None else old), Event):
            return
        self.revision += 1
        self.wake()

    def _release(self, claim: ResourceClaim) -> None:
        self.released[claim.metadata.uid] = self._now()
        if len(self.released) > _RELEASED:
            del self.released[next(iter(self.released))]

    def _now(self) -> str:
        return self.client.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def _note_version(self, obj: Any) -> None:
        version = _view(obj).metadata.resource_version
        if version.isdecimal():
            self._highest = max(self._highest, int(version))


def _cluster_of(lists: list[list[Any]], templates: NodeTemplates | None) -> ClusterObjects:
    return ClusterObjects(chain.from_iterable(lists), gates=FeatureGates.all_on(), templates=templates)


def _view(obj: Any) -> Any:
    return obj.view if isinstance(obj, Partial) else obj


@asynccontextmanager
async def live_view(
    client: Client,
    *,
    namespace: str = "",
    templates: NodeTemplates | None = None,
    informers: Informers | None = None,
) -> AsyncIterator[LiveView]:
    """Raise Unauthorized for a viewer whom the server does not know. Kinds that may not be listed are left out.

    `informers` are those of a process in which the viewer may see all that they have.
    """
    user = await whoami(client)
    scope = ListScope(namespace=namespace)
    informers, kinds, forbidden = informers or Informers(client), [], []
    for kind in KINDS:
        try:
            await client.current_version(kind, namespace=namespace if kind.kind.namespaced else "")
            kinds.append(kind)
        except NotServed:
            continue
        except Forbidden as error:
            forbidden.append(str(error))
    found = {kind: informers.of(kind, scope if kind.kind.namespaced else ListScope()) for kind in kinds}
    async with informers.running():
        live = LiveView(client, user, found, templates)
        live.forbidden = tuple(forbidden)
        ping = asyncio.create_task(_ping(live))
        try:
            yield live
        finally:
            live.close()
            ping.cancel()
            await asyncio.gather(ping, return_exceptions=True)


async def whoami(client: Client) -> str:
    """The name of the user. Raise Unauthorized for credentials that are not valid any more."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}
    found = await client.create(review)
    document = found.document if isinstance(found, Partial) else found
    return str(_at(document, "status", "userInfo", "username") or "")


def _at(document: Any, *path: str) -> Any:
    for name in path:
        document = (document or {}).get(name)
    return document


async def _ping(live: LiveView) -> None:
    """Ask the server now and then. Informers reconnect silently, but the viewer should see that it does not answer."""
    while True:
        await live.client.clock.sleep(_PING_SECONDS)
        problem = await _problem(lambda: live.client.document("/version"))
        if problem != live.problem:
            live.problem = problem
            live.wake()


async def _problem(ask: Callable[[], Any]) -> str:
    try:
        await ask()
    except DrakitError as error:
        return f"the server does not answer: {error}"
    return ""
