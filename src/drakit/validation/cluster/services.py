"""Services and the addresses behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drakit.api import Partial
from drakit.base import names
from drakit.base.fields import FieldError, Path, forbidden, invalid, required
from drakit.validation.fields.documentrules import (
    NO_RANGE,
    check_address,
    check_label_values,
    check_name,
    check_once,
    check_port,
    check_port_or_name,
    check_protocol,
    check_words,
    parse_range,
)

_SPEC = Path("spec")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_LONGEST_AFFINITY = 86400
_ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")


def check_service(obj: Partial[Any]) -> Iterator[FieldError]:
    spec: Mapping[str, Any] = obj.document.get("spec") or {}
    kind, ports = spec.get("type") or "ClusterIP", spec.get("ports") or ()
    if not ports and spec.get("clusterIP") != "None" and kind != "ExternalName":
        yield required(_SPEC / "ports")
    if kind == "ExternalName":
        name = str(spec.get("externalName") or "").removesuffix(".")
        if not name:
            yield required(_SPEC / "externalName")
        else:
            yield from check_name(name, names.check_dns_subdomain, _SPEC / "externalName")
    for index, port in enumerate(ports):
        yield from _check_service_port(port, (_SPEC / "ports")[index], named=len(ports) > 1)
    named = [((_SPEC / "ports")[at] / "name", each["name"]) for at, each in enumerate(ports) if each.get("name")]
    yield from check_once(named)
    yield from check_label_values(spec.get("selector"), _SPEC / "selector")
    yield from _check_affinity(spec)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        yield from check_address(address, (_SPEC / "externalIPs")[index])
    yield from check_words(kind, _TYPES, _SPEC / "type")
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                yield forbidden((_SPEC / "ports")[index] / "nodePort", "may not be used when `type` is 'ClusterIP'")
    yield from _check_twice(ports)
    yield from _check_balancer(spec, kind)
    yield from _check_traffic(spec, kind)
    yield from _check_families(spec)
    yield from _check_addresses(spec)
    if spec.get("internalTrafficPolicy") is not None:
        yield from check_words(spec["internalTrafficPolicy"], ("Cluster", "Local"), _SPEC / "internalTrafficPolicy")


def _check_twice(ports: Sequence[Mapping[str, Any]]) -> Iterator[FieldError]:
    """A port is known by its protocol and number; the rest is shown empty."""
    nothing = {"AppProtocol": None, "TargetPort": 0, "NodePort": 0}
    shown = [
        {"Name": "", "Protocol": each.get("protocol") or "TCP", "AppProtocol": None, "Port": each.get("port") or 0,
         **nothing}
        for each in ports
    ]  # fmt: skip
    yield from check_once(((_SPEC / "ports")[at], each) for at, each in enumerate(shown))


def _check_addresses(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    first, every = spec.get("clusterIP") or "", list(spec.get("clusterIPs") or ())
    if every and not first:
        yield invalid(_SPEC / "clusterIPs", every, "must be empty when `clusterIP` is not specified")
    elif every and every[0] != first:
        yield invalid(_SPEC / "clusterIPs", every, "first value must match `clusterIP`")


def _check_traffic(spec: Mapping[str, Any], kind: str) -> Iterator[FieldError]:
    policy, where = spec.get("externalTrafficPolicy"), _SPEC / "externalTrafficPolicy"
    reached = kind in ("LoadBalancer", "NodePort") or (kind in _TYPES and spec.get("externalIPs"))
    if policy is not None and not reached:
        yield invalid(where, policy, "may only be set for externally-accessible services")
    elif policy is not None:
        yield from check_words(policy, ("Cluster", "Local"), where)
    nearness = spec.get("trafficDistribution")
    if nearness is not None:
        known = ("PreferClose", "PreferSameZone", "PreferSameNode")
        yield from check_words(nearness, known, _SPEC / "trafficDistribution")


def _check_balancer(spec: Mapping[str, Any], kind: str) -> Iterator[FieldError]:
    other = "may only be used when `type` is 'LoadBalancer'"
    ranges, where = spec.get("loadBalancerSourceRanges") or (), _SPEC / "LoadBalancerSourceRanges"
    if ranges and kind != "LoadBalancer":
        yield forbidden(where, other)
    elif ranges:
        for index, text in enumerate(ranges):
            if parse_range(text) is None:
                yield invalid(where[index], text, NO_RANGE)
    for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
        if spec.get(field) is not None and kind != "LoadBalancer":
            yield forbidden(_SPEC / field, other)
    if spec.get("loadBalancerClass") is not None and kind == "LoadBalancer":
        yield from check_name(spec["loadBalancerClass"], names.check_label_key, _SPEC / "loadBalancerClass")


def _check_families(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    policy, families = spec.get("ipFamilyPolicy"), spec.get("ipFamilies") or ()
    if policy is not None:
        known = ("PreferDualStack", "RequireDualStack", "SingleStack")
        yield from check_words(policy, known, _SPEC / "ipFamilyPolicy")
    for index, family in enumerate(families):
        yield from check_words(family, ("IPv4", "IPv6"), (_SPEC / "ipFamilies")[index])
    yield from check_once(((_SPEC / "ipFamilies")[at], family) for at, family in enumerate(families))


def _check_service_port(port: Mapping[str, Any], path: Path, *, named: bool) -> Iterator[FieldError]:
    name = port.get("name")
    if not name and named:
        yield required(path / "name")
    elif name:
        yield from check_name(name, names.check_dns_label, path / "name")
    yield from check_port(port.get("port"), path / "port")
    yield from check_protocol(port.get("protocol") or "TCP", path / "protocol")
    yield from check_port_or_name(port.get("targetPort") or port.get("port") or 0, path / "targetPort")
    if port.get("appProtocol") is not None:
        yield from check_name(port["appProtocol"], names.check_label_key, path / "appProtocol")


def _check_affinity(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    affinity = spec.get("sessionAffinity") or "None"
    yield from check_words(affinity, ("ClientIP", "None"), _SPEC / "sessionAffinity")
    seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
    if seconds is not None and not 0 < seconds <= _LONGEST_AFFINITY:
        at = _SPEC / "sessionAffinityConfig" / "clientIP" / "timeoutSeconds"
        yield invalid(at, seconds, f"must be greater than 0 and less than {_LONGEST_AFFINITY}")


def check_endpoints(obj: Partial[Any]) -> Iterator[FieldError]:
    for index, subset in enumerate(obj.document.get("subsets") or ()):
        where, ports = Path("subsets")[index], subset.get("ports") or ()
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required(where, "must specify `addresses` or `notReadyAddresses`")
        for part in ("addresses", "notReadyAddresses"):
            for at, address in enumerate(subset.get(part) or ()):
                yield from _check_endpoint_address(address, (where / part)[at])
        for at, port in enumerate(ports):
            place = (where / "ports")[at]
            if not port.get("name") and len(ports) > 1:
                yield required(place / "name")
            elif port.get("name"):
                yield from check_name(port["name"], names.check_dns_label, place / "name")
            yield from check_port(port.get("port"), place / "port")
            yield from check_protocol(port.get("protocol") or "TCP", place / "protocol")
            if port.get("appProtocol") is not None:
                yield from check_name(port["appProtocol"], names.check_label_key, place / "appProtocol")


def _check_endpoint_address(address: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    for error in check_address(address.get("ip"), path / "ip"):
        yield from (error, invalid(path / "ip", address.get("ip") or "", "must be a valid IP address"))
    if address.get("hostname"):
        yield from check_name(address["hostname"], names.check_dns_label, path / "hostname")
    if address.get("nodeName") is not None:
        yield from check_name(address["nodeName"], names.check_dns_subdomain, path / "nodeName")


def check_endpoint_slice(obj: Partial[Any]) -> Iterator[FieldError]:
    kind = obj.document.get("addressType", "")
    if not kind:
        yield required(Path("addressType"))
    else:
        yield from check_words(kind, _ADDRESS_TYPES, Path("addressType"))
    ports = obj.document.get("ports") or ()
    for index, port in enumerate(ports):
        where = Path("ports")[index]
        if port.get("name"):
            yield from check_name(port["name"], names.check_dns_label, where / "name")
        if port.get("protocol") is not None:
            yield from check_protocol(port["protocol"], where / "protocol")
        if port.get("appProtocol") is not None:
            yield from check_name(port["appProtocol"], names.check_label_key, where / "appProtocol")
    yield from check_once((Path("ports")[at] / "name", port.get("name") or "") for at, port in enumerate(ports))
    for index, endpoint in enumerate(obj.document.get("endpoints") or ()):
        yield from _check_slice_endpoint(endpoint, Path("endpoints")[index], numeric=kind in ("IPv4", "IPv6"))


def _check_slice_endpoint(endpoint: Mapping[str, Any], path: Path, *, numeric: bool) -> Iterator[FieldError]:
    addresses = endpoint.get("addresses") or ()
    if not addresses:
        yield required(path / "addresses", "must contain at least 1 address")
    for index, address in enumerate(addresses if numeric else ()):
        yield from check_address(address, (path / "addresses")[index])
    if endpoint.get("nodeName") is not None:
        yield from check_name(endpoint["nodeName"], names.check_dns_subdomain, path / "nodeName")
    if endpoint.get("hostname") is not None:
        yield from check_name(endpoint["hostname"], names.check_dns_label, path / "hostname")
    for field, rule in (("forZones", names.check_label_value), ("forNodes", names.check_dns_subdomain)):
        hints, where = (endpoint.get("hints") or {}).get(field) or (), path / "hints" / field
        for index, hint in enumerate(hints):
            yield from check_name(hint.get("name"), rule, where[index] / "name")
        yield from check_once((where[at] / "name", hint.get("name")) for at, hint in enumerate(hints))
