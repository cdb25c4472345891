"""The plugin ValidatingAdmissionPolicy: rules that administrators write as CEL expressions.

In:  the object that would be stored or deleted, after all built-in rules; policies and their bindings.
Out: a refusal with the policy's message, warnings, or audit annotations, as the binding says.

A policy has no effect by itself: a binding says where it applies and what a violation leads to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import msgspec

from drakit.api.objects.plain import Plain, from_plain
from drakit.api.registry import Kind
from drakit.apiserver.admission.chain import AdmissionPlugin, ObjectChange
from drakit.apiserver.admission.criteria.catalogues import Catalogue
from drakit.apiserver.admission.criteria.evaluation import CompiledPolicy, PolicyResult, Violation
from drakit.apiserver.admission.criteria.expressions import as_value
from drakit.apiserver.admission.criteria.matching import Matcher
from drakit.apiserver.admission.criteria.registrations import FAIL, AdmissionPolicy, PolicyBinding
from drakit.apiserver.admission.criteria.requests import AdmissionRequest, is_exempt
from drakit.apiserver.admission.criteria.worker import Worker
from drakit.apiserver.admission.policies.parameters import Parameters
from drakit.apiserver.admission.policies.values import request_values
from drakit.apiserver.auth.authorization import Authorizer
from drakit.apiserver.failures import ApiError
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objectstore import ObjectStore
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
class _PolicyOutcome:
    """The results of all policies for one request."""

    denials: list[tuple[str, str, Violation]] = field(default_factory=list)
    failures: list[Plain] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, list[str]] = field(default_factory=dict)

    def deny(self, policy: str, binding: str, violation: Violation) -> None:
        self.denials.append((policy, binding, violation))

    def annotate(self, key: str, value: str) -> None:
        """Add a value once, even if two bindings give it."""
        values = self.annotations.setdefault(key, [])
        if value not in values:
            values.append(value)


class ValidatingAdmissionPolicies(AdmissionPlugin):
    name = "ValidatingAdmissionPolicy"

    def __init__(self, objects: ObjectStore, worker: Worker, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._objects = objects
        self._worker = worker
        self._matcher = Matcher(objects)
        self._parameters = Parameters(objects)
        self._policies = Catalogue(
            objects, _POLICY, lambda document: CompiledPolicy(from_plain(AdmissionPolicy, document))
        )
        self._bindings = Catalogue(objects, _BINDING, lambda document: from_plain(PolicyBinding, document))

    def concerns(self, kind: Kind, operation: str, subresource: str) -> bool:  # noqa: ARG002
        return not is_exempt(kind)

    def passes_over(self, change: ObjectChange) -> bool:  # noqa: ARG002
        return self._policies.is_empty

    async def validate(self, change: ObjectChange) -> None:
        policies = await self._policies.all()
        bindings = await self._bindings.all() if policies else ()
        if not bindings:
            return
        request, outcome = AdmissionRequest(change), _PolicyOutcome()
        for policy in policies:
            bound = [each for each in bindings if each.spec.policy_name == policy.name]
            version = await self._matcher.version(policy.spec.match_constraints, request) if bound else None
            if version is not None:
                for binding in bound:
                    await self._evaluate(policy, binding, request, version, outcome)
        _publish(change, outcome)
        # All policies are evaluated for warnings and audit; the first denial is the answer.
        if outcome.denials:
            raise _refusal(change, *outcome.denials[0])

    async def _evaluate(
        self,
        policy: CompiledPolicy,
        binding: PolicyBinding,
        request: AdmissionRequest,
        version: str,
        outcome: _PolicyOutcome,
    ) -> None:
        narrowed = binding.spec.match_resources
        if narrowed is not None and await self._matcher.version(narrowed, request) is None:
            return
        found = await self._parameters.collect(policy.spec.param_kind, binding.spec.param_ref, request.namespace)
        if isinstance(found, str):
            if policy.spec.failure_policy == FAIL:
                outcome.deny(policy.name, binding.metadata.name, Violation(f"failed to configure binding: {found}"))
            return
        values = await request_values(self._objects, self._authorizer, request, version)
        for params in found:
            evaluate = partial(policy.evaluate, values | {"params": as_value(params)})
            _record(policy, binding, await self._worker.run(evaluate), outcome)


def _record(policy: CompiledPolicy, binding: PolicyBinding, result: PolicyResult, outcome: _PolicyOutcome) -> None:
    name, actions = binding.metadata.name, binding.spec.validation_actions
    for violation in result.violations:
        if "Deny" in actions:
            outcome.deny(policy.name, name, violation)
        if "Warn" in actions:
            words = f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{name}'"
            outcome.warnings.append(f"{words}: {violation.message}")
        if "Audit" in actions:
            outcome.failures.append(_failure(policy, binding, violation))
    for violation in result.faults:
        outcome.deny(policy.name, name, violation)
    for key, value in result.annotations.items():
        outcome.annotate(f"{policy.name}/{key}", value[:MAX_ANNOTATION])


def _failure(policy: CompiledPolicy, binding: PolicyBinding, violation: Violation) -> Plain:
    return {
        "message": violation.message,
        "policy": policy.name,
        "binding": binding.metadata.name,
        "expressionIndex": violation.index,
        "validationActions": list(binding.spec.validation_actions),
    }


def _publish(change: ObjectChange, outcome: _PolicyOutcome) -> None:
    change.warnings.extend(each for each in outcome.warnings if each not in change.warnings)
    change.annotations |= {key: ", ".join(values) for key, values in outcome.annotations.items()}
    if outcome.failures:
        change.annotations[FAILURES] = msgspec.json.encode(outcome.failures[:MAX_FAILURES]).decode()


def _refusal(change: ObjectChange, policy: str, binding: str, violation: Violation) -> ApiError:
    message = f"ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {violation.message}"
    kind, reason = change.kind, violation.reason or INVALID
    said = status.forbidden(kind.plural, kind.group, change.name, message).message
    causes = (StatusCause(message=message),)
    details = StatusDetails(name=change.name, group=kind.group, kind=kind.plural, causes=causes)
    return ApiError(status.failure(_CODES.get(reason, 422), reason, said, details))
