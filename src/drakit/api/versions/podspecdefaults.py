"""Defaults of what a pod's spec says, in a pod or in a template of one.

In:  plain data in the form that its shape completes, which may be changed.
Out: the same data with what Kubernetes fills in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from drakit.base.quantity import Quantity

Document = dict[str, Any]

_MILLI = 10**6  # nanos in a thousandth
_TAGGED = re.compile(r"(?:.*/)?[^/:@]+(?::([^/@]+))?(@.+)?")


def default_pod_spec(spec: Document) -> None:
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    for container in containers_of(spec, "initContainers", "containers", "ephemeralContainers"):
        _container(container)
    for volume in spec.get("volumes", []):
        _volume(volume)
    if overhead := spec.get("overhead"):
        spec["overhead"] = rounded(overhead)


def _container(container: Document) -> None:
    container.setdefault("imagePullPolicy", "Always" if _is_latest(container.get("image", "")) else "IfNotPresent")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports", []):
        port.setdefault("protocol", "TCP")
    for variable in container.get("env", []):
        _field_reference((variable.get("valueFrom") or {}).get("fieldRef"))
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe := container.get(name):
            _probe(probe)
    for hook in (container.get("lifecycle") or {}).values():
        _http(hook.get("httpGet") if isinstance(hook, dict) else None)
    resources = container.get("resources", {})
    for name in ("limits", "requests"):
        if name in resources:
            resources[name] = rounded(resources[name])


def _is_latest(image: str) -> bool:
    """Whether the tag is `latest`, or there is neither tag nor digest, which means `latest`."""
    found = _TAGGED.fullmatch(image)
    if not found:
        return False
    tag, digest = found.groups()
    return tag == "latest" or (tag is None and digest is None)


def _probe(probe: Document) -> None:
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        probe.setdefault(name, value)
    _http(probe.get("httpGet"))
    if probe.get("grpc") is not None and probe["grpc"].get("service") is None:
        probe["grpc"]["service"] = ""


def _http(action: Document | None) -> None:
    if action is not None:
        action.setdefault("path", "/")
        action.setdefault("scheme", "HTTP")


def _field_reference(reference: Document | None) -> None:
    if reference is not None:
        reference.setdefault("apiVersion", "v1")


def _volume(volume: Document) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(source) is not None:
            volume[source].setdefault("defaultMode", 0o644)
    default_source(volume)
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    projected = (volume.get("projected") or {}).get("sources") or []
    for source in ({"downwardAPI": volume.get("downwardAPI")}, *projected):
        for item in (source.get("downwardAPI") or {}).get("items") or []:
            _field_reference(item.get("fieldRef"))
        if source.get("serviceAccountToken") is not None:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)


_SOURCES: Mapping[str, Mapping[str, Any]] = {
    "hostPath": {"type": ""},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def default_source(holder: Document) -> None:
    """Defaults of where a volume's bytes are: of a pod's volume, or of a PersistentVolume's spec."""
    for source, defaults in _SOURCES.items():
        if holder.get(source) is not None:
            for name, value in defaults.items():
                holder[source].setdefault(name, value)


def containers_of(spec: Document, *lists: str) -> Iterator[Document]:
    for name in lists:
        yield from spec.get(name) or []


def rounded(amounts: Mapping[str, str]) -> dict[str, str]:
    """Round amounts up to thousandths: Kubernetes stores nothing finer in resource lists."""
    result: dict[str, str] = {}
    for name, text in amounts.items():
        amount = Quantity.parse(text)
        whole = -(-amount.nanos // _MILLI) * _MILLI
        result[name] = text if whole == amount.nanos else str(Quantity(whole, amount.format))
    return result
