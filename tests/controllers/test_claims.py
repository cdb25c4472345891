"""Claims: made from templates, reserved, released, deleted."""

from __future__ import annotations

import pytest

from drakit.api.templateclaims import generate_name
from drakit.base.gates import FeatureGates
from drakit.base.wellknown import CLAIM_FINALIZER
from drakit.client import CLAIMS, EVENTS, NAMESPACES, POD_GROUPS, PODS, TEMPLATES
from tests.builders.cluster import Cluster, on_loop
from tests.builders.manifests import (
    by_name,
    by_template,
    claim,
    claim_spec,
    consumer,
    node,
    pod,
    pod_group,
    template,
)
from tests.controllers.claims import MAKERS, allocate, running


@on_loop
async def test_a_pod_gets_a_claim_of_its_template_and_its_status_names_it() -> None:
    async with running() as it:
        await it.create(template(), pod("p", claims=[by_template()]))
        [made] = await it.all(CLAIMS)
        owner = (await it.find(PODS, "p")).metadata
        assert made.metadata.name.startswith("p-g-")
        assert made.metadata.generate_name == "p-g-"
        assert made.metadata.labels == {"team": "ml"}
        assert made.metadata.annotations == {"note": "fast", "resource.kubernetes.io/pod-claim-name": "g"}
        [reference] = made.metadata.owner_references
        assert (reference.kind, reference.name, reference.uid, reference.controller) == ("Pod", "p", owner.uid, True)
        [status] = (await it.find(PODS, "p")).status.resource_claim_statuses
        assert (status.name, status.resource_claim_name) == ("g", made.metadata.name)


@on_loop
async def test_each_entry_of_a_pod_gets_its_own_claim() -> None:
    async with running() as it:
        await it.create(template(), pod("p", claims=[by_template("a"), by_template("b"), by_name("c", "other")]))
        names = {
            each.name: each.resource_claim_name for each in (await it.find(PODS, "p")).status.resource_claim_statuses
        }
        assert sorted(names) == ["a", "b"]
        assert sorted(names.values()) == sorted(each.metadata.name for each in await it.all(CLAIMS))


def test_a_name_that_is_too_long_is_cut_in_both_parts() -> None:
    name = generate_name("p" * 60, "e" * 30)
    assert len(name) <= 58
    assert name.startswith("p" * 30)
    assert name.endswith("e" * 15 + "-")
    assert generate_name("pod", "gpu") == "pod-gpu-"


@on_loop
async def test_a_template_that_comes_later_brings_the_claim() -> None:
    async with running() as it:
        await it.create(pod("p", claims=[by_template()]))
        [event] = await it.all(EVENTS)
        assert (event.reason, event.type, event.source.component) == (
            "FailedResourceClaimCreation", "Warning", "resource_claim",
        )  # fmt: skip
        assert event.message == (
            'PodResourceClaim g: resource claim template "t": resourceclaimtemplate.resource.k8s.io "t" not found'
        )
        await it.create(template())
        assert len(await it.all(CLAIMS)) == 1


@on_loop
async def test_a_finished_or_deleted_pod_gets_no_claim() -> None:
    async with running() as it:
        await it.create(
            pod("p", claims=[by_template()]), pod("q", claims=[by_template()], finalizers=["example.com/x"])
        )
        await it.set_status(PODS, "p", {"phase": "Succeeded"})
        await it.delete(PODS, "q")
        await it.create(template())
        assert await it.all(CLAIMS) == []


@on_loop
async def test_a_claim_that_somebody_deleted_is_made_again() -> None:
    async with running() as it:
        await it.create(template(), pod("p", claims=[by_template()]))
        [first] = await it.all(CLAIMS)
        await it.delete(CLAIMS, first.metadata.name)
        [second] = await it.all(CLAIMS)
        assert second.metadata.uid != first.metadata.uid
        [status] = (await it.find(PODS, "p")).status.resource_claim_statuses
        assert status.resource_claim_name == second.metadata.name


