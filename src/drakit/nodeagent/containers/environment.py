"""A container's environment: `envFrom`, then `env` in its order, later entries winning.

In:  a container of a Pod document, the objects that it names, the node's facts.
Out: names and values. Variables of services (`NAME_SERVICE_HOST`) are not made: drakit serves no cluster network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drakit.nodeagent.containers.documents import Document, identity
from drakit.nodeagent.containers.expansion import expand
from drakit.nodeagent.containers.failures import ConfigUnavailable
from drakit.nodeagent.containers.fieldrefs import NodeFacts, field_value, resource_value
from drakit.nodeagent.containers.sources import Data, ObjectSource


@dataclass(slots=True)
class ContainerEnvironment:
    values: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    """Keys of `envFrom` objects that are no variable names: event InvalidEnvironmentVariableNames."""


async def environment_of(
    pod: Document, container: Document, *, objects: ObjectSource, node: NodeFacts
) -> ContainerEnvironment:
    """Raises ConfigUnavailable, in the kubelet's words, for what is named, not optional and not there."""
    reader = _Reader(pod, container, objects, node)
    environment = ContainerEnvironment()
    for source in container.get("envFrom") or ():
        await reader.add_all(environment, source)
    for entry in container.get("env") or ():
        value = await reader.value(entry, environment.values)
        if value is not None:
            environment.values[entry["name"]] = value
    return environment


class _Reader:
    """Reads each object once for one container, so that its values fit together."""

    def __init__(self, pod: Document, container: Document, objects: ObjectSource, node: NodeFacts) -> None:
        self._pod = pod
        self._container = container
        self._objects = objects
        self._node = node
        self._namespace = identity(pod).namespace
        self._read: dict[tuple[str, str], Data | None] = {}

    async def add_all(self, environment: ContainerEnvironment, source: Mapping[str, Any]) -> None:
        kind, reference = ("ConfigMap", source["configMapRef"]) if "configMapRef" in source else ("Secret", None)
        reference = source.get("secretRef") if reference is None else reference
        if reference is None:
            return
        data = await self._data(kind, reference["name"], optional=bool(reference.get("optional")))
        for key, content in (data or {}).items():
            name = source.get("prefix", "") + key
            if not is_variable_name(name):
                environment.skipped.append(key)
            else:
                environment.values[name] = content.decode("utf-8", "replace")

    async def value(self, entry: Mapping[str, Any], known: Mapping[str, str]) -> str | None:
        """None: an optional key that is not there; the variable is left out."""
        if entry.get("value"):
            return expand(str(entry["value"]), known)
        source = entry.get("valueFrom")
        if not source:
            return ""
        if reference := source.get("fieldRef"):
            return field_value(self._pod, reference["fieldPath"], self._node)
        if reference := source.get("resourceFieldRef"):
            return resource_value(self._pod, self._container, reference, self._node)
        if reference := source.get("configMapKeyRef"):
            return await self._key("ConfigMap", reference)
        if reference := source.get("secretKeyRef"):
            return await self._key("Secret", reference)
        raise ConfigUnavailable(f"env {entry['name']}: valueFrom.{next(iter(source))} is not supported by this node")

    async def _key(self, kind: str, reference: Mapping[str, Any]) -> str | None:
        optional = bool(reference.get("optional"))
        data = await self._data(kind, reference["name"], optional=optional)
        content = None if data is None else data.get(reference["key"])
        if content is not None:
            return content.decode("utf-8", "replace")
        if optional:
            return None
        raise ConfigUnavailable(f"couldn't find key {reference['key']} in {kind} {self._namespace}/{reference['name']}")

    async def _data(self, kind: str, name: str, *, optional: bool) -> Data | None:
        if (kind, name) not in self._read:
            read = self._objects.config_map if kind == "ConfigMap" else self._objects.secret
            self._read[kind, name] = await read(self._namespace, name)
        data = self._read[kind, name]
        if data is None and not optional:
            raise ConfigUnavailable(f'{kind.lower()} "{name}" not found')
        return data


def is_variable_name(name: str) -> bool:
    """Since 1.34 any printable ASCII but `=` may be in a name."""
    return bool(name) and all(" " <= character <= "~" and character != "=" for character in name)
