"""managedFields over plain writes and applies."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api.schemas.compiler import shape_of
from drakit.apiserver.failures import ApiError
from drakit.apiserver.patching import FieldTracker, manager_name, read_applied
from tests.apiserver.patching.tracked import update
from tests.builders.documents import claim_document, request_of

V1 = "resource.k8s.io/v1"
T0, T1, T2 = "2030-01-01T00:00:00Z", "2030-01-01T00:00:01Z", "2030-01-01T00:00:02Z"
CLAIMS = FieldTracker(V1, "ResourceClaim")
STATUS = FieldTracker(V1, "ResourceClaim", subresource="status")
PODS = FieldTracker("v1", "Pod")


def written(document: dict[str, Any]) -> dict[str, Any]:
    """The object as the server writes it."""
    result: dict[str, Any] = shape_of(document["apiVersion"], document["kind"]).complete(document)
    return result


def claim_in(version: str = V1, **metadata: Any) -> dict[str, Any]:
    return claim_document("c", request_of("r", "gpu"), api=version, **metadata)


def labelled(**labels: str) -> dict[str, Any]:
    return {"apiVersion": V1, "kind": "ResourceClaim", "metadata": {"name": "c", "labels": labels}}


def reserved(*uids: str, name: str = "p") -> dict[str, Any]:
    consumers = [{"resource": "pods", "name": name, "uid": uid} for uid in uids]
    return {"apiVersion": V1, "kind": "ResourceClaim", "metadata": {"name": "c"}, "status": {"reservedFor": consumers}}


def created(document: dict[str, Any] | None = None, *, manager: str = "creator") -> dict[str, Any]:
    stored = update(CLAIMS, None, written(document or claim_in()), manager=manager, now=T0)
    stored["metadata"]["uid"] = "u"
    return stored


def owners(document: dict[str, Any]) -> dict[str, Any]:
    """Fields by manager."""
    entries = document["metadata"].get("managedFields", [])
    return {entry["manager"]: entry["fieldsV1"] for entry in entries}


def test_a_creator_owns_what_it_sets() -> None:
    (entry,) = created(claim_in(labels={"a": "1"}))["metadata"]["managedFields"]
    assert entry == {
        "manager": "creator",
        "operation": "Update",
        "apiVersion": V1,
        "time": T0,
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {"f:devices": {"f:requests": {}}},
        },
    }


def test_a_pods_containers_are_owned_by_name_and_their_ports_by_number_and_protocol() -> None:
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 80}], "resources": {}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    fields = owners(update(PODS, None, written(pod), manager="kubectl-create", now=T0))["kubectl-create"]
    port: dict[str, Any] = {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}
    expected = {".": {}, "f:image": {}, "f:name": {}, "f:ports": {".": {}, **port}, "f:resources": {}}
    assert fields == {"f:spec": {"f:containers": {'k:{"name":"c"}': expected}}}


def test_an_update_takes_what_it_changes_and_nothing_else() -> None:
    live = created(claim_in(labels={"a": "1", "b": "1"}))
    new = {**live, "metadata": {**live["metadata"], "labels": {"a": "2", "b": "1"}}}
    after = owners(update(CLAIMS, live, new, manager="editor", now=T1))
    assert after["editor"] == {"f:metadata": {"f:labels": {"f:a": {}}}}
    assert after["creator"]["f:metadata"] == {"f:labels": {".": {}, "f:b": {}}}


def test_a_second_update_adds_to_the_managers_entry_and_renews_its_time() -> None:
    live = created(claim_in(labels={"a": "1"}))
    new = {**live, "metadata": {**live["metadata"], "labels": {"a": "1", "b": "2"}}}
    (entry,) = update(CLAIMS, live, new, manager="creator", now=T1)["metadata"]["managedFields"]
    assert entry["time"] == T1
    assert entry["fieldsV1"]["f:metadata"] == {"f:labels": {".": {}, "f:a": {}, "f:b": {}}}


def test_what_is_removed_belongs_to_nobody() -> None:
    live = created(claim_in(labels={"a": "1"}))
    bare = {**live, "metadata": {key: each for key, each in live["metadata"].items() if key != "labels"}}
    after = update(CLAIMS, live, bare, manager="editor", now=T1)
    assert owners(after) == {"creator": {"f:spec": {"f:devices": {"f:requests": {}}}}}


def test_a_write_that_changes_nothing_keeps_times() -> None:
    live = created()
    assert update(CLAIMS, live, live, manager="editor", now=T1) == live


def test_a_client_that_knows_no_managed_fields_does_not_lose_them() -> None:
    live = created()
    assert update(CLAIMS, live, written(claim_in(uid="u")), manager="old", now=T1) == live


@pytest.mark.parametrize("entries", [[], [{}]])
def test_managed_fields_are_forgotten_on_demand(entries: list[Any]) -> None:
    live = created()
    new = {**live, "metadata": {**live["metadata"], "managedFields": entries}}
    assert "managedFields" not in update(CLAIMS, live, new, manager="x", now=T1)["metadata"]


def test_an_object_without_managed_fields_is_not_tracked_until_somebody_applies() -> None:
    live = written(claim_in(uid="u"))
    changed = {**live, "metadata": {**live["metadata"], "labels": {"a": "1"}}}
    assert "managedFields" not in update(CLAIMS, live, changed, manager="x", now=T1)["metadata"]
    after = owners(CLAIMS.apply(live, labelled(a="1"), manager="me", now=T1))
    assert after == {
        "me": {"f:metadata": {"f:labels": {"f:a": {}}}},
        "before-first-apply": {"f:spec": {"f:devices": {"f:requests": {}}}},
    }


def test_a_status_write_owns_status_only() -> None:
    live = created()
    new = {**live, "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u0"}]}}
    new = {**new, "metadata": {**live["metadata"], "labels": {"ignored": "1"}}}
    after = update(STATUS, live, new, manager="scheduler", now=T1)
    entry = after["metadata"]["managedFields"][1]
    assert (entry["manager"], entry["subresource"]) == ("scheduler", "status")
    assert set(entry["fieldsV1"]) == {"f:status"}


def test_a_write_to_the_object_does_not_own_status() -> None:
    live = created()
    new = {**live, "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u0"}]}}
    assert update(CLAIMS, live, new, manager="x", now=T1)["metadata"] == live["metadata"]


def test_ten_updaters_are_kept_and_the_oldest_become_ancient() -> None:
    live = created()
    for index in range(12):
        labels = {**live["metadata"].get("labels", {}), f"l{index}": "1"}
        new = {**live, "metadata": {**live["metadata"], "labels": labels}}
        live = update(CLAIMS, live, new, manager=f"m{index}", now=f"2030-01-01T00:01:{index:02}Z")
    entries = live["metadata"]["managedFields"]
    assert len(entries) == 10
    assert entries[0]["manager"] == "ancient-changes"
    assert entries[0]["fieldsV1"]["f:metadata"]["f:labels"].keys() == {".", "f:l0", "f:l1", "f:l2"}


def test_apply_creates_and_owns_exactly_what_it_says() -> None:
    result = CLAIMS.apply(None, {**claim_in(), **labelled(a="1")}, manager="me", now=T0)
    assert result["metadata"]["labels"] == {"a": "1"}
    (entry,) = result["metadata"]["managedFields"]
    assert (entry["operation"], entry["time"]) == ("Apply", T0)
    assert entry["fieldsV1"] == {
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:spec": {"f:devices": {"f:requests": {}}},
    }


def test_apply_removes_what_it_no_longer_says() -> None:
    live = CLAIMS.apply(created(), labelled(a="1", b="2"), manager="me", now=T1)
    after = CLAIMS.apply(live, labelled(a="1"), manager="me", now=T2)
    assert after["metadata"]["labels"] == {"a": "1"}
    assert owners(after)["me"] == {"f:metadata": {"f:labels": {"f:a": {}}}}


def test_apply_leaves_what_somebody_else_owns_too() -> None:
    live = CLAIMS.apply(created(), labelled(a="1", b="2"), manager="me", now=T1)
    live = CLAIMS.apply(live, labelled(b="2"), manager="you", now=T1)
    after = CLAIMS.apply(live, labelled(a="1"), manager="me", now=T2)
    assert after["metadata"]["labels"] == {"a": "1", "b": "2"}


def test_applying_the_same_changes_nothing() -> None:
    live = CLAIMS.apply(created(), labelled(a="1"), manager="me", now=T1)
    assert CLAIMS.apply(live, labelled(a="1"), manager="me", now=T2) == live


def conflict(live: dict[str, Any], applied: dict[str, Any], tracker: FieldTracker = CLAIMS) -> ApiError:
    with pytest.raises(ApiError) as caught:
        tracker.apply(live, applied, manager="other", now=T2)
    return caught.value


def test_a_conflict_names_owner_and_field() -> None:
    live = CLAIMS.apply(created(), labelled(a="1"), manager="me", now=T1)
    answer = conflict(live, labelled(a="2")).status
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert answer.message == 'Apply failed with 1 conflict: conflict with "me": .metadata.labels.a'
    assert answer.details is not None
    (cause,) = answer.details.causes
    assert (cause.reason, cause.field) == ("FieldManagerConflict", ".metadata.labels.a")


def test_several_conflicts_are_listed_by_owner() -> None:
    live = CLAIMS.apply(created(claim_in(labels={"u": "0"})), labelled(a="1", b="1"), manager="me", now=T1)
    assert conflict(live, labelled(a="2", b="2", u="2")).status.message == (
        'Apply failed with 3 conflicts: conflicts with "creator" using resource.k8s.io/v1:\n- .metadata.labels.u\n'
        'conflicts with "me":\n- .metadata.labels.a\n- .metadata.labels.b'
    )


def test_an_apply_that_agrees_shares_the_field() -> None:
    live = CLAIMS.apply(created(), labelled(a="1"), manager="me", now=T1)
    after = owners(CLAIMS.apply(live, labelled(a="1"), manager="you", now=T2))
    assert after["me"] == after["you"] == {"f:metadata": {"f:labels": {"f:a": {}}}}


def test_force_takes_the_field_away() -> None:
    live = CLAIMS.apply(created(), labelled(a="1"), manager="me", now=T1)
    after = CLAIMS.apply(live, labelled(a="2"), manager="you", now=T2, force=True)
    assert after["metadata"]["labels"] == {"a": "2"}
    assert set(owners(after)) == {"creator", "you"}


def test_elements_of_a_keyed_list_have_owners_of_their_own() -> None:
    live = STATUS.apply(created(), reserved("u0"), manager="a", now=T1)
    live = STATUS.apply(live, reserved("u1"), manager="b", now=T1)
    assert [each["uid"] for each in live["status"]["reservedFor"]] == ["u0", "u1"]
    answer = conflict(live, reserved("u0", name="changed"), STATUS).status
    assert '"a" with subresource "status": .status.reservedFor[uid="u0"].name' in answer.message
    gone = STATUS.apply(live, {**reserved(), "status": {}}, manager="a", now=T2)
    assert [each["uid"] for each in gone["status"]["reservedFor"]] == ["u1"]


def test_devices_are_told_apart_by_driver_pool_device_and_share() -> None:
    def devices(*shares: str | None) -> dict[str, Any]:
        each = [{"driver": "d", "pool": "p", "device": "x"} | ({"shareID": s} if s else {}) for s in shares]
        return {**reserved(), "status": {"devices": each}}

    live = STATUS.apply(created(), devices(None, "s1"), manager="a", now=T1)
    live = STATUS.apply(live, devices("s2"), manager="b", now=T1)
    assert [each.get("shareID") for each in live["status"]["devices"]] == [None, "s1", "s2"]
    keys = owners(live)["b"]["f:status"]["f:devices"]
    assert list(keys) == ['k:{"device":"x","driver":"d","pool":"p","shareID":"s2"}']


def test_applied_elements_keep_the_order_of_the_apply() -> None:
    live = STATUS.apply(created(), reserved("u0", "u1", "u2"), manager="a", now=T1)
    after = STATUS.apply(live, reserved("u2", "new", "u0"), manager="b", now=T2)
    assert [each["uid"] for each in after["status"]["reservedFor"]] == ["u1", "u2", "new", "u0"]


def test_owners_in_another_version_are_asked_in_theirs() -> None:
    flat = claim_in(version="resource.k8s.io/v1beta1", labels={"a": "1"})
    flat["spec"] = {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}]}}
    beta = FieldTracker("resource.k8s.io/v1beta1", "ResourceClaim")
    live = beta.apply(None, flat, manager="old", now=T0)
    current = {**claim_in(labels={"a": "1"}, uid="u"), "status": {}}
    current["metadata"]["managedFields"] = live["metadata"]["managedFields"]
    answer = conflict(current, labelled(a="2")).status
    assert answer.message == 'Apply failed with 1 conflict: conflict with "old": .metadata.labels.a'
    after = CLAIMS.apply(current, claim_in(), manager="old", now=T2)
    assert not after["metadata"].get("labels")
    assert after["metadata"]["managedFields"][0]["apiVersion"] == V1


def test_kubectl_takes_over_what_its_client_side_apply_has_set() -> None:
    annotation = "kubectl.kubernetes.io/last-applied-configuration"
    text = '{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c","labels":{"a":"1"}}}'
    live = created(claim_in(labels={"a": "1"}, annotations={annotation: text}), manager="kubectl-client-side-apply")
    after = CLAIMS.apply(live, labelled(a="2"), manager="kubectl", now=T1)
    assert after["metadata"]["labels"] == {"a": "2"}
    assert '"labels":{"a":"2"}' in after["metadata"]["annotations"][annotation]
    assert conflict(live, labelled(a="2")).status.code == 409


@pytest.mark.parametrize(
    ("applied", "message"),
    [
        ({"apiVersion": V1, "metadata": {"name": "c"}}, "invalid object type: resource.k8s.io/v1, Kind="),
        ({**labelled(), "metadata": {"managedFields": []}}, "metadata.managedFields must be nil"),
        ({**labelled(), "spec": {"zzz": 1}}, ".spec.zzz: field not declared in schema"),
        ({**labelled(), "spec": "text"}, ".spec: expected map, got 'text'"),
        ({**labelled(), "status": {"reservedFor": [{"name": "x"}, None]}}, "may not have a null element"),
        (reserved("u0", "u0"), 'duplicate entries for key [uid="u0"]'),
        ({**labelled(), "metadata": {"labels": {"a": {}}}}, "expected string"),
        ({**labelled(), "metadata": "text"}, "expected map"),
    ],
)
def test_an_applied_object_that_makes_no_sense_is_a_bad_request(applied: dict[str, Any], message: str) -> None:
    answer = conflict(created(), applied).status
    assert (answer.code, answer.reason) == (400, "BadRequest")
    assert message in answer.message


@pytest.mark.parametrize("body", [b"a: [", b"[]", b"text", b"\xff"])
def test_an_apply_body_that_is_no_object_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        read_applied(body)
    assert caught.value.status.code == 400


def test_raw_json_merges_key_by_key_and_its_lists_are_whole() -> None:
    def data(value: Any) -> dict[str, Any]:
        return {**reserved(), "status": {"devices": [{"driver": "d", "pool": "p", "device": "x", "data": value}]}}

    live = STATUS.apply(created(), data({"a": 1, "l": [1]}), manager="a", now=T1)
    after = STATUS.apply(live, data({"b": 2, "l": [2]}), manager="b", now=T2, force=True)
    assert after["status"]["devices"][0]["data"] == {"a": 1, "b": 2, "l": [2]}


def test_the_manager_is_named_by_parameter_or_user_agent() -> None:
    assert manager_name("me", "kubectl/v1") == "me"
    assert manager_name("", "kubectl/v1.32 (linux)") == "kubectl"
    assert manager_name("", "a\x00b\n") == "ab"
    assert len(manager_name("", "x" * 500)) == 128


def deep(levels: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return {"driver": "d", "pool": "p", "device": "x", "data": value}


def test_raw_json_of_any_depth_does_no_harm() -> None:
    live = created()
    new = {**live, "status": {"devices": [deep(900)]}}
    assert update(STATUS, live, new, manager="x", now=T1)["status"] == new["status"]
    assert conflict(live, {**reserved(), "status": {"devices": [deep(900)]}}, STATUS).status.code == 400


def test_what_is_equal_at_any_depth_is_not_owned() -> None:
    live = created()
    live["status"] = {"devices": [deep(20)]}
    new = {**live, "status": {"devices": [{**deep(20), "data": {**deep(20)["data"], "b": 1}}]}}
    fields = owners(update(STATUS, live, new, manager="x", now=T1))["x"]
    key = 'k:{"device":"x","driver":"d","pool":"p"}'
    assert fields == {"f:status": {"f:devices": {key: {"f:data": {"f:b": {}}}}}}


def test_a_resize_owns_resources_only() -> None:
    container = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"containers": [container]},
    }
    live = update(PODS, None, written(pod), manager="creator", now=T0)
    changed = {**container, "image": "other", "resources": {"limits": {"cpu": "2"}}}
    new = {**live, "metadata": {**live["metadata"], "labels": {"a": "1"}}, "spec": {"containers": [changed]}}
    after = owners(update(FieldTracker("v1", "Pod", subresource="resize"), live, new, manager="resizer", now=T1))
    resources: dict[str, Any] = {"f:resources": {"f:limits": {"f:cpu": {}}}}
    assert after["resizer"] == {"f:spec": {"f:containers": {'k:{"name":"c"}': resources}}}
