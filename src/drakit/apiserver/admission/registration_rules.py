"""Validation of admission policies and webhook configurations.

In:  changes of the kinds of `admissionregistration.k8s.io`.
Out: every error, together with those of the rules for all objects.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence

from drakit.api.objects.plain import from_plain
from drakit.apiserver.admission.chain import ObjectChange
from drakit.apiserver.admission.criteria.registrations import (
    AdmissionPolicy,
    MutatingPolicy,
    PolicyBinding,
    WebhookConfiguration,
)
from drakit.apiserver.admission.policies.mutationrules import check_mutating_binding, check_mutating_policy
from drakit.apiserver.admission.policies.validation import check_binding, check_policy
from drakit.apiserver.admission.rules import WriteRules
from drakit.apiserver.admission.webhooks.validation import check_webhooks
from drakit.base.fields import FieldError

GROUP = "admissionregistration.k8s.io"


class RegistrationRules:
    """The rules of all objects, and in addition those of policies and webhook configurations."""

    def __init__(self, rules: WriteRules) -> None:
        self._rules = rules
        self.drop_disabled = rules.drop_disabled

    def check(self, change: ObjectChange) -> Awaitable[Sequence[FieldError]]:
        if change.kind.group != GROUP or change.subresource:
            return self._rules.check(change)
        return self._check_with_own(change)

    async def _check_with_own(self, change: ObjectChange) -> Sequence[FieldError]:
        return [*await self._rules.check(change), *_check(change)]


def _check(change: ObjectChange) -> Iterator[FieldError]:
    document = change.document
    match change.kind.kind:
        case "ValidatingAdmissionPolicy":
            policy = from_plain(AdmissionPolicy, document)
            constrained = bool((document.get("spec") or {}).get("matchConstraints"))
            yield from check_policy(policy.metadata.name, policy.spec, constrained=constrained)
        case "ValidatingAdmissionPolicyBinding":
            yield from check_binding(from_plain(PolicyBinding, document).spec)
        case "MutatingAdmissionPolicy":
            constrained = bool((document.get("spec") or {}).get("matchConstraints"))
            yield from check_mutating_policy(from_plain(MutatingPolicy, document).spec, constrained=constrained)
        case "MutatingAdmissionPolicyBinding":
            yield from check_mutating_binding(from_plain(PolicyBinding, document).spec)
        case "ValidatingWebhookConfiguration":
            yield from check_webhooks(from_plain(WebhookConfiguration, document).webhooks, mutating=False)
        case "MutatingWebhookConfiguration":
            yield from check_webhooks(from_plain(WebhookConfiguration, document).webhooks, mutating=True)