@on_loop
async def test_what_quota_refuses_is_tried_again_until_there_is_room() -> None:
    async with running() as it:
        hard = {"count/resourceclaims.resource.k8s.io": "0"}
        quota = {
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"},
            "spec": {"hard": hard},
        }  # fmt: skip
        made = await it.create(quota)
        await it.client.patch(made, {"status": {"hard": hard, "used": hard}}, subresource="status")
        await it.create(template(), pod("p", claims=[by_template()]))
        assert await it.all(CLAIMS) == []
        assert it.running is not None
        labels = {"status": "failure", "admin_access": "false"}
        refused = it.running.registry.get_sample_value("resourceclaim_controller_creates_total", labels)
        assert (refused or 0) >= 1
        await it.run_for(10)
        # The server names the claim that it refuses, another one each time: still it is one event.
        [event] = await it.all(EVENTS)
        assert event.count > 1
        assert 'resourceclaims.resource.k8s.io "p-g-" is forbidden: exceeded quota: q' in event.message
        await it.client.delete_object(made)
        await it.run_for(60)
        assert len(await it.all(CLAIMS)) == 1


@on_loop
async def test_when_the_only_pod_is_deleted_reservation_allocation_and_finalizer_go() -> None:
    async with running() as it:
        await it.create(claim("c"), pod("p", claims=[by_name("c")]))
        await allocate(it, "c", await it.find(PODS, "p"))
        assert (await it.find(CLAIMS, "c")).status.reserved_for
        await it.delete(PODS, "p")
        released = await it.find(CLAIMS, "c")
        assert (released.status.reserved_for, released.status.allocation) == ((), None)
        assert released.metadata.finalizers == ()


@on_loop
async def test_when_a_pod_ends_only_its_own_reservation_goes() -> None:
    async with running() as it:
        await it.create(claim("c"), pod("p", claims=[by_name("c")]), pod("q", claims=[by_name("c")]))
        await allocate(it, "c", await it.find(PODS, "p"), await it.find(PODS, "q"))
        await it.set_status(PODS, "p", {"phase": "Failed"})
        left = await it.find(CLAIMS, "c")
        assert [each.name for each in left.status.reserved_for] == ["q"]
        assert left.status.allocation is not None
        assert left.metadata.finalizers == (CLAIM_FINALIZER,)


@on_loop
async def test_a_pod_that_is_deleted_before_it_has_a_node_never_starts_and_holds_nothing() -> None:
    async with running() as it:
        await it.create(claim("c"), pod("p", claims=[by_name("c")], finalizers=["example.com/x"]))
        await allocate(it, "c", await it.find(PODS, "p"))
        await it.delete(PODS, "p")
        assert (await it.find(PODS, "p")).metadata.deletion_timestamp
        assert (await it.find(CLAIMS, "c")).status.reserved_for == ()


@on_loop
async def test_a_pod_with_a_node_holds_its_claim_while_it_is_being_deleted() -> None:
    async with running() as it:
        await it.create(claim("c"), pod("p", claims=[by_name("c")], node="node-1"))
        await allocate(it, "c", await it.find(PODS, "p"))
        await it.delete(PODS, "p", grace=30)
        assert len((await it.find(CLAIMS, "c")).status.reserved_for) == 1


@on_loop
async def test_a_new_pod_of_the_same_name_does_not_keep_the_old_ones_reservation() -> None:
    async with running() as it:
        await it.create(claim("c"), pod("p", claims=[by_name("c")]))
        await allocate(it, "c", await it.find(PODS, "p"))
        await it.kill()
        await it.delete(PODS, "p")
        await it.create(pod("p", claims=[by_name("c")]))
        await it.start(MAKERS)
        assert (await it.find(CLAIMS, "c")).status.reserved_for == ()


@on_loop
async def test_reservations_of_other_consumers_stay() -> None:
    async with running() as it:
        await it.create(claim("c"), pod("p", claims=[by_name("c")]))
        await allocate(it, "c", await it.find(PODS, "p"))
        other = {"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "1-2-3"}
        entries = [consumer(await it.find(PODS, "p")), other]
        await it.set_status(CLAIMS, "c", {"reservedFor": entries})
        await it.delete(PODS, "p")
        left = await it.find(CLAIMS, "c")
        assert [each.resource for each in left.status.reserved_for] == ["jobs"]
        assert left.status.allocation is not None


@on_loop
async def test_a_claim_that_a_user_deletes_stays_until_its_pod_is_gone() -> None:
    async with running() as it:
        await it.create(claim("c"), pod("p", claims=[by_name("c")]))
        await allocate(it, "c", await it.find(PODS, "p"))
        await it.delete(CLAIMS, "c", grace=None)
        deleted = await it.find(CLAIMS, "c")
        assert deleted.metadata.deletion_timestamp
        assert deleted.status.allocation is not None
        await it.delete(PODS, "p")
        assert await it.find(CLAIMS, "c") is None


@on_loop
async def test_an_allocation_that_nobody_has_reserved_is_left_alone() -> None:
    async with running() as it:
        await it.create(claim("c"))
        await allocate(it, "c")
        await it.run_for(120)
        assert (await it.find(CLAIMS, "c")).status.allocation is not None


@on_loop
async def test_the_claim_of_a_template_is_deleted_when_its_pod_has_ended() -> None:
    async with running() as it:
        await it.create(template(), pod("p", claims=[by_template()]))
        [made] = await it.all(CLAIMS)
        await allocate(it, made.metadata.name, await it.find(PODS, "p"))
        await it.set_status(PODS, "p", {"phase": "Succeeded"})
        assert await it.all(CLAIMS) == []
        assert await it.find(PODS, "p") is not None


async def special_claim(it: Cluster) -> None:
    """What a scheduler makes for a pod `p` that asks for extended resources."""
    await it.create(pod("p"))
    owner = await it.find(PODS, "p")
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner.metadata.uid, "controller": True}
    special = claim(
        "p-extended-resources-x",
        ownerReferences=[reference],
        annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
    )
    await it.create(special)
    await allocate(it, "p-extended-resources-x", owner)
    assert len(await it.all(CLAIMS)) == 1


