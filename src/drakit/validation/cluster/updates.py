"""What an update may not change, of kinds that are kept whole.

In:  the document as it shall be, and as it is.
Out: an error for each field that stays as it was made; what an update may change is judged as for a new object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from drakit.api import Partial
from drakit.api.objects.plain import from_plain
from drakit.base.fields import FieldError, Path, forbidden, invalid
from drakit.base.nodeselectors import NodeSelector
from drakit.base.quantity import Quantity
from drakit.validation.cluster.nodes import pod_ranges
from drakit.validation.fields.gonames import as_go
from drakit.validation.fields.metadata import IMMUTABLE

Fields = Mapping[str, Any]
CheckUpdate = Callable[[Fields, Fields], Iterator[FieldError]]
_SPEC = Path("spec")


class _Field(NamedTuple):
    """A field that stays, and the name that errors have for it."""

    path: str
    shown: str = ""


_STAY: Mapping[str, Sequence[_Field]] = {
    "Secret": [_Field("type")],
    "ControllerRevision": [_Field("data")],
    "PriorityClass": [_Field("preemptionPolicy")],
    "StorageClass": [_Field("parameters"), _Field("provisioner"), _Field("reclaimPolicy"), _Field("volumeBindingMode")],
    "EndpointSlice": [_Field("addressType")],
    "VolumeAttachment": [_Field("spec")],
    "CSIDriver": [_Field("spec.attachRequired", "spec.attachedRequired"), _Field("spec.volumeLifecycleModes")],
    "CSIStorageCapacity": [_Field("nodeTopology"), _Field("storageClassName")],
    "IngressClass": [_Field("spec.controller")],
    "IPAddress": [_Field("spec.parentRef")],
    "PersistentVolume": [_Field("spec.volumeMode", "volumeMode")],
    "PersistentVolumeClaim": [_Field("spec.volumeMode", "volumeMode")],
}
_FORBIDDEN: Mapping[str, Sequence[str]] = {
    "VolumeAttributesClass": ("driverName", "parameters"),
}
_SET_CHANGEABLE = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_VOLUME_CHANGEABLE = frozenset(
    {
        "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
        "storageClassName", "volumeAttributesClassName", "volumeMode",
    }
)  # fmt: skip
"""All fields of a volume's spec but its source: the one field that says where its bytes are."""


def check_fields_that_stay(new: Partial[Any], old: Partial[Any]) -> Iterator[FieldError]:
    kind = str(new.document.get("kind"))
    special = _SPECIAL.get(kind)
    if special is not None:
        yield from special(new.document, old.document)
    for path, shown in _STAY.get(kind, ()):
        now, before = _at(new.document, path), _at(old.document, path)
        if _full(now) != _full(before):
            yield invalid(Path(shown or path), _shown(kind, now, before), IMMUTABLE)
    for name in _FORBIDDEN.get(kind, ()):
        if _full(new.document.get(name)) != _full(old.document.get(name)):
            yield forbidden(Path(name), f"updates to {name} are forbidden.")


def _shown(kind: str, now: Any, before: Any) -> Any:
    """The value with the names that the server's own types have."""
    if kind == "VolumeAttachment":
        source = (now or {}).get("source") or {}
        inner = {"PersistentVolumeName": source.get("persistentVolumeName"), "InlineVolumeSpec": None}
        return {"Attacher": now.get("attacher", ""), "Source": inner, "NodeName": now.get("nodeName", "")}
    if kind == "IPAddress" and now is not None:
        return {name.capitalize(): now.get(name, "") for name in ("group", "resource", "namespace", "name")}
    if kind == "CSIStorageCapacity" and isinstance(now, Mapping):
        return {name: now[name] for name in ("matchLabels", "matchExpressions") if now.get(name)}
    return "" if now is None and isinstance(before, str) else now


def _at(document: Fields, path: str) -> Any:
    found: Any = document
    for name in path.split("."):
        found = (found or {}).get(name)
    return found


