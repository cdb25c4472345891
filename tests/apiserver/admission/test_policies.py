"""Policies that administrators write: where they hold, what they see, what a failure leads to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from drakit.api.exchange import User
from drakit.apiserver import Settings
from drakit.apiserver.admission.criteria import evaluation as judging
from drakit.apiserver.admission.criteria import expressions
from drakit.apiserver.auth.audit import AuditLog
from drakit.apiserver.auth.identities import account
from tests.apiserver.admission.objects import BINDINGS, POLICIES, binding, disabled, enforce, labelled, policy
from tests.apiserver.calls import CLAIMS, CLASSES, NAMESPACES, PODS, SLICES, Api, on_loop, serving
from tests.builders.documents import Plain, claim_document, class_document, pod_document, slice_document

DRIVER = Path(__file__).parents[3] / "examples" / "policies" / "driver-access.yaml"
BETA = CLAIMS.replace("/v1/", "/v1beta1/")


def rule(expression: str, **fields: Any) -> Plain:
    return {"expression": expression, **fields}


async def apply_example(api: Api) -> None:
    """The policies of the file; roles are somebody else's."""
    paths = {"ValidatingAdmissionPolicy": POLICIES, "ValidatingAdmissionPolicyBinding": BINDINGS}
    for document in yaml.safe_load_all(DRIVER.read_text()):
        if document["kind"] in paths:
            assert (await api.create(paths[document["kind"]], document)).code == 201


def driver(node: str = "") -> User:
    return account("gpu-driver", "gpu-driver", node=node)


@on_loop
async def test_the_policy_of_the_documents_keeps_a_driver_to_its_node() -> None:
    async with serving() as api:
        await apply_example(api)
        assert (await api.create(SLICES, slice_document("s", "dev-0"), user=driver("node-a"))).code == 201
        other = await api.create(SLICES, slice_document("t", "dev-0"), user=driver("node-b"))
        assert (other.code, other.body["reason"]) == (422, "Invalid")
        assert other.message == (
            "resourceslices.resource.k8s.io \"t\" is forbidden: ValidatingAdmissionPolicy 'gpu-driver-own-node' with "
            "binding 'gpu-driver-own-node' denied request: the driver on node 'node-b' may not write a slice of node "
            "'node-a'"
        )
        assert other.body["details"]["causes"][0]["message"].startswith(
            "ValidatingAdmissionPolicy 'gpu-driver-own-node'"
        )


@pytest.mark.parametrize("action", ["update", "patch", "delete", "deletecollection", "beta"])
@on_loop
async def test_the_policy_holds_for_every_way_to_write(action: str) -> None:
    async with serving() as api:
        await apply_example(api)
        made = (await api.create(SLICES, slice_document("s", "dev-0"))).body
        labels = {"metadata": {"labels": {"a": "b"}}}
        user = driver("node-b")
        match action:
            case "update":
                made["metadata"]["labels"] = {"a": "b"}
                answer = await api.update(f"{SLICES}/s", made, user=user)
            case "patch":
                answer = await api.patch(f"{SLICES}/s", labels, user=user)
            case "delete":
                answer = await api.delete(f"{SLICES}/s", user=user)
            case "deletecollection":
                answer = await api.delete(SLICES, user=user)
            case _:
                answer = await api.patch(f"{SLICES.replace('/v1/', '/v1beta2/')}/s", labels, user=user)
        assert answer.code == 422
        assert "may not write a slice of node 'node-a'" in answer.message


@on_loop
async def test_credentials_without_a_node_and_other_people_are_told_apart() -> None:
    async with serving() as api:
        await apply_example(api)
        bare = await api.create(SLICES, slice_document("s", "dev-0"), user=driver())
        assert "the credentials name no node; use a token that is bound to the driver's pod" in bare.message
        assert (await api.create(SLICES, slice_document("s", "dev-0"), user=User(name="admin"))).code == 201


