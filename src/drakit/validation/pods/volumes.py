"""Volumes of a pod: one source each, and files that stay inside of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from drakit.api.codec.specs import SHARED_SIZE, SPECS
from drakit.base import names
from drakit.base.fields import FieldError, Path, duplicate, forbidden, invalid, required
from drakit.base.quantity import Quantity
from drakit.validation.fields.documentrules import check_label_values, check_name, check_words
from drakit.validation.fields.volumeclaims import check_claim_spec
from drakit.validation.fields.volumesources import (
    SOURCES,
    check_csi_driver_name,
    check_needed,
    check_no_backsteps,
)
from drakit.validation.pods.downward import VOLUME_PATHS, check_field, check_resource_field

SourceCheck = Callable[[Mapping[str, Any], Path], Iterator[FieldError]]

_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_LEAST_TOKEN, _MOST_TOKEN = 600, 2**32
_CONFLICT = "conflicting duplicate paths"
_PVC = "persistentVolumeClaim"


def check_volumes(volumes: Sequence[Mapping[str, Any]], path: Path, pod: str, known: set[str]) -> Iterator[FieldError]:
    """`pod` is the pod's name, empty in a template. Names of good volumes are added to `known`."""
    made = {f"{pod}-{each.get('name')}" for each in volumes if pod and each.get("ephemeral") is not None}
    for index, volume in enumerate(volumes):
        name, where = volume.get("name") or "", path[index]
        errors = [*_check_source(volume, where, pod), *_check_name(name, where / "name", known)]
        if not errors:
            known.add(name)
        yield from errors
        claim = (volume.get(_PVC) or {}).get("claimName")
        if claim in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            yield invalid(where / _PVC / "claimName", claim, detail)


def _check_name(name: str, path: Path, known: set[str]) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    else:
        yield from check_name(name, names.check_dns_label, path)
    if name in known:
        yield duplicate(path, name)


def _check_source(volume: Mapping[str, Any], path: Path, pod: str) -> Iterator[FieldError]:
    given = [source for source in _CHECKS if volume.get(source) is not None]
    if not given:
        yield required(path, "must specify a volume type")
        return
    shown = {"gcePersistentDisk": "persistentDisk"}.get(given[0], given[0])
    yield from _CHECKS[given[0]](volume[given[0]], path / shown)
    for extra in given[1:]:
        shown = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}.get(extra, extra)
        yield forbidden(path / shown, "may not specify more than 1 volume type")
    if given[0] == "ephemeral" and pod and volume.get("name"):
        claim = f"{pod}-{volume['name']}"
        for message in names.check_dns_subdomain(claim):
            yield invalid(path / "name", volume["name"], f'PVC name "{claim}": {message}')


