"""Deleting: at once, with finalizers, with grace, by selection."""

from __future__ import annotations

import asyncio

from drakit.apiserver.admission.chain import Admission, AdmissionPlugin, ObjectChange
from tests.apiserver.calls import CLAIMS, CLASSES, NAMESPACES, PODS, SLICES, namespace, on_loop, serving, take, told
from tests.builders.documents import claim_document, class_document, pod_document, slice_document

FINALIZER = "example.com/keep"


@on_loop
async def test_some_kinds_answer_with_what_is_gone_and_some_with_a_status() -> None:
    workloads = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/workloads"
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    async with serving() as api:
        await api.create(CLAIMS, claim_document("a"))
        made = (await api.create(roles, {"metadata": {"name": "r"}, "rules": []})).body
        assert (await api.delete(f"{CLAIMS}/a")).body["kind"] == "ResourceClaim"
        gone = await api.delete(f"{roles}/r")
        assert gone.body["status"] == "Success"
        assert gone.body["details"] == {
            "name": "r", "group": "rbac.authorization.k8s.io", "kind": "clusterroles", "uid": made["metadata"]["uid"]
        }  # fmt: skip
        assert (await api.delete(f"{workloads}/none")).code == 404


@on_loop
async def test_an_object_with_finalizers_stays_until_the_last_one_is_gone() -> None:
    async with serving() as api:
        await api.create(CLASSES, class_document("gpu", "true", finalizers=[FINALIZER]))
        marked = (await api.delete(f"{CLASSES}/gpu")).body["metadata"]
        assert marked["deletionTimestamp"] == "2026-01-01T00:00:00Z"
        assert (marked["deletionGracePeriodSeconds"], marked["generation"]) == (0, 2)
        again = await api.delete(f"{CLASSES}/gpu")
        assert again.version == marked["resourceVersion"]
        added = await api.patch(f"{CLASSES}/gpu", {"metadata": {"finalizers": [FINALIZER, "example.com/more"]}})
        assert added.code == 422
        assert (await api.patch(f"{CLASSES}/gpu", {"metadata": {"finalizers": None}})).code == 200
        assert (await api.get(f"{CLASSES}/gpu")).code == 404


@on_loop
async def test_preconditions_name_the_object_that_is_meant() -> None:
    async with serving() as api:
        first = (await api.create(CLAIMS, claim_document("a"))).body["metadata"]
        await api.patch(f"{CLAIMS}/a", {"metadata": {"labels": {"a": "b"}}})
        for wrong in ({"uid": "other"}, {"resourceVersion": first["resourceVersion"]}):
            refused = await api.delete(f"{CLAIMS}/a", {"preconditions": wrong})
            assert (refused.code, refused.body["reason"]) == (409, "Conflict")
        assert (await api.delete(f"{CLAIMS}/a", {"preconditions": {"uid": first["uid"]}})).code == 200


@on_loop
async def test_a_dry_run_deletes_nothing() -> None:
    async with serving() as api:
        await api.create(CLAIMS, claim_document("a"))
        assert (await api.delete(f"{CLAIMS}/a", dryRun="All")).code == 200
        assert (await api.get(f"{CLAIMS}/a")).code == 200


@on_loop
async def test_the_propagation_policy_becomes_a_finalizer() -> None:
    async with serving() as api:
        for name, policy, finalizer in (("a", "Foreground", "foregroundDeletion"), ("b", "Orphan", "orphan")):
            await api.create(CLAIMS, claim_document(name))
            held = await api.delete(f"{CLAIMS}/{name}", {"propagationPolicy": policy})
            assert held.body["metadata"]["finalizers"] == [finalizer]
        await api.create(CLAIMS, claim_document("c"))
        wrong = await api.delete(f"{CLAIMS}/c", {"propagationPolicy": "Nope"})
        assert (wrong.code, wrong.body["details"]["kind"]) == (422, "DeleteOptions")
        assert (await api.delete(f"{CLAIMS}/c", propagationPolicy="Background")).code == 200


@on_loop
async def test_a_pod_on_a_node_has_time_to_end_and_may_be_hurried() -> None:
    async with serving() as api:
        await api.create(PODS, pod_document("p", {"nodeName": "node-a"}))
        marked = (await api.delete(f"{PODS}/p")).body["metadata"]
        assert (marked["deletionTimestamp"], marked["deletionGracePeriodSeconds"]) == ("2026-01-01T00:00:30Z", 30)
        longer = (await api.delete(f"{PODS}/p", gracePeriodSeconds="60")).body["metadata"]
        assert longer["deletionGracePeriodSeconds"] == 30
        sooner = (await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 5})).body["metadata"]
        assert sooner["deletionTimestamp"] == "2026-01-01T00:00:05Z"
        assert (await api.delete(f"{PODS}/p", gracePeriodSeconds="0")).code == 200
        assert (await api.get(f"{PODS}/p")).code == 404


@on_loop
async def test_a_pod_without_a_node_goes_at_once_and_those_who_watch_see_it_marked_first() -> None:
    async with serving() as api:
        made = await api.create(PODS, pod_document("p"))
        stream = await api.watch(PODS, resourceVersion=made.version)
        gone = await api.delete(f"{PODS}/p")
        assert gone.body["metadata"]["deletionGracePeriodSeconds"] == 0
        events = await take(stream.events(), 2)
        assert told(events) == [("MODIFIED", "p"), ("DELETED", "p")]


@on_loop
async def test_a_collection_is_deleted_by_selection_and_the_answer_is_what_was_found() -> None:
    async with serving() as api:
        for name, node in (("a", "n1"), ("b", "n2"), ("c", "n1")):
            await api.create(SLICES, slice_document(name, "dev-0", node=node))
        assert (await api.delete(SLICES, fieldSelector="spec.nodeName=n1")).names == ["a", "c"]
        assert (await api.get(SLICES)).names == ["b"]


@on_loop
async def test_a_collection_is_deleted_many_at_a_time_so_that_the_store_commits_them_together() -> None:
    class Together(AdmissionPlugin):
        """Lets the first deletion go on only when another one has begun."""

        def __init__(self) -> None:
            self.another = asyncio.Event()
            self.begun = 0

        async def validate(self, change: ObjectChange) -> None:  # noqa: ARG002
            self.begun += 1
            if self.begun > 1:
                self.another.set()
            await self.another.wait()

    async with serving() as api:
        for number in range(100):
            await api.create(CLAIMS, claim_document(f"c{number}"))
        api.server.context.admission = Admission([Together()])
        assert len((await api.delete(CLAIMS)).names) == 100
        assert (await api.get(CLAIMS)).names == []


@on_loop
async def test_a_collection_over_all_namespaces_is_deleted_too() -> None:
    async with serving() as api:
        await api.create(NAMESPACES, namespace("team"))
        await api.create(CLAIMS.replace("default", "team"), claim_document("a"))
        assert (await api.delete("/apis/resource.k8s.io/v1/resourceclaims")).names == ["a"]
        assert (await api.get("/apis/resource.k8s.io/v1/resourceclaims")).names == []


@on_loop
async def test_a_namespace_goes_when_it_is_finalized_and_some_never() -> None:
    async with serving() as api:
        await api.create(NAMESPACES, namespace("team"))
        marked = (await api.delete(f"{NAMESPACES}/team")).body
        assert marked["status"]["phase"] == "Terminating"
        await api.update(f"{NAMESPACES}/team/finalize", {**namespace("team"), "spec": {"finalizers": []}})
        assert (await api.get(f"{NAMESPACES}/team")).code == 404
        assert (await api.delete(f"{NAMESPACES}/default")).code == 403