@pytest.mark.parametrize(
    ("user", "spec", "said"),
    [
        (driver("node-a"), {"nodeName": "node-a"}, ""),
        (driver("node-b"), {"nodeName": "node-a"}, "node-b is not node-a"),
        (driver("node-b"), {"allNodes": True}, "node-b is not nowhere"),
        (User(name="x", extra={"other": ("y",)}), {"nodeName": "node-a"}, "no node"),
        (User(name="x"), {"nodeName": "node-a"}, "no such key: extra"),
    ],
)
@on_loop
async def test_optional_fields_are_reached_as_drivers_policies_reach_them(user: User, spec: Plain, said: str) -> None:
    variables = [
        {
            "name": "userNode",
            "expression": "request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('')",
        },
        {
            "name": "sliceNode",
            "expression": "(request.operation == 'DELETE' ? oldObject : object).spec.?nodeName.orValue('')",
        },
    ]
    where = "(variables.sliceNode == '' ? 'nowhere' : variables.sliceNode)"
    rules = (
        rule("variables.userNode != ''", message="no node"),
        rule(
            "variables.userNode == variables.sliceNode",
            messageExpression=f"variables.userNode + ' is not ' + {where}",
        ),
    )
    async with serving() as api:
        await enforce(api, policy("p", *rules, resources=("resourceslices",), variables=variables))
        made = slice_document("s", "dev-0")
        del made["spec"]["nodeName"]
        made["spec"] |= spec
        answer = await api.create(SLICES, made, user=user)
        if said:
            assert answer.message.endswith(said)
        else:
            assert answer.code == 201, answer.body


@on_loop
async def test_a_policy_alone_does_nothing_and_its_binding_makes_it_hold_at_once() -> None:
    async with serving() as api:
        await api.create(POLICIES, policy("no", rule("false", message="never")))
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201
        await api.create(BINDINGS, binding("b", "no"))
        assert (await api.create(CLAIMS, claim_document("b"))).code == 422
        await api.delete(f"{BINDINGS}/b")
        assert (await api.create(CLAIMS, claim_document("b"))).code == 201


@pytest.mark.parametrize(
    ("validation", "said"),
    [
        (rule("false"), "failed expression: false"),
        (rule(" 1 == 2 "), "failed expression: 1 == 2"),
        (rule("false", message=" no "), "no"),
        (rule("false", message="no", messageExpression="'name ' + object.metadata.name"), "name a"),
        (rule("false", message="no", messageExpression="string(object.spec.missing)"), "no"),
        (rule("false", message="no", messageExpression="'  '"), "no"),
        (rule("false", message="no", messageExpression="'two\\nlines'"), "no"),
        (rule("false", messageExpression="'" + "y" * 6000 + "'"), "failed expression: false"),
    ],
)
@on_loop
async def test_a_refusal_says_what_its_author_wrote(validation: Plain, said: str) -> None:
    async with serving() as api:
        await enforce(api, policy("p", validation))
        answer = await api.create(CLAIMS, claim_document("a"))
        assert answer.message == (
            f"resourceclaims.resource.k8s.io \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p-b' "
            f"denied request: {said}"
        )


@pytest.mark.parametrize(
    ("reason", "code"), [("Forbidden", 403), ("RequestEntityTooLarge", 413), ("Invalid", 422), (None, 422)]
)
@on_loop
async def test_a_reason_decides_the_code(reason: str | None, code: int) -> None:
    async with serving() as api:
        await enforce(api, policy("p", rule("false", **({"reason": reason} if reason else {}))))
        answer = await api.create(CLAIMS, claim_document("a"))
        assert (answer.code, answer.body["reason"]) == (code, reason or "Invalid")


@on_loop
async def test_a_warning_lets_the_request_pass() -> None:
    async with serving() as api:
        await enforce(api, policy("p", rule("false", message="rather not")), "Warn", "Audit")
        answer = await api.create(CLAIMS, claim_document("a"))
        assert answer.code == 201
        assert answer.response.warnings == (
            "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p-b': rather not",
        )


