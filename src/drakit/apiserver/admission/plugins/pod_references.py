"""Which API objects a pod refers to.

In:  a mirror pod that a node wants to create.
Out: the first kind of object that the pod would give the node access to, as upstream words it; empty if there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_VOLUMES = {
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
}
_PROJECTIONS = {
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}
_SECRET_FIELDS = ("secretRef", "nodePublishSecretRef")


def first_reference(pod: Mapping[str, Any]) -> str:
    return next(_references(pod["spec"]), "")


def _references(spec: Mapping[str, Any]) -> Iterator[str]:
    if spec.get("serviceAccountName"):
        yield "serviceaccounts"
    if spec.get("imagePullSecrets") or _in_containers(spec, "secret") or _in_volumes(spec, ("secret", "azureFile")):
        yield "secrets"
    if _in_containers(spec, "configMap") or _in_volumes(spec, ("configMap",)):
        yield "configmaps"
    if spec.get("resourceClaims"):
        yield "resourceclaims"
    for volume in spec.get("volumes") or ():
        yield from (words for field, words in _VOLUMES.items() if volume.get(field) is not None)
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from (words for field, words in _PROJECTIONS.items() if source.get(field) is not None)


def _in_containers(spec: Mapping[str, Any], kind: str) -> bool:
    """Whether the environment of a container comes from a `secret` or a `configMap`."""
    for container in (each for part in _CONTAINERS for each in spec.get(part) or ()):
        if any(source.get(f"{kind}Ref") for source in container.get("envFrom") or ()):
            return True
        if any((each.get("valueFrom") or {}).get(f"{kind}KeyRef") for each in container.get("env") or ()):
            return True
    return False


def _in_volumes(spec: Mapping[str, Any], fields: tuple[str, ...]) -> bool:
    """Whether a volume, or a source of a projected one, is of these types. Secrets of volume drivers count too."""
    volumes = spec.get("volumes") or ()
    sources = [each for volume in volumes for each in (volume.get("projected") or {}).get("sources") or ()]
    if any(each.get(field) is not None for each in (*volumes, *sources) for field in fields):
        return True
    drivers = (each for volume in volumes for each in volume.values() if isinstance(each, Mapping))
    return "secret" in fields and any(driver.get(field) for driver in drivers for field in _SECRET_FIELDS)
