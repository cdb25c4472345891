"""HorizontalPodAutoscaler: whom it scales, between which bounds, by which metrics and how fast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from drakit.api import Partial
from drakit.base import names
from drakit.base.fields import FieldError, Path, forbidden, invalid, not_supported, required
from drakit.base.quantity import Quantity
from drakit.validation.fields.documentrules import check_name
from drakit.validation.pods.resourcenames import is_container_standard, is_native

_SPEC = Path("spec")
_LONGEST_WINDOW, _LONGEST_PERIOD = 3600, 1800
_SELECTIONS = ("Disabled", "Max", "Min")
_POLICIES = ("Percent", "Pods")
_TARGETS = ("Utilization", "Value", "AverageValue")
_SOURCES = {
    "Object": "object", "External": "external", "Pods": "pods", "Resource": "resource",
    "ContainerResource": "containerResource",
}  # fmt: skip
"""The part of a metric by its type, in the order in which Kubernetes looks for them."""
_EITHER = "must set either a target raw value or a target utilization"
_NOT_BOTH = "may not set both a target raw value and a target utilization"


def check_autoscaler(obj: Partial[Any]) -> Iterator[FieldError]:
    spec: Mapping[str, Any] = obj.document.get("spec") or {}
    most, least = spec.get("maxReplicas", 0), spec.get("minReplicas")
    if least is not None and least < 1:
        yield invalid(_SPEC / "minReplicas", least, "must be greater than or equal to 1")
    if most == 0:
        yield required(_SPEC / "maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield invalid(_SPEC / "maxReplicas", most, "must be greater than or equal to 1")
    if least is not None and most < least:
        yield invalid(_SPEC / "maxReplicas", most, "must be greater than or equal to `minReplicas`")
    yield from _check_reference(spec.get("scaleTargetRef") or {}, _SPEC / "scaleTargetRef", core=False)
    yield from _check_metrics(spec, _SPEC / "metrics")
    for direction in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(direction)
        if rules is not None:
            yield from _check_rules(rules, _SPEC / "behavior" / direction)


def _check_reference(reference: Mapping[str, Any], path: Path, *, core: bool) -> Iterator[FieldError]:
    """`core` says whether the object may be of the core group, which none that can be scaled is."""
    for field in ("kind", "name"):
        if not reference.get(field):
            yield required(path / field)
        else:
            yield from check_name(reference[field], names.check_path_segment, path / field)
    version = reference.get("apiVersion") or ""
    if version.count("/") > 1:
        yield invalid(path / "apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif "/" not in version.strip("/") and not core:
        yield invalid(path / "apiVersion", version, "apiVersion must specify API group")


def _check_metrics(spec: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    metrics = spec.get("metrics") or ()
    for index, metric in enumerate(metrics):
        yield from _check_metric(metric, path[index])
    if spec.get("minReplicas") == 0 and not {each.get("type") for each in metrics} & {"Object", "External"}:
        needed = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden(path, needed)


def _check_metric(metric: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    kind = metric.get("type") or ""
    if not kind:
        yield required(path / "type", "must specify a metric source type")
    if kind not in _SOURCES:
        yield not_supported(path / "type", kind, sorted(_SOURCES))
    given = [name for name in _SOURCES.values() if metric.get(name) is not None]
    for name in given[:1]:
        yield from _CHECKS[name](metric[name], path / name)
    own = _SOURCES.get(kind)
    if own is None:
        yield not_supported(path / "type", kind, sorted(_SOURCES))
    elif own not in given:
        yield required(path / own, "must populate information for the given metric source")
    if len(given) != 1:
        for name in given:
            if name != own:
                yield forbidden(path / name, "must populate the given metric source only")


def _check_object(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    yield from _check_reference(source.get("describedObject") or {}, path / "describedObject", core=True)
    yield from _check_identifier(source, path)
    yield from _check_target(source, path)
    if not _has(source, "value", "averageValue"):
        yield required(path / "target" / "averageValue", "must set either a target value or averageValue")


def _check_external(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    yield from _check_identifier(source, path)
    yield from _check_target(source, path)
    if not _has(source, "value", "averageValue"):
        detail = "must set either a target value for metric or a per-pod target"
        yield required(path / "target" / "averageValue", detail)
    if _has(source, "value") and _has(source, "averageValue"):
        yield forbidden(path / "target" / "value", "may not set both a target value for metric and a per-pod target")


def _check_pods(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    yield from _check_identifier(source, path)
    yield from _check_target(source, path)
    if not _has(source, "averageValue"):
        yield required(path / "target" / "averageValue", "must specify a positive target averageValue")


def _check_resource(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if not source.get("name"):
        yield required(path / "name", "must specify a resource name")
    yield from _check_share(source, path)


def _check_container_resource(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if not source.get("name"):
        yield required(path / "name", "must specify a resource name")
    else:
        yield from _check_resource_name(source["name"], path / "name")
    if not source.get("container"):
        yield required(path / "container", "must specify a container")
    else:
        yield from check_name(source["container"], names.check_dns_label, path / "container")
    yield from _check_share(source, path)


def _check_resource_name(name: str, path: Path) -> Iterator[FieldError]:
    yield from check_name(name, names.check_qualified_name, path)
    if "/" not in name and not is_container_standard(name):
        yield invalid(path, name, "must be a standard resource for containers")
    elif "/" in name and is_native(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def _check_share(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    yield from _check_target(source, path)
    if not _has(source, "averageUtilization", "averageValue"):
        yield required(path / "target" / "averageUtilization", _EITHER)
    if _has(source, "averageUtilization") and _has(source, "averageValue"):
        yield forbidden(path / "target" / "averageValue", _NOT_BOTH)


_CHECKS: Mapping[str, Callable[[Mapping[str, Any], Path], Iterator[FieldError]]] = {
    "object": _check_object,
    "external": _check_external,
    "pods": _check_pods,
    "resource": _check_resource,
    "containerResource": _check_container_resource,
}


def _has(source: Mapping[str, Any], *fields: str) -> bool:
    target = source.get("target") or {}
    return any(target.get(field) is not None for field in fields)


def _check_identifier(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    name = (source.get("metric") or {}).get("name")
    if not name:
        yield required(path / "metric" / "name", "must specify a metric name")
    else:
        yield from check_name(name, names.check_path_segment, path / "metric" / "name")


def _check_target(source: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    target, where = source.get("target") or {}, path / "target"
    kind = target.get("type") or ""
    if not kind:
        yield required(where / "type", "must specify a metric target type")
    if kind not in _TARGETS:
        yield invalid(where / "type", kind, "must be either Utilization, Value, or AverageValue")
    for field in ("value", "averageValue"):
        if target.get(field) is not None and Quantity.parse(target[field]).sign <= 0:
            yield invalid(where / field, target[field], "must be positive")
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        yield invalid(where / "averageUtilization", share, "must be greater than 0")


def _check_rules(rules: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    window, selection = rules.get("stabilizationWindowSeconds"), rules.get("selectPolicy")
    if window is not None and window < 0:
        yield invalid(path / "stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window is not None and window > _LONGEST_WINDOW:
        limit = f"must be less than or equal to {_LONGEST_WINDOW}"
        yield invalid(path / "stabilizationWindowSeconds", window, limit)
    if selection is not None and selection not in _SELECTIONS:
        yield not_supported(path / "selectPolicy", selection, _SELECTIONS)
    policies = rules.get("policies") or ()
    if not policies:
        yield required(path / "policies", "must specify at least one Policy")
    for index, policy in enumerate(policies):
        yield from _check_policy(policy, (path / "policies")[index])
    tolerance = rules.get("tolerance")
    if tolerance is not None and Quantity.parse(tolerance).sign < 0:
        yield invalid(path / "tolerance", tolerance, "must be greater than or equal to 0")


def _check_policy(policy: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if policy.get("type") not in _POLICIES:
        yield not_supported(path / "type", policy.get("type") or "", _POLICIES)
    for field in ("value", "periodSeconds"):
        if policy.get(field, 0) <= 0:
            yield invalid(path / field, policy.get(field, 0), "must be greater than zero")
    period = policy.get("periodSeconds", 0)
    if period > _LONGEST_PERIOD:
        yield invalid(path / "periodSeconds", period, f"must be less than or equal to {_LONGEST_PERIOD}")