@on_loop
async def test_the_first_refusal_is_told_and_policies_are_asked_by_name() -> None:
    async with serving() as api:
        await enforce(api, policy("b", rule("true"), rule("false", message="second")))
        await enforce(api, policy("a", rule("false", message="first"), rule("false", message="other")))
        assert (await api.create(CLAIMS, claim_document("x"))).message.endswith("denied request: first")


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
@pytest.mark.parametrize("where", ["validations", "matchConditions", "variables"])
@on_loop
async def test_an_expression_without_an_answer_refuses_or_is_passed_over(failure_policy: str, where: str) -> None:
    async with serving() as api:
        made = policy("p", rule("true"), failurePolicy=failure_policy)
        broken = "object.spec.missing == 1"
        match where:
            case "validations":
                made["spec"]["validations"] = [rule(broken)]
            case "matchConditions":
                made["spec"]["matchConditions"] = [{"name": "c", "expression": broken}]
            case _:
                made["spec"]["variables"] = [{"name": "v", "expression": broken}]
                made["spec"]["validations"] = [rule("variables.v")]
        await enforce(api, made)
        answer = await api.create(CLAIMS, claim_document("a"))
        if failure_policy == "Ignore":
            assert answer.code == 201
        else:
            assert answer.code == 422
            assert "no such key: missing" in answer.message
        if (failure_policy, where) == ("Fail", "variables"):
            assert (
                "expression 'variables.v' resulted in error: composited variable \"v\" fails to evaluate: no such key"
                in answer.message
            )


@on_loop
async def test_a_condition_that_says_no_wins_over_one_that_fails() -> None:
    async with serving() as api:
        conditions = [
            {"name": "broken", "expression": "object.spec.missing == 1"},
            {"name": "no", "expression": "request.name == 'other'"},
        ]
        await enforce(api, policy("p", rule("false"), matchConditions=conditions))
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201


