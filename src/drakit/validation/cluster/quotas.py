"""Quotas: to which objects one applies, and whether what it limits can belong to them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from drakit.base.fields import FieldError, Path, invalid, required

_SPEC = Path("spec")
_OF_PODS = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory", "pods"})
_OF_VOLUMES = frozenset({"requests.storage", "persistentvolumeclaims"})
_EXISTING = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity")
"""Scopes that an object has or has not; the others have values."""
_SCOPES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys((*_EXISTING, "PriorityClass"), _OF_PODS),
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": _OF_VOLUMES,
}
"""What a quota of a scope can limit. Resources with a domain, and counts of objects, are not looked at."""
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_UNSUPPORTED, _CONFLICT = "unsupported scope applied to resource", "conflicting scopes"
_NO_VALUE = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
_SOME_VALUE = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"


def check_scopes(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    scopes, where = list(spec.get("scopes") or ()), _SPEC / "scopes"
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid(where, scopes, "unsupported scope")
        elif not _can_limit(scope, spec):
            yield invalid(where, scopes, _UNSUPPORTED)
    if _conflict(scopes):
        yield invalid(where, scopes, _CONFLICT)
    if spec.get("scopeSelector") is not None:
        yield from _check_selector(spec, spec["scopeSelector"].get("matchExpressions") or ())


def _check_selector(spec: Mapping[str, Any], expressions: Collection[Mapping[str, Any]]) -> Iterator[FieldError]:
    where = _SPEC / "scopeSelector" / "matchExpressions"
    for each in expressions:
        scope = each.get("scopeName") or ""
        if scope not in _SCOPES:
            yield invalid(where / "scopeName", scope, "unsupported scope")
        elif not _can_limit(scope, spec):
            shown = [_spelled(expression) for expression in expressions]
            yield invalid(where, {"MatchExpressions": shown}, _UNSUPPORTED)
        yield from _check_operator(scope, each.get("operator") or "", list(each.get("values") or ()), where)
    if _conflict([each.get("scopeName") for each in expressions]):
        yield invalid(where, None, _CONFLICT)


def _check_operator(scope: str, operator: str, values: list[str], path: Path) -> Iterator[FieldError]:
    if scope in _EXISTING and operator != "Exists":
        *names, last = (f"ResourceQuotaScope{name}" for name in _EXISTING)
        detail = f"must be 'Exists' when scope is any of {', '.join(names)} or {last}"
        yield invalid(path / "operator", operator, detail)
    if operator in ("In", "NotIn"):
        if not values:
            yield required(path / "values", _SOME_VALUE)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield invalid(path / "values", values, _NO_VALUE)
    else:
        yield invalid(path / "operator", operator, "not a valid selector operator")


def _conflict(scopes: Collection[Any]) -> bool:
    return any(pair <= set(scopes) for pair in _OPPOSITES)


def _spelled(expression: Mapping[str, Any]) -> dict[str, Any]:
    """With the names that the server's own types have."""
    values = list(expression.get("values") or ()) or None
    return {"ScopeName": expression.get("scopeName"), "Operator": expression.get("operator"), "Values": values}


def _can_limit(scope: str, spec: Mapping[str, Any]) -> bool:
    return all("/" in name or name in _SCOPES[scope] for name in spec.get("hard") or {})