@on_loop
async def test_the_claim_of_extended_resources_goes_with_its_pod() -> None:
    async with running() as it:
        await special_claim(it)
        await it.delete(PODS, "p")
        assert await it.all(CLAIMS) == []


@on_loop
async def test_the_claim_of_extended_resources_goes_when_its_pod_has_ended() -> None:
    async with running() as it:
        await special_claim(it)
        await it.set_status(PODS, "p", {"phase": "Succeeded"})
        assert await it.all(CLAIMS) == []
        assert await it.find(PODS, "p") is not None


@on_loop
async def test_a_pod_that_was_bound_without_the_scheduler_gets_its_reservation() -> None:
    async with running() as it:
        await it.create(node("node-1"), claim("c"))
        await allocate(it, "c")
        await it.create(pod("p", claims=[by_name("c")], node="node-1"))
        bound = await it.find(PODS, "p")
        [entry] = (await it.find(CLAIMS, "c")).status.reserved_for
        assert (entry.resource, entry.name, entry.uid) == ("pods", "p", bound.metadata.uid)


@pytest.mark.parametrize(("of_claim", "phase"), [("node-2", "Running"), ("node-1", "Succeeded")])
@on_loop
async def test_no_reservation_for_another_node_or_for_a_pod_that_has_ended(of_claim: str, phase: str) -> None:
    async with running() as it:
        await it.create(node("node-1"), claim("c"), pod("p", claims=[by_name("c")], node="node-1"))
        await it.set_status(PODS, "p", {"phase": phase})
        await allocate(it, "c", node=of_claim)
        assert (await it.find(CLAIMS, "c")).status.reserved_for == ()


@on_loop
async def test_a_bound_pod_waits_for_the_allocation_of_its_claim() -> None:
    async with running() as it:
        await it.create(node("node-1"), claim("c"), pod("p", claims=[by_name("c")], node="node-1"))
        assert (await it.find(CLAIMS, "c")).status.reserved_for == ()
        await allocate(it, "c")
        assert len((await it.find(CLAIMS, "c")).status.reserved_for) == 1


@on_loop
async def test_a_group_gets_one_claim_for_all_its_pods() -> None:
    async with running() as it:
        await it.create(template(), pod_group("pg", [by_template()]))
        await it.create(*(pod(name, claims=[by_template()], group="pg") for name in ("p", "q")))
        [made] = await it.all(CLAIMS)
        assert made.metadata.name.startswith("pg-g-")
        [owner] = made.metadata.owner_references
        assert (owner.api_version, owner.kind, owner.name) == ("scheduling.k8s.io/v1alpha2", "PodGroup", "pg")
        for holder in (await it.find(PODS, "p"), await it.find(PODS, "q"), await it.find(POD_GROUPS, "pg")):
            [status] = holder.status.resource_claim_statuses
            assert (status.name, status.resource_claim_name) == ("g", made.metadata.name)


@pytest.mark.parametrize(("entry", "of_template"), [("g", "u"), ("h", "t")])
@on_loop
async def test_a_pods_entry_that_differs_from_its_groups_gets_its_own_claim(entry: str, of_template: str) -> None:
    async with running() as it:
        await it.create(template(), template("u"), pod_group("pg", [by_template()]))
        await it.create(pod("p", claims=[by_template(entry, of_template)], group="pg"))
        assert sorted(each.metadata.generate_name for each in await it.all(CLAIMS)) == [f"p-{entry}-", "pg-g-"]


