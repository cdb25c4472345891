"""Addresses of services: cluster IPs and node ports, from the ranges of Kubernetes.

In:  services that are created or changed.
Out: services with an address and node ports, where their type has them; what was given to a service stays with it.

What is in use is read off the services, once and from then on by following them, and nothing else is written:
an address is free as soon as its service is gone. What was given out and is not stored yet is remembered, so that no
two services in flight get the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from random import Random
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import CREATE, UPDATE, AdmissionPlugin, ObjectChange
from drakit.apiserver.admission.plugins.serviceledger import Service, ServiceLedger, node_ports
from drakit.apiserver.failures import ApiError, internal
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.follower import Follower
from drakit.apiserver.storage.objectstore import ObjectStore
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
        self._ledger = ServiceLedger()
        self._follower: Follower | None = None
        self._starting = asyncio.Lock()
        self._given: dict[str | int, None] = {}
        """What was given out last, the oldest first."""

    async def stop(self) -> None:
        if self._follower is not None:
            await self._follower.stop()

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
        await self._follow()
        self._give_address(change, spec)
        if needs_node_ports(spec) or _needs_health_port(spec):
            self._give_ports(change, spec)

    async def _follow(self) -> None:
        """Know all services. The first to be written waits until they are read; most servers never have one."""
        async with self._starting:
            if self._follower is None:
                follower = Follower(self._objects, (_SERVICE,), self._ledger)
                try:
                    await follower.start()
                except BaseException:
                    await follower.stop()
                    raise
                self._follower = follower
        if self._objects.store.shared:
            await self._follower.catch_up()

    def _give_address(self, change: ObjectChange, spec: Plain) -> None:
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
        if given and self._ledger.is_used(given, _service(change)):
            why = f"failed to allocate IP {given}: provided IP is already allocated"
            error = fields.invalid(Path("spec") / "clusterIPs", [given], why)
            raise ApiError(status.invalid("Service", "", change.name, [error]))
        address = given or self._free_address(_service(change))
        spec["clusterIP"] = address
        spec["clusterIPs"] = spec.get("clusterIPs") or [address]
        spec.setdefault("ipFamilies", [_family(address)])
        spec.setdefault("ipFamilyPolicy", "SingleStack")

    def _free_address(self, service: Service) -> str:
        """The first 256 are left to those who ask for one, as upstream leaves them."""
        size = RANGE.num_addresses
        for _ in range(_TRIES):
            address = str(RANGE[self._random.randrange(256, size - 1)])
            if address not in self._given and not self._ledger.is_used(address, service):
                self._remember(address)
                return address
        raise internal("failed to allocate a serviceIP: range is full")

    def _give_ports(self, change: ObjectChange, spec: Plain) -> None:
        wanted = [dict(port) for port in spec.get("ports") or ()]
        own = set(node_ports(spec))
        for port in wanted if needs_node_ports(spec) else ():
            if not port.get("nodePort"):
                port["nodePort"] = self._free_port(_service(change), own)
        spec["ports"] = wanted
        if _needs_health_port(spec) and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = self._free_port(_service(change), own)

    def _free_port(self, service: Service, own: set[int]) -> int:
        taken = {*own, *self._given}
        free = [port for port in NODE_PORTS if port not in taken and not self._ledger.is_used(port, service)]
        if not free:
            raise internal("failed to allocate a nodePort: range is full")
        port = self._random.choice(free)
        self._remember(port)
        own.add(port)
        return port

    def _remember(self, value: str | int) -> None:
        self._given[value] = None
        if len(self._given) > _REMEMBERED:
            del self._given[next(iter(self._given))]


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


def _family(address: str) -> str:
    try:
        return f"IPv{ip_address(address).version}"
    except ValueError:
        return "IPv4"


def _service(change: ObjectChange) -> Service:
    return change.namespace, change.name
