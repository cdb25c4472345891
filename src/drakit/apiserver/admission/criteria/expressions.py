"""CEL expressions over a request: compiled once, run within a cost budget.

In:  text; the variables `object`, `oldObject`, `request`, `namespaceObject`, `params` and a policy's own `variables`.
Out: values; or a Failure with upstream's message for the author of the policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from drakit.api.text.times import parse_time
from drakit.apiserver.admission.criteria import authorizing, patchtypes
from drakit.cel import (
    BOOL,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    BudgetExceeded,
    CompileError,
    Environment,
    EvalError,
    Program,
    Timestamp,
    Type,
    Value,
    compile_program,
    kubernetes,
    list_of,
    map_of,
    struct,
)

PER_CALL = 1_000_000
QUICK = 20_000
"""The cost that may be spent on the event loop: a few milliseconds."""
# Upstream's limits: per policy and request, and per set of match conditions (a quarter of it).
BUDGET = 10_000_000
MATCH_BUDGET = 2_500_000
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"

_KIND, _RESOURCE = struct("kubernetes.GroupVersionKind"), struct("kubernetes.GroupVersionResource")
_USER, _REQUEST = struct("kubernetes.UserInfo"), struct("kubernetes.AdmissionRequest")
_NAMESPACE, _METADATA = struct("kubernetes.Namespace"), struct("kubernetes.NamespaceMetadata")
_SPEC, _STATUS = struct("kubernetes.NamespaceSpec"), struct("kubernetes.NamespaceStatus")
_CONDITION = struct("kubernetes.NamespaceCondition")
_VARIABLES = struct("kubernetes.variables")
_TIMES = ("creationTimestamp", "deletionTimestamp", "lastTransitionTime")
_STRUCTS: Mapping[str, Mapping[str, Type]] = {
    _KIND.name: {"group": STRING, "version": STRING, "kind": STRING},
    _RESOURCE.name: {"group": STRING, "version": STRING, "resource": STRING},
    _USER.name: {
        "username": STRING,
        "uid": STRING,
        "groups": list_of(STRING),
        "extra": map_of(STRING, list_of(STRING)),
    },
    _REQUEST.name: {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
    _NAMESPACE.name: {"metadata": _METADATA, "spec": _SPEC, "status": _STATUS},
    _SPEC.name: {"finalizers": list_of(STRING)},
    _STATUS.name: {"conditions": list_of(_CONDITION), "phase": STRING},
    _CONDITION.name: {
        "status": STRING,
        "type": STRING,
        "lastTransitionTime": TIMESTAMP,
        "message": STRING,
        "reason": STRING,
    },
    _METADATA.name: {
        "name": STRING,
        "generateName": STRING,
        "namespace": STRING,
        "labels": map_of(STRING, STRING),
        "annotations": map_of(STRING, STRING),
        "UID": STRING,
        "creationTimestamp": TIMESTAMP,
        "deletionGracePeriodSeconds": INT,
        "deletionTimestamp": TIMESTAMP,
        "generation": INT,
        "resourceVersion": STRING,
        "finalizers": list_of(STRING),
    },
}


class Failure(Exception):
    """An expression failed on this request. `spent`: the budget is exhausted, nothing more may run."""

    def __init__(self, message: str, *, spent: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.spent = spent


class TooCostly(Exception):
    """The cost exceeds `QUICK`: evaluate again in the worker thread."""


class ExpressionInvalid(ValueError):
    """The text does not compile, or has the wrong type."""


Declared = tuple[tuple[str, Type], ...]
"""A policy's variables with their types, in order."""


@cache
def _base(params: bool, patches: bool) -> Environment:
    named = {"object": DYN, "oldObject": DYN, "request": _REQUEST, "namespaceObject": _NAMESPACE}
    base = kubernetes().extended(
        variables={**named, **authorizing.VARIABLES, **({"params": DYN} if params else {})},
        structs=_STRUCTS,
        functions=authorizing.FUNCTIONS,
    )
    return base.extended(functions=patchtypes.FUNCTIONS, messages=patchtypes.patch_types) if patches else base


def _environment(declared: Declared, *, params: bool, patches: bool) -> Environment:
    """The environment with a policy's variables, as fields of `variables`."""
    base = _base(params, patches)
    if not declared:
        return base
    return base.extended(variables={"variables": _VARIABLES}, structs={_VARIABLES.name: dict(declared)})


