"""Policies and webhook configurations that are refused when they are written, and why."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.apiserver.admission.chain import choose
from drakit.apiserver.admission.plugins.tolerations import DefaultTolerationSeconds
from drakit.base.errors import UsageError
from tests.apiserver.admission.hooks import webhook
from tests.apiserver.admission.objects import BINDINGS, MUTATING, POLICIES, VALIDATING, binding, policy
from tests.apiserver.calls import Answer, on_loop, serving
from tests.builders.documents import Plain

ALWAYS = {"expression": "true"}
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def causes(answer: Answer) -> set[tuple[str, str]]:
    found = answer.body.get("details", {}).get("causes") or ()
    return {(cause["field"], cause["reason"].removeprefix("FieldValue")) for cause in found}


def matched(**change: Any) -> Plain:
    return {"matchConstraints": {"resourceRules": [{**RULE, **change}]}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"failurePolicy": "Maybe"}, {("spec.failurePolicy", "NotSupported")}),
        ({"matchConstraints": None}, {("spec.matchConstraints", "Required")}),
        (
            {"matchConstraints": {"matchPolicy": "Exact"}},
            {("spec.matchConstraints.resourceRules", "Required")},
        ),
        (
            {"validations": []},
            {("spec.validations", "Required"), ("spec.auditAnnotations", "Required")},
        ),
        ({"validations": [{"expression": " "}]}, {("spec.validations[0].expression", "Required")}),
        ({"validations": [{"expression": "1 +"}]}, {("spec.validations[0].expression", "Invalid")}),
        ({"validations": [{"expression": "1"}]}, {("spec.validations[0].expression", "Invalid")}),
        ({"validations": [{"expression": "nobody"}]}, {("spec.validations[0].expression", "Invalid")}),
        ({"validations": [{"expression": "params.x"}]}, {("spec.validations[0].expression", "Invalid")}),
        ({"validations": [{**ALWAYS, "message": " "}]}, {("spec.validations[0].message", "Invalid")}),
        ({"validations": [{**ALWAYS, "message": "a\nb"}]}, {("spec.validations[0].message", "Invalid")}),
        (
            {"validations": [{**ALWAYS, "messageExpression": "1"}]},
            {("spec.validations[0].messageExpression", "Invalid")},
        ),
        (
            {"validations": [{**ALWAYS, "messageExpression": " "}]},
            {("spec.validations[0].messageExpression", "Invalid")},
        ),
        ({"validations": [{**ALWAYS, "reason": "NotFound"}]}, {("spec.validations[0].reason", "NotSupported")}),
        ({"variables": [{"name": "", "expression": "1"}]}, {("spec.variables[0].name", "Required")}),
        ({"variables": [{"name": "a-b", "expression": "1"}]}, {("spec.variables[0].name", "Invalid")}),
        ({"variables": [{"name": "for", "expression": "1"}]}, {("spec.variables[0].name", "Invalid")}),
        ({"variables": [{"name": "a", "expression": " "}]}, {("spec.variables[0].expression", "Required")}),
        (
            {"variables": [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]},
            {("spec.variables[0].expression", "Invalid")},
        ),
        (
            {"variables": [{"name": "a", "expression": "1"}], "validations": [{"expression": "variables.a"}]},
            {("spec.validations[0].expression", "Invalid")},
        ),
        ({"matchConditions": [{"name": "", "expression": "true"}]}, {("spec.matchConditions[0].name", "Required")}),
        ({"matchConditions": [{"name": "c d", "expression": "true"}]}, {("spec.matchConditions[0].name", "Invalid")}),
        (
            {"matchConditions": [{"name": "c", "expression": ""}, {"name": "c", "expression": "1"}]},
            {
                ("spec.matchConditions[0].expression", "Required"),
                ("spec.matchConditions[1].expression", "Invalid"),
                ("spec.matchConditions[1].name", "Duplicate"),
            },
        ),
        (
            {"matchConditions": [{"name": f"c{index}", "expression": "true"} for index in range(65)]},
            {("spec.matchConditions", "TooMany")},
        ),
        (
            {"auditAnnotations": [{"key": "a b", "valueExpression": "'x'"}]},
            {("spec.auditAnnotations[0].key", "Invalid")},
        ),
        (
            {"auditAnnotations": [{"key": "a", "valueExpression": "1"}, {"key": "a", "valueExpression": ""}]},
            {
                ("spec.auditAnnotations[0].valueExpression", "Invalid"),
                ("spec.auditAnnotations[1].valueExpression", "Required"),
                ("spec.auditAnnotations[1].key", "Duplicate"),
            },
        ),
        (
            {"paramKind": {"apiVersion": "", "kind": ""}},
            {("spec.paramKind.apiVersion", "Required"), ("spec.paramKind.kind", "Required")},
        ),
        ({"paramKind": {"apiVersion": "a/b/c", "kind": "X"}}, {("spec.paramKind.apiVersion", "Invalid")}),
        (matched(operations=[]), {("spec.matchConstraints.resourceRules[0].operations", "Required")}),
        (matched(operations=["*", "CREATE"]), {("spec.matchConstraints.resourceRules[0].operations", "Invalid")}),
        (matched(operations=["READ"]), {("spec.matchConstraints.resourceRules[0].operations[0]", "NotSupported")}),
        (matched(apiGroups=[]), {("spec.matchConstraints.resourceRules[0].apiGroups", "Required")}),
        (matched(apiVersions=[""]), {("spec.matchConstraints.resourceRules[0].apiVersions[0]", "Required")}),
        (matched(resources=[]), {("spec.matchConstraints.resourceRules[0].resources", "Required")}),
        (matched(resources=["*", "pods"]), {("spec.matchConstraints.resourceRules[0].resources", "Invalid")}),
        (
            matched(resources=["pods/*", "pods/status"]),
            {("spec.matchConstraints.resourceRules[0].resources[1]", "Invalid")},
        ),
        (matched(scope="Galaxy"), {("spec.matchConstraints.resourceRules[0].scope", "NotSupported")}),
        (matched(resourceNames=["a/b"]), {("spec.matchConstraints.resourceRules[0].resourceNames[0]", "Invalid")}),
    ],
)
@on_loop
async def test_a_policy_that_could_not_be_run_is_refused(spec: Plain, expected: set[tuple[str, str]]) -> None:
    async with serving() as api:
        made = policy("p", ALWAYS)
        made["spec"] |= spec
        answer = await api.create(POLICIES, made)
        assert answer.code == 422, answer.body
        assert causes(answer) == expected


@on_loop
async def test_a_fault_of_an_expression_is_told_with_its_place() -> None:
    async with serving() as api:
        answer = await api.create(POLICIES, policy("p", {"expression": "object.x == nobody"}))
        assert answer.body["details"]["causes"][0]["message"] == (
            'Invalid value: "object.x == nobody": compilation failed: ERROR: <input>:1:13: undeclared reference to '
            "'nobody' (in container '')\n | object.x == nobody\n | ............^"
        )
        typed = await api.create(POLICIES, policy("p", {"expression": "request.name"}))
        assert "must evaluate to bool but got string" in typed.message
        unknown = await api.create(POLICIES, policy("p", {"expression": "request.nme == ''"}))
        assert "undefined field 'nme'" in unknown.message


@on_loop
async def test_an_update_of_a_policy_is_checked_and_a_new_generation() -> None:
    async with serving() as api:
        made = (await api.create(POLICIES, policy("p", ALWAYS))).body
        made["spec"]["validations"] = [{"expression": "1"}]
        assert (await api.update(f"{POLICIES}/p", made)).code == 422
        made["spec"]["validations"] = [{"expression": "false"}]
        assert (await api.update(f"{POLICIES}/p", made)).body["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"policyName": ""}, {("spec.policyName", "Required")}),
        ({"policyName": "A b"}, {("spec.policyName", "Invalid")}),
        ({"validationActions": []}, {("spec.validationActions", "Required")}),
        ({"validationActions": ["Deny", "Warn"]}, {("spec.validationActions", "Invalid")}),
        ({"validationActions": ["Deny", "Deny"]}, {("spec.validationActions[1]", "Duplicate")}),
        ({"validationActions": ["Shout"]}, {("spec.validationActions[0]", "NotSupported")}),
        (
            {"paramRef": {"parameterNotFoundAction": "Deny"}},
            {("spec.paramRef", "Required")},
        ),
        ({"paramRef": {"name": "x"}}, {("spec.paramRef.parameterNotFoundAction", "Required")}),
        (
            {"paramRef": {"name": "x", "selector": {}, "parameterNotFoundAction": "Perhaps"}},
            {
                ("spec.paramRef.name", "Forbidden"),
                ("spec.paramRef.selector", "Forbidden"),
                ("spec.paramRef.parameterNotFoundAction", "NotSupported"),
            },
        ),
        (
            {"matchResources": {"matchPolicy": "Roughly", "objectSelector": {"matchLabels": {"a b": "c"}}}},
            {
                ("spec.matchResources.matchPolicy", "NotSupported"),
                ("spec.matchResources.objectSelector.matchLabels", "Invalid"),
            },
        ),
    ],
)
@on_loop
async def test_a_binding_that_makes_no_sense_is_refused(spec: Plain, expected: set[tuple[str, str]]) -> None:
    async with serving() as api:
        made = binding("b", "p")
        made["spec"] |= spec
        answer = await api.create(BINDINGS, made)
        assert answer.code == 422, answer.body
        assert causes(answer) == expected


HOOK = "webhooks[0]"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": ""}, {(f"{HOOK}.name", "Required")}),
        ({"name": "short.name"}, {(f"{HOOK}.name", "Invalid")}),
        ({"name": "A.b.c"}, {(f"{HOOK}.name", "Invalid")}),
        ({"sideEffects": "Some"}, {(f"{HOOK}.sideEffects", "NotSupported")}),
        ({"sideEffects": ""}, {(f"{HOOK}.sideEffects", "Required")}),
        ({"failurePolicy": "Maybe"}, {(f"{HOOK}.failurePolicy", "NotSupported")}),
        ({"timeoutSeconds": 31}, {(f"{HOOK}.timeoutSeconds", "Invalid")}),
        ({"timeoutSeconds": 0}, {(f"{HOOK}.timeoutSeconds", "Invalid")}),
        ({"admissionReviewVersions": []}, {(f"{HOOK}.admissionReviewVersions", "Required")}),
        ({"admissionReviewVersions": ["v9"]}, {(f"{HOOK}.admissionReviewVersions", "Invalid")}),
        ({"admissionReviewVersions": ["v1", "v1"]}, {(f"{HOOK}.admissionReviewVersions[1]", "Invalid")}),
        ({"clientConfig": {}}, {(f"{HOOK}.clientConfig", "Required")}),
        ({"clientConfig": {"url": "http://example.com/x"}}, {(f"{HOOK}.clientConfig.url", "Invalid")}),
        ({"clientConfig": {"url": "https://"}}, {(f"{HOOK}.clientConfig.url", "Invalid")}),
        ({"clientConfig": {"url": "https://u:p@h/x"}}, {(f"{HOOK}.clientConfig.url", "Invalid")}),
        ({"clientConfig": {"url": "https://h/x?y=z"}}, {(f"{HOOK}.clientConfig.url", "Invalid")}),
        ({"clientConfig": {"url": "https://h/x#y"}}, {(f"{HOOK}.clientConfig.url", "Invalid")}),
        ({"clientConfig": {"url": "https://h:no/x"}}, {(f"{HOOK}.clientConfig.url", "Required")}),
        (
            {"clientConfig": {"service": {"name": "", "namespace": "", "port": 0, "path": "x//y"}}},
            {
                (f"{HOOK}.clientConfig.service.name", "Required"),
                (f"{HOOK}.clientConfig.service.namespace", "Required"),
                (f"{HOOK}.clientConfig.service.port", "Invalid"),
                (f"{HOOK}.clientConfig.service.path", "Invalid"),
            },
        ),
        ({"rules": [{**RULE, "operations": []}]}, {(f"{HOOK}.rules[0].operations", "Required")}),
        (
            {"matchConditions": [{"name": "c", "expression": "x"}]},
            {(f"{HOOK}.matchConditions[0].expression", "Invalid")},
        ),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            {(f"{HOOK}.namespaceSelector.matchExpressions[0].values", "Required")},
        ),
        (
            {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
            {(f"{HOOK}.objectSelector.matchExpressions[0].operator", "Invalid")},
        ),
    ],
)
@pytest.mark.parametrize("mutating", [False, True])
@on_loop
async def test_a_webhook_that_could_not_be_asked_is_refused(
    fields: Plain, expected: set[tuple[str, str]], mutating: bool
) -> None:
    kind = "MutatingWebhookConfiguration" if mutating else "ValidatingWebhookConfiguration"
    made = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "c"},
        "webhooks": [{**webhook("https://example.com/x"), **fields}],
    }
    async with serving() as api:
        answer = await api.create(MUTATING if mutating else VALIDATING, made)
        assert answer.code == 422, answer.body
        assert causes(answer) == expected


@on_loop
async def test_names_and_reinvocation_are_checked_over_all_webhooks() -> None:
    made = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "c"},
        "webhooks": [
            webhook("https://example.com/x"),
            {**webhook("https://example.com/x"), "reinvocationPolicy": "Often"},
        ],
    }
    async with serving() as api:
        assert causes(await api.create(MUTATING, made)) == {
            ("webhooks[1].name", "Duplicate"), ("webhooks[1].reinvocationPolicy", "NotSupported"),
        }  # fmt: skip


class Off(DefaultTolerationSeconds):
    name = "Off"
    default = False


def chosen(enable: str = "", disable: str = "") -> list[str]:
    plugins = [DefaultTolerationSeconds(), Off()]
    admission = choose(plugins, enable=enable.split(), disable=disable.split())
    return [plugin.name for plugin in admission.plugins]


def test_plugins_are_chosen_as_the_flags_of_kube_apiserver_say() -> None:
    assert chosen() == ["DefaultTolerationSeconds"]
    assert chosen(enable="Off") == ["DefaultTolerationSeconds", "Off"]
    assert chosen(disable="DefaultTolerationSeconds Off") == []
    assert chosen(disable="PodNodeSelector PodSecurity") == ["DefaultTolerationSeconds"]


@pytest.mark.parametrize(
    ("enable", "disable", "why"),
    [
        ("Nobody", "", "unknown admission plugin 'Nobody'"),
        ("", "Nobody", "unknown admission plugin 'Nobody'"),
        ("PodSecurity", "", "unknown admission plugin 'PodSecurity'"),
        ("Off", "Off", "overlap: Off"),
    ],
)
def test_flags_that_name_nobody_or_contradict_each_other_are_refused(enable: str, disable: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        chosen(enable, disable)