@on_loop
async def test_variables_see_those_before_them_and_are_computed_when_used() -> None:
    async with serving() as api:
        variables = [
            {"name": "count", "expression": "object.spec.devices.requests[0].exactly.count"},
            {"name": "twice", "expression": "variables.count * 2"},
            {"name": "never", "expression": "object.spec.missing"},
        ]
        await enforce(api, policy("p", rule("variables.twice == 2 || variables.never == 1"), variables=variables))
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201
        twice = claim_document("b")
        twice["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
        answer = await api.create(CLAIMS, twice)
        assert 'composited variable "never" fails to evaluate' in answer.message


@pytest.mark.parametrize(
    "expression",
    [
        "request.operation == 'CREATE' && request.kind.kind == 'ResourceClaim'",
        "request.resource.resource == 'resourceclaims' && request.requestResource.version == 'v1'",
        "request.namespace == 'default' && request.name == 'a' && !request.dryRun",
        "request.userInfo.username == 'alice' && 'dev' in request.userInfo.groups",
        "request.userInfo.extra['node'][0] == 'n1'",
        "!has(request.subResource)",
        "request.options.kind == 'CreateOptions'",
        "namespaceObject.metadata.name == 'default' && namespaceObject.status.phase == 'Active'",
        "namespaceObject.metadata.creationTimestamp == timestamp('2026-01-01T00:00:00Z')",
        "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'default'",
        "oldObject == null && object.kind == 'ResourceClaim'",
        "object.apiVersion == 'resource.k8s.io/v1' && has(object.metadata.uid)",
        "object.spec.devices.requests.all(r, r.exactly.count == 1)",
        "object.spec.devices.requests.exists(r, r.exactly.deviceClassName.matches('^gpu'))",
    ],
)
@on_loop
async def test_expressions_see_the_request(expression: str) -> None:
    async with serving() as api:
        await enforce(api, policy("p", rule(expression)))
        user = User(name="alice", groups=("dev",), extra={"node": ("n1",)})
        answer = await api.create(CLAIMS, claim_document("a"), user=user)
        assert answer.code == 201, answer.body


@on_loop
async def test_an_update_is_compared_with_what_was() -> None:
    async with serving() as api:
        await enforce(
            api, policy("p", rule("oldObject == null || object.metadata.labels == oldObject.metadata.labels"))
        )
        await api.create(CLAIMS, claim_document("a", labels={"x": "1"}))
        assert (await api.patch(f"{CLAIMS}/a", {"metadata": {"annotations": {"n": "1"}}})).code == 200
        assert (await api.patch(f"{CLAIMS}/a", {"metadata": {"labels": {"x": "2"}}})).code == 422


@pytest.mark.parametrize(
    ("versions", "match_policy", "expected"),
    [
        (["v1"], "Equivalent", "resource.k8s.io/v1 v1 v1beta1"),
        (["v1"], "Exact", ""),
        (["v1beta1"], "Exact", "resource.k8s.io/v1beta1 v1beta1 v1beta1"),
        (["*"], "Equivalent", "resource.k8s.io/v1beta1 v1beta1 v1beta1"),
    ],
)
@on_loop
async def test_an_object_is_shown_in_a_version_that_the_policy_names(
    versions: list[str], match_policy: str, expected: str
) -> None:
    async with serving() as api:
        said = "object.apiVersion + ' ' + request.resource.version + ' ' + request.requestResource.version"
        made = policy("p", rule("false", messageExpression=said))
        made["spec"]["matchConstraints"]["matchPolicy"] = match_policy
        made["spec"]["matchConstraints"]["resourceRules"][0]["apiVersions"] = versions
        await enforce(api, made)
        sent = claim_document("a")
        sent["apiVersion"] = "resource.k8s.io/v1beta1"
        sent["spec"]["devices"]["requests"] = [{"name": "gpu", "deviceClassName": "gpu.example.com"}]
        answer = await api.create(BETA, sent)
        if expected:
            assert answer.message.endswith(f"denied request: {expected}")
        else:
            assert answer.code == 201


@pytest.mark.parametrize(
    ("change", "concerned"),
    [
        ({"resources": ["resourceclaims"]}, True),
        ({"resources": ["*"]}, True),
        ({"resources": ["*/*"]}, True),
        ({"resources": ["resourceclaims/*"]}, True),
        ({"resources": ["resourceclaims/status"]}, False),
        ({"resources": ["pods"]}, False),
        ({"operations": ["*"]}, True),
        ({"operations": ["UPDATE"]}, False),
        ({"apiGroups": ["resource.k8s.io"]}, True),
        ({"apiGroups": [""]}, False),
        ({"scope": "Namespaced"}, True),
        ({"scope": "Cluster"}, False),
        ({"resourceNames": ["a", "b"]}, True),
        ({"resourceNames": ["b"]}, False),
    ],
)
@on_loop
async def test_rules_choose_requests(change: Plain, concerned: bool) -> None:
    async with serving() as api:
        made = policy("p", rule("false"))
        made["spec"]["matchConstraints"]["resourceRules"][0] |= change
        await enforce(api, made)
        assert ((await api.create(CLAIMS, claim_document("a"))).code == 422) is concerned


@on_loop
async def test_what_is_excluded_is_not_concerned() -> None:
    async with serving() as api:
        made = policy("p", rule("false"))
        rules = made["spec"]["matchConstraints"]["resourceRules"]
        made["spec"]["matchConstraints"]["excludeResourceRules"] = [{**rules[0], "resourceNames": ["a"]}]
        await enforce(api, made)
        assert (
            (await api.create(CLAIMS, claim_document("a"))).code,
            (await api.create(CLAIMS, claim_document("b"))).code,
        ) == (201, 422)


@pytest.mark.parametrize("where", ["policy", "binding"])
@on_loop
async def test_selectors_choose_namespaces_and_objects(where: str) -> None:
    async with serving() as api:
        await labelled(api, "strict", level="high")
        criteria: Plain = {
            "namespaceSelector": {"matchLabels": {"level": "high"}},
            "objectSelector": {"matchExpressions": [{"key": "free", "operator": "DoesNotExist"}]},
        }
        made = policy("p", rule("false"))
        if where == "policy":
            made["spec"]["matchConstraints"] |= criteria
        await enforce(api, made, **({"matchResources": criteria} if where == "binding" else {}))
        strict = CLAIMS.replace("/default/", "/strict/")
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201
        assert (await api.create(strict, claim_document("a"))).code == 422
        assert (await api.create(strict, claim_document("a", labels={"free": "yes"}))).code == 201


@on_loop
async def test_a_namespace_selector_sees_the_labels_that_a_namespace_is_about_to_get() -> None:
    async with serving() as api:
        made = policy("p", rule("namespaceObject == null && false"), resources=("namespaces",))
        made["spec"]["matchConstraints"]["namespaceSelector"] = {"matchLabels": {"level": "high"}}
        await enforce(api, made)
        assert (await labelled(api, "low", level="low")).code == 201
        assert (await labelled(api, "high", level="high")).code == 422
        assert (await api.patch(f"{NAMESPACES}/low", {"metadata": {"labels": {"level": "high"}}})).code == 422


@on_loop
async def test_subresources_and_objects_that_are_posted_below_others_have_rules_of_their_own() -> None:
    async with serving() as api:
        said = "request.subResource + ' ' + request.operation + ' ' + object.kind"
        made = policy("p", rule("false", messageExpression=said), resources=("pods/binding", "pods/status"))
        await enforce(api, made)
        await api.create(PODS, pod_document("a"))
        target = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"name": "n"}}
        bound = await api.create(f"{PODS}/a/binding", target)
        status = await api.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}})
        assert bound.message.endswith("denied request: binding CREATE Binding")
        assert status.message.endswith("denied request: status UPDATE Pod")


