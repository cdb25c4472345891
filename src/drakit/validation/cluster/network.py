"""Kinds of the network that others act on: NetworkPolicy, Ingress, IngressClass, ServiceCIDR."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Any

from drakit.api import Partial
from drakit.base import names
from drakit.base.fields import FieldError, Path, forbidden, invalid, not_supported, required, too_long
from drakit.validation.fields.documentrules import (
    NO_RANGE,
    check_name,
    check_port,
    check_selector_labels,
    parse_range,
    port_name_problems,
)

_SPEC = Path("spec")
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_NOT_IN_PATHS = ("//", "/./", "/../", "%2f", "%2F")
_NOT_AT_THE_END = ("/..", "/.")
_WILDCARD = re.compile(r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_WILDCARD_RULE = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_LONGEST_CONTROLLER = 250


def _spec(obj: Partial[Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = obj.document.get("spec") or {}
    return found


def check_network_policy(obj: Partial[Any]) -> Iterator[FieldError]:
    spec = _spec(obj)
    yield from check_selector_labels(spec.get("podSelector"), _SPEC / "podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            where = (_SPEC / direction)[index]
            for at, port in enumerate(rule.get("ports") or ()):
                yield from _check_policy_port(port, (where / "ports")[at])
            for at, peer in enumerate(rule.get(peers) or ()):
                yield from _check_peer(peer, (where / peers)[at])
    kinds = spec.get("policyTypes") or ()
    if len(kinds) > 2:
        yield invalid(_SPEC / "policyTypes", kinds, "may not specify more than two policyTypes")
        return
    for index, kind in enumerate(kinds):
        if kind not in ("Ingress", "Egress"):
            yield not_supported((_SPEC / "policyTypes")[index], kind, ("Ingress", "Egress"))


def _check_policy_port(rule: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    protocol, port, end = rule.get("protocol"), rule.get("port"), rule.get("endPort")
    if protocol is not None and protocol not in ("TCP", "UDP", "SCTP"):
        yield not_supported(path / "protocol", protocol, ("TCP", "UDP", "SCTP"))
    if isinstance(port, int):
        yield from check_port(port, path / "port")
        if end is not None and end < port:
            yield invalid(path / "endPort", port, "must be greater than or equal to `port`")
        if end is not None:
            yield from check_port(end, path / "endPort")
        return
    if end is not None:
        why = "not specified" if port is None else "non-numeric"
        yield invalid(path / "endPort", end, f"may not be specified when `port` is {why}")
    if port is not None:
        yield from check_name(port, port_name_problems, path / "port")


def _check_peer(peer: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    for name in ("podSelector", "namespaceSelector"):
        yield from check_selector_labels(peer.get(name), path / name)
    given = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(name) is not None]
    if "ipBlock" in given:
        yield from _check_block(peer["ipBlock"], path / "ipBlock")
    if not given:
        yield required(path, "must specify a peer")
    elif len(given) > 1 and "ipBlock" in given:
        yield forbidden(path, "may not specify both ipBlock and another peer")


def _check_block(block: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if not block.get("cidr"):
        yield required(path / "cidr")
        return
    whole = parse_range(block["cidr"])
    if whole is None:
        yield invalid(path / "cidr", block["cidr"], NO_RANGE)
        return
    for index, text in enumerate(block.get("except") or ()):
        part, where = parse_range(text), (path / "except")[index]
        if part is None:
            yield invalid(where, text, NO_RANGE)
        elif part.network_address not in whole or part.prefixlen <= whole.prefixlen:
            yield invalid(where, text, "must be a strict subset of `cidr`")


def check_ingress(obj: Partial[Any]) -> Iterator[FieldError]:
    spec = _spec(obj)
    rules, backend = spec.get("rules") or (), spec.get("defaultBackend")
    if not rules and backend is None:
        yield invalid(_SPEC, spec.get("rules"), "either `defaultBackend` or `rules` must be specified")
    if backend is not None:
        yield from _check_backend(backend, _SPEC / "defaultBackend")
    for index, rule in enumerate(rules):
        yield from _check_rule(rule, (_SPEC / "rules")[index])
    for index, tls in enumerate(spec.get("tls") or ()):
        where = (_SPEC / "tls")[index]
        for at, host in enumerate(tls.get("hosts") or ()):
            yield from check_name(host, _host_problems, (where / "hosts")[at])
        if tls.get("secretName"):
            yield from check_name(tls["secretName"], names.check_dns_subdomain, where / "secretName")
    if spec.get("ingressClassName") is not None:
        yield from check_name(spec["ingressClassName"], names.check_dns_subdomain, _SPEC / "ingressClassName")


def _host_problems(host: str) -> list[str]:
    if "*" not in host:
        return names.check_dns_subdomain(host)
    problems = ["must be no more than 253 characters"] if len(host) > 253 else []
    if not _WILDCARD.fullmatch(host):
        problems.append(names.form_message(_WILDCARD_RULE, _WILDCARD.pattern, ("*.example.com",)))
    return problems


def _check_rule(rule: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    host = rule.get("host")
    if host:
        try:
            ipaddress.ip_address(host)
            yield invalid(path / "host", host, "must be a DNS name, not an IP address")
        except ValueError:
            pass
        yield from check_name(host, _host_problems, path / "host")
    if rule.get("http") is None:
        return
    paths = rule["http"].get("paths") or ()
    if not paths:
        yield required(path / "http" / "paths")
    for index, each in enumerate(paths):
        yield from _check_path(each, (path / "http" / "paths")[index])


def _check_path(entry: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    kind, text = entry.get("pathType"), entry.get("path") or ""
    if kind is None:
        yield required(path / "pathType", "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield not_supported(path / "pathType", kind, _PATH_TYPES)
    elif not text.startswith("/") and (text or kind != "ImplementationSpecific"):
        yield invalid(path / "path", text, "must be an absolute path")
    if kind in ("Exact", "Prefix"):
        for part in _NOT_IN_PATHS:
            if part in text:
                yield invalid(path / "path", text, f"must not contain '{part}'")
        for end in _NOT_AT_THE_END:
            if text.endswith(end):
                yield invalid(path / "path", text, f"cannot end with '{end}'")
    yield from _check_backend(entry.get("backend") or {}, path / "backend")


def _check_backend(backend: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _check_reference(resource, path / "resource")
    elif service is not None:
        yield from _check_service_backend(service, path)
    else:
        yield invalid(path, "", "resource or service backend is required")


def _check_service_backend(service: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if not service.get("name"):
        yield required(path / "service" / "name")
    else:
        yield from check_name(service["name"], names.check_dns_label, path / "service" / "name")
    port = service.get("port") or {}
    name, number, where = port.get("name"), port.get("number"), path / "service" / "port"
    if name and number:
        yield invalid(path, "", "cannot set both port name & port number")
    elif name:
        yield from check_name(name, port_name_problems, where / "name")
    elif number:
        yield from check_port(number, where / "number")
    else:
        yield required(path, "port name or number is required")


def _check_reference(reference: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if reference.get("apiGroup") is not None:
        yield from check_name(reference["apiGroup"], names.check_dns_subdomain, path / "apiGroup")
    for field in ("kind", "name"):
        if not reference.get(field):
            yield required(path / field)
        else:
            yield from check_name(reference[field], names.check_path_segment, path / field)


def check_ingress_class(obj: Partial[Any]) -> Iterator[FieldError]:
    spec = _spec(obj)
    yield from _check_controller(spec.get("controller") or "", _SPEC / "controller")
    parameters, where = spec.get("parameters"), _SPEC / "parameters"
    if parameters is None:
        return
    yield from _check_reference(parameters, where)
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        yield required(where / "scope")
    elif scope not in ("Cluster", "Namespace"):
        yield not_supported(where / "scope", scope, ("Cluster", "Namespace"))
    elif scope == "Namespace" and namespace is None:
        yield required(where / "namespace", "`parameters.scope` is set to 'Namespace'")
    elif scope == "Namespace":
        yield from check_name(namespace, names.check_dns_label, where / "namespace")
    elif namespace is not None:
        yield forbidden(where / "namespace", "`parameters.scope` is set to 'Cluster'")


def _check_controller(name: str, path: Path) -> Iterator[FieldError]:
    if len(name) > _LONGEST_CONTROLLER:
        yield too_long(path, _LONGEST_CONTROLLER)
    if not name:
        yield required(path)
        return
    domain, slash, rest = name.partition("/")
    if not slash or not domain or not rest:
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        yield invalid(path, name, detail)
        return
    yield from check_name(domain, names.check_dns_subdomain, path)


def check_service_range(obj: Partial[Any]) -> Iterator[FieldError]:
    ranges, where = _spec(obj).get("cidrs") or (), _SPEC / "cidrs"
    if not ranges:
        yield required(where, "at least one CIDR required")
    elif len(ranges) > 2:
        yield invalid(where, {"CIDRs": list(ranges)}, "may only hold up to 2 values")
    else:
        for index, text in enumerate(ranges):
            if parse_range(text) is None:
                yield invalid(where[index], text, NO_RANGE)
        families = [found.version for found in map(parse_range, ranges) if found is not None]
        if len(families) == 2 and families[0] == families[1]:
            detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            yield invalid(where, list(ranges), detail)
