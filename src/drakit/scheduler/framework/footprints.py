"""What a pod takes of a node, in the units that nodes are counted in.

In:  pods.
Out: `Footprint`s. Pods of one template, and a pod before and after its status changed, have the very same one: it is
     worked out once per what the pods say about resources and ports.

Amounts are integers: cpu in thousandths, everything else in units, both rounded up.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import msgspec

from drakit.api.footprint import is_sidecar, pod_requests
from drakit.api.objects.pods import Container, Pod
from drakit.base.quantity import Quantity

Amounts = Mapping[str, int]
Port = tuple[str, str, int]
"""(address, protocol, number)"""

PODS = "pods"
CPU = "cpu"
MEMORY = "memory"
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - a name, nothing is bound
_LEAST = {CPU: Quantity(100 * 10**6), MEMORY: Quantity.of(200 * 1024 * 1024)}
_MOST = 4096


class Footprint(msgspec.Struct, frozen=True, eq=False, gc=False):
    """What a pod takes where it runs, and what it asks for while it waits: the latter is without what claims of an
    earlier attempt left in its status.

    `nonzero` and `nonzero_asked` are cpu and memory for comparing nodes: a container that names neither is taken to
    use a little all the same.
    """

    requested: Amounts
    nonzero: Amounts
    asked: Amounts
    nonzero_asked: Amounts
    ports: frozenset[Port]


_KNOWN: dict[Hashable, Footprint] = {}


class _Latest:
    """The pod that was asked about last: plugins ask one after the other about the pod of an attempt.

    Invariant: a pod and its own footprint are set together. Several schedulers may run in threads of one process.
    """

    found: tuple[Pod | None, Footprint | None] = (None, None)


def footprint_of(pod: Pod) -> Footprint:
    latest, footprint = _Latest.found
    if latest is not pod or footprint is None:
        footprint = _look_up(pod)
        _Latest.found = (pod, footprint)
    return footprint


def _look_up(pod: Pod) -> Footprint:
    key = _key(pod)
    found = _KNOWN.get(key)
    if found is None:
        if len(_KNOWN) >= _MOST:
            _KNOWN.clear()
        found = _KNOWN[key] = _work_out(pod)
    return found


def units(amounts: Mapping[str, Quantity]) -> dict[str, int]:
    return {name: amount.milli_value if name == CPU else amount.value for name, amount in amounts.items()}


def _work_out(pod: Pod) -> Footprint:
    requested = pod_requests(pod, status=True)
    asked = pod_requests(pod, claims=False)
    return Footprint(
        requested=units(requested),
        nonzero=_nonzero(pod, requested, status=True),
        asked=units(asked),
        nonzero_asked=_nonzero(pod, asked, claims=False),
        ports=_ports(pod),
    )


def _nonzero(pod: Pod, amounts: Mapping[str, Quantity], **how: bool) -> Amounts:
    """A pod that names amounts for itself has said enough about those that it or a container names."""
    least = _LEAST
    if _is_budgeted(pod):
        least = {name: amount for name, amount in _LEAST.items() if name not in amounts}
    found = units(pod_requests(pod, at_least=least, **how))
    return {CPU: found.get(CPU, 0), MEMORY: found.get(MEMORY, 0)}


def _is_budgeted(pod: Pod) -> bool:
    return pod.spec.resources is not None and bool(pod.spec.resources.requests or pod.spec.resources.limits)


def _ports(pod: Pod) -> frozenset[Port]:
    """The ports of the host that a pod takes, sidecars included."""
    containers = (*pod.spec.containers, *(each for each in pod.spec.init_containers if is_sidecar(each)))
    return frozenset(
        (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
        for container in containers
        for port in container.ports
        if port.host_port > 0
    )


def _key(pod: Pod) -> Hashable:
    """Everything that a footprint depends on."""
    spec, status = pod.spec, pod.status
    return (
        tuple([_container_key(each) for each in spec.containers]),
        tuple([_container_key(each) for each in spec.init_containers]),
        _amounts_key(spec.overhead) if spec.overhead else (),
        (_amounts_key(spec.resources.requests), bool(spec.resources.limits)) if spec.resources else (),
        tuple([_claim_key(each) for each in status.node_allocatable_resource_claim_statuses]),
        _resize_key(pod) if status.container_statuses or status.init_container_statuses else (),
    )


def _container_key(container: Container) -> Hashable:
    return (
        container.name,
        container.restart_policy,
        _amounts_key(container.resources.requests),
        tuple((port.host_ip, port.protocol, port.host_port) for port in container.ports if port.host_port)
        if container.ports
        else (),
    )


def _claim_key(status: Any) -> Hashable:
    return status.resource_claim_name, _amounts_key(status.resources)


def _resize_key(pod: Pod) -> Hashable:
    status = pod.status
    seen = [each for each in (*status.container_statuses, *status.init_container_statuses) if each.resources]
    if not seen:
        return ()
    sizes = [(each.name, _sizes(each.resources), _amounts_key(each.allocated_resources)) for each in seen]
    pending = [each.reason for each in status.conditions if each.type == "PodResizePending"]
    return tuple(sizes), tuple(pending)


def _sizes(resources: Any) -> Hashable:
    return _amounts_key(resources.requests)


def _amounts_key(amounts: Mapping[str, Quantity]) -> Hashable:
    return tuple([(name, amount.nanos) for name, amount in amounts.items()])