@on_loop
async def test_policies_and_bindings_are_never_locked_by_policies() -> None:
    async with serving() as api:
        await enforce(api, policy("p", rule("false"), resources=("*/*",)))
        assert (await api.create(CLASSES, class_document("c", "true"))).code == 422
        assert (await api.delete(f"{BINDINGS}/p-b")).code == 200
        assert (await api.create(CLASSES, class_document("c", "true"))).code == 201


MAPS = "/api/v1/namespaces/default/configmaps"


def parameters(name: str, most: str, **labels: str) -> Plain:
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"most": most}}


@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ({"name": "two"}, 201),
        ({"name": "one"}, 422),
        ({"selector": {"matchLabels": {"use": "yes"}}}, 422),
        ({"selector": {"matchLabels": {"use": "no"}}}, 422),
        ({"selector": {"matchLabels": {"use": "no"}}, "parameterNotFoundAction": "Allow"}, 201),
        ({"name": "gone", "parameterNotFoundAction": "Allow"}, 201),
        ({"name": "gone"}, 422),
        ({"name": "two", "namespace": "kube-public"}, 422),
    ],
)
@on_loop
async def test_a_binding_hands_parameters_to_its_policy(reference: Plain, code: int) -> None:
    async with serving() as api:
        await api.create(MAPS, parameters("one", "1", use="yes"))
        await api.create(MAPS, parameters("two", "2", use="yes"))
        most = "object.spec.devices.requests[0].exactly.count <= int(params.data.most)"
        await enforce(
            api,
            policy("p", rule(most), paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
            paramRef={"parameterNotFoundAction": "Deny", **reference},
        )
        two = claim_document("a")
        two["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
        answer = await api.create(CLAIMS, two)
        assert answer.code == code, answer.body
        if reference.get("name") == "gone" and code == 422:
            assert "no params found for policy binding with `Deny` parameterNotFoundAction" in answer.message


def nested(depth: int) -> str:
    """An expression whose cost is the size of a list to the power of `depth`."""
    return "true" if not depth else f"object.metadata.annotations.all(a{depth}, {nested(depth - 1)})"


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that are reached in no time."""
    monkeypatch.setattr(expressions, "PER_CALL", 3_000)
    monkeypatch.setattr(expressions, "QUICK", 1_000)
    monkeypatch.setattr(judging, "BUDGET", 8_000)


@pytest.mark.usefixtures("cheap")
@on_loop
async def test_an_expression_that_costs_too_much_is_stopped() -> None:
    async with serving() as api:
        await enforce(api, policy("p", rule(nested(4))))
        many = {f"key{index}": "x" for index in range(20)}
        answer = await api.create(CLAIMS, claim_document("a", annotations=many))
        assert answer.code == 422
        assert "resulted in error: operation cancelled: actual cost limit exceeded" in answer.message


@pytest.mark.usefixtures("cheap")
@on_loop
async def test_many_expressions_share_one_budget() -> None:
    async with serving() as api:
        await enforce(api, policy("p", *(rule(nested(2)) for _ in range(10))))
        many = {f"key{index}": "x" for index in range(20)}
        answer = await api.create(CLAIMS, claim_document("a", annotations=many))
        assert answer.code == 422
        assert answer.message.endswith(
            "validation failed due to running out of cost budget, no further validation rules will be run"
        )
        assert (await api.create(CLAIMS, claim_document("b", annotations={"one": "x"}))).code == 201


@pytest.mark.usefixtures("cheap")
@on_loop
async def test_what_takes_long_is_done_aside_and_comes_to_the_same() -> None:
    async with serving() as api:
        condition = {"name": "long", "expression": nested(2)}
        await enforce(api, policy("p", rule("false", message="no"), matchConditions=[condition]))
        many = {f"key{index}": "x" for index in range(20)}
        assert (await api.create(CLAIMS, claim_document("a", annotations=many))).message.endswith("denied request: no")


def audited(path: Path) -> Plain:
    """The annotations of the last request."""
    annotations: Plain = json.loads(path.read_text().splitlines()[-1])["annotations"]
    return {key: value for key, value in annotations.items() if not key.startswith("authorization.")}


def test_what_policies_want_audited_is_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    annotations = [
        {"key": "who", "valueExpression": "'by ' + request.userInfo.username"},
        {"key": "nothing", "valueExpression": "null"},
    ]

    @on_loop
    async def run() -> None:
        with AuditLog(log) as audit:
            async with serving(Settings(audit=audit)) as api:
                await enforce(api, policy("p", rule("false", message="no"), auditAnnotations=annotations), "Audit")
                assert (await api.create(CLAIMS, claim_document("a"), user=User(name="alice"))).code == 201

    run()
    noted = audited(log)
    failures = json.loads(noted.pop("validation.policy.admission.k8s.io/validation_failure"))
    assert noted == {"p/who": "by alice"}
    assert failures == [
        {"message": "no", "policy": "p", "binding": "p-b", "expressionIndex": 0, "validationActions": ["Audit"]}
    ]


@on_loop
async def test_without_the_plugin_no_policy_holds() -> None:
    async with serving(disabled("ValidatingAdmissionPolicy")) as api:
        await enforce(api, policy("p", rule("false")))
        assert (await api.create(CLAIMS, claim_document("a"))).code == 201


@pytest.mark.parametrize(
    ("expression", "compiles"),
    [
        ("object.metadata.namespace == 'a'", True),
        ("object.spec.for == 1 || object.spec.package == 1", True),
        ("object.spec.__namespace__ == 1", True),
        ("namespace == 1", False),
        ("object.in == 1", False),
        ("object.true == 1", False),
        ("object.`a-b` == 1", False),
    ],
)
@on_loop
async def test_reserved_names_are_fields_but_no_variables(expression: str, compiles: bool) -> None:
    async with serving() as api:
        made = await api.create(POLICIES, policy("p", rule(expression)), dryRun="All")
        assert made.code == (201 if compiles else 422), made.body