def _full(value: Any) -> Any:
    """The value without what is empty: that is the same as what is not there."""
    if isinstance(value, Mapping):
        return {key: full for key, each in value.items() if (full := _full(each)) not in (None, {}, [])} or None
    return [_full(each) for each in value] or None if isinstance(value, list) else value


def _spec(document: Fields) -> dict[str, Any]:
    return dict(document.get("spec") or {})


def _changed(new: Fields, old: Fields) -> list[str]:
    return sorted(name for name in {*new, *old} if _full(new.get(name)) != _full(old.get(name)))


def _check_volume(new: Fields, old: Fields) -> Iterator[FieldError]:
    is_now, was = _spec(new), _spec(old)
    sources = [{name: each for name, each in spec.items() if name not in _VOLUME_CHANGEABLE} for spec in (is_now, was)]
    if _with_secret(sources[0], sources[1]) and "controllerExpandSecretRef" not in (was.get("csi") or {}):
        del sources[0]["csi"]["controllerExpandSecretRef"]
    if changed := _changed(*sources):
        detail = f"spec.persistentvolumesource is immutable after creation\nchanged: {', '.join(changed)}\n"
        yield forbidden(_SPEC / "persistentvolumesource", detail)
    affinity, before = is_now.get("nodeAffinity"), was.get("nodeAffinity")
    if before is not None and _full(affinity) != _full(before):
        yield invalid(
            Path("nodeAffinity"), _spelled_affinity(affinity), f"{IMMUTABLE}, except for updating from beta label to GA"
        )
    if is_now.get("volumeAttributesClassName") is None and was.get("volumeAttributesClassName") is not None:
        yield forbidden(_SPEC / "volumeAttributesClassName", "update from non-nil value to nil is forbidden")


def _spelled_affinity(affinity: Fields | None) -> Any:
    if affinity is None:
        return None
    wanted = affinity.get("required")
    return {"Required": None if wanted is None else as_go(from_plain(NodeSelector, wanted))}


def _with_secret(new: dict[str, Any], old: Fields) -> bool:
    """A CSI volume that names the secret to expand it with, in a copy of its source."""
    if not new.get("csi") or not old.get("csi"):
        return False
    new["csi"] = dict(new["csi"])
    return "controllerExpandSecretRef" in new["csi"]


class _ClaimChange(NamedTuple):
    """The specs of a volume claim before and after an update."""

    new: Fields
    old: Fields
    bound: bool

    @property
    def resized(self) -> bool:
        return _size(self.new) != _size(self.old)


_CLAIM_CHANGEABLE: Mapping[str, Callable[[_ClaimChange], bool]] = {
    "volumeName": lambda change: not change.old.get("volumeName"),
    # A default class may come later than the claim.
    "storageClassName": lambda change: change.old.get("storageClassName") is None,
    "volumeAttributesClassName": lambda change: change.bound,
    "resources": lambda change: (
        (change.bound or not change.resized) and _full(_without_size(change.new)) == _full(_without_size(change.old))
    ),
}
"""When a field of a claim's spec may change. All others stay."""


def _check_volume_claim(new: Fields, old: Fields) -> Iterator[FieldError]:
    bound = (new.get("status") or {}).get("phase") == "Bound"
    change = _ClaimChange(_with_sources(_spec(new)), _with_sources(_spec(old)), bound)
    if changed := [name for name in _changed(change.new, change.old) if not _may_change(name, change)]:
        rule = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield forbidden(_SPEC, f"{rule}\nchanged: {', '.join(changed)}\n")
    capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage") or "0"
    if _size(change.old) > _size(change.new) <= Quantity.parse(capacity):
        where = _SPEC / "resources" / "requests" / "storage"
        yield forbidden(where, "field can not be less than status.capacity")
    yield from _check_applied_class(old, _spec(new).get("volumeAttributesClassName"), _spec(old))


def _may_change(name: str, change: _ClaimChange) -> bool:
    allowed = _CLAIM_CHANGEABLE.get(name)
    return allowed is not None and allowed(change)


