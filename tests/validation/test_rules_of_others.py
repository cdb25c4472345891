"""Taint rules, pool status requests, groups, pods and the kinds around them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from drakit.validation import validate_create, validate_status_update, validate_update
from tests.validation.objects import defaulted_pod, made, told

GROUP = "scheduling.k8s.io/v1alpha2"


def rule(selector: dict[str, Any] | None = None, effect: str = "NoExecute") -> Any:
    spec = {"deviceSelector": selector, "taint": {"key": "k", "effect": effect}}
    return made("DeviceTaintRule", {"spec": spec}, version="resource.k8s.io/v1beta2")


def test_a_taint_rule_may_select_by_class_and_expression() -> None:
    assert validate_create(rule({"deviceClassName": "gpu", "selectors": [{"cel": {"expression": "true"}}]})) == ()
    bad = rule({"deviceClassName": "", "selectors": [{"cel": {"expression": "1"}}, {}]})
    assert told(validate_create(bad)) == [
        ("spec.deviceSelector.deviceClassName", "Required"),
        ("spec.deviceSelector.selectors[0].cel.expression", "Invalid"),
        ("spec.deviceSelector.selectors[1].cel", "Required"),
    ]


def test_an_effect_of_another_time_may_stay() -> None:
    assert validate_update(rule({"driver": "a.b"}, effect="Other"), rule(effect="Other")) == ()
    assert told(validate_update(rule(effect="Other"), rule())) == [("spec.taint.effect", "NotSupported")]


POOL_VERSION = "resource.k8s.io/v1alpha3"


def pool_question(status: dict[str, Any] | None = None) -> Any:
    document: dict[str, Any] = {"metadata": {"resourceVersion": "1"}, "spec": {"driver": "a.b"}}
    whole = {**document, "status": status} if status is not None else document
    return made("ResourcePoolStatusRequest", whole, version=POOL_VERSION)


def condition(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "status": "True", "reason": "R", "lastTransitionTime": "2026-01-02T03:04:05Z", **more}


def test_conditions_of_an_answer_are_told_apart_by_their_type() -> None:
    answer = {"poolCount": 0, "conditions": [condition("Ready"), condition("Ready")]}
    assert set(told(validate_status_update(pool_question(answer), pool_question()))) == {
        ("status.conditions[1]", "Duplicate"),
        ("status.conditions[1].type", "Duplicate"),
    }


def test_every_condition_of_an_answer_is_judged_though_there_are_too_many() -> None:
    answer = {"poolCount": 0, "conditions": [condition(f"C{n}", reason="" if n == 3 else "R") for n in range(11)]}
    assert set(told(validate_status_update(pool_question(answer), pool_question()))) == {
        ("status.conditions", "TooMany"),
        ("status.conditions[3].reason", "Required"),
    }


def test_a_second_answer_is_one_too_many_and_judged_all_the_same() -> None:
    first = pool_question({"poolCount": 1})
    assert told(validate_status_update(first, first)) == []
    assert told(validate_status_update(pool_question({"poolCount": 2}), first)) == [("status", "Invalid")]
    assert told(validate_status_update(pool_question({"poolCount": -1}), first)) == [
        ("status", "Invalid"),
        ("status.poolCount", "Invalid"),
    ]
    assert told(validate_status_update(pool_question(), first)) == [("status", "Invalid")]


def test_an_answered_pool_question_must_count_its_pools() -> None:
    asked = made(
        "ResourcePoolStatusRequest",
        {"metadata": {"resourceVersion": "1"}, "spec": {"driver": "a.b"}},
        version="resource.k8s.io/v1alpha3",
    )
    pools = [{"driver": "a.b", "poolName": "p", "generation": 1, "resourceSliceCount": 0, "validationError": "e" * 257}]
    status = made("ResourcePoolStatusRequest", {"status": {"pools": pools}}, version="resource.k8s.io/v1alpha3").status
    assert told(validate_status_update(replace(asked, status=status), asked)) == [
        ("status.poolCount", "Required"),
        ("status.pools[0].resourceSliceCount", "Invalid"),
        ("status.pools[0].validationError", "TooLong"),
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}, [("spec.schedulingPolicy", "Invalid")]),
        ({"schedulingPolicy": {"gang": {"minCount": -1}}}, [("spec.schedulingPolicy.gang.minCount", "Invalid")]),
        ({"disruptionMode": "X"}, [("spec.disruptionMode", "NotSupported")]),
        ({"priorityClassName": "X"}, [("spec.priorityClassName", "Invalid")]),
        ({"priority": 2_000_000_000}, [("spec.priority", "Invalid")]),
        (
            {"schedulingConstraints": {"topology": [{"key": ""}]}},
            [("spec.schedulingConstraints.topology[0].key", "Required")],
        ),
        (
            {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            [("spec.schedulingConstraints.topology", "TooMany")],
        ),
        ({"podGroupTemplateRef": {}}, [("spec.podGroupTemplateRef", "Invalid")]),
    ],
)
def test_pod_groups(spec: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    base = {"schedulingPolicy": {"basic": {}}, **spec}
    group = made("PodGroup", {"metadata": {"namespace": "ns"}, "spec": base}, version=GROUP)
    assert told(validate_create(group)) == expected


def test_claims_of_a_group_are_matched_by_name_though_there_are_too_many() -> None:
    claims = [{"name": f"c{n}", "resourceClaimName": "x"} for n in range(4)]

    def group(*names: str) -> Any:
        spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": claims}
        status = {"resourceClaimStatuses": [{"name": name} for name in names]}
        meta = {"namespace": "ns"}
        whole = {"metadata": meta, "spec": spec, "status": status}
        return made("PodGroup", whole, version="scheduling.k8s.io/v1alpha2")

    assert told(validate_status_update(group("c0", "c1", "c2", "c3", "other"), group())) == [
        ("status.resourceClaimStatuses[4].name", "Invalid"),
        ("status.resourceClaimStatuses", "TooMany"),
    ]


def test_a_workload_stays_as_it_was_made() -> None:
    def workload(count: int, kind: str) -> Any:
        spec = {
            "controllerRef": {"kind": kind, "name": "n"},
            "podGroupTemplates": [{"name": "t", "schedulingPolicy": {"gang": {"minCount": count}}}],
        }
        return made("Workload", {"metadata": {"namespace": "ns"}, "spec": spec}, version=GROUP)

    assert told(validate_update(workload(2, "Set"), workload(1, "Job"))) == [
        ("spec.controllerRef", "Invalid"),
        ("spec.podGroupTemplates", "Invalid"),
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": []}, [("spec.containers", "Required")]),
        (
            {"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": ""}]},
            [("spec.containers[1].name", "Duplicate"), ("spec.containers[1].image", "Required")],
        ),
        ({"restartPolicy": "X"}, [("spec.restartPolicy", "NotSupported")]),
        ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, [("spec.schedulingGates[1]", "Duplicate")]),
        ({"nodeName": "A"}, [("spec.nodeName", "Invalid")]),
        ({"activeDeadlineSeconds": 0}, [("spec.activeDeadlineSeconds", "Invalid")]),
        ({"tolerations": [{"operator": "Equal"}]}, [("spec.tolerations[0].operator", "Invalid")]),
        (
            {"resourceClaims": [{"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "c"}]},
            [("spec.resourceClaims[0]", "Invalid")],
        ),
        ({"schedulingGroup": {"podGroupName": "A_"}}, [("spec.schedulingGroup.podGroupName", "Invalid")]),
    ],
)
def test_pods(spec: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert told(validate_create(defaulted_pod(spec))) == expected


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}, []),
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, [("requests", "Invalid")]),
        ({"requests": {"a.b/c": "1"}}, [("limits", "Required")]),
        (
            {"limits": {"cpu": "-1"}, "requests": {"cpu": "-1"}},
            [("limits[cpu]", "Invalid"), ("requests[cpu]", "Invalid")],
        ),
        ({"limits": {"pods": "1"}, "requests": {}}, [("limits[pods]", "Invalid"), ("requests[pods]", "Invalid")]),
    ],
)
def test_resources_of_containers(resources: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    errors = validate_create(defaulted_pod({"containers": [{"name": "c", "image": "i", "resources": resources}]}))
    assert told(errors) == [(f"spec.containers[0].resources.{path}", reason) for path, reason in expected]


def test_of_a_running_pod_little_may_change() -> None:
    old = defaulted_pod({"tolerations": [{"key": "a", "operator": "Exists"}], "activeDeadlineSeconds": 9})
    kept = [{"key": "a", "operator": "Exists"}]
    image = [{"name": "c", "image": "other"}]
    assert (
        validate_update(defaulted_pod({"tolerations": kept, "activeDeadlineSeconds": 8, "containers": image}), old)
        == ()
    )
    assert told(validate_update(defaulted_pod({"tolerations": kept}), old)) == [
        ("spec.activeDeadlineSeconds", "Invalid")
    ]
    assert told(validate_update(defaulted_pod({"activeDeadlineSeconds": 9}), old)) == [
        ("spec.tolerations", "Forbidden")
    ]
    changed = validate_update(
        defaulted_pod({"tolerations": kept, "activeDeadlineSeconds": 9, "schedulerName": "x"}), old
    )
    assert told(changed) == [("spec", "Forbidden")]
    assert "schedulerName" in changed[0].detail
    more = [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]
    added = defaulted_pod({"tolerations": kept, "activeDeadlineSeconds": 9, "containers": more})
    assert told(validate_update(added, old)) == [("spec.containers", "Forbidden")]


def test_a_gated_pod_may_be_told_where_to_go_and_loses_gates_only() -> None:
    old = defaulted_pod({"schedulingGates": [{"name": "a"}]})
    assert validate_update(defaulted_pod({"nodeSelector": {"zone": "x"}}), old) == ()
    more = defaulted_pod({"schedulingGates": [{"name": "a"}, {"name": "b"}]})
    assert told(validate_update(more, old)) == [("spec.schedulingGates[1]", "Forbidden")]


HEALTH_OF_C = "status.containerStatuses[0].allocatedResourcesStatus"


def reporting(*names: str, devices: list[dict[str, Any]] | None = None) -> list[tuple[str, str]]:
    """What is wrong with a report about these resources of a container that has one claim and one device."""
    resources = {"limits": {"a.b/c": "1"}, "claims": [{"name": "g", "request": "r"}]}
    claims = [{"name": "g", "resourceClaimName": "x"}]
    spec = {"containers": [{"name": "c", "image": "i", "resources": resources}], "resourceClaims": claims}
    entries = [{"name": name, "resources": devices or []} for name in names]
    new = defaulted_pod(spec, {"containerStatuses": [{"name": "c", "allocatedResourcesStatus": entries}]})
    return told(validate_status_update(new, defaulted_pod(spec)))


def test_a_health_report_names_what_its_container_has() -> None:
    assert reporting("claim:g/r", "a.b/c") == []
    assert reporting("claim:g", "a.b/c", "other") == [
        (f"{HEALTH_OF_C}[0].name", "Invalid"),
        (f"{HEALTH_OF_C}[2].name", "Invalid"),
    ]


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ({"resourceID": "e", "health": "Unknown", "message": "m" * 1024}, []),
        ({"resourceID": "d", "health": "Healthy"}, [("resourceID", "Duplicate")]),
        ({"resourceID": "e"}, [("health", "NotSupported")]),
        ({"resourceID": "e", "health": "Unhealthy", "message": ""}, [("message", "Required")]),
        ({"resourceID": "e", "health": "Unhealthy", "message": "m" * 1025}, [("message", "TooLong")]),
    ],
)
def test_a_health_report_tells_the_health_of_each_device_once(
    device: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    found = reporting("a.b/c", devices=[{"resourceID": "d", "health": "Healthy"}, device])
    assert found == [(f"{HEALTH_OF_C}[0].resources[1].{path}", reason) for path, reason in expected]


def test_ephemeral_containers_have_no_resources_to_report() -> None:
    entries = [{"name": "a.b/c", "resources": []}]
    new = defaulted_pod(status={"ephemeralContainerStatuses": [{"name": "e", "allocatedResourcesStatus": entries}]})
    where = "status.ephemeralContainerStatuses[0].allocatedResourcesStatus"
    assert told(validate_status_update(new, defaulted_pod())) == [(where, "Forbidden")]


def test_a_claim_that_was_made_for_a_pod_is_judged_by_its_own_name() -> None:
    spec = {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}]}
    new = defaulted_pod(spec, {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": "Not_Valid!"}]})
    assert told(validate_status_update(new, defaulted_pod(spec))) == [
        ("status.resourceClaimStatuses[0].resourceClaimName", "Invalid")
    ]


def test_a_claim_is_not_used_whole_by_who_uses_one_of_its_requests() -> None:
    claims = [{"name": "g", "request": "r"}, {"name": "g"}, {"name": "other", "request": "g"}]
    declared = [{"name": name, "resourceClaimName": "x"} for name in ("g", "other")]
    containers = [{"name": "c", "image": "i", "resources": {"claims": claims}}]
    assert told(validate_create(defaulted_pod({"containers": containers, "resourceClaims": declared}))) == [
        ("spec.containers[0].resources.claims[1]", "Duplicate")
    ]


def test_extended_resources_are_mapped_for_containers_that_ask_for_them() -> None:
    def container(name: str, resource: str) -> dict[str, Any]:
        return {"name": name, "image": "i", "resources": {"limits": {resource: "1"}}}

    spec = {"containers": [container("c", "a.b/c"), container("d", "a.b/d")]}
    mapping = {"containerName": "c", "resourceName": "a.b/d", "requestName": "r"}
    lost = {**mapping, "containerName": "nobody", "resourceName": "a.b/none"}
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "x", "requestMappings": [mapping, lost]}}
    where = "status.extendedResourceClaimStatus.requestMappings"
    assert told(validate_status_update(defaulted_pod(spec, status), defaulted_pod(spec))) == [
        (f"{where}[0].resourceName", "Invalid"),
        (f"{where}[1].containerName", "Invalid"),
    ]


def test_a_share_of_the_node_is_never_negative() -> None:
    spec = {"resourceClaims": [{"name": "g", "resourceClaimName": "x"}]}
    entry = {"resourceClaimName": "x", "containers": ["c"], "resources": {"cpu": "-1", "memory": "0"}}
    new = defaulted_pod(spec, {"nodeAllocatableResourceClaimStatuses": [entry]})
    assert told(validate_status_update(new, defaulted_pod(spec))) == [
        ("status.nodeAllocatableResourceClaimStatuses[0].resources[cpu]", "Invalid")
    ]


def test_a_share_of_the_node_names_the_containers_that_use_the_claim_where_there_are_any() -> None:
    claims = [{"name": name, "resourceClaimName": name} for name in ("used", "unused")]
    containers = [{"name": "c", "image": "i", "resources": {"claims": [{"name": "used"}]}}]
    spec = {"containers": containers, "resourceClaims": claims}
    entries = [{"resourceClaimName": name, "resources": {"cpu": "1"}} for name in ("used", "unused", "unknown")]
    new = defaulted_pod(spec, {"nodeAllocatableResourceClaimStatuses": entries})
    assert told(validate_status_update(new, defaulted_pod(spec))) == [
        ("status.nodeAllocatableResourceClaimStatuses[0].containers", "Required"),
        ("status.nodeAllocatableResourceClaimStatuses[2].resourceClaimName", "Invalid"),
        ("status.nodeAllocatableResourceClaimStatuses[2].containers", "Required"),
    ]


def test_a_static_pod_has_no_claims() -> None:
    mirror = {"metadata": {"namespace": "ns", "annotations": {"kubernetes.io/config.mirror": "x"}}}
    containers = [{"name": "c", "image": "i"}]
    claims = [{"name": "g", "resourceClaimName": "x"}]
    spec = {"containers": containers, "resourceClaims": claims}
    assert told(validate_create(made("Pod", {**mirror, "spec": spec}, version="v1"))) == [("", "Forbidden")]
    assert validate_create(made("Pod", {**mirror, "spec": {"containers": containers}}, version="v1")) == ()


def test_a_pod_that_has_a_node_is_not_nominated_for_another() -> None:
    bound, free = defaulted_pod({"nodeName": "a"}), defaulted_pod()
    nominated = defaulted_pod({"nodeName": "a"}, {"nominatedNodeName": "b"})
    assert told(validate_status_update(nominated, bound)) == [("status.nominatedNodeName", "Forbidden")]
    assert validate_status_update(defaulted_pod(status={"nominatedNodeName": "b"}), free) == ()


@pytest.mark.parametrize(
    ("kind", "document", "version", "expected"),
    [
        ("Namespace", {"metadata": {"name": "a.b"}}, "v1", [("metadata.name", "Invalid")]),
        ("Node", {"metadata": {"name": "a.b"}}, "v1", []),
        ("ClusterRole", {"metadata": {"name": "system:x"}}, "rbac.authorization.k8s.io/v1", []),
        ("ConfigMap", {"data": {"a/b": "c"}}, "v1", [("data[a/b]", "Invalid")]),
        ("ResourceQuota", {"spec": {"hard": {"pods": "1.5"}}}, "v1", [("spec.hard[pods]", "Invalid")]),
        ("ResourceQuota", {"spec": {"hard": {"count/x.y": "1", "requests.a.b/c": "2", "cpu": "1500m"}}}, "v1", []),
        ("ResourceQuota", {"spec": {"hard": {"cpu": "-1"}}}, "v1", [("spec.hard[cpu]", "Invalid")]),
        (
            "ResourceQuota",
            {"spec": {"hard": {"gpu.deviceclass.resource.k8s.io/devices": "1500m"}}},
            "v1",
            [("spec.hard[gpu.deviceclass.resource.k8s.io/devices]", "Invalid")],
        ),
        (
            "ReplicaSet",
            {"spec": {"replicas": -1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}},
            "apps/v1",
            [("spec.replicas", "Invalid"), ("spec.selector", "Required"), ("spec.template.metadata.labels", "Invalid")],
        ),
    ],
)
def test_the_kinds_around(kind: str, document: dict[str, Any], version: str, expected: list[tuple[str, str]]) -> None:
    namespaced = kind not in ("Namespace", "Node", "ClusterRole")
    meta = {"namespace": "ns"} if namespaced else {}
    found = made(kind, {**document, "metadata": {**meta, **document.get("metadata", {})}}, version=version)
    assert told(validate_create(found)) == expected


def test_immutable_data_stays() -> None:
    def config(value: str, **more: Any) -> Any:
        return made("ConfigMap", {"metadata": {"namespace": "ns"}, "data": {"a": value}, **more}, version="v1")

    assert told(validate_update(config("b"), config("a", immutable=True))) == [
        ("immutable", "Forbidden"),
        ("data", "Forbidden"),
    ]
    assert validate_update(config("b"), config("a")) == ()


def test_a_lease_is_updated_only_in_a_version_that_was_read() -> None:
    lease = made("Lease", {"metadata": {"namespace": "ns"}}, version="coordination.k8s.io/v1")
    assert told(validate_update(lease, lease)) == [("metadata.resourceVersion", "Invalid")]


RBAC = "rbac.authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("kind", "document", "expected"),
    [
        ("ClusterRole", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}, []),
        (
            "ClusterRole",
            {"rules": [{"nonResourceURLs": ["/x"], "resources": ["pods"]}], "aggregationRule": {}},
            [
                ("rules[0].verbs", "Required"),
                ("rules[0].nonResourceURLs", "Invalid"),
                ("aggregationRule.clusterRoleSelectors", "Required"),
            ],
        ),
        (
            "Role",
            {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}, {"verbs": ["get"]}]},
            [
                ("rules[0].nonResourceURLs", "Invalid"),
                ("rules[1].apiGroups", "Required"),
                ("rules[1].resources", "Required"),
            ],
        ),
        (
            "ClusterRoleBinding",
            {"roleRef": {"kind": "Role", "name": ""}, "subjects": [{"kind": "ServiceAccount", "name": "a"}]},
            [("roleRef.kind", "NotSupported"), ("roleRef.name", "Required"), ("subjects[0].namespace", "Required")],
        ),
        (
            "RoleBinding",
            {
                "roleRef": {"apiGroup": "x", "kind": "Role", "name": "a/b"},
                "subjects": [{"kind": "Robot", "name": ""}, {"kind": "User", "name": "u", "apiGroup": "x"}],
            },
            [
                ("roleRef.apiGroup", "NotSupported"),
                ("roleRef.name", "Invalid"),
                ("subjects[0].name", "Required"),
                ("subjects[0].kind", "NotSupported"),
                ("subjects[1].apiGroup", "NotSupported"),
            ],
        ),
    ],
)
def test_roles_and_bindings(kind: str, document: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    meta = {} if kind.startswith("Cluster") else {"metadata": {"namespace": "ns"}}
    assert told(validate_create(made(kind, {**meta, **document}, version=RBAC))) == expected


def test_a_binding_keeps_its_role() -> None:
    def binding(role: str) -> Any:
        return made("ClusterRoleBinding", {"roleRef": {"kind": "ClusterRole", "name": role}}, version=RBAC)

    (error,) = validate_update(binding("b"), binding("a"))
    assert (str(error.path), error.detail) == ("roleRef", "cannot change roleRef")


def test_priorities_above_all_belong_to_the_system() -> None:
    def priority(name: str, value: int) -> Any:
        version = "scheduling.k8s.io/v1"
        return made("PriorityClass", {"metadata": {"name": name}, "value": value}, version=version)

    assert validate_create(priority("system-node-critical", 2_000_001_000)) == ()
    assert told(validate_create(priority("system-mine", 1))) == [("metadata.name", "Forbidden")]
    assert told(validate_create(priority("mine", 1_000_000_001))) == [("value", "Forbidden")]
    assert told(validate_update(priority("mine", 2), priority("mine", 1))) == [("value", "Forbidden")]


def test_a_lease_lasts_some_time() -> None:
    lease = made(
        "Lease",
        {"metadata": {"namespace": "ns"}, "spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}},
        version="coordination.k8s.io/v1",
    )
    assert told(validate_create(lease)) == [
        ("spec.leaseDurationSeconds", "Invalid"),
        ("spec.leaseTransitions", "Invalid"),
    ]
