"""Taint rules, pool status requests, groups, pods and the kinds around them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from drakit.validation import validate_create, validate_status_update, validate_update
from tests.validation.objects import made, pod, told

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
    assert told(validate_create(pod(spec))) == expected


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
    errors = validate_create(pod({"containers": [{"name": "c", "image": "i", "resources": resources}]}))
    assert told(errors) == [(f"spec.containers[0].resources.{path}", reason) for path, reason in expected]


def test_of_a_running_pod_little_may_change() -> None:
    old = pod({"tolerations": [{"key": "a", "operator": "Exists"}], "activeDeadlineSeconds": 9})
    kept = [{"key": "a", "operator": "Exists"}]
    image = [{"name": "c", "image": "other"}]
    assert validate_update(pod({"tolerations": kept, "activeDeadlineSeconds": 8, "containers": image}), old) == ()
    assert told(validate_update(pod({"tolerations": kept}), old)) == [("spec.activeDeadlineSeconds", "Invalid")]
    assert told(validate_update(pod({"activeDeadlineSeconds": 9}), old)) == [("spec.tolerations", "Forbidden")]
    changed = validate_update(pod({"tolerations": kept, "activeDeadlineSeconds": 9, "schedulerName": "x"}), old)
    assert told(changed) == [("spec", "Forbidden")]
    assert "schedulerName" in changed[0].detail
    more = [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]
    added = pod({"tolerations": kept, "activeDeadlineSeconds": 9, "containers": more})
    assert told(validate_update(added, old)) == [("spec.containers", "Forbidden")]


def test_a_gated_pod_may_be_told_where_to_go_and_loses_gates_only() -> None:
    old = pod({"schedulingGates": [{"name": "a"}]})
    assert validate_update(pod({"nodeSelector": {"zone": "x"}}), old) == ()
    more = pod({"schedulingGates": [{"name": "a"}, {"name": "b"}]})
    assert told(validate_update(more, old)) == [("spec.schedulingGates[1]", "Forbidden")]


def test_a_health_report_names_what_its_container_has() -> None:
    resources = {"limits": {"a.b/c": "1"}, "claims": [{"name": "g", "request": "r"}]}
    claims = [{"name": "g", "resourceClaimName": "x"}]
    spec = {"containers": [{"name": "c", "image": "i", "resources": resources}], "resourceClaims": claims}

    def report(*names: str) -> Any:
        devices = [{"resourceID": "d"}, {"resourceID": "d"}]
        entries = [{"name": name, "resources": devices if name == "a.b/c" else []} for name in names]
        return pod(spec, {"containerStatuses": [{"name": "c", "allocatedResourcesStatus": entries}]})

    where = "status.containerStatuses[0].allocatedResourcesStatus"
    assert validate_status_update(report("claim:g/r"), pod(spec)) == ()
    assert told(validate_status_update(report("claim:g", "claim:g", "other"), pod(spec))) == [
        (f"{where}[0].name", "Invalid"),
        (f"{where}[1].name", "Invalid"),
        (f"{where}[1].name", "Duplicate"),
        (f"{where}[2].name", "Invalid"),
    ]
    assert told(validate_status_update(report("a.b/c"), pod(spec))) == [
        (f"{where}[0].resources[1].resourceID", "Duplicate")
    ]


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
            "ReplicaSet",
            {"spec": {"replicas": -1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}},
            "apps/v1",
            [("spec.replicas", "Invalid"), ("spec.selector", "Required")],
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
