"""What any object counts, by the names that quotas use."""

from __future__ import annotations

from collections.abc import Iterable

from drakit.api import DeviceClass, Pod, ResourceClaim
from drakit.base.quantity import Quantity
from drakit.base.structs import Model
from drakit.quota.claims import DEVICES_SUFFIX, REQUESTS_PREFIX, ClassLookup, claim_usage, extended_names
from drakit.quota.pods import pod_usage

_BARE_COUNTS = frozenset(
    ("configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services")
)
_POD_NAMES = frozenset(("pods", "cpu", "memory", "ephemeral-storage"))


def usage(
    plural: str, group: str, obj: Model | None, classes: ClassLookup, *, owner: Pod | None = None
) -> dict[str, Quantity]:
    """Amounts by quota name for an object of a resource; kinds of which only the number counts need no `obj`."""
    counted = {object_count_name(plural, group): Quantity.of(1)}
    if not group and plural in _BARE_COUNTS:
        counted[plural] = Quantity.of(1)
    if isinstance(obj, Pod):
        counted |= pod_usage(obj)
    elif isinstance(obj, ResourceClaim):
        counted |= claim_usage(obj, classes, owner)
    return counted


def object_count_name(plural: str, group: str) -> str:
    return f"count/{plural}.{group}" if group else f"count/{plural}"


def tracked(name: str, plural: str, group: str, classes: Iterable[DeviceClass] = ()) -> bool:
    """Whether objects of a resource can count against a quota name at all.

    Claims count against extended resources of those `classes` that name one.
    """
    if name == object_count_name(plural, group) or (not group and plural in _BARE_COUNTS and name == plural):
        return True
    if (plural, group) == ("pods", ""):
        return name in _POD_NAMES or name.startswith((REQUESTS_PREFIX, "limits.", "hugepages-"))
    if (plural, group) == ("resourceclaims", "resource.k8s.io"):
        return name.endswith(DEVICES_SUFFIX) or any(_is_extended(name, each) for each in classes)
    return False


def _is_extended(name: str, device_class: DeviceClass) -> bool:
    if not device_class.spec.extended_resource_name:
        return False
    return name.removeprefix(REQUESTS_PREFIX) in extended_names(device_class.metadata.name, device_class)