@on_loop
async def test_a_pods_entry_is_not_its_groups_when_the_group_names_a_claim() -> None:
    async with running() as it:
        await it.create(template(), claim("c"), pod_group("pg", [by_name("c")]))
        await it.create(pod("p", claims=[by_template()], group="pg"))
        assert sorted(each.metadata.generate_name for each in await it.all(CLAIMS)) == ["", "p-g-"]


@on_loop
async def test_a_pod_waits_for_its_group_and_the_group_for_its_template() -> None:
    async with running() as it:
        await it.create(pod("p", claims=[by_template()], group="pg"))
        await it.create(pod_group("pg", [by_template()]))
        assert await it.all(CLAIMS) == []
        await it.create(template())
        [made] = await it.all(CLAIMS)
        [status] = (await it.find(PODS, "p")).status.resource_claim_statuses
        assert status.resource_claim_name == made.metadata.name


@on_loop
async def test_a_groups_reservation_stays_without_pods_until_the_group_is_gone() -> None:
    async with running() as it:
        await it.create(template(), pod_group("pg", [by_template()]), pod("p", claims=[by_template()], group="pg"))
        [made] = await it.all(CLAIMS)
        await allocate(it, made.metadata.name, await it.find(POD_GROUPS, "pg"))
        await it.delete(PODS, "p")
        [held] = await it.all(CLAIMS)
        assert [each.resource for each in held.status.reserved_for] == ["podgroups"]
        assert held.status.allocation is not None
        group = await it.client.get(POD_GROUPS, "pg", namespace="default")
        await it.client.patch(group, {"metadata": {"finalizers": None}})
        await it.delete(POD_GROUPS, "pg", grace=None)
        assert await it.all(CLAIMS) == []


async def reserved(it: Cluster, name: str) -> list[tuple[str, str]]:
    found = await it.find(CLAIMS, name)
    return sorted((each.resource, each.name) for each in found.status.reserved_for)


async def unprotect(it: Cluster, group: str) -> None:
    """What the controller that protects groups does."""
    found = await it.client.get(POD_GROUPS, group, namespace="default")
    await it.client.patch(found, {"metadata": {"finalizers": None}})
    await it.delete(POD_GROUPS, group, grace=None)


@on_loop
async def test_a_claim_that_pod_and_group_name_alike_is_reserved_for_the_group_once() -> None:
    async with running() as it:
        await it.create(node("node-1"), claim("c"), pod_group("pg", [by_name("c")]))
        await allocate(it, "c")
        await it.create(*(pod(name, claims=[by_name("c")], group="pg", node="node-1") for name in ("p", "q")))
        assert await reserved(it, "c") == [("podgroups", "pg")]
        await it.set_status(PODS, "p", {"phase": "Succeeded"})
        await it.delete(PODS, "q")
        assert await reserved(it, "c") == [("podgroups", "pg")]
        await unprotect(it, "pg")
        assert await reserved(it, "c") == []
        found = await it.find(CLAIMS, "c")
        assert (found.status.allocation, found.metadata.finalizers) == (None, ())


@on_loop
async def test_a_claim_that_pod_and_group_name_under_different_entries_is_the_pods_until_the_group_has_it() -> None:
    async with running() as it:
        await it.create(node("node-1"), claim("c"), pod_group("pg", [by_name("c", "of-group")]))
        await allocate(it, "c")
        await it.create(pod("p", claims=[by_name("c", "of-pod")], group="pg", node="node-1"))
        assert await reserved(it, "c") == [("pods", "p")]
        users = [consumer(await it.find(PODS, "p")), consumer(await it.find(POD_GROUPS, "pg"))]
        await it.set_status(CLAIMS, "c", {"reservedFor": users})
        await it.create(pod("q", claims=[by_name("c", "of-pod")], group="pg", node="node-1"))
        assert await reserved(it, "c") == [("podgroups", "pg"), ("pods", "p")]
        await unprotect(it, "pg")
        assert ("pods", "p") in await reserved(it, "c")
        await it.set_status(PODS, "p", {"phase": "Failed"})
        await it.set_status(PODS, "q", {"phase": "Failed"})
        assert await reserved(it, "c") == []
        assert (await it.find(CLAIMS, "c")).status.allocation is None


