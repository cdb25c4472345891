"""A compiled admission policy.

In:  the spec of a policy, compiled once; the variables of a request.
Out: violations of the policy, and annotations for the audit log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from drakit.apiserver.admission.criteria.expressions import (
    BUDGET,
    MATCH_BUDGET,
    Compiled,
    Declared,
    Evaluation,
    Failure,
)
from drakit.apiserver.admission.criteria.registrations import (
    FAIL,
    AdmissionPolicy,
    MatchCondition,
    PolicyVariable,
    Validation,
)
from drakit.base.errors import summary
from drakit.cel import BOOL, STRING, Value, type_name
from drakit.cel.checking.types import NULL

MAX_MESSAGE = 5 * 1024


@dataclass(frozen=True, slots=True)
class Violation:
    """A validation that failed, or an error in evaluating it. `index` is its place in the policy."""

    message: str
    reason: str = ""
    index: int = 0


@dataclass(slots=True)
class PolicyResult:
    """`violations` have the effect that the binding says. `faults` are errors of the policy and always refuse."""

    violations: list[Violation] = field(default_factory=list)
    faults: list[Violation] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)


class Conditions:
    """Match conditions: a policy or webhook applies if all are true."""

    def __init__(self, conditions: tuple[MatchCondition, ...], failure_policy: str, *, params: bool = False) -> None:
        self._conditions = [Compiled.of(each.expression, (BOOL,), params=params) for each in conditions]
        self._fails = failure_policy == FAIL

    def hold(self, values: Mapping[str, Value], *, quick: bool) -> bool:
        """False if one is false. Raise Failure if none is false, one fails and the failure policy is Fail."""
        evaluation = Evaluation(values, MATCH_BUDGET, quick=quick)
        failures: list[str] = []
        for condition in self._conditions:
            try:
                if evaluation.value(condition) is False:
                    return False
            except Failure as failure:
                failures.append(failure.message)
                if failure.spent:
                    break  # nothing more may be evaluated
        if failures and self._fails:
            raise Failure(summary(failures))
        return not failures


def compile_variables(
    variables: Sequence[PolicyVariable], *, params: bool
) -> tuple[list[tuple[str, Compiled]], Declared]:
    """The variables of a policy, by name, and the types that later expressions know of them."""
    found: list[tuple[str, Compiled]] = []
    declared: Declared = ()
    for each in variables:
        compiled = Compiled.of(each.expression, declared=declared, params=params)
        found.append((each.name, compiled))
        # A variable may use those before it, not those after it.
        declared = (*declared, (each.name, compiled.type))
    return found, declared


class CompiledPolicy:
    """A policy with its expressions. They are compiled when the policy is read, not when a request comes."""

    def __init__(self, policy: AdmissionPolicy) -> None:
        self.name = policy.metadata.name
        self.spec = policy.spec
        params = policy.spec.param_kind is not None
        self._conditions = Conditions(policy.spec.match_conditions, policy.spec.failure_policy, params=params)
        self._variables, declared = compile_variables(policy.spec.variables, params=params)
        spec = policy.spec
        self._validations = [
            (
                each,
                Compiled.of(each.expression, (BOOL,), declared=declared, params=params),
                Compiled.of(each.message_expression, (STRING,), declared=declared, params=params)
                if each.message_expression
                else None,
            )
            for each in spec.validations
        ]
        self._annotations = [
            (each.key, Compiled.of(each.value_expression, (STRING, NULL), declared=declared, params=params))
            for each in spec.audit_annotations
        ]

    def evaluate(self, values: Mapping[str, Value], *, quick: bool) -> PolicyResult:
        found = PolicyResult()
        try:
            if not self._conditions.hold(values, quick=quick):
                return found
            self._validate(values, found, quick=quick)
        except Failure as failure:
            found.violations = [Violation(failure.message)] if self._fails else []
            return found
        self._annotate(values, found, quick=quick)
        return found

    @property
    def _fails(self) -> bool:
        return self.spec.failure_policy == FAIL

    def _validate(self, values: Mapping[str, Value], found: PolicyResult, *, quick: bool) -> None:
        """Raise Failure when the budget is exhausted: violations found before do not count then."""
        evaluation = Evaluation(values, BUDGET, self._variables, quick=quick)
        failed: list[tuple[int, Validation, Compiled | None]] = []
        for index, (validation, expression, message) in enumerate(self._validations):
            try:
                if evaluation.value(expression) is not True:
                    failed.append((index, validation, message))
            except Failure as failure:
                if failure.spent:
                    raise
                if self._fails:
                    found.violations.append(Violation(failure.message, index=index))
        # Messages are paid from what the validations have left, as upstream.
        messages = Evaluation(values, evaluation.left, self._variables, quick=quick)
        for index, validation, wording in failed:
            said = _message(messages, validation, wording)
            found.violations.append(Violation(said, validation.reason or "", index))
        # Errors were found before failures: back into the order of the policy.
        found.violations.sort(key=lambda violation: violation.index)

    def _annotate(self, values: Mapping[str, Value], found: PolicyResult, *, quick: bool) -> None:
        evaluation = Evaluation(values, BUDGET, self._variables, quick=quick)
        for key, expression in self._annotations:
            try:
                value = evaluation.value(expression)
                if value is not None and not isinstance(value, str):
                    raise Failure(
                        f"valueExpression '{expression.text}' resulted in unsupported return type: {type_name(value)}. "
                        "Return type must be either string or null."
                    )
            except Failure as failure:
                if self._fails:
                    found.faults.append(Violation(failure.message))
            else:
                if value and value.strip():
                    found.annotations[key] = value.strip()


def _message(evaluation: Evaluation, validation: Validation, expression: Compiled | None) -> str:
    """The message of a failed validation: messageExpression if it gives one short line, else message, else the rule."""
    said = ""
    if expression is not None:
        try:
            said = str(evaluation.value(expression)).strip()
        except Failure as failure:
            if failure.spent:
                raise Failure(f"failed messageExpression: {failure.message}", spent=True) from None
    if not said or len(said.encode()) > MAX_MESSAGE or "\n" in said:
        said = validation.message.strip()
    return said or f"failed expression: {validation.expression.strip()}"
