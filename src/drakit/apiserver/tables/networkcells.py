"""The cells of the network's kinds, of flow control and of API services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.apiserver.tables.ages import age
from drakit.apiserver.tables.parts import NONE, UNSET, Cells, named, selector_text, spec_of, status_of

_MOST = 3
_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"


def _some(texts: Sequence[str], *, nothing: str) -> str:
    if not texts:
        return nothing
    more = f" + {len(texts) - _MOST} more..." if len(texts) > _MOST else ""
    return ",".join(texts[:_MOST]) + more


def _ingress(item: Plain, _now: datetime) -> list[Any]:
    spec = spec_of(item)
    rules = spec.get("rules") or ()
    named_hosts = [rule["host"] for rule in rules if rule.get("host")]
    more = f" + {len(rules) - _MOST} more..." if len(named_hosts) >= _MOST and len(rules) > _MOST else ""
    hosts = ",".join(named_hosts[:_MOST]) + more if named_hosts else "*"
    points = (status_of(item).get("loadBalancer") or {}).get("ingress") or ()
    addresses = sorted({each.get("ip") or each.get("hostname") or "" for each in points} - {""})
    return [spec.get("ingressClassName") or NONE, hosts, ",".join(addresses), "80, 443" if spec.get("tls") else "80"]


def _ingress_class(item: Plain, now: datetime) -> list[Any]:
    metadata, spec = item.get("metadata") or {}, spec_of(item)
    default = " (default)" if (metadata.get("annotations") or {}).get(_DEFAULT_CLASS) == "true" else ""
    shown, parameters = NONE, spec.get("parameters")
    if parameters:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
        shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    created = age(metadata.get("creationTimestamp"), now)
    return [metadata.get("name", "") + default, spec.get("controller", ""), shown, created]


def _endpoint_slice(item: Plain, _now: datetime) -> list[Any]:
    ports = []
    for port in item.get("ports") or ():
        number = port.get("port")
        ports.append(str(number) if number is not None else port.get("name") or "*")
    addresses = [address for each in item.get("endpoints") or () for address in each.get("addresses") or ()]
    return [item.get("addressType", ""), _some(ports, nothing=UNSET), _some(addresses, nothing=UNSET)]


def _address(item: Plain, _now: datetime) -> list[Any]:
    parent = spec_of(item).get("parentRef")
    if not parent:
        return [NONE]
    group = f".{parent['group']}" if parent.get("group") else ""
    place = f"/{parent['namespace']}" if parent.get("namespace") else ""
    return [f"{parent.get('resource', '')}{group}".lower() + f"{place}/{parent.get('name', '')}"]


def _flow_schema(item: Plain, now: datetime) -> list[Any]:
    spec, metadata = spec_of(item), item.get("metadata") or {}
    conditions = status_of(item).get("conditions") or ()
    dangling = next((each.get("status", "") for each in conditions if each.get("type") == "Dangling"), "?")
    level = (spec.get("priorityLevelConfiguration") or {}).get("name", "")
    method = (spec.get("distinguisherMethod") or {}).get("type") or NONE
    head = [metadata.get("name", ""), level, spec.get("matchingPrecedence", 0), method]
    return [*head, age(metadata.get("creationTimestamp"), now), dangling]


def _priority_level(item: Plain, _now: datetime) -> list[Any]:
    spec = spec_of(item)
    limited = spec.get("limited")
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing")
    shares = NONE if limited is None else limited.get("nominalConcurrencyShares", NONE)
    queues = [NONE if queuing is None else queuing.get(name, 0) for name in ("queues", "handSize", "queueLengthLimit")]
    return [spec.get("type", ""), shares, *queues]


def _api_service(item: Plain, _now: datetime) -> list[Any]:
    service = spec_of(item).get("service")
    place = "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"
    conditions = status_of(item).get("conditions") or ()
    found = next((each for each in conditions if each.get("type") == "Available"), None)
    if found is None:
        return [place, "Unknown"]
    state, why = str(found.get("status", "")), found.get("reason")
    return [place, f"{state} ({why})" if why and state != "True" else state]


NETWORK_CELLS: Mapping[str, Cells] = {
    "APIService": named(_api_service),
    "EndpointSlice": named(_endpoint_slice),
    "FlowSchema": _flow_schema,
    "IPAddress": named(_address),
    "Ingress": named(_ingress),
    "IngressClass": _ingress_class,
    "NetworkPolicy": named(lambda item, _: [selector_text(spec_of(item).get("podSelector"))]),
    "PriorityLevelConfiguration": named(_priority_level),
    "ServiceCIDR": named(lambda item, _: [",".join(spec_of(item).get("cidrs") or ())]),
}
