"""Admission policies and webhook configurations, as structs.

In:  objects of `admissionregistration.k8s.io/v1`, with their defaults.
Out: structs with the fields that this server uses.
"""

from __future__ import annotations

from drakit.api.objects.meta import ObjectMeta
from drakit.base.labels import LabelSelector
from drakit.base.structs import Model

FAIL = "Fail"
IGNORE = "Ignore"
EXACT = "Exact"
EQUIVALENT = "Equivalent"
IF_NEEDED = "IfNeeded"


class RuleWithOperations(Model):
    """Which requests match; `*` stands for all. Only policies have `resource_names`."""

    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    scope: str = "*"


class MatchResources(Model):
    namespace_selector: LabelSelector = LabelSelector()
    object_selector: LabelSelector = LabelSelector()
    resource_rules: tuple[RuleWithOperations, ...] = ()
    exclude_resource_rules: tuple[RuleWithOperations, ...] = ()
    match_policy: str = EQUIVALENT


class MatchCondition(Model):
    name: str = ""
    expression: str = ""


class PolicyVariable(Model):
    name: str = ""
    expression: str = ""


class Validation(Model):
    expression: str = ""
    message: str = ""
    message_expression: str = ""
    reason: str | None = None


class AuditAnnotation(Model):
    key: str = ""
    value_expression: str = ""


class ParamKind(Model):
    api_version: str = ""
    kind: str = ""


class PolicySpec(Model):
    param_kind: ParamKind | None = None
    match_constraints: MatchResources = MatchResources()
    match_conditions: tuple[MatchCondition, ...] = ()
    variables: tuple[PolicyVariable, ...] = ()
    validations: tuple[Validation, ...] = ()
    audit_annotations: tuple[AuditAnnotation, ...] = ()
    failure_policy: str = FAIL


class AdmissionPolicy(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: PolicySpec = PolicySpec()


class PatchExpression(Model):
    expression: str = ""


class Mutation(Model):
    """`patch_type` says which of the two expressions there is."""

    patch_type: str = ""
    apply_configuration: PatchExpression | None = None
    json_patch: PatchExpression | None = None


class MutatingPolicySpec(Model):
    param_kind: ParamKind | None = None
    match_constraints: MatchResources = MatchResources()
    match_conditions: tuple[MatchCondition, ...] = ()
    variables: tuple[PolicyVariable, ...] = ()
    mutations: tuple[Mutation, ...] = ()
    failure_policy: str = FAIL
    reinvocation_policy: str = ""


class MutatingPolicy(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: MutatingPolicySpec = MutatingPolicySpec()


class ParamRef(Model):
    name: str = ""
    namespace: str = ""
    selector: LabelSelector | None = None
    parameter_not_found_action: str = ""


class BindingSpec(Model):
    policy_name: str = ""
    param_ref: ParamRef | None = None
    match_resources: MatchResources | None = None
    validation_actions: tuple[str, ...] = ()


class PolicyBinding(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: BindingSpec = BindingSpec()


class ServiceReference(Model):
    namespace: str = ""
    name: str = ""
    path: str = ""
    port: int = 443


class ClientConfig(Model):
    """`ca_bundle` is PEM in base64. Without it the CAs of the machine are trusted."""

    url: str = ""
    service: ServiceReference | None = None
    ca_bundle: str = ""


class Webhook(Model):
    name: str = ""
    client_config: ClientConfig = ClientConfig()
    rules: tuple[RuleWithOperations, ...] = ()
    failure_policy: str = FAIL
    match_policy: str = EQUIVALENT
    namespace_selector: LabelSelector = LabelSelector()
    object_selector: LabelSelector = LabelSelector()
    side_effects: str = ""
    timeout_seconds: int = 10
    admission_review_versions: tuple[str, ...] = ()
    match_conditions: tuple[MatchCondition, ...] = ()
    reinvocation_policy: str = ""

    @property
    def criteria(self) -> MatchResources:
        """Rules and selectors in the form of a policy, so that one matcher serves both."""
        return MatchResources(
            namespace_selector=self.namespace_selector,
            object_selector=self.object_selector,
            resource_rules=self.rules,
            match_policy=self.match_policy,
        )


class WebhookConfiguration(Model):
    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[Webhook, ...] = ()
