"""What bounds pods: disruption budgets, ranges of what containers may ask for, runtime classes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from drakit.api import Partial
from drakit.api.objects.policy import LimitRange, LimitRangeItem, PodDisruptionBudget
from drakit.api.objects.runtime import RuntimeClass
from drakit.base import names
from drakit.base.fields import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from drakit.base.quantity import Quantity
from drakit.validation.fields.documentrules import check_once, check_selector_labels
from drakit.validation.fields.gonames import as_go
from drakit.validation.fields.metadata import IMMUTABLE, check_labels
from drakit.validation.pods.spec import check_toleration

_SPEC = Path("spec")
_PERCENT = re.compile(r"[0-9]+%")
_ONE = Quantity.parse("1")


def check_budget(obj: Partial[PodDisruptionBudget]) -> Iterator[FieldError]:
    spec = obj.view.spec
    if spec.min_available is not None and spec.max_unavailable is not None:
        yield invalid(_SPEC, obj.document["spec"], "minAvailable and maxUnavailable cannot be both set")
    for name, value in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        if value is not None:
            yield from _check_share(value, _SPEC / name)
    yield from check_selector_labels(obj.document["spec"].get("selector"), _SPEC / "selector")
    policy = spec.unhealthy_pod_eviction_policy
    if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
        yield not_supported(_SPEC / "unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))


def _check_share(value: int | str, path: Path) -> Iterator[FieldError]:
    if isinstance(value, int):
        if value < 0:
            yield invalid(path, value, "must be greater than or equal to 0")
    elif not _PERCENT.fullmatch(value):
        detail = (
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
            "used for validation is '[0-9]+%')"
        )
        yield invalid(path, value, detail)
    elif int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def check_limit_range(obj: Partial[LimitRange]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, item in enumerate(obj.view.spec.limits):
        path = (_SPEC / "limits")[index]
        for message in names.check_qualified_name(item.type):
            yield invalid(path / "type", item.type, message)
        if item.type in seen:
            yield duplicate(path / "type", item.type)
        seen.add(item.type)
        yield from _check_parts(item, path)
        for name in sorted({*item.max, *item.min, *item.default, *item.default_request, *item.max_limit_request_ratio}):
            yield from _check_amounts(item, name, path)


def _check_parts(item: LimitRangeItem, path: Path) -> Iterator[FieldError]:
    if item.type == "Pod":
        for part, amounts in (("default", item.default), ("defaultRequest", item.default_request)):
            if amounts:
                yield forbidden(path / part, "may not be specified when `type` is 'Pod'")
    if item.type == "PersistentVolumeClaim" and "storage" not in {*item.min, *item.max}:
        detail = "either minimum or maximum storage value is required, but neither was provided"
        yield required(path / "limits", detail)


def _check_amounts(item: LimitRangeItem, name: str, path: Path) -> Iterator[FieldError]:
    low, high = item.min.get(name), item.max.get(name)
    limit, request = item.default.get(name), item.default_request.get(name)
    pairs: tuple[tuple[str, Any, Any, str, Any], ...] = (
        ("min", low, high, "min value {} is greater than max value {}", low),
        ("defaultRequest", low, request, "min value {} is greater than default request value {}", request),
        ("defaultRequest", request, high, "default request value {} is greater than max value {}", request),
        ("defaultRequest", request, limit, "default request value {} is greater than default limit value {}", request),
        ("default", low, limit, "min value {} is greater than default value {}", low),
        ("default", limit, high, "default value {} is greater than max value {}", high),
    )
    for part, less, more, text, shown in pairs:
        if less is not None and more is not None and less > more:
            yield invalid((path / part).key(name), str(shown), text.format(less, more))
    ratio = item.max_limit_request_ratio.get(name)
    if ratio is not None and ratio < _ONE:
        yield invalid((path / "maxLimitRequestRatio").key(name), str(ratio), f"ratio {ratio} is less than 1")


def check_runtime_class(obj: Partial[RuntimeClass]) -> Iterator[FieldError]:
    handler = obj.view.handler
    if not handler:
        yield required(Path("handler"))
    for message in names.check_dns_label(handler) if handler else ():
        yield invalid(Path("handler"), handler, message)
    scheduling, where = obj.view.scheduling, Path("scheduling")
    if scheduling is not None:
        yield from check_labels(scheduling.node_selector, where / "nodeSelector")
        for index, toleration in enumerate(scheduling.tolerations):
            yield from check_toleration(toleration, (where / "tolerations")[index])
        shown = [as_go(each) for each in scheduling.tolerations]
        yield from check_once(((where / "tolerations")[at], each) for at, each in enumerate(shown))


def check_runtime_class_update(new: Partial[RuntimeClass], old: Partial[RuntimeClass]) -> Iterator[FieldError]:
    if new.view.handler != old.view.handler:
        yield invalid(Path("handler"), new.view.handler, IMMUTABLE)
