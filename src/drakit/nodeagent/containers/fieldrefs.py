"""Values of `fieldRef` and `resourceFieldRef`: what a container may learn about its own pod.

In:  the Pod document, and the node's own facts for what the document does not hold.
Out: text, for an environment variable or a file of a downward API volume.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from drakit.base.quantity import Quantity, QuantityError
from drakit.nodeagent.containers.documents import Document, container_named, resources_of, spec_of
from drakit.nodeagent.containers.failures import ConfigUnavailable

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a pod's values need of its node. `pod_ips` are empty until the sandbox has an address."""

    host_ips: tuple[str, ...] = ()
    pod_ips: tuple[str, ...] = ()
    allocatable: Mapping[str, str] = field(default_factory=dict)


def field_value(pod: Document, path: str, node: NodeFacts) -> str:
    """Raises ConfigUnavailable for a path that no pod has."""
    if subscript := _SUBSCRIPT.fullmatch(path):
        values: Mapping[str, str] = pod["metadata"].get(subscript[1]) or {}
        return values.get(subscript[2], "")
    reader = _FIELDS.get(path)
    if reader is None:
        raise ConfigUnavailable(f"fieldRef: unsupported fieldPath: {path}")
    return reader(pod, node)


def resource_value(pod: Document, container: Document, reference: Mapping[str, Any], node: NodeFacts) -> str:
    """The amount in units of the divisor, rounded up; what the container does not say is the node's allocatable."""
    which, _, resource = reference["resource"].partition(".")
    target = container
    if named := reference.get("containerName"):
        found = container_named(pod, named)
        if found is None:
            raise ConfigUnavailable(f'resourceFieldRef: container "{named}" not found')
        target = found
    if which not in ("limits", "requests") or not resource:
        raise ConfigUnavailable(f"resourceFieldRef: unsupported container resource: {reference['resource']}")
    amounts = resources_of(target, which)
    # Without a limit a container may use what the node gives away; without a request it asks for nothing.
    fallback = node.allocatable.get(resource, "0") if which == "limits" else "0"
    return _in_units(amounts.get(resource, fallback), reference.get("divisor") or "0")


def _in_units(amount: Any, divisor: Any) -> str:
    try:
        nanos = Quantity.parse(str(amount)).nanos
        unit = Quantity.parse(str(divisor)).nanos or Quantity.of(1).nanos
    except QuantityError as error:
        raise ConfigUnavailable(f"resourceFieldRef: {error}") from None
    return str(-(-nanos // unit))


def _lines(values: Mapping[str, str] | None) -> str:
    """Labels and annotations as a downward API file shows them, sorted, with quoted values."""
    return "\n".join(f"{name}={_quoted(value)}" for name, value in sorted((values or {}).items()))


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(character, character) for character in text) + '"'


_FIELDS: dict[str, Callable[[Document, NodeFacts], str]] = {
    "metadata.name": lambda pod, _: str(pod["metadata"]["name"]),
    "metadata.namespace": lambda pod, _: str(pod["metadata"].get("namespace", "")),
    "metadata.uid": lambda pod, _: str(pod["metadata"].get("uid", "")),
    "metadata.labels": lambda pod, _: _lines(pod["metadata"].get("labels")),
    "metadata.annotations": lambda pod, _: _lines(pod["metadata"].get("annotations")),
    "spec.nodeName": lambda pod, _: str(spec_of(pod).get("nodeName", "")),
    "spec.serviceAccountName": lambda pod, _: str(spec_of(pod).get("serviceAccountName", "")),
    "status.hostIP": lambda _, node: node.host_ips[0] if node.host_ips else "",
    "status.hostIPs": lambda _, node: ",".join(node.host_ips),
    "status.podIP": lambda _, node: node.pod_ips[0] if node.pod_ips else "",
    "status.podIPs": lambda _, node: ",".join(node.pod_ips),
}