@lru_cache(maxsize=4096)
def compile_expression(
    text: str, wanted: tuple[Type, ...] = (), *, declared: Declared = (), params: bool = False, patches: bool = False
) -> Program:
    """Raise ExpressionInvalid with every error. Without `wanted` types any type will do.

    `patches`: the expression may construct an Object or a JSONPatch.
    """
    try:
        program = compile_program(text, _environment(declared, params=params, patches=patches))
    except CompileError as error:
        raise ExpressionInvalid(f"compilation failed: {error}") from None
    if wanted and program.result_type not in wanted:
        names = str(wanted[0]) if len(wanted) == 1 else f"one of [{' '.join(map(str, wanted))}]"
        raise ExpressionInvalid(f"must evaluate to {names} but got {program.result_type}")
    return program


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression with its program, or with its compile error, which counts when it would run."""

    text: str
    program: Program | None
    fault: str = ""

    @staticmethod
    def of(
        text: str,
        wanted: tuple[Type, ...] = (),
        *,
        declared: Declared = (),
        params: bool = False,
        patches: bool = False,
    ) -> Compiled:
        try:
            return Compiled(text, compile_expression(text, wanted, declared=declared, params=params, patches=patches))
        except ExpressionInvalid as error:
            return Compiled(text, None, str(error))

    @property
    def type(self) -> Type:
        return self.program.result_type if self.program else DYN


class Evaluation:
    """Evaluates expressions on one request with one budget. A policy's variables are computed once, on first use.

    With `quick` it raises TooCostly instead of spending more than `QUICK`.
    """

    def __init__(
        self,
        values: Mapping[str, Value],
        budget: int,
        variables: Sequence[tuple[str, Compiled]] = (),
        *,
        quick: bool = False,
    ) -> None:
        self.left = min(budget, QUICK) if quick else budget
        self._quick = quick
        self._values = {**values, "variables": _Lazy(dict(variables), self)}

    def value(self, expression: Compiled) -> Value:
        if expression.program is None:
            raise Failure(f"compilation error: {expression.fault}")
        result = self._run(expression.program)
        if isinstance(result, EvalError):
            raise Failure(f"expression '{expression.text}' resulted in error: {result.message}")
        return result

    def _run(self, program: Program) -> Value:
        """The value, or an EvalError. Variables that are computed on the way cost from the same budget."""
        limit = min(self.left, PER_CALL)
        try:
            value, cost = program.metered(self._values, limit=limit)
        except BudgetExceeded as error:
            # Either the budget of the whole policy is exhausted, or this one expression is too expensive.
            if limit < PER_CALL:
                raise self._exhausted() from None
            value, cost = EvalError(str(error)), PER_CALL
        self.left -= cost
        if self.left < 0:
            raise self._exhausted()
        return value

    def _exhausted(self) -> Exception:
        return TooCostly() if self._quick else Failure(OUT_OF_BUDGET, spent=True)

    def variable(self, name: str, expression: Compiled) -> Value:
        result = self._run(expression.program) if expression.program else EvalError(expression.fault)
        if isinstance(result, EvalError):
            raise EvalError(f'composited variable "{name}" fails to evaluate: {result.message}')
        return result


class _Lazy(dict[str, Any]):
    """The map `variables`, whose values are computed on first access."""

    type_name = _VARIABLES.name

    def __init__(self, expressions: Mapping[str, Compiled], evaluation: Evaluation) -> None:
        super().__init__()
        self._expressions = expressions
        self._evaluation = evaluation

    def get(self, key: str, default: Any = None) -> Any:
        if key not in self._expressions:
            return default
        if key not in self:
            self[key] = self._evaluation.variable(key, self._expressions[key])
        return self[key]


def as_value(data: Any) -> Value:
    """Plain data as CEL values. An integer beyond 64 bits becomes a double."""
    match data:
        case dict():
            return {key: as_value(value) for key, value in data.items()}
        case list() | tuple():
            return tuple(map(as_value, data))
        case int() if not isinstance(data, bool) and not -(2**63) <= data < 2**63:
            return float(data)
    return data


def namespace_value(namespace: Mapping[str, Any] | None) -> Value:
    """The variable `namespaceObject`; null for objects outside of namespaces."""
    if namespace is None:
        return None
    fields = _STRUCTS[_METADATA.name]
    metadata = {name: value for name, value in namespace["metadata"].items() if name in fields}
    shown = {"metadata": metadata | {"UID": namespace["metadata"].get("uid", "")}}
    shown |= {part: namespace[part] for part in ("spec", "status") if part in namespace}
    return _timed(as_value(shown))


def _timed(value: Value) -> Value:
    """Turn times into timestamps: the declared types say so."""
    if isinstance(value, dict):
        return {
            key: _timestamp(each) if key in _TIMES and isinstance(each, str) else _timed(each)
            for key, each in value.items()
        }
    return tuple(map(_timed, value)) if isinstance(value, tuple) else value


def _timestamp(text: str) -> Timestamp:
    return Timestamp(int(parse_time(text).timestamp()) * 10**9)
