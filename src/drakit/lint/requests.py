"""Warnings about what claims ask for and no device offers: selectors, names, counts, constraints, classes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import count

from msgspec.structs import replace

from drakit.allocator import Allocator, SearchResult
from drakit.api import EXACT_COUNT, DeviceClaim, ResourceClaim, ResourceClaimSpec
from drakit.lint.attributes import ATTRIBUTE, CAPACITY, Name, missing, names_in, names_of
from drakit.lint.cluster import Asked, ClaimRequests, Cluster, passes
from drakit.lint.findings import Draft, warn
from drakit.manifests import Manifest
from drakit.selectors import Selector, bind

SEARCH_STEPS = 2000
"""A search is stopped when it has checked its time limit so often; about a hundred steps per check."""


def check_selectors(cluster: Cluster) -> Iterator[Draft]:
    """Expressions that no device passes, and names in them that no device has."""
    if not cluster.devices:
        return
    known = names_of((slice_, device) for slice_, device, _ in cluster.devices)
    for owned in cluster.selectors():
        for index, each in enumerate(owned.selectors):
            compiled = cluster.compiled((each,))
            if not compiled or each.cel is None:
                continue
            path = f"{owned.path}[{index}].cel.expression"
            unknown = [message for name in names_in(each.cel.expression) if (message := missing(name, known))]
            yield from (warn(owned.manifest, "unknown-attribute", path, message) for message in unknown)
            if not cluster.matching(compiled):
                yield warn(owned.manifest, "selector-matches-nothing", path, _nothing(cluster, each.cel.expression))


def _nothing(cluster: Cluster, expression: str) -> str:
    """The message that no device matches; with the error if the expression fails on every device."""
    selector = cluster.compile(expression)
    failures = [selector.evaluate(bound).error for _, _, bound in cluster.devices]
    told = f"matches none of the {len(failures)} devices in the slices"
    return f"{told}: {failures[0]}" if all(failures) else told


def check_requests(cluster: Cluster) -> Iterator[Draft]:
    for asking in cluster.asking:
        for path, asked in asking.requests():
            yield from _check_class(cluster, asking.manifest, path, asked)
            if cluster.devices:
                yield from _check_request(cluster, asking.manifest, path, asked)
        if cluster.devices:
            yield from _check_names(cluster, asking)
            yield from _check_constraints(cluster, asking)


def _check_class(cluster: Cluster, manifest: Manifest, path: str, asked: Asked) -> Iterator[Draft]:
    if cluster.classes and asked.device_class_name not in cluster.classes:
        known = ", ".join(sorted(cluster.classes))
        message = f'no DeviceClass "{asked.device_class_name}" is among those given: {known}'
        yield warn(manifest, "unknown-class", f"{path}.deviceClassName", message)


def _check_request(cluster: Cluster, manifest: Manifest, path: str, asked: Asked) -> Iterator[Draft]:
    """Warn if no device passes the selectors of class and request together, or too few on every node."""
    selectors = cluster.wanted(asked)
    matching = cluster.matching(selectors)
    if not matching:
        if all(cluster.matching([selector]) for selector in selectors):
            message = f"no device passes the selectors of class {asked.device_class_name} and of the request together"
            yield warn(manifest, "request-matches-nothing", path, message)
        return
    if asked.allocation_mode != EXACT_COUNT or any(device.allow_multiple_allocations for device in matching):
        return
    if cluster.lacks_nodes:
        return
    counts = [(count_on(cluster, name, selectors), name) for name in cluster.nodes]
    most, node = max(counts)
    if asked.count > most:
        where = f"{node} has {most}" if node else f"there are {most}"
        message = f"asks for {asked.count}, but no node has so many devices that match: {where}"
        yield warn(manifest, "count-too-large", f"{path}.count", message)


def count_on(cluster: Cluster, node: str, selectors: Sequence[Selector]) -> float:
    """How many devices of a node match; infinite if one of its pools has a problem, since its devices are not known."""
    views = cluster.inventory.views(node)
    if any(view.problem is not None for view in views):
        return math.inf
    return sum(
        bool(view.content.reachable >> position & 1) and passes(bind(view.key[0], device), selectors)
        for view in views
        for position, device in enumerate(view.devices)
    )


def _check_names(cluster: Cluster, asking: ClaimRequests) -> Iterator[Draft]:
    """Attributes of constraints and capacities of requests. Bare capacities belong to any driver."""
    known = names_of((slice_, device) for slice_, device, _ in cluster.devices)
    for index, constraint in enumerate(asking.devices.constraints):
        for field, name in (
            ("matchAttribute", constraint.match_attribute),
            ("distinctAttribute", constraint.distinct_attribute),
        ):
            message = missing(Name(ATTRIBUTE, name), known) if name else None
            if message:
                path = f"{asking.path}.constraints[{index}].{field}"
                yield warn(asking.manifest, "unknown-attribute", path, message)
    bare = {each.name.rpartition("/")[2] for each in known if each.what == CAPACITY}
    for path, asked in asking.requests():
        for name in asked.capacity.requests if asked.capacity else ():
            if (message := missing(Name(CAPACITY, name), known)) and name not in bare:
                yield warn(asking.manifest, "unknown-attribute", f"{path}.capacity.requests[{name}]", message)


def _check_constraints(cluster: Cluster, asking: ClaimRequests) -> Iterator[Draft]:
    """A constraint that rules out every node on which the claim would fit without it."""
    constraints = asking.devices.constraints
    if not constraints or _fits(cluster, replace(asking.devices, constraints=())) is not True:
        return
    alone = [_fits(cluster, replace(asking.devices, constraints=(each,))) for each in constraints]
    for index, fits in enumerate(alone):
        if fits is False:
            message = "cannot hold: without it the devices are there, with it no node has a combination"
            yield warn(asking.manifest, "impossible-constraint", f"{asking.path}.constraints[{index}]", message)
    if all(alone) and _fits(cluster, asking.devices) is False:
        message = "cannot all hold at once: each of them alone can, together no node has a combination"
        yield warn(asking.manifest, "impossible-constraint", f"{asking.path}.constraints", message)


def _fits(cluster: Cluster, devices: DeviceClaim) -> bool | None:
    """Whether some node has the devices; None if another mistake or the step limit prevents an answer."""
    claim = ResourceClaim(spec=ResourceClaimSpec(devices=devices))
    steps = count()
    allocator = Allocator(cluster.inventory, [claim], expired=lambda: next(steps) > SEARCH_STEPS)
    results = [allocator.answer(node).result for node in cluster.nodes]
    if SearchResult.FOUND in results:
        return True
    return False if set(results) <= {SearchResult.NONE, SearchResult.CONSTRAINT} else None
