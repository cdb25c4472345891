"""JSON, merge and strategic merge patches on plain objects."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from drakit.apiserver.failures import ApiError
from drakit.apiserver.patching import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    PatchBody,
    apply_patch,
    atom_of,
)

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "1"}, "finalizers": ["x/1", "x/2"]},
    "spec": {
        "containers": [
            {"name": "one", "image": "i1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            {"name": "two", "image": "i2"},
        ],
        "tolerations": [{"key": "k"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
    "status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "PodScheduled", "status": "True"}]},
}


def patched(kind: str, patch: Any) -> dict[str, Any]:
    before = copy.deepcopy(POD)
    result = apply_patch(PatchBody(kind, json.dumps(patch).encode()), POD, schema=atom_of("v1", "Pod"))
    assert before == POD, "the live object was changed"
    return result


def refused(kind: str, body: bytes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        apply_patch(PatchBody(kind, body), POD, schema=atom_of("v1", "Pod"))
    return caught.value


def names(items: list[dict[str, Any]], key: str = "name") -> list[str]:
    return [item[key] for item in items]


def test_json_patch_operations_follow_each_other() -> None:
    operations = [
        {"op": "test", "path": "/metadata/name", "value": "p"},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "x/3"},
        {"op": "remove", "path": "/metadata/labels/a"},
        {"op": "move", "from": "/spec/volumes", "path": "/spec/moved"},
    ]
    result = patched(JSON_PATCH, operations)
    assert result["metadata"] == {"name": "p", "labels": {}, "finalizers": ["x/1", "x/2", "x/3"]}
    assert "volumes" not in result["spec"]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/metadata/labels/x", "value": "y"},
        {"op": "test", "path": "/metadata/name", "value": "q"},
        {"op": "test", "path": "/metadata/name"},
        {"op": "remove", "path": "/nope"},
        {"op": "nope", "path": "/a"},
        {"op": "add", "path": "/spec/containers/9/name", "value": "z"},
        {"op": "add"},
        {"op": "add", "path": 3, "value": 1},
        {"path": "/a"},
    ],
)
def test_a_json_patch_that_does_not_fit_is_unprocessable(operation: dict[str, Any]) -> None:
    answer = refused(JSON_PATCH, json.dumps([operation]).encode()).status
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert answer.message == "the server rejected our request due to an error in our request"


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (JSON_PATCH, b"{}", "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (JSON_PATCH, b"[1]", "cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        (MERGE_PATCH, b"{", "error decoding patch: unexpected end of JSON input"),
        (MERGE_PATCH, b"[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (STRATEGIC_MERGE_PATCH, b'"x"', "json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (MERGE_PATCH, b"\xff", "expected UTF-8"),
        (MERGE_PATCH, b"[" * 100_000, "exceeded max depth"),
    ],
)
def test_what_is_no_patch_is_a_bad_request(kind: str, body: bytes, message: str) -> None:
    answer = refused(kind, body).status
    assert (answer.code, answer.reason) == (400, "BadRequest")
    assert message in answer.message


def test_a_patch_of_another_type_is_unsupported() -> None:
    assert refused("application/json", b"{}").status.code == 415


def test_a_json_patch_may_not_be_endless() -> None:
    body = json.dumps([{"op": "test", "path": "", "value": 0}] * 10_001).encode()
    assert refused(JSON_PATCH, body).status.code == 413


def test_merge_patch_replaces_lists_and_removes_nulls() -> None:
    result = patched(
        MERGE_PATCH, {"metadata": {"labels": {"a": None, "b": "2"}}, "spec": {"containers": [{"name": "c"}]}}
    )
    assert result["metadata"]["labels"] == {"b": "2"}
    assert result["spec"]["containers"] == [{"name": "c"}]


def test_strategic_merge_merges_containers_by_name() -> None:
    patch = {"spec": {"containers": [{"name": "two", "image": "new"}, {"name": "three", "image": "i3"}]}}
    containers = patched(STRATEGIC_MERGE_PATCH, patch)["spec"]["containers"]
    assert containers == [
        POD["spec"]["containers"][0],
        {"name": "two", "image": "new"},
        {"name": "three", "image": "i3"},
    ]


def test_strategic_merge_goes_into_lists_in_lists() -> None:
    patch = {"spec": {"containers": [{"name": "one", "env": [{"name": "B", "value": "x"}, {"name": "C"}]}]}}
    env = patched(STRATEGIC_MERGE_PATCH, patch)["spec"]["containers"][0]["env"]
    assert env == [{"name": "A", "value": "1"}, {"name": "B", "value": "x"}, {"name": "C"}]


def test_pod_conditions_merge_by_type() -> None:
    patch = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    conditions = patched(STRATEGIC_MERGE_PATCH, patch)["status"]["conditions"]
    assert conditions == [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}]


def test_lists_without_a_strategy_are_replaced() -> None:
    patch = {"spec": {"tolerations": [{"key": "other"}]}}
    assert patched(STRATEGIC_MERGE_PATCH, patch)["spec"]["tolerations"] == [{"key": "other"}]


def test_patched_elements_come_first_and_server_elements_keep_their_place() -> None:
    patch = {"metadata": {"finalizers": ["x/9", "x/2"]}}
    assert patched(STRATEGIC_MERGE_PATCH, patch)["metadata"]["finalizers"] == ["x/9", "x/1", "x/2"]


def test_elements_are_deleted_by_directive() -> None:
    patch = {"spec": {"containers": [{"$patch": "delete", "name": "one"}]}}
    assert names(patched(STRATEGIC_MERGE_PATCH, patch)["spec"]["containers"]) == ["two"]


def test_a_list_is_replaced_by_directive() -> None:
    patch = {"spec": {"containers": [{"$patch": "replace"}, {"name": "only"}]}}
    assert patched(STRATEGIC_MERGE_PATCH, patch)["spec"]["containers"] == [{"name": "only"}]


def test_a_map_is_replaced_or_emptied_by_directive() -> None:
    replaced = patched(STRATEGIC_MERGE_PATCH, {"metadata": {"labels": {"$patch": "replace", "z": "1"}}})
    assert replaced["metadata"]["labels"] == {"z": "1"}
    emptied = patched(STRATEGIC_MERGE_PATCH, {"metadata": {"labels": {"$patch": "delete"}}})
    assert emptied["metadata"]["labels"] == {}


def test_primitives_are_deleted_by_directive() -> None:
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/1"]}}
    assert patched(STRATEGIC_MERGE_PATCH, patch)["metadata"]["finalizers"] == ["x/2"]


def test_the_order_of_elements_can_be_set() -> None:
    order = {"$setElementOrder/containers": [{"name": "three"}, {"name": "two"}, {"name": "one"}]}
    patch = {"spec": {**order, "containers": [{"name": "three", "image": "i3"}]}}
    assert names(patched(STRATEGIC_MERGE_PATCH, patch)["spec"]["containers"]) == ["three", "two", "one"]


def test_an_order_that_the_patch_does_not_keep_is_refused() -> None:
    patch = {"metadata": {"$setElementOrder/finalizers": ["a", "b"], "finalizers": ["b", "a"]}}
    answer = refused(STRATEGIC_MERGE_PATCH, json.dumps(patch).encode()).status
    assert answer.code == 400
    assert "doesn't match $setElementOrder list" in answer.message


def test_retained_keys_clear_the_others() -> None:
    patch = {"spec": {"volumes": [{"$retainKeys": ["name", "secret"], "name": "v", "secret": {"secretName": "s"}}]}}
    assert patched(STRATEGIC_MERGE_PATCH, patch)["spec"]["volumes"] == [{"name": "v", "secret": {"secretName": "s"}}]


def test_directives_leave_no_trace_where_nothing_was() -> None:
    patch = {"spec": {"initContainers": [{"$patch": "delete", "name": "x"}, {"name": "y", "tty": None}]}}
    assert patched(STRATEGIC_MERGE_PATCH, patch)["spec"]["initContainers"] == [{"name": "y"}]


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"containers": [{"image": "no name"}]}},
        {"spec": {"containers": [{"$patch": "delete"}]}},
        {"spec": {"containers": [{"$patch": "merge", "name": "x"}]}},
        {"spec": {"containers": [{"$patch": "nope", "name": "x"}]}},
        {"spec": {"containers": ["text"]}},
        {"spec": {"$patch": "nope"}},
        {"spec": {"$retainKeys": "x"}},
        {"spec": {"$retainKeys": ["a"], "b": 1}},
        {"metadata": {"$setElementOrder/finalizers": "x", "finalizers": []}},
        {"metadata": {"$setElementOrder": []}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": 3}},
    ],
)
def test_a_strategic_patch_that_contradicts_itself_is_a_bad_request(patch: dict[str, Any]) -> None:
    assert refused(STRATEGIC_MERGE_PATCH, json.dumps(patch).encode()).status.code == 400


def test_strict_decoding_finds_duplicates_and_strange_operations() -> None:
    assert PatchBody(MERGE_PATCH, b'{"metadata":{"a":1,"a":2}}').findings() == ('duplicate field "metadata.a"',)
    body = b'[{"op":"add","path":"/a","value":1,"values":2}]'
    assert PatchBody(JSON_PATCH, body).findings() == ('json patch unknown field "[0].values"',)
    assert PatchBody(STRATEGIC_MERGE_PATCH, b'{"a":{"b":1}}').findings() == ()


def test_an_applied_document_that_is_handed_over_is_what_its_text_is() -> None:
    """It was never YAML: nobody looks for the type of a text that resembles a number."""
    document = {
        "kind": "Pod",
        "data": {"a": "1e3", "b": "yes", "c": "0x10", "d": 1.5, "e": 10**12, "f": None, "g": True},
    }
    text = json.dumps(document).encode()
    handed_over = PatchBody(APPLY_PATCH, text, document)
    assert handed_over.data == PatchBody(APPLY_PATCH, text).data == document
    assert handed_over.findings() == ()


def test_copies_cannot_make_an_object_grow_without_bound() -> None:
    seed = {"op": "add", "path": "/metadata/annotations", "value": {"a": ["x" * 1000]}}
    double = {"op": "copy", "from": "/metadata/annotations", "path": "/metadata/annotations/b"}
    nested = [{**double, "path": f"/metadata/annotations/b{index}"} for index in range(40)]
    assert refused(JSON_PATCH, json.dumps([seed, *nested]).encode()).status.code == 422


def test_a_small_copy_is_made() -> None:
    result = patched(JSON_PATCH, [{"op": "copy", "from": "/metadata/labels", "path": "/metadata/annotations"}])
    assert result["metadata"]["annotations"] == {"a": "1"}


def test_depth_is_an_error_of_the_patch() -> None:
    body = b'{"metadata":{"labels":' + b'{"a":' * 800 + b"1" + b"}" * 802
    with pytest.raises(ApiError) as caught:
        apply_patch(PatchBody(STRATEGIC_MERGE_PATCH, body), json.loads(body), schema=atom_of("v1", "Pod"))
    assert caught.value.status.code == 400


def test_long_lists_merge_in_linear_time() -> None:
    containers = [{"name": f"c{index}"} for index in range(30_000)]
    live = {**POD, "spec": {"containers": containers}}
    order = [{"name": each["name"]} for each in reversed(containers)]
    patch = {"spec": {"$setElementOrder/containers": order, "containers": [{"$patch": "delete", "name": "c5"}, *order]}}
    result = apply_patch(
        PatchBody(STRATEGIC_MERGE_PATCH, json.dumps(patch).encode()), live, schema=atom_of("v1", "Pod")
    )
    assert len(result["spec"]["containers"]) == 30_000


def test_the_kinds_of_subresources_have_schemas_too() -> None:
    assert atom_of("autoscaling/v1", "Scale").at("spec").at("replicas").scalar == "integer"
    with pytest.raises(KeyError):
        atom_of("v1", "Nothing")