def _with_sources(spec: dict[str, Any]) -> dict[str, Any]:
    """What data a claim begins with has two fields; one stands for the other."""
    source = spec.get("dataSourceRef") or spec.get("dataSource")
    return spec if source is None else {**spec, "dataSource": source, "dataSourceRef": source}


def _check_applied_class(old: Fields, name: str | None, was: Fields) -> Iterator[FieldError]:
    applied = (old.get("status") or {}).get("currentVolumeAttributesClassName")
    if name == was.get("volumeAttributesClassName") or applied is None or name:
        return
    what = "nil" if name is None else "empty string"
    detail = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    yield forbidden(_SPEC / "volumeAttributesClassName", detail)


def _size(spec: Fields) -> Quantity:
    return Quantity.parse(str(((spec.get("resources") or {}).get("requests") or {}).get("storage") or "0"))


def _without_size(spec: Fields) -> dict[str, Any]:
    """The resources that a claim asks for beside its size, which may be spelled in many ways."""
    resources = dict(spec.get("resources") or {})
    wanted = {name: each for name, each in (resources.get("requests") or {}).items() if name != "storage"}
    return {**resources, "requests": wanted}


def _check_stateful_set(new: Fields, old: Fields) -> Iterator[FieldError]:
    stays = [{name: each for name, each in _spec(it).items() if name not in _SET_CHANGEABLE} for it in (new, old)]
    if _full(stays[0]) != _full(stays[1]):
        *names, last = (f"'{name}'" for name in _SET_CHANGEABLE)
        detail = f"updates to statefulset spec for fields other than {', '.join(names)} and {last} are forbidden"
        yield forbidden(_SPEC, detail)


def _check_service_range(new: Fields, old: Fields) -> Iterator[FieldError]:
    """A second range may be added to a first; nothing else may change."""
    is_now, was, where = list(_spec(new).get("cidrs") or ()), list(_spec(old).get("cidrs") or ()), _SPEC / "cidrs"
    if len(is_now) != len(was) and (len(was), len(is_now)) != (1, 2):
        yield invalid(where, is_now or None, IMMUTABLE)
        return
    for index, (now, before) in enumerate(zip(is_now, was, strict=False)):
        if now != before:
            yield invalid(where[index], now, IMMUTABLE)


def _check_node(new: Fields, old: Fields) -> Iterator[FieldError]:
    is_now, was = _spec(new), _spec(old)
    ranges, ranges_before = pod_ranges(is_now), pod_ranges(was)
    if ranges_before and ranges != ranges_before:
        yield forbidden(_SPEC / "podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    if was.get("providerID") and is_now.get("providerID") != was["providerID"]:
        yield forbidden(_SPEC / "providerID", 'node updates may not change providerID except from "" to valid')


def _check_storage_node(new: Fields, old: Fields) -> Iterator[FieldError]:
    """A driver that is listed stays as it is, but for the number of volumes that it can attach."""
    before = {each.get("name"): each for each in _spec(old).get("drivers") or ()}
    for driver in _spec(new).get("drivers") or ():
        was = before.get(driver.get("name"))
        if was is not None and [name for name in _changed(driver, was) if name != "allocatable"]:
            spelled = {"Name": driver.get("name"), "NodeID": driver.get("nodeID") or ""}
            keys = {"TopologyKeys": driver.get("topologyKeys") or None, "Allocatable": None}
            yield invalid(_SPEC / "drivers", {**spelled, **keys}, IMMUTABLE)


def _check_quota(new: Fields, old: Fields) -> Iterator[FieldError]:
    scopes = _spec(new).get("scopes") or []
    if set(scopes) != set(_spec(old).get("scopes") or ()):
        yield invalid(_SPEC / "scopes", scopes or None, IMMUTABLE)


_SPECIAL: Mapping[str, CheckUpdate] = {
    "PersistentVolume": _check_volume,
    "PersistentVolumeClaim": _check_volume_claim,
    "StatefulSet": _check_stateful_set,
    "ServiceCIDR": _check_service_range,
    "Node": _check_node,
    "CSINode": _check_storage_node,
    "ResourceQuota": _check_quota,
}
