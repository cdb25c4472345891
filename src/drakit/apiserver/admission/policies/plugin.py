"""ValidatingAdmissionPolicy: rules that administrators write, as expressions.

In:  what would be stored, or deleted, after all built-in rules; policies and their bindings.
Out: a refusal in the policy's words, warnings, or notes for the audit log, as the binding asks.

A policy does nothing by itself: a binding says where it holds and what a failure leads to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import msgspec

from drakit.api.objects.plain import from_plain
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import Change, Plugin
from drakit.apiserver.admission.criteria.catalogues import Catalogue
from drakit.apiserver.admission.criteria.evaluation import Decision, Judge, Verdicts
from drakit.apiserver.admission.criteria.expressions import as_value, namespace_value
from drakit.apiserver.admission.criteria.matching import Matcher
from drakit.apiserver.admission.criteria.offload import weigh
from drakit.apiserver.admission.criteria.registrations import FAIL, Binding, Policy
from drakit.apiserver.admission.criteria.requests import NAMESPACE, Attempt, is_exempt
from drakit.apiserver.admission.policies.parameters import Parameters
from drakit.apiserver.failures import ApiError
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objects import Plain
from drakit.apiserver.storage.objectstore import Keeper
from drakit.base import status
from drakit.base.status import StatusCause, StatusDetails

FAILURES = "validation.policy.admission.k8s.io/validation_failure"
MAX_FAILURES = 50
MAX_ANNOTATION = 10 * 1024
INVALID = "Invalid"
_POLICY = known_kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")
_BINDING = known_kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding")
_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}


@dataclass(slots=True)
class _Outcome:
    """What all policies together say about one request."""

    denials: list[tuple[str, str, Decision]] = field(default_factory=list)
    failures: list[Plain] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, list[str]] = field(default_factory=dict)

    def deny(self, policy: str, binding: str, decision: Decision) -> None:
        self.denials.append((policy, binding, decision))

    def annotate(self, key: str, value: str) -> None:
        """The same word from two bindings is said once."""
        values = self.annotations.setdefault(key, [])
        if value not in values:
            values.append(value)


class ValidatingAdmissionPolicies(Plugin):
    name = "ValidatingAdmissionPolicy"

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._matcher = Matcher(keeper)
        self._parameters = Parameters(keeper)
        self._policies = Catalogue(keeper, _POLICY, lambda document: Judge(from_plain(Policy, document)))
        self._bindings = Catalogue(keeper, _BINDING, lambda document: from_plain(Binding, document))

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:  # noqa: ARG002
        return not is_exempt(kind)

    async def validate(self, change: Change) -> None:
        judges = await self._policies.all()
        bindings = await self._bindings.all() if judges else ()
        if not bindings:
            return
        attempt, outcome = Attempt(change), _Outcome()
        for judge in judges:
            bound = [each for each in bindings if each.spec.policy_name == judge.name]
            version = await self._matcher.version(judge.spec.match_constraints, attempt) if bound else None
            if version is not None:
                for binding in bound:
                    await self._judge(judge, binding, attempt, version, outcome)
        _publish(change, outcome)
        if outcome.denials:
            raise _refusal(change, *outcome.denials[0])

    async def _judge(self, judge: Judge, binding: Binding, attempt: Attempt, version: str, outcome: _Outcome) -> None:
        narrowed = binding.spec.match_resources
        if narrowed is not None and await self._matcher.version(narrowed, attempt) is None:
            return
        found = await self._parameters.collect(judge.spec.param_kind, binding.spec.param_ref, attempt.namespace)
        if isinstance(found, str):
            if judge.spec.failure_policy == FAIL:
                outcome.deny(judge.name, binding.metadata.name, Decision(f"failed to configure binding: {found}"))
            return
        values = await self._values(attempt, version)
        for params in found:
            judged = partial(judge.verdicts, values | {"params": as_value(params)})
            _record(judge, binding, await weigh(judged), outcome)

    async def _values(self, attempt: Attempt, version: str) -> dict[str, object]:
        inside = attempt.namespace if attempt.change.kind is not NAMESPACE else ""
        namespace = await self._keeper.find(NAMESPACE, "", inside) if inside else None
        return {
            "object": as_value(attempt.new_in(version)),
            "oldObject": as_value(attempt.old_in(version)),
            "request": as_value(attempt.request(version)),
            "namespaceObject": namespace_value(namespace.document if namespace else None),
        }


def _record(judge: Judge, binding: Binding, verdicts: Verdicts, outcome: _Outcome) -> None:
    name, actions = binding.metadata.name, binding.spec.validation_actions
    for decision in verdicts.decisions:
        if "Deny" in actions:
            outcome.deny(judge.name, name, decision)
        if "Warn" in actions:
            words = f"Validation failed for ValidatingAdmissionPolicy '{judge.name}' with binding '{name}'"
            outcome.warnings.append(f"{words}: {decision.message}")
        if "Audit" in actions:
            outcome.failures.append(_failure(judge, binding, decision))
    for decision in verdicts.faults:
        outcome.deny(judge.name, name, decision)
    for key, value in verdicts.annotations.items():
        outcome.annotate(f"{judge.name}/{key}", value[:MAX_ANNOTATION])


def _failure(judge: Judge, binding: Binding, decision: Decision) -> Plain:
    return {
        "message": decision.message,
        "policy": judge.name,
        "binding": binding.metadata.name,
        "expressionIndex": decision.index,
        "validationActions": list(binding.spec.validation_actions),
    }


def _publish(change: Change, outcome: _Outcome) -> None:
    change.warnings.extend(each for each in outcome.warnings if each not in change.warnings)
    change.annotations |= {key: ", ".join(values) for key, values in outcome.annotations.items()}
    if outcome.failures:
        change.annotations[FAILURES] = msgspec.json.encode(outcome.failures[:MAX_FAILURES]).decode()


def _refusal(change: Change, policy: str, binding: str, decision: Decision) -> ApiError:
    message = f"ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {decision.message}"
    kind, reason = change.kind, decision.reason or INVALID
    said = status.forbidden(kind.plural, kind.group, change.name, message).message
    causes = (StatusCause(message=message),)
    details = StatusDetails(name=change.name, group=kind.group, kind=kind.plural, causes=causes)
    return ApiError(status.failure(_CODES.get(reason, 422), reason, said, details))
