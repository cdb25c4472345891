"""HorizontalPodAutoscaler between v2, the internal form, and v1.

v1 knows one metric: how much of the requested CPU is used. All else of v2 stands in annotations, as in Kubernetes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from drakit.api.objects.plain import Plain

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS = _PREFIX + "metrics"
_BEHAVIOR = _PREFIX + "behavior"
_CURRENT = _PREFIX + "current-metrics"
_CONDITIONS = _PREFIX + "conditions"
_PERCENT = "targetCPUUtilizationPercentage"
_CURRENT_PERCENT = "currentCPUUtilizationPercentage"


def autoscaler_to_v1(data: Plain) -> Plain:
    """The autoscaler in v1, except for `apiVersion`; `data` stays as it is."""
    notes: dict[str, str] = {}
    result = dict(data)
    if isinstance(spec := data.get("spec"), Mapping):
        spec = dict(spec)
        metrics, behavior = spec.pop("metrics", None), spec.pop("behavior", None)
        percent, others = _split(metrics or [], _target_of)
        result["spec"] = spec if percent is None else {**spec, _PERCENT: percent}
        _note(notes, _METRICS, others)
        _note(notes, _BEHAVIOR, behavior)
    if isinstance(status := data.get("status"), Mapping):
        status = dict(status)
        current, conditions = status.pop("currentMetrics", None), status.pop("conditions", None)
        percent, others = _split(current or [], _current_of)
        result["status"] = status if percent is None else {**status, _CURRENT_PERCENT: percent}
        _note(notes, _CURRENT, others)
        _note(notes, _CONDITIONS, conditions)
    return _with_annotations(result, notes)


def autoscaler_from_v1(data: Plain) -> Plain:
    """The autoscaler in v2, except for `apiVersion`; `data` stays as it is."""
    annotations = dict((data.get("metadata") or {}).get("annotations") or {})
    found = {name: _read(annotations, name) for name in (_METRICS, _BEHAVIOR, _CURRENT, _CONDITIONS)}
    result = dict(data)
    if isinstance(spec := data.get("spec"), Mapping):
        spec = dict(spec)
        percent = spec.pop(_PERCENT, None)
        metrics = [*(() if percent is None else (_metric(percent),)), *(found[_METRICS] or ())]
        result["spec"] = spec | _given(metrics=metrics, behavior=found[_BEHAVIOR])
    status = data.get("status")
    if isinstance(status, Mapping) or found[_CURRENT] or found[_CONDITIONS]:
        status = dict(status or {})
        percent = status.pop(_CURRENT_PERCENT, None)
        current = [*(() if percent is None else (_current(percent),)), *(found[_CURRENT] or ())]
        result["status"] = status | _given(currentMetrics=current, conditions=found[_CONDITIONS])
    if any(each is not None for each in found.values()):
        metadata = {**data["metadata"], "annotations": annotations}
        result["metadata"] = metadata if annotations else {k: v for k, v in metadata.items() if k != "annotations"}
    return result


def _metric(percent: int) -> Plain:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _current(percent: int) -> Plain:
    return {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": percent}}}


def _target_of(metric: Plain) -> Any:
    return ((metric.get("resource") or {}).get("target") or {}).get("averageUtilization")


def _current_of(metric: Plain) -> Any:
    return ((metric.get("resource") or {}).get("current") or {}).get("averageUtilization")


def _split(metrics: list[Plain], value_of: Any) -> tuple[int | None, list[Plain]]:
    """The CPU percentage, if the first metric is just that, and the other metrics."""
    if metrics:
        percent = value_of(metrics[0])
        plain = _metric if value_of is _target_of else _current
        if percent is not None and metrics[0] == plain(percent):
            return percent, metrics[1:]
    return None, metrics


def _note(notes: dict[str, str], name: str, value: Any) -> None:
    if value or isinstance(value, Mapping):
        notes[name] = json.dumps(value, separators=(",", ":"))


def _read(annotations: dict[str, str], name: str) -> Any:
    """Remove an annotation and return its data. One that a client wrote and that cannot be read stays."""
    try:
        found = json.loads(annotations.get(name, "null"))
    except ValueError:
        return None
    wanted = dict if name == _BEHAVIOR else list
    if not isinstance(found, wanted):
        return None
    del annotations[name]
    return found


def _given(**parts: Any) -> Plain:
    return {name: value for name, value in parts.items() if value or isinstance(value, Mapping)}


def _with_annotations(result: Plain, notes: Mapping[str, str]) -> Plain:
    if not notes:
        return result
    metadata = result.get("metadata") or {}
    return {**result, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **notes}}}
