"""The plugin LimitRanger: what containers and pods of a namespace get if they do not say, and what they may ask for.

In:  pods and volume claims that are made, and the LimitRanges of their namespace.
Out: pods with defaults; refusals that name every amount that is out of range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from drakit.api import Pod, from_plain
from drakit.api.footprint import pod_limits, pod_requests
from drakit.api.objects.plain import Plain
from drakit.api.objects.policy import LimitRange, LimitRangeItem
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import CREATE, UPDATE, AdmissionPlugin, ObjectChange
from drakit.apiserver.admission.criteria.catalogues import Presence
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objectstore import ObjectStore, prefix_of
from drakit.base.quantity import Quantity

_RANGE = known_kind("v1", "LimitRange")
_POD = known_kind("v1", "Pod")
_CLAIM = known_kind("v1", "PersistentVolumeClaim")
_NOTE = "kubernetes.io/limit-ranger"
Amounts = Mapping[str, Quantity]


class LimitRanger(AdmissionPlugin):
    name = "LimitRanger"

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._presence = Presence(objects, _RANGE)

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:
        if kind is _POD:
            return (operation == CREATE and not subresource) or (operation == UPDATE and subresource == "resize")
        return kind is _CLAIM and not subresource and operation in (CREATE, UPDATE)

    def passes_over(self, change: ObjectChange) -> bool:  # noqa: ARG002
        return self._presence.is_empty

    async def admit(self, change: ObjectChange) -> None:
        if change.kind is _POD and change.operation == CREATE:
            for found in await self._ranges(change.namespace):
                _complete(change, found)

    async def validate(self, change: ObjectChange) -> None:
        for found in await self._ranges(change.namespace):
            wrong = [text for item in found.spec.limits for text in _broken(change, item)]
            if wrong:
                told = wrong[0] if len(wrong) == 1 else "[" + ", ".join(dict.fromkeys(wrong)) + "]"
                raise change.forbid(told)

    async def _ranges(self, namespace: str) -> list[LimitRange]:
        if not await self._presence.is_in(namespace):
            return []
        page = await self._objects.store.list(prefix_of(_RANGE, namespace))
        return [from_plain(LimitRange, self._objects.from_record(_RANGE, each).document) for each in page.records]


def _complete(change: ObjectChange, found: LimitRange) -> None:
    """Give each container the defaults, and note in the pod which those were."""
    limits = {name: str(amount) for item in _of(found, "Container") for name, amount in item.default.items()}
    requests = {name: str(amount) for item in _of(found, "Container") for name, amount in item.default_request.items()}
    notes: list[str] = []
    spec = change.document["spec"]
    for part, words in (("containers", "container"), ("initContainers", "init container")):
        if spec.get(part):
            spec = change.own("spec")
            spec[part] = [_completed(each, requests, limits, words, notes) for each in spec[part]]
    if notes:
        annotations = change.document["metadata"].get("annotations") or {}
        told = "LimitRanger plugin set: " + "; ".join(notes)
        change.document["metadata"]["annotations"] = {**annotations, _NOTE: told}


def _of(found: LimitRange, type_: str) -> Iterator[LimitRangeItem]:
    return (item for item in found.spec.limits if item.type == type_)


def _completed(container: Plain, requests: Plain, limits: Plain, words: str, notes: list[str]) -> Plain:
    resources = dict(container.get("resources") or {})
    for part, defaults, verb in (("requests", requests, "request"), ("limits", limits, "limit")):
        given = resources.get(part) or {}
        added = sorted(defaults.keys() - given.keys())
        if added:
            resources[part] = {**given, **{name: defaults[name] for name in added}}
            notes.append(f"{', '.join(added)} {verb} for {words} {container.get('name', '')}")
    return {**container, "resources": resources} if resources else container


def _broken(change: ObjectChange, item: LimitRangeItem) -> Iterator[str]:
    if change.kind is _CLAIM:
        if item.type == "PersistentVolumeClaim":
            yield from _out_of_range(item, _amounts(change.document["spec"], "requests"), {}, {"request"})
        return
    pod = from_plain(Pod, change.document)
    if item.type == "Pod":
        yield from _out_of_range(item, pod_requests(pod), pod_limits(pod))
    elif item.type == "Container":
        for container in (*pod.spec.containers, *pod.spec.init_containers):
            yield from _out_of_range(item, container.resources.requests, container.resources.limits)


def _amounts(spec: Mapping[str, Any], part: str) -> Amounts:
    given = (spec.get("resources") or {}).get(part) or {}
    return {name: Quantity.parse(text) for name, text in given.items()}


def _out_of_range(
    item: LimitRangeItem, requests: Amounts, limits: Amounts, sides: Iterable[str] = ("request", "limit")
) -> Iterator[str]:
    for name, least in item.min.items():
        yield from _compare("minimum", name, item.type, least, requests, limits, sides, lambda a, b: a < b)
    for name, most in item.max.items():
        yield from _compare("maximum", name, item.type, most, requests, limits, sides, lambda a, b: a > b)
    for name, ratio in item.max_limit_request_ratio.items():
        request, limit = requests.get(name), limits.get(name)
        words = f"{name} max limit to request ratio per {item.type} is {ratio}"
        if request is None or not request.nanos:
            yield f"{words}, but no request is specified or request is 0"
        elif limit is None or not limit.nanos:
            yield f"{words}, but no limit is specified or limit is 0"
        elif limit.nanos * 10**9 > ratio.nanos * request.nanos:
            yield f"{words}, but provided ratio is {limit.nanos / request.nanos:f}"


def _compare(
    what: str, name: str, type_: str, bound: Quantity, requests: Amounts, limits: Amounts, sides: Iterable[str],
    breaks: Callable[[Quantity, Quantity], bool],
) -> Iterator[str]:  # fmt: skip
    """A least amount must be asked for; a largest one must be a limit. What is given at all must fit both."""
    words = f"{what} {name} usage per {type_} is {bound}"
    by_request = what == "minimum" or "limit" not in sides
    ordered = (("request", requests), ("limit", limits)) if by_request else (("limit", limits), ("request", requests))
    if name not in ordered[0][1]:
        yield f"{words}.  No {ordered[0][0]} is specified"
        return
    broken = [(side, given[name]) for side, given in ordered if side in sides and name in given]
    first = next((each for each in broken if breaks(each[1], bound)), None)
    if first is not None:
        yield f"{words}, but {first[0]} is {first[1]}"
