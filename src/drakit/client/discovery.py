"""Which version of a kind to speak: the newest that the server offers.

In:  the server's discovery documents, read when a kind is first used.
Out: a version of the registry's list, whose order is newest first: v1, v1beta2, v1beta1.

A kind that has one version needs no discovery: whether it is served shows when it is asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from drakit.api.registry import Kind
from drakit.base.status import failure
from drakit.client.failures import NotServed
from drakit.client.resources import Resource

Fetch = Callable[[str], Awaitable[Mapping[str, Any]]]


class Versions:
    """What one server serves. Invariant: what is remembered was true when it was asked."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._chosen: dict[Resource[Any], str] = {}
        self._served: dict[str, frozenset[str]] = {}

    def known(self, resource: Resource[Any]) -> str | None:
        """The version to use, if it takes no question to know it."""
        versions = resource.kind.versions
        return versions[0] if len(versions) == 1 else self._chosen.get(resource)

    async def choose(self, resource: Resource[Any]) -> str:
        """The version to use. Raise NotServed when the server has none that drakit knows."""
        known = self.known(resource)
        if known is not None:
            return known
        version = await self._newest(resource.kind)
        if version is None:
            offered = ", ".join(resource.kind.versions)
            raise NotServed(failure(404, "NotFound", f"the server serves {resource.name} in none of {offered}"))
        return self._chosen.setdefault(resource, version)

    async def serves(self, resource: Resource[Any]) -> bool:
        """Whether the server has this kind in any version that drakit knows."""
        return resource in self._chosen or await self._newest(resource.kind) is not None

    def forget(self, resource: Resource[Any] | None = None) -> None:
        """Ask again: the server has changed, or it is another one."""
        self._served.clear()
        if resource is None:
            self._chosen.clear()
        else:
            self._chosen.pop(resource, None)

    async def _newest(self, kind: Kind) -> str | None:
        for version in kind.versions:
            if kind.plural in await self._plurals(kind.group_version(version)):
                return version
        return None

    async def _plurals(self, group_version: str) -> frozenset[str]:
        found = self._served.get(group_version)
        if found is None:
            found = self._served[group_version] = await self._read(group_version)
        return found

    async def _read(self, group_version: str) -> frozenset[str]:
        root = "/apis" if "/" in group_version else "/api"
        try:
            document = await self._fetch(f"{root}/{group_version}")
        except NotServed:
            return frozenset()
        return frozenset(each["name"] for each in document.get("resources") or ())
