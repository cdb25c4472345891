"""Expressions over a request: compiled once, run against a budget.

In:  text; the variables `object`, `oldObject`, `request`, `namespaceObject`, `params` and a policy's own `variables`.
Out: values, or a Failure in the words that a policy's author reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from drakit.api.text.times import parse_time
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
"""What may run while every other request waits: a few milliseconds."""
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
    """An expression has no value for this request. `spent` says that the budget is gone, so nothing more may run."""

    def __init__(self, message: str, *, spent: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.spent = spent


class TooCostly(Exception):
    """This takes more than a quick look: do it again where nobody waits for it."""


class ExpressionInvalid(ValueError):
    """The text is no expression, or not one of the type that is wanted here."""


Declared = tuple[tuple[str, Type], ...]
"""A policy's variables with their types, in order."""


@cache
def _base(params: bool) -> Environment:
    named = {"object": DYN, "oldObject": DYN, "request": _REQUEST, "namespaceObject": _NAMESPACE}
    return kubernetes().extended(variables=named | ({"params": DYN} if params else {}), structs=_STRUCTS)


def _environment(declared: Declared, *, params: bool) -> Environment:
    """A policy's variables hide nothing: they are fields of `variables`."""
    base = _base(params)
    if not declared:
        return base
    return base.extended(variables={"variables": _VARIABLES}, structs={_VARIABLES.name: dict(declared)})


@lru_cache(maxsize=4096)
def compile_expression(
    text: str, wanted: tuple[Type, ...] = (), *, declared: Declared = (), params: bool = False
) -> Program:
    """Raise ExpressionInvalid with every fault. No `wanted` type: any will do."""
    try:
        program = compile_program(text, _environment(declared, params=params))
    except CompileError as error:
        raise ExpressionInvalid(f"compilation failed: {error}") from None
    if wanted and program.result_type not in wanted:
        names = str(wanted[0]) if len(wanted) == 1 else f"one of [{' '.join(map(str, wanted))}]"
        raise ExpressionInvalid(f"must evaluate to {names} but got {program.result_type}")
    return program


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression with its program, or why it has none; the latter counts when it would run."""

    text: str
    program: Program | None
    fault: str = ""

    @staticmethod
    def of(text: str, wanted: tuple[Type, ...] = (), *, declared: Declared = (), params: bool = False) -> Compiled:
        try:
            return Compiled(text, compile_expression(text, wanted, declared=declared, params=params))
        except ExpressionInvalid as error:
            return Compiled(text, None, str(error))

    @property
    def type(self) -> Type:
        return self.program.result_type if self.program else DYN


class Evaluation:
    """Runs expressions on one request, from one budget. A policy's variables are computed once, when first used.

    A `quick` one raises TooCostly where it would take long.
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
        """The value, or the error in its place; variables on the way are paid for from the same budget."""
        limit = min(self.left, PER_CALL)
        try:
            value, cost = program.metered(self._values, limit=limit)
        except BudgetExceeded as error:
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
    """`variables`: a map whose values are computed when somebody looks."""

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
    """Plain data as expressions see it. A number that does not fit into 64 bits is one with a fraction to them."""
    match data:
        case dict():
            return {key: as_value(value) for key, value in data.items()}
        case list() | tuple():
            return tuple(map(as_value, data))
        case int() if not isinstance(data, bool) and not -(2**63) <= data < 2**63:
            return float(data)
    return data


def namespace_value(namespace: Mapping[str, Any] | None) -> Value:
    """A namespace as the variable `namespaceObject`; null for what is in none."""
    if namespace is None:
        return None
    fields = _STRUCTS[_METADATA.name]
    metadata = {name: value for name, value in namespace["metadata"].items() if name in fields}
    shown = {"metadata": metadata | {"UID": namespace["metadata"].get("uid", "")}}
    shown |= {part: namespace[part] for part in ("spec", "status") if part in namespace}
    return _timed(as_value(shown))


def _timed(value: Value) -> Value:
    """Times as times: their types are declared."""
    if isinstance(value, dict):
        return {
            key: _timestamp(each) if key in _TIMES and isinstance(each, str) else _timed(each)
            for key, each in value.items()
        }
    return tuple(map(_timed, value)) if isinstance(value, tuple) else value


def _timestamp(text: str) -> Timestamp:
    return Timestamp(int(parse_time(text).timestamp()) * 10**9)