@on_loop
async def test_pods_that_went_while_nobody_looked_are_found_at_the_start() -> None:
    async with running() as it:
        await it.create(template(), claim("c"), pod("p", claims=[by_template(), by_name("c", "h")]))
        names = [each.metadata.name for each in await it.all(CLAIMS)]
        for name in names:
            await allocate(it, name, await it.find(PODS, "p"))
        await it.kill()
        await it.delete(PODS, "p")
        assert len(await it.all(CLAIMS)) == 2
        await it.start(MAKERS)
        [left] = await it.all(CLAIMS)
        assert (left.metadata.name, left.status.allocation) == ("c", None)


@on_loop
async def test_a_pod_that_ended_while_nobody_looked_is_found_at_the_start() -> None:
    async with running() as it:
        await it.create(template(), claim("c"), pod("p", claims=[by_template(), by_name("c", "h")]))
        for made in await it.all(CLAIMS):
            await allocate(it, made.metadata.name, await it.find(PODS, "p"))
        await it.kill()
        await it.set_status(PODS, "p", {"phase": "Failed"})
        await it.start(MAKERS)
        [left] = await it.all(CLAIMS)
        assert (left.metadata.name, left.status.allocation, left.status.reserved_for) == ("c", None, ())


@on_loop
async def test_groups_that_went_while_nobody_looked_are_found_at_the_start() -> None:
    async with running() as it:
        await it.create(template(), claim("c"), pod_group("pg", [by_template(), by_name("c", "h")]))
        for made in await it.all(CLAIMS):
            await allocate(it, made.metadata.name, await it.find(POD_GROUPS, "pg"))
        await it.kill()
        group = await it.client.get(POD_GROUPS, "pg", namespace="default")
        await it.client.patch(group, {"metadata": {"finalizers": None}})
        await it.delete(POD_GROUPS, "pg", grace=None)
        assert [len(each.status.reserved_for) for each in await it.all(CLAIMS)] == [1, 1]
        await it.start(MAKERS)
        [left] = await it.all(CLAIMS)
        assert (left.metadata.name, left.status.allocation, left.status.reserved_for) == ("c", None, ())


@on_loop
async def test_a_finalizer_that_a_crash_left_behind_goes_after_a_while() -> None:
    async with running() as it:
        await it.create(claim("c", finalizers=[CLAIM_FINALIZER]))
        await it.run_for(29)
        assert (await it.find(CLAIMS, "c")).metadata.finalizers == (CLAIM_FINALIZER,)
        await it.run_for(2)
        assert (await it.find(CLAIMS, "c")).metadata.finalizers == ()


@on_loop
async def test_figures_tell_claims_by_state_and_source() -> None:
    async with running() as it:
        await it.create(template(), pod("p", claims=[by_template()]), claim("c"))
        await allocate(it, "c", await it.find(PODS, "p"))
        assert it.running is not None
        sample = it.running.registry.get_sample_value
        assert sample("resourceclaim_controller_creates_total", {"status": "success", "admin_access": "false"}) == 1
        gauge = "resourceclaim_controller_resource_claims"
        made = {"allocated": "false", "admin_access": "false", "source": "resource_claim_template"}
        assert sample(gauge, made) == 1
        assert sample(gauge, {"allocated": "true", "admin_access": "false", "source": ""}) == 1
        assert (sample("workqueue_adds_total", {"name": "resource_claim"}) or 0) > 0


@on_loop
async def test_figures_tell_admin_access_and_claims_of_extended_resources() -> None:
    async with running() as it:
        labels = {"resource.kubernetes.io/admin-access": "true"}
        await it.client.patch_named(NAMESPACES, "default", {"metadata": {"labels": labels}})
        await special_claim(it)
        watching = claim("admin")
        watching["spec"] = claim_spec(adminAccess=True)
        await it.create(watching)
        assert it.running is not None
        sample = it.running.registry.get_sample_value
        gauge = "resourceclaim_controller_resource_claims"
        assert sample(gauge, {"allocated": "true", "admin_access": "false", "source": "extended_resource"}) == 1
        assert sample(gauge, {"allocated": "false", "admin_access": "true", "source": ""}) == 1


@on_loop
async def test_groups_are_left_alone_while_their_gate_is_off() -> None:
    async with running(FeatureGates.defaults()) as it:
        await it.create(template(), pod("p", claims=[by_template()]))
        assert len(await it.all(CLAIMS)) == 1
        await it.delete(TEMPLATES, "t", grace=None)
        assert len(await it.all(CLAIMS)) == 1
