"""What the server fills in, and what it leaves alone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from drakit.api import Partial, decode_plain, set_defaults, to_wire

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
Plain = dict[str, Any]


def defaulted(kind: str, group_version: str = "resource.k8s.io/v1", **parts: Any) -> Plain:
    document = {"apiVersion": group_version, "kind": kind, **parts}
    decoded = decode_plain(document, strict=True)
    return to_wire(set_defaults(decoded.object, NOW), decoded.version)


def defaulted_pod_spec(**spec: Any) -> Plain:
    made: Plain = defaulted("Pod", "v1", spec=spec)["spec"]
    return made


@pytest.mark.parametrize(
    ("given", "mode", "count"),
    [
        ({}, "ExactCount", 1),
        ({"count": 3}, "ExactCount", 3),
        ({"allocationMode": "ExactCount"}, "ExactCount", 1),
        ({"allocationMode": "All"}, "All", None),
        ({"allocationMode": "All", "count": 2}, "All", 2),
        ({"allocationMode": "Other"}, "Other", None),
    ],
)
def test_a_request_is_for_one_device_unless_it_says_otherwise(given: Plain, mode: str, count: int | None) -> None:
    exact = {"name": "a", "exactly": {"deviceClassName": "c", **given}}
    listed = {"name": "b", "firstAvailable": [{"name": "s", "deviceClassName": "c", **given}]}
    spec = defaulted("ResourceClaim", spec={"devices": {"requests": [exact, listed]}})["spec"]
    first, second = spec["devices"]["requests"]
    for request in (first["exactly"], second["firstAvailable"][0]):
        assert (request["allocationMode"], request.get("count")) == (mode, count)


def test_templates_are_defaulted_like_claims() -> None:
    requests = [{"name": "r", "exactly": {"deviceClassName": "c", "tolerations": [{"key": "k"}]}}]
    made = defaulted("ResourceClaimTemplate", spec={"spec": {"devices": {"requests": requests}}})
    (request,) = made["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["count"] == 1
    assert request["exactly"]["tolerations"] == [{"key": "k", "operator": "Equal"}]


def test_tolerations_of_an_allocation_are_defaulted_too() -> None:
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x", "tolerations": [{"value": "v"}]}
    made = defaulted("ResourceClaim", status={"allocation": {"devices": {"results": [result]}}})
    (written,) = made["status"]["allocation"]["devices"]["results"]
    assert written["tolerations"] == [{"operator": "Equal", "value": "v"}]


def test_an_allocation_that_lacks_nothing_stays_as_it_is() -> None:
    tolerations = [{"operator": "Exists"}]
    bare = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
    given = {"devices": {"results": [bare, {**bare, "device": "y", "tolerations": tolerations}]}}
    assert defaulted("ResourceClaim", status={"allocation": given})["status"]["allocation"] == given


def test_taints_are_since_now_to_the_second() -> None:
    old, new = {"key": "k", "effect": "None", "timeAdded": "2020-01-01T00:00:00Z"}, {"key": "l", "effect": "NoExecute"}
    spec = {"devices": [{"name": "d", "taints": [old, new]}]}
    (device,) = defaulted("ResourceSlice", spec=spec)["spec"]["devices"]
    assert [taint["timeAdded"] for taint in device["taints"]] == ["2020-01-01T00:00:00Z", "2026-01-02T03:04:05Z"]
    rule = defaulted("DeviceTaintRule", "resource.k8s.io/v1alpha3", spec={"taint": new})
    assert rule["spec"]["taint"]["timeAdded"] == "2026-01-02T03:04:05Z"


def test_a_mapping_counts_once_unless_it_says_otherwise() -> None:
    mappings = {"cpu": {}, "memory": {"capacityKey": "m"}, "pods": {"allocationMultiplier": "2"}}
    spec = {"devices": [{"name": "d", "nodeAllocatableResourceMappings": mappings}]}
    (device,) = defaulted("ResourceSlice", spec=spec)["spec"]["devices"]
    assert device["nodeAllocatableResourceMappings"] == {
        "cpu": {"allocationMultiplier": "1"},
        "memory": {"capacityKey": "m", "allocationMultiplier": "1"},
        "pods": {"allocationMultiplier": "2"},
    }


@pytest.mark.parametrize("version", ["v1alpha3", "v1beta2"])
def test_a_pool_status_request_asks_for_a_hundred_pools(version: str) -> None:
    group_version = f"resource.k8s.io/{version}"
    assert defaulted("ResourcePoolStatusRequest", group_version, spec={"driver": "d"})["spec"]["limit"] == 100
    assert defaulted("ResourcePoolStatusRequest", group_version, spec={"limit": 0})["spec"]["limit"] == 0


def test_a_pod_group_is_disrupted_pod_by_pod() -> None:
    made = defaulted("PodGroup", "scheduling.k8s.io/v1alpha2", spec={"schedulingPolicy": {"basic": {}}})
    assert made["spec"]["disruptionMode"] == "Pod"


def test_an_object_with_everything_said_is_the_same_object() -> None:
    request = {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}}
    document = {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": {"devices": {"requests": [request]}},
    }  # fmt: skip
    value = decode_plain(document).object
    assert set_defaults(value, NOW) is value


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1.36", "IfNotPresent"),
        ("registry:5000/team/app", "Always"),
        ("registry:5000/team/app:v1", "IfNotPresent"),
        ("app@sha256:abc", "IfNotPresent"),
        ("app:latest@sha256:abc", "Always"),
    ],
)
def test_an_image_without_tag_is_always_pulled(image: str, policy: str) -> None:
    (container,) = defaulted_pod_spec(containers=[{"name": "c", "image": image}])["containers"]
    assert container["imagePullPolicy"] == policy


def test_a_pod_gets_what_every_pod_has() -> None:
    assert defaulted_pod_spec(containers=[{"name": "c", "image": "i", "imagePullPolicy": "Never"}]) == {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "imagePullPolicy": "Never",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }


def test_a_container_asks_for_its_limits() -> None:
    resources = {"limits": {"cpu": "1", "example.com/gpu": "2"}, "requests": {"cpu": "100u"}}
    (container,) = defaulted_pod_spec(containers=[{"name": "c", "resources": resources}])["containers"]
    assert container["resources"]["requests"] == {"cpu": "1m", "example.com/gpu": "2"}


def test_a_pod_with_a_limit_of_its_own_asks_for_what_its_containers_ask() -> None:
    containers = [{"name": n, "resources": {"requests": {"cpu": "200m"}}} for n in ("a", "b")]
    made = defaulted_pod_spec(containers=containers, resources={"limits": {"cpu": "2", "memory": "1Gi"}})
    assert made["resources"]["requests"] == {"cpu": "400m", "memory": "1Gi"}
    assert "requests" not in defaulted_pod_spec(containers=containers, resources={"requests": {}})["resources"]


def test_huge_pages_of_a_pod_are_limited_as_those_of_its_containers() -> None:
    containers = [{"name": "a", "resources": {"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}}]
    made = defaulted_pod_spec(containers=containers, resources={"limits": {"cpu": "2"}})
    assert made["resources"]["limits"] == {"cpu": "2", "hugepages-2Mi": "4Mi"}
    assert made["resources"]["requests"] == {"cpu": "1", "hugepages-2Mi": "4Mi"}


def test_probes_ports_volumes_and_references_are_filled_in() -> None:
    container = {
        "name": "c",
        "ports": [{"containerPort": 80}],
        "livenessProbe": {"httpGet": {"port": 80}},
        "readinessProbe": {"grpc": {"port": 81}},
        "lifecycle": {"preStop": {"httpGet": {"port": "http"}}},
        "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    }
    volumes = [{"name": "e"}, {"name": "s", "secret": {"secretName": "x"}}, {"name": "h", "hostPath": {"path": "/"}},
               {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]  # fmt: skip
    made = defaulted_pod_spec(containers=[container], volumes=volumes, hostNetwork=True, serviceAccount="robot")
    (written,) = made["containers"]
    assert written["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    assert written["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
    }  # fmt: skip
    assert written["readinessProbe"]["grpc"] == {"port": 81, "service": ""}
    assert written["lifecycle"]["preStop"]["httpGet"]["scheme"] == "HTTP"
    assert written["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert made["serviceAccountName"] == "robot"
    sources = [{name: value for name, value in each.items() if name != "name"} for each in made["volumes"]]
    assert sources[:3] == [
        {"emptyDir": {}}, {"secret": {"secretName": "x", "defaultMode": 420}}, {"hostPath": {"path": "/", "type": ""}},
    ]  # fmt: skip
    assert sources[3]["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600


def test_the_kinds_around_pods_get_theirs() -> None:
    node = defaulted("Node", "v1", status={"capacity": {"cpu": "8"}})
    assert node["status"]["allocatable"] == {"cpu": "8"}
    namespace = defaulted("Namespace", "v1", metadata={"name": "team"})
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
    assert defaulted("Secret", "v1")["type"] == "Opaque"
    quota = defaulted("ResourceQuota", "v1", spec={"hard": {"cpu": "1500u"}})
    assert quota["spec"]["hard"] == {"cpu": "2m"}
    template = {"spec": {"containers": [{"name": "c"}]}}
    replicas = defaulted("ReplicaSet", "apps/v1", spec={"template": template})["spec"]
    assert (replicas["replicas"], replicas["template"]["spec"]["restartPolicy"]) == (1, "Always")
    deployment = defaulted("Deployment", "apps/v1", spec={"template": template})["spec"]
    assert deployment["strategy"]["rollingUpdate"] == {"maxUnavailable": "25%", "maxSurge": "25%"}
    priority = defaulted("PriorityClass", "scheduling.k8s.io/v1", value=5)
    assert priority["preemptionPolicy"] == "PreemptLowerPriority"


def test_role_bindings_name_the_api_group() -> None:
    subjects = [{"kind": "User", "name": "a"}, {"kind": "ServiceAccount", "name": "b", "namespace": "n"}]
    made = defaulted(
        "RoleBinding", "rbac.authorization.k8s.io/v1", roleRef={"kind": "Role", "name": "r"}, subjects=subjects
    )
    assert made["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"
    assert [each.get("apiGroup") for each in made["subjects"]] == ["rbac.authorization.k8s.io", None]


def test_services_and_admission_rules_get_theirs() -> None:
    service = defaulted("Service", "v1", spec={"ports": [{"port": 80}]})["spec"]
    assert service["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert (service["type"], service["sessionAffinity"], service["internalTrafficPolicy"]) == (
        "ClusterIP",
        "None",
        "Cluster",
    )
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]
    policy = defaulted(
        "ValidatingAdmissionPolicy",
        "admissionregistration.k8s.io/v1",
        spec={"matchConstraints": {"resourceRules": rules}},
    )["spec"]
    assert policy["failurePolicy"] == "Fail"
    assert policy["matchConstraints"]["matchPolicy"] == "Equivalent"
    assert policy["matchConstraints"]["resourceRules"][0]["scope"] == "*"
    hook = {"name": "w", "clientConfig": {"service": {"name": "s", "namespace": "n"}}, "rules": rules}
    (webhook,) = defaulted("MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1", webhooks=[hook])[
        "webhooks"
    ]
    assert (webhook["reinvocationPolicy"], webhook["timeoutSeconds"]) == ("Never", 10)
    assert webhook["clientConfig"]["service"]["port"] == 443


def test_a_document_is_not_changed_in_place() -> None:
    value = decode_plain({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c"}]}}).object
    assert isinstance(value, Partial)
    before = str(value.document)
    assert set_defaults(value, NOW) is not value
    assert str(value.document) == before


def test_daemon_sets_roll_one_node_at_a_time() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = defaulted("DaemonSet", "apps/v1", spec={"template": template})["spec"]
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    assert spec["revisionHistoryLimit"] == 10
    assert spec["template"]["spec"]["restartPolicy"] == "Always"


def test_endpoints_speak_tcp() -> None:
    subsets = [{"ports": [{"port": 443}]}]
    assert defaulted("Endpoints", "v1", subsets=subsets)["subsets"][0]["ports"][0]["protocol"] == "TCP"
