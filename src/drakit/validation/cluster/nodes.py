"""Nodes: their taints, the ranges of their pods, and amounts that make sense."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drakit.api import Partial
from drakit.base import names
from drakit.base.fields import ErrorKind, FieldError, Path, invalid, not_supported, required
from drakit.base.quantity import Quantity
from drakit.base.taints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE
from drakit.validation.fields.documentrules import NO_RANGE, NOT_NEGATIVE, check_name, parse_range

_EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
_ONE_EACH = "may specify no more than one CIDR for each IP family"
_TWICE = "taints must be unique by key and effect pair"


def check_node(obj: Partial[Any]) -> Iterator[FieldError]:
    spec, status = obj.document.get("spec") or {}, obj.document.get("status") or {}
    # Kubernetes names this place so.
    yield from _check_taints(spec.get("taints") or (), Path("metadata") / "taints")
    for name in ("capacity", "allocatable"):
        for resource, amount in (status.get(name) or {}).items():
            if Quantity.parse(amount).sign < 0:
                yield invalid(Path("status") / name / resource, amount, NOT_NEGATIVE)
    yield from _check_ranges(pod_ranges(spec), Path("spec") / "podCIDRs")


def pod_ranges(spec: Mapping[str, Any]) -> list[str]:
    """The ranges of a node's pods. The first has a field of its own, which is the one that counts."""
    ranges = list(spec.get("podCIDRs") or ())
    return [spec["podCIDR"], *ranges[1:]] if spec.get("podCIDR") else ranges


def _check_taints(taints: Sequence[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        where, key, effect = path[index], taint.get("key") or "", taint.get("effect") or ""
        yield from check_name(key, names.check_label_key, where / "key")
        yield from check_name(taint.get("value"), names.check_label_value, where / "value")
        if not effect:
            yield required(where / "effect")
        elif effect not in _EFFECTS:
            yield not_supported(where / "effect", effect, _EFFECTS)
        if (key, effect) in seen:
            added = taint.get("timeAdded")
            shown = {"Key": key, "Value": taint.get("value") or "", "Effect": effect, "TimeAdded": added}
            yield FieldError(ErrorKind.DUPLICATE, where, shown, _TWICE)
        seen.add((key, effect))


def _check_ranges(ranges: Sequence[str], path: Path) -> Iterator[FieldError]:
    families = []
    for index, text in enumerate(ranges):
        found = parse_range(text)
        if found is None:
            yield invalid(path[index], text, NO_RANGE)
        else:
            families.append(found.version)
    if len(ranges) > 2 or len(families) != len(set(families)):
        yield invalid(path, list(ranges), _ONE_EACH)
