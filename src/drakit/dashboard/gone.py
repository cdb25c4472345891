"""Objects that a viewer has seen and that are gone: their life can still be told while the page is open. Pure.

In:  objects that go, with the time.
Out: the last that was seen of them. The oldest are forgotten; what is there again under the same name is another one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from drakit.client import Key, Resource, key_of

MOST = 500
"""How many of each kind are remembered."""


class GoneObject(msgspec.Struct, frozen=True):
    seen: Any
    at: str
    """When it was seen to be gone."""


class GoneObjects:
    def __init__(self) -> None:
        self._gone: dict[Resource[Any], dict[Key, GoneObject]] = {}

    def add(self, kind: Resource[Any], obj: Any, at: str) -> None:
        found, key = self._gone.setdefault(kind, {}), key_of(obj)
        found.pop(key, None)
        found[key] = GoneObject(obj, at)
        if len(found) > MOST:
            del found[next(iter(found))]

    def find(self, kind: Resource[Any], name: str, namespace: str) -> GoneObject | None:
        return self._gone.get(kind, {}).get(Key(namespace, name))

    def all(self, kind: Resource[Any]) -> list[GoneObject]:
        return list(self._gone.get(kind, {}).values())
