"""Addresses of services: cluster IPs and node ports, from the ranges of Kubernetes.

In:  services that are created or changed.
Out: services with an address and node ports, where their type has them; what was given to a service stays with it.

What is in use is read off the services themselves, and nothing else is written: an address is free as soon as its
service is gone. What was given out and is not stored yet is remembered, so that no two services in flight get the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from ipaddress import ip_address, ip_network
from random import Random
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import CREATE, UPDATE, AdmissionPlugin, ObjectChange
from drakit.apiserver.failures import ApiError, internal
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objectstore import ObjectStore, prefix_of
from drakit.base import fields, status
from drakit.base.fields import Path

RANGE = ip_network("10.96.0.0/12")
NODE_PORTS = range(30000, 32768)
_SERVICE = known_kind("v1", "Service")
_HEADLESS = "None"
_TRIES = 64
_REMEMBERED = 1024
_ADDRESSED = ("ClusterIP", "NodePort", "LoadBalancer")
_ALLOCATED = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort")
_OF_TYPES: Mapping[str, tuple[str, ...]] = {
    "externalTrafficPolicy": ("NodePort", "LoadBalancer"),
    "healthCheckNodePort": ("LoadBalancer",),
    "allocateLoadBalancerNodePorts": ("LoadBalancer",),
    "loadBalancerClass": ("LoadBalancer",),
}
"""Fields that go with the type that has them, unless an update sets them anew."""


class ServiceAddresses(AdmissionPlugin):
    name = "ServiceAddresses"

    def __init__(self, objects: ObjectStore, random: Random) -> None:
        self._objects = objects
        self._random = random
        self._given: deque[str | int] = deque(maxlen=_REMEMBERED)

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        return kind is _SERVICE and operation in (CREATE, UPDATE) and not subresource

    async def admit(self, change: ObjectChange) -> None:
        if change.new is None:
            return
        spec = change.own("spec")
        if change.old is not None:
            _keep(spec, change.old.document["spec"])
        if (spec.get("type") or "ClusterIP") not in _ADDRESSED:
            return
        others = [each for each in await self._services() if each["metadata"].get("uid") != _uid(change)]
        self._give_address(change, spec, {each["spec"].get("clusterIP") for each in others})
        if needs_node_ports(spec) or _needs_health_port(spec):
            self._give_ports(spec, others)

    async def _services(self) -> list[Mapping[str, Any]]:
        page = await self._objects.store.list(prefix_of(_SERVICE))
        return [self._objects.from_record(_SERVICE, record).document for record in page.records]

    def _give_address(self, change: ObjectChange, spec: Plain, taken: set[Any]) -> None:
        given = spec.get("clusterIP") or ""
        if not given and spec.get("clusterIPs"):
            return  # validation says what is wrong with that
        if given == _HEADLESS:
            spec["clusterIP"], spec["clusterIPs"] = _HEADLESS, [_HEADLESS]
            # Endpoints that somebody else writes may be of either family.
            both = not spec.get("selector")
            spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if both else ["IPv4"])
            spec.setdefault("ipFamilyPolicy", "RequireDualStack" if both else "SingleStack")
            return
        if given and given in taken:
            why = f"failed to allocate IP {given}: provided IP is already allocated"
            error = fields.invalid(Path("spec") / "clusterIPs", [given], why)
            raise ApiError(status.invalid("Service", "", change.name, [error]))
        address = given or self._free_address(taken)
        spec["clusterIP"] = address
        spec["clusterIPs"] = spec.get("clusterIPs") or [address]
        spec.setdefault("ipFamilies", [_family(address)])
        spec.setdefault("ipFamilyPolicy", "SingleStack")

    def _free_address(self, taken: set[Any]) -> str:
        """The first 256 are left to those who ask for one, as upstream leaves them."""
        size = RANGE.num_addresses
        for _ in range(_TRIES):
            address = str(RANGE[self._random.randrange(256, size - 1)])
            if address not in taken and address not in self._given:
                self._given.append(address)
                return address
        raise internal("failed to allocate a serviceIP: range is full")

    def _give_ports(self, spec: Plain, others: Iterable[Mapping[str, Any]]) -> None:
        taken = {number for each in [*(other["spec"] for other in others), spec] for number in _node_ports(each)}
        wanted = [dict(port) for port in spec.get("ports") or ()]
        for port in wanted if needs_node_ports(spec) else ():
            if not port.get("nodePort"):
                port["nodePort"] = self._free_port(taken)
        spec["ports"] = wanted
        if _needs_health_port(spec) and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = self._free_port(taken)

    def _free_port(self, taken: set[int]) -> int:
        free = [port for port in NODE_PORTS if port not in taken and port not in self._given]
        if not free:
            raise internal("failed to allocate a nodePort: range is full")
        port = self._random.choice(free)
        self._given.append(port)
        taken.add(port)
        return port


def needs_node_ports(spec: Mapping[str, Any]) -> bool:
    kind = spec.get("type")
    if kind == "LoadBalancer":
        return spec.get("allocateLoadBalancerNodePorts", True) is not False
    return kind == "NodePort"


def _needs_health_port(spec: Mapping[str, Any]) -> bool:
    """A balancer asks which nodes have the service, where the others do not pass on."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _keep(spec: Plain, before: Mapping[str, Any]) -> None:
    """What was allocated stays, though an update does not mention it; what the new type does not have goes."""
    kind = spec.get("type") or "ClusterIP"
    if kind not in _ADDRESSED:
        for name in _ALLOCATED:
            if spec.get(name) == before.get(name):
                spec.pop(name, None)
    elif (before.get("type") or "ClusterIP") in _ADDRESSED:
        for name in _ALLOCATED[:4]:
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
    for name, kinds in _OF_TYPES.items():
        if kind not in kinds and name in spec and spec[name] == before.get(name):
            del spec[name]
    known = {(port.get("protocol"), port.get("port")): port.get("nodePort") for port in before.get("ports") or ()}
    ports = [dict(port) for port in spec.get("ports") or ()]
    for port in ports:
        number = known.get((port.get("protocol"), port.get("port")))
        if needs_node_ports(spec) and number and not port.get("nodePort"):
            port["nodePort"] = number
        elif kind == "ClusterIP" and number and port.get("nodePort") == number:
            del port["nodePort"]
    if ports:
        spec["ports"] = ports


def _node_ports(spec: Mapping[str, Any]) -> list[int]:
    found = [port.get("nodePort") for port in spec.get("ports") or ()] + [spec.get("healthCheckNodePort")]
    return [number for number in found if number]


def _family(address: str) -> str:
    try:
        return f"IPv{ip_address(address).version}"
    except ValueError:
        return "IPv4"


def _uid(change: ObjectChange) -> str:
    return change.old.uid if change.old is not None else ""