def _check_empty(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    size = source.get("sizeLimit")
    if size is not None and Quantity.parse(size).sign < 0:
        yield forbidden(path / "sizeLimit", "SizeLimit field must be a valid resource quantity")


def _check_items(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    for index, item in enumerate(source.get("items") or ()):
        where = (path / "items")[index]
        yield from check_needed("key", "path")(item, where)
        yield from check_local_path(item.get("path") or "", where / "path")
        yield from _check_mode(item.get("mode"), where / "mode")


def _check_mode(mode: int | None, path: Path) -> Iterator[FieldError]:
    if mode is not None and not 0 <= mode <= 0o777:
        yield invalid(path, mode, _MODE)


def check_local_path(text: str, path: Path) -> Iterator[FieldError]:
    """A path below the volume, none of whose names is taken by the kubelet."""
    if text.startswith("/"):
        yield invalid(path, text, "must be a relative path")
    yield from check_no_backsteps(text, path)
    if text.startswith("..") and not text.startswith("../"):
        yield invalid(path, text, "must not start with '..'")


def _check_keys(name: str) -> SourceCheck:
    def check(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
        yield from check_needed(name)(source, path)
        yield from _check_mode(source.get("defaultMode"), path / "defaultMode")
        yield from _check_items(source, path)

    return check


def _check_downward(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    yield from _check_mode(source.get("defaultMode"), path / "defaultMode")
    for item in source.get("items") or ():
        yield from _check_file(item, path)


def _check_file(item: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    yield from check_needed("path")(item, path)
    yield from check_local_path(item.get("path") or "", path / "path")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        yield from check_field(field, path / "fieldRef", VOLUME_PATHS)
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid(path, "resource", detail)
    elif resource is not None:
        yield from check_resource_field(resource, path / "resourceFieldRef", volume=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from _check_mode(item.get("mode"), path / "mode")


def _check_projected(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    text = SPECS.json_if_any(source)
    if not text or len(text) > SHARED_SIZE or not _is_good_projection(text):
        yield from _check_parts(source, path)


@lru_cache(maxsize=512)
def _is_good_projection(source: bytes) -> bool:
    """Whether it has no errors. Every pod has the volume with its token: equal but for its name, and judged once.

    Looking one up takes 3 µs, judging it 25.
    """
    return next(_check_parts(msgspec.json.decode(source), Path()), None) is None


def _check_parts(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    yield from _check_mode(source.get("defaultMode"), path / "defaultMode")
    taken: set[str] = set()
    for index, part in enumerate(source.get("sources") or ()):
        where = (path / "sources")[index]
        for kind in ("secret", "configMap"):
            if part.get(kind) is not None:
                yield from check_needed("name")(part[kind], where / kind)
                yield from _check_items(part[kind], where / kind)
                yield from _check_taken(part[kind], part[kind].get("name") or "", taken, path)
        if part.get("downwardAPI") is not None:
            yield from _check_downward(part["downwardAPI"], where / "downwardAPI")
            yield from _check_taken(part["downwardAPI"], "", taken, path)
        if part.get("serviceAccountToken") is not None:
            yield from _check_token(part["serviceAccountToken"], where / "serviceAccountToken", path)
        if sum(value is not None for value in part.values()) > 1:
            yield forbidden(where, "may not specify more than 1 volume type per source")


def _check_taken(source: Mapping[str, Any], name: str, taken: set[str], path: Path) -> Iterator[FieldError]:
    for item in source.get("items") or ():
        place = item.get("path")
        if place and place in taken:
            yield invalid(path, name or place, _CONFLICT)
        taken.add(place or "")


def _check_token(token: Mapping[str, Any], path: Path, volume: Path) -> Iterator[FieldError]:
    seconds = token.get("expirationSeconds") or 0
    if seconds < _LEAST_TOKEN:
        yield invalid(path / "expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if seconds > _MOST_TOKEN:
        yield invalid(path / "expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
    if not token.get("path"):
        yield required(volume / "path")
    else:
        yield from check_local_path(token["path"], volume / "path")


def _check_ephemeral(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        yield required(path / "volumeClaimTemplate")
    else:
        labels = (template.get("metadata") or {}).get("labels")
        yield from check_label_values(labels, path / "volumeClaimTemplate" / "metadata" / "labels")
        yield from check_claim_spec(template.get("spec") or {}, path / "volumeClaimTemplate" / "spec")


def _check_csi(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    yield from check_csi_driver_name(source.get("driver"), path / "driver")
    secret = source.get("nodePublishSecretRef")
    if secret is not None:
        yield from check_needed("name")(secret, path / "nodePublishSecretRef")
        if secret.get("name"):
            yield from check_name(secret["name"], names.check_dns_subdomain, path / "nodePublishSecretRef" / "name")


def _check_image(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    yield from check_needed("reference")(source, path)
    if source.get("pullPolicy"):
        yield from check_words(source["pullPolicy"], ("Always", "IfNotPresent", "Never"), path / "pullPolicy")


def _check_storageos(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """As of a volume of its own, but that its secret is in the pod's namespace."""
    secret = source.get("secretRef")
    yield from SOURCES["storageos"]({name: each for name, each in source.items() if name != "secretRef"}, path)
    if secret is not None:
        yield from check_needed("name")(secret, path / "secretRef")


_CHECKS: Mapping[str, SourceCheck] = {
    "emptyDir": _check_empty,
    "hostPath": SOURCES["hostPath"],
    "gitRepo": check_needed("repository"),
    "gcePersistentDisk": SOURCES["gcePersistentDisk"],
    "awsElasticBlockStore": SOURCES["awsElasticBlockStore"],
    "secret": _check_keys("secretName"),
    "nfs": SOURCES["nfs"],
    "iscsi": SOURCES["iscsi"],
    "glusterfs": SOURCES["glusterfs"],
    "flocker": SOURCES["flocker"],
    _PVC: check_needed("claimName"),
    "rbd": SOURCES["rbd"],
    "cinder": SOURCES["cinder"],
    "cephfs": SOURCES["cephfs"],
    "quobyte": SOURCES["quobyte"],
    "downwardAPI": _check_downward,
    "fc": SOURCES["fc"],
    "flexVolume": SOURCES["flexVolume"],
    "configMap": _check_keys("name"),
    "azureFile": check_needed("secretName", "shareName"),
    "vsphereVolume": SOURCES["vsphereVolume"],
    "photonPersistentDisk": SOURCES["photonPersistentDisk"],
    "portworxVolume": SOURCES["portworxVolume"],
    "azureDisk": SOURCES["azureDisk"],
    "storageos": _check_storageos,
    "projected": _check_projected,
    "scaleIO": SOURCES["scaleIO"],
    "csi": _check_csi,
    "ephemeral": _check_ephemeral,
    "image": _check_image,
}

"""In the order in which Kubernetes looks for them."""
