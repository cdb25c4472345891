"""Which class of devices stands behind an extended resource.

In:  device classes as they come and go.
Out: the class of a resource name. Every class has the implicit name `deviceclass.resource.kubernetes.io/<class>`; of
     the classes that name a resource themselves, the one that was made last has it, and of those made at the same
     time the one whose name comes first: a resource moves from class to class without a moment in which it has none.
"""

from __future__ import annotations

from drakit.api import DeviceClass
from drakit.base.wellknown import IMPLICIT_RESOURCE_PREFIX

_NATIVE_DOMAIN = "kubernetes.io/"
_QUOTA_PREFIX = "requests."


def is_extended(resource: str) -> bool:
    """Whether a resource is one that device plugins or devices provide, by its name."""
    if resource.startswith(IMPLICIT_RESOURCE_PREFIX):
        return True
    return "/" in resource and _NATIVE_DOMAIN not in resource and not resource.startswith(_QUOTA_PREFIX)


class Backing:
    def __init__(self) -> None:
        self._classes: dict[str, DeviceClass] = {}
        # By explicit name, all classes that have it; the one that counts is worked out when one of them changes.
        self._rivals: dict[str, dict[str, DeviceClass]] = {}
        self._explicit: dict[str, DeviceClass] = {}

    def put(self, each: DeviceClass) -> None:
        self.remove(each.metadata.name)
        self._classes[each.metadata.name] = each
        resource = each.spec.extended_resource_name
        if resource:
            self._rivals.setdefault(resource, {})[each.metadata.name] = each
            self._choose(resource)

    def remove(self, name: str) -> None:
        gone = self._classes.pop(name, None)
        resource = gone.spec.extended_resource_name if gone else None
        if resource:
            del self._rivals[resource][name]
            self._choose(resource)

    def class_of(self, resource: str) -> DeviceClass | None:
        if resource.startswith(IMPLICIT_RESOURCE_PREFIX):
            return self._classes.get(resource.removeprefix(IMPLICIT_RESOURCE_PREFIX))
        return self._explicit.get(resource)

    def _choose(self, resource: str) -> None:
        rivals = self._rivals[resource].values()
        if not rivals:
            del self._rivals[resource]
            del self._explicit[resource]
            return
        newest = max(_made(each) for each in rivals)
        self._explicit[resource] = min((each for each in rivals if _made(each) == newest), key=_name)


def _made(each: DeviceClass) -> str:
    """The creation time as text: all times of the API have one form and zone, so texts compare as times do."""
    return each.metadata.creation_timestamp or ""


def _name(each: DeviceClass) -> str:
    return each.metadata.name
