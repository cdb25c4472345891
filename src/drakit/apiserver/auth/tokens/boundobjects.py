"""Which objects are there that a token may be bound to: accounts, pods, nodes, secrets.

In:  those objects, as they are written.
Out: whether one is still the same, by its uid.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from drakit.api.registry import Kind
from drakit.api.text.times import parse_time
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.follower import Follower
from drakit.apiserver.storage.objectstore import ObjectStore

LEEWAY = timedelta(seconds=60)
"""An object that is being deleted counts as long as this: its pods have something to finish."""

KINDS = tuple(known_kind("v1", name) for name in ("ServiceAccount", "Pod", "Node", "Secret"))


class BoundObjects:
    """Knows nothing before `start`: then no token is good."""

    def __init__(self, objects: ObjectStore) -> None:
        self._follower = Follower(objects, KINDS, self)
        self._started = False
        self._objects: dict[tuple[str, str, str], tuple[str, str]] = {}

    async def start(self) -> None:
        """Idempotent."""
        if not self._started:
            self._started = True
            await self._follower.start()

    async def stop(self) -> None:
        """Idempotent."""
        await self._follower.stop()

    def put(self, kind: Kind, document: Mapping[str, Any]) -> None:
        metadata = document["metadata"]
        key = (kind.kind, metadata.get("namespace", ""), metadata["name"])
        self._objects[key] = (metadata.get("uid", ""), metadata.get("deletionTimestamp") or "")

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        self._objects.pop((kind.kind, namespace, name), None)

    def has(self, kind: str, namespace: str, name: str, uid: str, now: datetime) -> bool:
        """Whether this very object is there, and not about to have been gone."""
        found = self._objects.get((kind, namespace, name))
        if found is None or found[0] != uid:
            return False
        return not found[1] or parse_time(found[1]) >= now - LEEWAY
