"""What admission makes of pods: account, priority, patience; and that it refuses a resize where devices count."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.apiserver import Settings
from drakit.base.gates import FeatureGates
from tests.apiserver.admission.objects import ACCOUNTS, MIRROR, PRIORITIES, disabled, enabled
from tests.apiserver.calls import PODS, on_loop, serving
from tests.builders.documents import Plain, pod_document

STRATEGIC = "application/strategic-merge-patch+json"


def priority(name: str, value: int, **fields: Any) -> Plain:
    return {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
        **fields,
    }  # fmt: skip


def account(name: str, **fields: Any) -> Plain:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}, **fields}


@on_loop
async def test_a_pod_gets_the_account_of_its_namespace_and_its_token() -> None:
    async with serving(enabled("ServiceAccount")) as api:
        await api.create(ACCOUNTS, account("default", imagePullSecrets=[{"name": "pull"}]))
        spec = (await api.create(PODS, pod_document("a"))).body["spec"]
        volume = spec["volumes"][0]
        assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
        assert spec["imagePullSecrets"] == [{"name": "pull"}]
        assert volume["name"].startswith("kube-api-access-")
        assert [next(iter(source)) for source in volume["projected"]["sources"]] == [
            "serviceAccountToken", "configMap", "downwardAPI",
        ]  # fmt: skip
        assert spec["containers"][0]["volumeMounts"] == [
            {
                "name": volume["name"],
                "readOnly": True,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            }
        ]


@pytest.mark.parametrize("where", ["pod", "account"])
@on_loop
async def test_who_wants_no_token_gets_none(where: str) -> None:
    async with serving(enabled("ServiceAccount")) as api:
        said = {"automountServiceAccountToken": False}
        await api.create(ACCOUNTS, account("default", **(said if where == "account" else {})))
        spec = (await api.create(PODS, pod_document("a", said if where == "pod" else {}))).body["spec"]
        assert "volumes" not in spec
        assert spec["serviceAccountName"] == "default"


@on_loop
async def test_a_container_that_has_something_in_that_place_keeps_it() -> None:
    async with serving(enabled("ServiceAccount")) as api:
        await api.create(ACCOUNTS, account("default"))
        made = pod_document("a", {"volumes": [{"name": "mine", "emptyDir": {}}]})
        mount = {"name": "mine", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        made["spec"]["containers"][0]["volumeMounts"] = [mount]
        spec = (await api.create(PODS, made)).body["spec"]
        assert [volume["name"] for volume in spec["volumes"]] == ["mine"]


@on_loop
async def test_an_account_that_is_not_there_is_refused() -> None:
    async with serving(enabled("ServiceAccount")) as api:
        answer = await api.create(PODS, pod_document("a", {"serviceAccountName": "nobody"}))
        assert (answer.code, answer.message) == (
            403,
            'pods "a" is forbidden: error looking up service account default/nobody: serviceaccount "nobody" not found',
        )


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"serviceAccountName": "default"}, "a mirror pod may not reference service accounts"),
        ({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}, "a mirror pod may not reference secrets"),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
            "a mirror pod may not use ServiceAccountToken volume projections",
        ),
    ],
)
@on_loop
async def test_a_mirror_pod_has_no_identity(spec: Plain, why: str) -> None:
    async with serving(enabled("ServiceAccount")) as api:
        made = pod_document("a", spec)
        made["metadata"]["annotations"] = {MIRROR: "x"}
        answer = await api.create(PODS, made)
        assert (answer.code, answer.message) == (403, f'pods "a" is forbidden: {why}')


@on_loop
async def test_accounts_are_left_alone_unless_asked_for() -> None:
    async with serving() as api:
        assert "serviceAccountName" not in (await api.create(PODS, pod_document("a"))).body["spec"]


@on_loop
async def test_the_default_class_gives_priority_and_policy_to_pods_without_a_class() -> None:
    async with serving() as api:
        await api.create(PRIORITIES, priority("usual", 7, globalDefault=True, preemptionPolicy="Never"))
        spec = (await api.create(PODS, pod_document("a"))).body["spec"]
        assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == ("usual", 7, "Never")


@on_loop
async def test_there_is_one_default_class() -> None:
    async with serving() as api:
        await api.create(PRIORITIES, priority("usual", 7, globalDefault=True))
        second = await api.create(PRIORITIES, priority("other", 8, globalDefault=True))
        assert second.code == 403
        assert second.message == (
            'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass usual is already marked as default. '
            "Only one default can exist"
        )
        assert (await api.patch(f"{PRIORITIES}/usual", {"description": "still"})).code == 200


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
        (
            {"priority": 5},
            (
                "the integer value of priority (5) must not be provided in pod spec; priority admission controller "
                "computed 0 from the given PriorityClass name"
            ),
        ),
        (
            {"preemptionPolicy": "Never"},
            (
                "the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission "
                "controller computed PreemptLowerPriority from the given PriorityClass name"
            ),
        ),
    ],
)
@on_loop
async def test_what_does_not_agree_with_the_class_is_refused(spec: Plain, why: str) -> None:
    async with serving() as api:
        answer = await api.create(PODS, pod_document("a", spec))
        assert (answer.code, answer.message) == (403, f'pods "a" is forbidden: {why}')


@on_loop
async def test_the_classes_of_the_system_are_known_without_objects() -> None:
    async with serving() as api:
        spec = (await api.create(PODS, pod_document("a", {"priorityClassName": "system-node-critical"}))).body["spec"]
        assert spec["priority"] == 2_000_001_000


@on_loop
async def test_an_update_that_leaves_the_priority_out_keeps_it() -> None:
    async with serving() as api:
        made = (await api.create(PODS, pod_document("a", {"priorityClassName": "system-node-critical"}))).body
        for field in ("priority", "preemptionPolicy"):
            del made["spec"][field]
        answer = await api.update(f"{PODS}/a", {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}})
        assert answer.code == 200, answer.body
        assert answer.body["spec"]["priority"] == 2_000_001_000


@on_loop
async def test_a_pod_has_patience_for_bad_nodes_unless_it_says_otherwise() -> None:
    async with serving() as api:
        own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
        spec = (await api.create(PODS, pod_document("a", {"tolerations": [own]}))).body["spec"]
        assert [each["key"] for each in spec["tolerations"]] == [
            "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable",
        ]  # fmt: skip
        assert "tolerationSeconds" not in spec["tolerations"][0]
        assert spec["tolerations"][1]["tolerationSeconds"] == 300


@on_loop
async def test_a_pod_can_be_created_without_these_plugins() -> None:
    async with serving(disabled("Priority", "DefaultTolerationSeconds")) as api:
        spec = (await api.create(PODS, pod_document("a"))).body["spec"]
        assert "priority" not in spec
        assert "tolerations" not in spec


SHARE = [{"resourceClaimName": "c", "containers": ["main"], "resources": {"cpu": "1"}}]


@pytest.mark.parametrize(("shares", "code"), [(SHARE, 422), ([], 200)])
@on_loop
async def test_a_pod_with_a_share_of_the_node_from_claims_cannot_be_resized(shares: list[Plain], code: int) -> None:
    gates = FeatureGates.parse("DRANodeAllocatableResources=true")
    async with serving(Settings(gates=gates)) as api:
        made = pod_document("a", {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]})
        made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}, "claims": [{"name": "c"}]}
        await api.create(PODS, made)
        told = await api.patch(f"{PODS}/a/status", {"status": {"nodeAllocatableResourceClaimStatuses": shares}})
        assert told.code == 200, told.body
        wanted = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
        answer = await api.patch(f"{PODS}/a/resize", wanted, content=STRATEGIC)
        assert answer.code == code, answer.body
        if code == 422:
            cause = answer.body["details"]["causes"][0]
            assert cause["field"] == "status.nodeAllocatableResourceClaimStatuses"
            assert "cannot be resized" in cause["message"]
