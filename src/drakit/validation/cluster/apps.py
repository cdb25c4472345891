"""Deployment and DaemonSet: selector, template, and how fast an update may go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from drakit.api import Partial
from drakit.api.objects.apps import DaemonSet, Deployment
from drakit.base import names
from drakit.base.fields import FieldError, Path, forbidden, invalid, not_supported, required
from drakit.validation.cluster.podselectors import MALFORMED, check_pod_selector
from drakit.validation.fields.metadata import IMMUTABLE, check_labels
from drakit.validation.pods.details import check_pod_details
from drakit.validation.pods.spec import check_pod_spec

_SPEC = Path("spec")
_PERCENT = re.compile(r"[0-9]+%")
_NO_PERCENT = names.form_message(
    "a valid percent string must be a numeric string followed by an ending '%'", "[0-9]+%", ("1%", "93%")
)
_NOT_NEGATIVE = "must be greater than or equal to 0"


def check_deployment(obj: Partial[Deployment]) -> Iterator[FieldError]:
    spec = obj.view.spec
    yield from _check_selector(obj)
    for name, value in (
        ("replicas", spec.replicas),
        ("minReadySeconds", spec.min_ready_seconds),
        ("revisionHistoryLimit", spec.revision_history_limit),
    ):
        if value is not None and value < 0:
            yield invalid(_SPEC / name, value, _NOT_NEGATIVE)
    yield from _check_strategy(obj.document["spec"].get("strategy") or {}, _SPEC / "strategy", "Recreate")
    deadline = spec.progress_deadline_seconds
    if deadline is not None and deadline < 0:
        yield invalid(_SPEC / "progressDeadlineSeconds", deadline, _NOT_NEGATIVE)
    if deadline is not None and deadline <= spec.min_ready_seconds:
        yield invalid(_SPEC / "progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def check_daemon_set(obj: Partial[DaemonSet]) -> Iterator[FieldError]:
    spec = obj.view.spec
    yield from _check_selector(obj)
    if spec.min_ready_seconds < 0:
        yield invalid(_SPEC / "minReadySeconds", spec.min_ready_seconds, _NOT_NEGATIVE)
    limit = spec.revision_history_limit
    if limit is not None and limit < 0:
        yield invalid(_SPEC / "revisionHistoryLimit", limit, _NOT_NEGATIVE)
    yield from _check_strategy(obj.document["spec"].get("updateStrategy") or {}, _SPEC / "updateStrategy", "OnDelete")


def check_selector_update(new: Partial[Any], old: Partial[Any]) -> Iterator[FieldError]:
    if new.view.spec.selector != old.view.spec.selector:
        yield invalid(_SPEC / "selector", new.document["spec"].get("selector"), IMMUTABLE)


def _check_selector(obj: Partial[Any]) -> Iterator[FieldError]:
    spec, template = obj.view.spec, _SPEC / "template"
    kind = str(obj.document.get("kind")).lower()
    malformed = MALFORMED if kind == "deployment" else None
    yield from check_pod_selector(obj.document["spec"], _SPEC, kind, malformed=malformed)
    yield from check_labels(spec.template.metadata.labels, template / "labels")
    yield from check_pod_spec(spec.template.spec, template / "spec")
    document = obj.document["spec"]["template"].get("spec") or {}
    yield from check_pod_details(document, template / "spec")
    policy = document.get("restartPolicy", "Always")
    if policy != "Always":
        yield not_supported(template / "spec" / "restartPolicy", policy, ("Always",))


def _check_strategy(strategy: dict[str, Any], path: Path, other: str) -> Iterator[FieldError]:
    """`other` is the type beside RollingUpdate; it has no parameters."""
    kind, rolling = strategy.get("type", "RollingUpdate"), strategy.get("rollingUpdate")
    if kind not in ("RollingUpdate", other):
        order = (other, "RollingUpdate") if other == "Recreate" else ("RollingUpdate", other)
        yield not_supported(path, _as_go(kind, rolling), order)
        return
    if kind == other:
        if rolling is not None:
            yield forbidden(path / "rollingUpdate", f"may not be specified when strategy `type` is '{other}'")
        return
    rolling, wrong = rolling or {}, []
    for name in ("maxUnavailable", "maxSurge"):
        wrong += list(_check_share(rolling.get(name, 0), path / "rollingUpdate" / name))
    yield from wrong
    if not wrong and other == "Recreate" and _is_zero(rolling, "maxUnavailable") and _is_zero(rolling, "maxSurge"):
        shown = rolling.get("maxUnavailable", 0)
        yield invalid(path / "rollingUpdate" / "maxUnavailable", shown, "may not be 0 when `maxSurge` is 0")
    if not wrong and other == "OnDelete":
        yield from _check_one_of(rolling, path / "rollingUpdate")


def _as_go(kind: str, rolling: dict[str, Any] | None) -> dict[str, Any]:
    shown = {name[0].upper() + name[1:]: (rolling or {}).get(name) for name in ("maxUnavailable", "maxSurge")}
    return {"Type": kind, "RollingUpdate": shown if rolling is not None else None}


def _check_one_of(rolling: dict[str, Any], path: Path) -> Iterator[FieldError]:
    missing, surging = not _is_zero(rolling, "maxUnavailable"), not _is_zero(rolling, "maxSurge")
    if missing and surging:
        yield invalid(path / "maxSurge", rolling["maxSurge"], "may not be set when maxUnavailable is non-zero")
    if not missing and not surging:
        yield required(path / "maxUnavailable", "cannot be 0 when maxSurge is 0")


def _check_share(value: Any, path: Path) -> Iterator[FieldError]:
    if isinstance(value, int):
        if value < 0:
            yield invalid(path, value, _NOT_NEGATIVE)
    elif not _PERCENT.fullmatch(str(value)):
        yield invalid(path, value, _NO_PERCENT)
    elif str(path).endswith("maxUnavailable") and int(str(value)[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def _is_zero(rolling: dict[str, Any], name: str) -> bool:
    return rolling.get(name, 0) in (0, "0%")
