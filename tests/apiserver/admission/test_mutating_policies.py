"""Mutating policies: what they set, what they see, when they run again, what a failure leads to.

Answers were recorded from kube-apiserver v1.36.4, but for the words of failed JSON patches.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.admission.objects import (
    MUTATING_BINDINGS,
    MUTATING_POLICIES,
    applied,
    enforce,
    json_patched,
    mutate,
    mutating_binding,
    mutating_policy,
    policy,
)
from tests.apiserver.calls import CLAIMS, PODS, Answer, Api, on_loop, serving
from tests.builders.documents import Plain, claim_document, document, pod_document

MAPS = "/api/v1/namespaces/default/configmaps"
DENIED = "policy 'm' with binding 'm-b' denied request: "
UNTYPED = f"{DENIED}error applying patch: failed to convert patch object to typed object: "
DURATION = "google.protobuf.Duration"
LABEL = 'Object{metadata: Object.metadata{labels: {"team": "gpu"}}}'
MISPLACED = (
    'unexpected type name "Object.wrong", expected "Object.metadata", '
    "which matches field name path from root Object type"
)
COUNT = (
    'Object{{metadata: Object.metadata{{annotations: {{"{0}": '
    'string(int(object.metadata.?annotations[?"{0}"].orValue("0")) + 1)}}}}}}'
)


def config(name: str = "c", **labels: str) -> Plain:
    return document("ConfigMap", name, api="v1", labels={"a": "b", **labels}) | {"data": {"k": "v"}}


async def sent(api: Api, *mutations: Plain, body: Plain | None = None, **spec: Any) -> Answer:
    await mutate(api, mutating_policy("m", *mutations, **spec))
    made = body or config()
    return await api.create(PODS if made["kind"] == "Pod" else MAPS, made)


@pytest.mark.parametrize(
    ("expression", "data"),
    [
        ('Object{data: {"n": string(size(object.data)), "u": request.operation}}', {"n": "1", "u": "CREATE"}),
        ('Object{data: {"k": "w"}}', {"k": "w"}),
        ("Object{?data: optional.none()}", {}),
        ('Object{data: {"ns": namespaceObject.metadata.name}}', {"ns": "default"}),
        (
            'Object{data: {"may": string(authorizer.group("").resource("pods").check("create").allowed())}}',
            {"may": "true"},
        ),
        ('has(object.data) ? Object{data: {"x": "y"}} : Object{}', {"x": "y"}),
    ],
)
@on_loop
async def test_an_apply_configuration_is_laid_over_the_object(expression: str, data: Plain) -> None:
    async with serving() as api:
        made = await sent(api, applied(expression))
        assert (made.code, made.body["data"]) == (201, {"k": "v"} | data)
        assert (await api.get(f"{MAPS}/c")).body["data"] == {"k": "v"} | data


@on_loop
async def test_elements_of_lists_are_merged_by_their_keys() -> None:
    async with serving() as api:
        sidecar = 'initContainers: [Object.spec.initContainers{name: "side", image: "proxy"}]'
        env = 'env: [Object.spec.containers.env{name: "WHO", value: c.name}]'
        each = f"object.spec.containers.map(c, Object.spec.containers{{name: c.name, {env}}})"
        made = await sent(
            api, applied(f"Object{{spec: Object.spec{{{sidecar}, containers: {each}}}}}"), body=pod_document("p")
        )
        spec = made.body["spec"]
        assert [each["name"] for each in spec["initContainers"]] == ["side"]
        # Defaults are set for what a policy adds.
        assert spec["initContainers"][0]["terminationMessagePath"] == "/dev/termination-log"
        assert spec["containers"][0]["env"] == [{"name": "WHO", "value": "ctr"}]
        assert spec["containers"][0]["image"] == "img"


@pytest.mark.parametrize(
    ("expression", "data"),
    [
        ('[JSONPatch{op: "add", path: "/data/x", value: "y"}]', {"k": "v", "x": "y"}),
        ('[JSONPatch{op: "replace", path: "/data", value: {"z": "1"}}]', {"z": "1"}),
        ('[JSONPatch{op: "add", path: "/data/k", value: b"xyz"}]', {"k": "eHl6"}),
        ('[JSONPatch{op: "add", path: "/data/k", value: duration("1s")}]', {"k": "1s"}),
        ('[JSONPatch{op: "copy", from: "/data/k", path: "/data/l"}, JSONPatch{op: "remove", path: "/data/k"}]',
         {"l": "v"}),
        ('[JSONPatch{op: "move", from: "/data/k", path: "/data/m"}]', {"m": "v"}),
        ('size(object.data) > 5 ? [JSONPatch{op: "remove", path: "/data"}] : []', {"k": "v"}),
        ('[JSONPatch{op: "add", path: "/data/" + jsonpatch.escapeKey("a/b~c"), value: "1"}]', None),
        ('[JSONPatch{op: "test", path: "/data/k", value: "v"}, JSONPatch{op: "add", path: "/data/t", value: "1"}]',
         {"k": "v", "t": "1"}),
        # A test that does not hold takes the whole patch back, and is no failure.
        ('[JSONPatch{op: "add", path: "/data/t", value: "1"}, JSONPatch{op: "test", path: "/data/k", value: "w"}]',
         {"k": "v"}),
    ],
)  # fmt: skip
@on_loop
async def test_a_json_patch_changes_the_object(expression: str, data: Plain | None) -> None:
    async with serving() as api:
        made = await sent(api, json_patched(expression))
        if data is None:
            assert made.code == 422
            assert "data[a/b~c]: Invalid value" in made.message
        else:
            assert (made.code, made.body["data"]) == (201, data)


@on_loop
async def test_values_of_json_patches_are_objects_lists_and_numbers() -> None:
    async with serving() as api:
        toleration = 'Object.spec.tolerations{key: "k", operator: "Exists"}'
        made = await sent(
            api,
            json_patched(f'[JSONPatch{{op: "add", path: "/spec/tolerations", value: [{toleration}]}}]'),
            json_patched('[JSONPatch{op: "add", path: "/spec/activeDeadlineSeconds", value: 5.0}]'),
            body=pod_document("p"),
        )
        assert made.body["spec"]["tolerations"][0] == {"key": "k", "operator": "Exists"}
        assert made.body["spec"]["activeDeadlineSeconds"] == 5


@pytest.mark.parametrize(
    ("mutation", "code", "message"),
    [
        (
            applied('Object{metadata: Object.wrong{labels: {"x": "z"}}}'), 403,
            f"{DENIED}type mismatch: {MISPLACED}",
        ),
        (applied("Object{spec: Object.spec{x: 1}}"), 403, f"{UNTYPED}.spec: field not declared in schema"),
        (applied("Object{data: null}"), 403, f"{UNTYPED}.data: may not be null"),
        (applied('Object{data: {"t": duration("1s")}}'), 403, f"{UNTYPED}.data.t: {DURATION} has no form in JSON"),
        (applied('Object{binaryData: {"b": b"x"}}'), 403, f"{UNTYPED}.binaryData.b: bytes has no form in JSON"),
        (
            applied("Object{data: object.data.none}"), 403,
            f"{DENIED}expression 'Object{{data: object.data.none}}' resulted in error: no such key: none",
        ),
        (
            json_patched('[JSONPatch{op: "replace", path: "/spec/x", value: "w"}]'), 403,
            f"{DENIED}JSON Patch: replace operation does not apply: /spec/x",
        ),
        (json_patched('[JSONPatch{op: "foo", path: "/data/k"}]'), 403, f"{DENIED}JSON Patch: Unexpected kind: foo"),
        (applied('Object{metadata: Object.metadata{name: "other"}}'), 403,
         f"{DENIED}attempted to change the identity of the object"),
    ],
)  # fmt: skip
@on_loop
async def test_a_mutation_that_fails_refuses_the_request(mutation: Plain, code: int, message: str) -> None:
    async with serving() as api:
        answer = await sent(api, mutation)
        assert (answer.code, answer.message, answer.body["reason"]) == (code, message, "Invalid")
        assert answer.body["details"] == {"name": "c", "kind": "configmaps", "causes": [{"message": message}]}
        assert (await api.get(f"{MAPS}/c")).code == 404


@on_loop
async def test_a_result_that_cannot_be_read_is_an_error_in_the_words_of_the_decoder() -> None:
    async with serving() as api:
        answer = await sent(api, json_patched('[JSONPatch{op: "add", path: "/data/a", value: 5}]'))
        why = "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
        assert (answer.code, answer.message) == (500, f"Internal error occurred: {why}")


@on_loop
async def test_a_field_that_the_kind_has_not_is_an_error_of_the_patch() -> None:
    async with serving() as api:
        answer = await sent(api, json_patched('[JSONPatch{op: "add", path: "/spec", value: Object.spec{x: 1}}]'))
        assert answer.code == 500
        assert 'unknown field "spec"' in answer.message


@on_loop
async def test_a_failure_is_passed_over_where_the_policy_says_so() -> None:
    async with serving() as api:
        broken = applied('Object{data: {"n": object.data.missing}}')
        made = await sent(api, broken, applied('Object{data: {"x": "y"}}'), failurePolicy="Ignore")
        assert (made.code, made.body["data"]) == (201, {"k": "v", "x": "y"})


@on_loop
async def test_lists_that_are_replaced_as_a_whole_may_not_be_applied() -> None:
    async with serving() as api:
        args = 'Object{spec: Object.spec{containers: [Object.spec.containers{name: "ctr", args: ["y"]}]}}'
        answer = await sent(api, applied(args), body=pod_document("p"))
        why = "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: "
        assert answer.message == f"{DENIED}{why}.spec.containers[0].args"


@on_loop
async def test_each_mutation_sees_what_those_before_it_made() -> None:
    async with serving() as api:
        variables = [
            {"name": "one", "expression": "object.data.k + '1'"},
            {"name": "two", "expression": "variables.one + '2'"},
        ]
        first, second = 'Object{data: {"k": variables.two}}', 'Object{data: {"l": variables.two}}'
        made = await sent(api, applied(first), applied(second), variables=variables)
        assert made.body["data"] == {"k": "v12", "l": "v1212"}


@pytest.mark.parametrize(
    ("condition", "code", "labels"),
    [
        ("object.data.k == 'v'", 201, {"a": "b", "team": "gpu"}),
        ("object.data.k == 'no'", 201, {"a": "b"}),
        ("object.data.z == 'no'", 403, {}),
    ],
)
@on_loop
async def test_match_conditions_choose_the_objects(condition: str, code: int, labels: Plain) -> None:
    async with serving() as api:
        answer = await sent(api, applied(LABEL), matchConditions=[{"name": "x", "expression": condition}])
        assert answer.code == code
        assert code != 201 or answer.body["metadata"]["labels"] == labels


@on_loop
async def test_only_the_bound_policy_acts_and_only_where_the_binding_says() -> None:
    async with serving() as api:
        assert (await api.create(MUTATING_POLICIES, mutating_policy("m", applied(LABEL)))).code == 201
        assert "team" not in (await api.create(MAPS, config("unbound"))).body["metadata"]["labels"]
        chosen = {"objectSelector": {"matchLabels": {"x": "y"}}}
        await api.create(MUTATING_BINDINGS, mutating_binding("b", "m", matchResources=chosen))
        assert "team" not in (await api.create(MAPS, config("other"))).body["metadata"]["labels"]
        assert (await api.create(MAPS, config("mine", x="y"))).body["metadata"]["labels"]["team"] == "gpu"


@on_loop
async def test_updates_and_applies_are_changed_too_and_the_fields_belong_to_nobody() -> None:
    async with serving() as api:
        await api.create(MAPS, config())
        await mutate(api, mutating_policy("m", applied(LABEL)))
        patched = await api.patch(f"{MAPS}/c", {"data": {"x": "y"}})
        assert patched.body["metadata"]["labels"] == {"a": "b", "team": "gpu"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}, "data": {"q": "1"}}
        made = await api.patch(f"{MAPS}/n", body, content="application/apply-patch+yaml", fieldManager="me")
        assert (made.code, made.body["metadata"]["labels"]) == (201, {"team": "gpu"})


@on_loop
async def test_parameters_are_objects_that_the_binding_names() -> None:
    async with serving() as api:
        for name in ("p1", "p2"):
            await api.create(MAPS, document("ConfigMap", name, api="v1", labels={"p": "q"}) | {"data": {"v": name}})
        expression = "Object{metadata: Object.metadata{annotations: {params.metadata.name: params.data.v}}}"
        kind = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
        chosen = {"selector": {"matchLabels": {"p": "q"}}, "parameterNotFoundAction": "Deny"}
        await mutate(api, mutating_policy("m", applied(expression), resources=("pods",), **kind), paramRef=chosen)
        made = await api.create(PODS, pod_document("p"))
        assert made.body["metadata"]["annotations"] == {"p1": "p1", "p2": "p2"}
        for name in ("p1", "p2"):
            await api.delete(f"{MAPS}/{name}")
        refused = await api.create(PODS, pod_document("q"))
        assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
        assert "failed to configure binding: no params found" in refused.message


@pytest.mark.parametrize(
    ("first", "second", "counts"),
    [
        ("Never", "Never", ("1", "1")),
        ("IfNeeded", "Never", ("2", "1")),
        ("Never", "IfNeeded", ("1", "1")),
        ("IfNeeded", "IfNeeded", ("2", "2")),
    ],
)
@on_loop
async def test_a_policy_runs_again_if_it_may_and_the_object_changed_after_it(
    first: str, second: str, counts: tuple[str, str]
) -> None:
    async with serving() as api:
        await mutate(api, mutating_policy("m1", applied(COUNT.format("one")), reinvocationPolicy=first))
        await mutate(api, mutating_policy("m2", applied(COUNT.format("two")), reinvocationPolicy=second))
        found = (await api.create(MAPS, config())).body["metadata"]["annotations"]
        assert (found["one"], found["two"]) == counts


@on_loop
async def test_validating_policies_see_what_mutating_ones_made() -> None:
    async with serving() as api:
        await enforce(api, policy("team", {"expression": "has(object.metadata.labels.team)", "message": "no team"}))
        assert (await api.create(CLAIMS, claim_document("a"))).code == 422
        await mutate(api, mutating_policy("m", applied(LABEL), resources=("resourceclaims",)))
        assert (await api.create(CLAIMS, claim_document("b"))).code == 201


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("mutations", [], "spec.mutations: Required value: mutations must contain at least one item"),
        ("reinvocationPolicy", "", "spec.reinvocationPolicy: Required value"),
        ("reinvocationPolicy", "X", 'Unsupported value: "X": supported values: "IfNeeded", "Never"'),
        ("mutations", [{"patchType": "X"}], 'mutations[0].patchType: Unsupported value: "X"'),
        ("mutations", [{"patchType": "JSONPatch"}], "mutations[0].jsonPatch: Required value: must be specified when"),
        ("mutations", [applied(" ")], "mutations[0].applyConfiguration.expression: Required value"),
        ("mutations", [applied("Object{}") | json_patched("[]") | {"patchType": "ApplyConfiguration"}],
         'jsonPatch: Invalid value: "{jsonPatch}": must not be specified when patchType is ApplyConfiguration'),
        ("mutations", [applied('"x"')], "must evaluate to Object but got string"),
        ("mutations", [json_patched("JSONPatch{}")], "must evaluate to list(JSONPatch) but got JSONPatch"),
        ("mutations", [applied("Foo{}")], "undeclared reference to 'Foo'"),
        ("mutations", [json_patched("[JSONPatch{op: 1}]")], "field 'op' is 'string' but provided type is 'int'"),
        ("mutations", [applied("Object{?a: 1}")], "expected type 'optional_type(int)' but found 'int'"),
        # Only the mutations themselves construct objects.
        ("variables", [{"name": "x", "expression": "Object{}"}], "undeclared reference to 'Object'"),
        ("matchConstraints", {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"],
                                                 "resources": ["pods"]}]},
         'resourceRules.operations: Unsupported value: "DELETE"'),
    ],
)  # fmt: skip
@on_loop
async def test_a_bad_policy_is_refused_with_the_field(field: str, value: object, message: str) -> None:
    async with serving() as api:
        made = mutating_policy("m", applied("Object{}"))
        made["spec"][field] = value
        answer = await api.create(MUTATING_POLICIES, made)
        assert answer.code == 422
        assert message in answer.message


@on_loop
async def test_a_policy_is_stored_with_defaults() -> None:
    async with serving() as api:
        made = mutating_policy("m", applied("Object{}"))
        del made["spec"]["failurePolicy"]
        stored = (await api.create(MUTATING_POLICIES, made)).body["spec"]
        assert stored["failurePolicy"] == "Fail"
        assert stored["matchConstraints"]["matchPolicy"] == "Equivalent"
