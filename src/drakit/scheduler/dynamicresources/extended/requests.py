"""The device requests that stand for a pod's extended resources. Pure.

In:  a pod, and the resources that devices are to provide, each with its class.
Out: the requests of one claim, and which container gets the devices of which request.

Each container has one request per resource, `container-<i>-request-<j>`: init containers are counted first, and `j` is
the resource's place among all that the container asks for, by name. An init container that ends before others start
uses what these will have; what it needs beyond that is asked for once, for the neediest of all such init containers.
Ephemeral containers cannot ask for resources.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import msgspec

from drakit.api import EXACT_COUNT, Container, DeviceRequest, ExactDeviceRequest, Pod
from drakit.api.footprint import is_sidecar
from drakit.api.objects.pods import ContainerExtendedResourceRequest
from drakit.scheduler.framework.footprints import footprint_of

IndexedContainer = tuple[int, Container]


class ResourceRequests(msgspec.Struct, frozen=True):
    """What nodes that provide the same resources by themselves have in common: the rest is asked of devices."""

    requests: tuple[DeviceRequest, ...]
    mappings: tuple[ContainerExtendedResourceRequest, ...]

    @property
    def devices(self) -> int:
        return sum(_count(each) for each in self.requests)


_KNOWN: dict[Hashable, ResourceRequests] = {}
_MOST = 4096


def variant_of(pod: Pod, classes: Mapping[str, str]) -> ResourceRequests:
    """`classes`: the name of the class by resource. It is worked out once for all pods of one template."""
    # Pods with the same footprint have containers of the same names that ask for the same.
    key = (footprint_of(pod), *classes.items())
    found = _KNOWN.get(key)
    if found is None:
        if len(_KNOWN) >= _MOST:
            _KNOWN.clear()
        found = _KNOWN[key] = _work_out(pod, classes)
    return found


def _work_out(pod: Pod, classes: Mapping[str, str]) -> ResourceRequests:
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(classes):
        asked = _Asked(resource, classes[resource])
        asked.ask(pod)
        requests += asked.requests
        mappings += asked.mappings
    requests.sort(key=_name)
    return ResourceRequests(tuple(requests), tuple(mappings))


class _Asked:
    """The requests for one resource."""

    def __init__(self, resource: str, class_name: str) -> None:
        self.resource = resource
        self.class_name = class_name
        self.requests: list[DeviceRequest] = []
        self.mappings: list[ContainerExtendedResourceRequest] = []

    def ask(self, pod: Pod) -> None:
        first = len(pod.spec.init_containers)
        places = list(enumerate((*pod.spec.init_containers, *pod.spec.containers)))
        passing = [each for each in places if each[0] < first and not is_sidecar(each[1])]
        lasting = [each for each in places if each[0] >= first or is_sidecar(each[1])]
        held = {index: self._request(index, container, count) for index, container, count in self._users(lasting)}
        for index, request in held.items():
            self._map(places[index][1], request.name)
        extra = self._borrow(passing, held)
        self.requests = [*([extra] if extra else ()), *held.values()]

    def _users(self, places: Sequence[IndexedContainer]) -> list[tuple[int, Container, int]]:
        found = ((index, container, _amount(container, self.resource)) for index, container in places)
        return [(index, container, count) for index, container, count in found if count]

    def _borrow(self, passing: Sequence[IndexedContainer], held: Mapping[int, DeviceRequest]) -> DeviceRequest | None:
        """Let each use what starts after it; the largest request for what is missing serves all of them."""
        users = self._users(passing)
        borrowed = [_reuse(held, index, count) for index, _, count in users]
        lacking = [
            self._request(index, container, missing)
            for (index, container, _), (_, missing) in zip(users, borrowed, strict=True)
            if missing
        ]
        largest = max(lacking, key=_count, default=None)
        for (_, container, _), (names, missing) in zip(users, borrowed, strict=True):
            for name in names:
                self._map(container, name)
            if missing and largest is not None:
                self._map(container, largest.name)
        return largest

    def _request(self, index: int, container: Container, count: int) -> DeviceRequest:
        place = sorted(container.resources.requests).index(self.resource)
        asked = ExactDeviceRequest(device_class_name=self.class_name, allocation_mode=EXACT_COUNT, count=count)
        return DeviceRequest(name=f"container-{index}-request-{place}", exactly=asked)

    def _map(self, container: Container, request: str) -> None:
        self.mappings.append(
            ContainerExtendedResourceRequest(
                container_name=container.name, resource_name=self.resource, request_name=request
            )
        )


def _reuse(held: Mapping[int, DeviceRequest], index: int, count: int) -> tuple[list[str], int]:
    """The requests of later containers that an init container can use, and how many devices it lacks then."""
    names: list[str] = []
    for later, request in held.items():
        if later > index and count > 0:
            names.append(request.name)
            count -= _count(request)
    return names, max(count, 0)


def _amount(container: Container, resource: str) -> int:
    asked = container.resources.requests.get(resource)
    return asked.value if asked is not None else 0


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly else 0


def _name(request: DeviceRequest) -> str:
    return request.name
