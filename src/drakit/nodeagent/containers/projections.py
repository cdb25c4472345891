"""What goes into the files of a volume: keys of ConfigMaps and Secrets, fields of the pod, tokens.

In:  a volume source of a Pod document.
Out: files by path, and when they must be made anew (a token that runs out).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from drakit.base.clock import Clock
from drakit.nodeagent.containers.documents import NOTHING, Document, identity, spec_of
from drakit.nodeagent.containers.failures import ConfigUnavailable, MountFailed, VolumeRefused
from drakit.nodeagent.containers.fieldrefs import NodeFacts, field_value, resource_value
from drakit.nodeagent.containers.payloads import VolumeFile, is_safe_path
from drakit.nodeagent.containers.sources import BoundToken, Data, ObjectSource

DEFAULT_MODE = 0o644
TOKEN_SECONDS = 3600
_OLDEST_TOKEN = timedelta(hours=24)


class Projector:
    """Makes the files of one pod's volumes; keeps its tokens until most of their time has passed."""

    def __init__(self, pod: Document, *, objects: ObjectSource, node: NodeFacts, clock: Clock) -> None:
        self.pod = pod
        self.node = node
        self._identity = identity(pod)
        self._objects = objects
        self._clock = clock
        self._tokens: dict[tuple[str, int], tuple[BoundToken, datetime]] = {}

    async def config_map(self, source: Document, *, name_key: str = "name") -> dict[str, VolumeFile]:
        name = source.get(name_key, "")
        data = await self._objects.config_map(self._identity.namespace, name)
        return _selected("configmap", f"{self._identity.namespace}/{name}", data, source)

    async def secret(self, source: Document, *, name_key: str = "secretName") -> dict[str, VolumeFile]:
        name = source.get(name_key, "")
        data = await self._objects.secret(self._identity.namespace, name)
        return _selected("secret", f"{self._identity.namespace}/{name}", data, source)

    def downward(self, source: Document) -> dict[str, VolumeFile]:
        mode = source.get("defaultMode", DEFAULT_MODE)
        return {_path(item): self._downward_file(item, mode) for item in source.get("items") or ()}

    async def projected(self, source: Document) -> dict[str, VolumeFile]:
        mode = source.get("defaultMode", DEFAULT_MODE)
        files: dict[str, VolumeFile] = {}
        for part in source.get("sources") or ():
            files |= await self._part(part, mode)
        return files

    async def _part(self, part: Mapping[str, Any], mode: int) -> dict[str, VolumeFile]:
        kind, inner = next(iter(part.items()), ("", NOTHING))
        source = {**(inner or {}), "defaultMode": mode}
        if kind == "configMap":
            return await self.config_map(source)
        if kind == "secret":
            return await self.secret(source, name_key="name")
        if kind == "downwardAPI":
            return self.downward(source)
        if kind == "serviceAccountToken":
            return {_path(source): VolumeFile(await self._token(source), mode)}
        raise VolumeRefused(f"projected source {kind} is not supported by this node")

    async def _token(self, source: Document) -> bytes:
        """The token that is there, until 80 % of its time or a day has passed."""
        audience, seconds = source.get("audience", ""), source.get("expirationSeconds") or TOKEN_SECONDS
        now = self._clock.now()
        known = self._tokens.get((audience, seconds))
        if known is None or now >= known[1]:
            account = spec_of(self.pod).get("serviceAccountName") or "default"
            token = await self._objects.token(self._identity, account, audience=audience, seconds=seconds)
            renew = now + min((token.expires - now) * 0.8, _OLDEST_TOKEN)
            known = self._tokens[audience, seconds] = (token, renew)
        return known[0].text.encode()

    def _downward_file(self, item: Mapping[str, Any], mode: int) -> VolumeFile:
        try:
            if reference := item.get("fieldRef"):
                text = field_value(self.pod, reference["fieldPath"], self.node)
            else:
                text = resource_value(self.pod, NOTHING, item.get("resourceFieldRef") or {"resource": ""}, self.node)
        except ConfigUnavailable as error:
            raise MountFailed(str(error)) from None
        return VolumeFile(text.encode(), item.get("mode", mode))


def _selected(kind: str, place: str, data: Data | None, source: Document) -> dict[str, VolumeFile]:
    """All keys, or those that `items` names, at their paths."""
    mode, optional = source.get("defaultMode", DEFAULT_MODE), bool(source.get("optional"))
    if data is None:
        if optional:
            return {}
        raise MountFailed(f'{kind} "{place.partition("/")[2]}" not found')
    if not source.get("items"):
        return {key: VolumeFile(content, mode) for key, content in data.items()}
    files = {}
    for item in source["items"]:
        if item["key"] in data:
            files[_path(item)] = VolumeFile(data[item["key"]], item.get("mode", mode))
        elif not optional:
            raise MountFailed(f"references non-existent {kind} key: {item['key']}")
    return files


def _path(item: Mapping[str, Any]) -> str:
    path = str(item.get("path", ""))
    if not is_safe_path(path):
        raise VolumeRefused(f'path "{path}" leaves the volume')
    return path
