"""The objects that tokens are bound to: service accounts, pods, nodes, secrets.

In:  those objects, at each write.
Out: whether the object of a token, identified by its uid, still exists.
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
"""An object that is being deleted counts for this long after its deletionTimestamp: pods may need to finish."""

KINDS = tuple(known_kind("v1", name) for name in ("ServiceAccount", "Pod", "Node", "Secret"))


class BoundObjects:
    """An index of these objects by name. It is empty before `start`: then no token is valid."""

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
        """Whether the object exists and is not past its deletion grace period."""
        found = self._objects.get((kind, namespace, name))
        if found is None or found[0] != uid:
            return False
        return not found[1] or parse_time(found[1]) >= now - LEEWAY
