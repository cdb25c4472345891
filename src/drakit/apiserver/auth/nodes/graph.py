"""Which objects a node may access: its pods, the objects that these refer to, its slices.

In:  pods and slices, at each write.
Out: whether an object is related to a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drakit.api.objects.plain import from_plain
from drakit.api.objects.pods import Pod
from drakit.api.podclaims import claim_names
from drakit.api.registry import Kind

Reference = tuple[str, str, str]
"""Resource, namespace, name."""

MIRROR = "kubernetes.io/config.mirror"
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


class Relations:
    """Invariant: `_nodes` counts, for each object, the pods and slices of each node that lead to it."""

    def __init__(self) -> None:
        self._sources: dict[Reference, tuple[str, frozenset[Reference]]] = {}
        self._nodes: dict[Reference, dict[str, int]] = {}

    def related(self, node: str, resource: str, namespace: str, name: str) -> bool:
        return node in self._nodes.get((resource, namespace, name), ())

    def put(self, kind: Kind, document: Mapping[str, Any]) -> None:
        metadata = document["metadata"]
        source = (kind.plural, metadata.get("namespace", ""), metadata["name"])
        node = (document.get("spec") or {}).get("nodeName") or ""
        found = frozenset((source, *(_pod_references(document) if kind.kind == "Pod" else ()))) if node else frozenset()
        if self._sources.get(source) != (node, found):
            self._drop(source)
            if node:
                self._add(source, node, found)

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        self._drop((kind.plural, namespace, name))

    def _add(self, source: Reference, node: str, found: frozenset[Reference]) -> None:
        self._sources[source] = (node, found)
        for each in found:
            # Counted: a secret may be used by several pods of one node.
            counts = self._nodes.setdefault(each, {})
            counts[node] = counts.get(node, 0) + 1

    def _drop(self, source: Reference) -> None:
        node, found = self._sources.pop(source, ("", frozenset()))
        for each in found:
            counts = self._nodes[each]
            counts[node] -= 1
            if not counts[node]:
                del counts[node]
            if not counts:
                del self._nodes[each]


def _pod_references(pod: Mapping[str, Any]) -> Iterator[Reference]:
    """The objects that a node needs to run a pod.

    A node creates mirror pods itself, so they must not give it access to anything.
    """
    if MIRROR in (pod["metadata"].get("annotations") or {}):
        return
    namespace, spec = pod["metadata"].get("namespace", ""), pod["spec"]
    for resource, name in _named(spec):
        if isinstance(name, str) and name:
            yield resource, namespace, name
    if spec.get("resourceClaims") or (pod.get("status") or {}).get("extendedResourceClaimStatus"):
        for claim in claim_names(from_plain(Pod, pod)).values():
            yield "resourceclaims", namespace, claim


def _named(spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "serviceaccounts", spec.get("serviceAccountName")
    for secret in spec.get("imagePullSecrets") or ():
        yield "secrets", secret.get("name")
    for part in _CONTAINERS:
        for container in spec.get(part) or ():
            yield from _environment(container)
    for volume in spec.get("volumes") or ():
        yield from _volume(volume)


def _environment(container: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for source in container.get("envFrom") or ():
        yield "configmaps", (source.get("configMapRef") or {}).get("name")
        yield "secrets", (source.get("secretRef") or {}).get("name")
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        yield "configmaps", (source.get("configMapKeyRef") or {}).get("name")
        yield "secrets", (source.get("secretKeyRef") or {}).get("name")


def _volume(volume: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "configmaps", (volume.get("configMap") or {}).get("name")
    yield "secrets", (volume.get("secret") or {}).get("secretName")
    yield "secrets", (volume.get("azureFile") or {}).get("secretName")
    yield "persistentvolumeclaims", (volume.get("persistentVolumeClaim") or {}).get("claimName")
    for plugin in volume.values():
        if isinstance(plugin, Mapping):
            for field in ("secretRef", "nodePublishSecretRef"):
                yield "secrets", (plugin.get(field) or {}).get("name")
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield "configmaps", (source.get("configMap") or {}).get("name")
        yield "secrets", (source.get("secret") or {}).get("name")
