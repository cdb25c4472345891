"""Roles as users meet them: through requests, and through the questions about what they may."""

from __future__ import annotations

from typing import Any

import pytest

from drakit.api.exchange import User
from drakit.apiserver.auth.authentication import ANONYMOUS
from tests.apiserver.auth.people import (
    ADMIN,
    ALICE,
    BOB,
    NODE_A,
    RBAC,
    REVIEWS,
    binding,
    grant,
    group,
    guarded,
    role,
    rule,
)
from tests.apiserver.calls import CLAIMS, CLASSES, NAMESPACES, namespace, on_loop
from tests.builders.documents import claim_document

READ_CLAIMS = rule("get list watch", "resource.k8s.io", "resourceclaims")


@on_loop
async def test_a_right_counts_from_the_moment_it_is_granted_and_no_longer_than_it_is() -> None:
    async with guarded() as api:
        assert (await api.get(CLAIMS, user=ALICE)).code == 403
        await grant(api, "alice", READ_CLAIMS)
        assert (await api.get(CLAIMS, user=ALICE)).code == 200
        await api.delete(f"{RBAC}/namespaces/default/rolebindings/alice-rights", user=ADMIN)
        assert (await api.get(CLAIMS, user=ALICE)).code == 403


@on_loop
async def test_who_may_not_see_a_name_does_not_learn_whether_it_exists() -> None:
    async with guarded() as api:
        await api.create(CLAIMS, claim_document("secret-project"), user=ADMIN)
        there = await api.get(f"{CLAIMS}/secret-project", user=ALICE)
        not_there = await api.get(f"{CLAIMS}/other-project", user=ALICE)
        assert there.code == not_there.code == 403
        assert there.message.replace("secret", "other") == not_there.message
        assert (await api.get("/apis/none.example.com/v1/things", user=ALICE)).code == 403


@on_loop
async def test_a_right_on_a_name_covers_the_list_of_that_name() -> None:
    async with guarded() as api:
        await grant(api, "alice", rule("get list watch", "resource.k8s.io", "resourceclaims", "mine"))
        await api.create(CLAIMS, claim_document("mine"), user=ADMIN)
        assert (await api.get(CLAIMS, user=ALICE)).code == 403
        found = await api.get(CLAIMS, user=ALICE, fieldSelector="metadata.name=mine")
        assert found.names == ["mine"]
        assert (await api.get(CLAIMS, user=ALICE, fieldSelector="metadata.name!=mine")).code == 403
        assert (await api.get(CLAIMS, user=ALICE, fieldSelector="metadata.name=yours")).code == 403


@on_loop
async def test_everybody_finds_out_what_is_served_and_who_one_is() -> None:
    async with guarded() as api:
        assert (await api.get("/apis", user=ALICE)).code == 200
        assert (await api.get("/apis", user=ANONYMOUS)).code == 403
        assert (await api.get("/healthz", user=ANONYMOUS)).code == 200
        assert (await api.get("/metrics", user=ALICE)).code == 403
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        answer = await api.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review, user=ALICE)
        assert answer.body["status"]["userInfo"] == {
            "username": "alice", "uid": "uid-alice", "groups": ["dev", "system:authenticated"]
        }  # fmt: skip


@on_loop
async def test_paths_that_look_like_others_open_nothing() -> None:
    async with guarded() as api:
        for path in ("/healthz/../metrics", "//metrics", "/apis/../metrics", "/metrics/", "/api/../metrics"):
            assert (await api.get(path, user=ALICE)).code in (400, 403, 404), path


@on_loop
async def test_a_member_of_masters_needs_no_role() -> None:
    async with guarded() as api:
        await api.delete(f"{RBAC}/clusterrolebindings/cluster-admin", user=ADMIN)
        assert (await api.get(CLASSES, user=ADMIN)).code == 200


@on_loop
async def test_the_self_review_says_what_a_request_would_meet() -> None:
    async with guarded() as api:
        await grant(api, "alice", READ_CLAIMS)
        for verb, allowed in (("get", True), ("delete", False)):
            asked = {"namespace": "default", "verb": verb, "group": "resource.k8s.io", "resource": "resourceclaims"}
            review = {"kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": asked}}
            answer = await api.create(f"{REVIEWS}/selfsubjectaccessreviews", review, user=ALICE)
            assert answer.body["status"]["allowed"] is allowed


@on_loop
async def test_one_may_ask_for_another_with_the_right_to_ask() -> None:
    async with guarded() as api:
        await grant(api, "alice", READ_CLAIMS)
        asked = {"namespace": "default", "verb": "list", "group": "resource.k8s.io", "resource": "resourceclaims"}
        review = {"kind": "SubjectAccessReview", "spec": {"user": "alice", "resourceAttributes": asked}}
        assert (await api.create(f"{REVIEWS}/subjectaccessreviews", review, user=BOB)).code == 403
        answer = await api.create(f"{REVIEWS}/subjectaccessreviews", review, user=ADMIN)
        assert answer.body["status"] == {
            "allowed": True,
            "reason": 'RBAC: allowed by RoleBinding "alice-rights/default" of Role "alice-rights" to User "alice"',
        }


@on_loop
async def test_the_rules_review_lists_what_holds_in_a_namespace() -> None:
    async with guarded() as api:
        await grant(api, "alice", READ_CLAIMS)
        review = {"kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"}}
        status = (await api.create(f"{REVIEWS}/selfsubjectrulesreviews", review, user=ALICE)).body["status"]
        assert READ_CLAIMS in status["resourceRules"]
        assert any("/apis" in each["nonResourceURLs"] for each in status["nonResourceRules"])
        assert status["incomplete"] is False


@on_loop
async def test_a_watch_needs_the_right_to_watch() -> None:
    async with guarded() as api:
        await grant(api, "alice", rule("list", "resource.k8s.io", "resourceclaims"))
        assert (await api.get(CLAIMS, user=ALICE)).code == 200
        assert (await api.get(CLAIMS, user=ALICE, watch="true")).code == 403


@on_loop
async def test_a_right_in_one_namespace_is_none_in_another_or_in_all() -> None:
    async with guarded() as api:
        await api.create(NAMESPACES, namespace("other"), user=ADMIN)
        await grant(api, "alice", READ_CLAIMS)
        assert (await api.get(CLAIMS.replace("default", "other"), user=ALICE)).code == 403
        assert (await api.get("/apis/resource.k8s.io/v1/resourceclaims", user=ALICE)).code == 403


@on_loop
async def test_groups_that_a_user_claims_count_only_when_the_server_knows_them() -> None:
    async with guarded() as api:
        await api.create(f"{RBAC}/clusterroles", role("r", READ_CLAIMS, kind="ClusterRole"), user=ADMIN)
        bound = binding("b", "r", group("dev"), kind="ClusterRoleBinding", role_kind="ClusterRole")
        await api.create(f"{RBAC}/clusterrolebindings", bound, user=ADMIN)
        assert (await api.get(CLAIMS, user=ALICE)).code == 200
        headers = {"x-remote-user": "alice", "x-remote-group": "dev"}
        assert (await api.get(CLAIMS, user=User(name="mallory"), headers=headers)).code == 403


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        ("SelfSubjectAccessReview", {}, "spec.resourceAttributes"),
        (
            "SelfSubjectAccessReview",
            {"resourceAttributes": {}, "nonResourceAttributes": {}},
            "spec.nonResourceAttributes",
        ),
        ("SubjectAccessReview", {"nonResourceAttributes": {"path": "/x"}}, "spec.user"),
        (
            "LocalSubjectAccessReview",
            {"user": "x", "resourceAttributes": {"namespace": "other"}},
            "spec.resourceAttributes.namespace",
        ),
    ],
)
def test_a_review_that_asks_nothing_is_refused(kind: str, spec: dict[str, Any], field: str) -> None:
    @on_loop
    async def run() -> None:
        async with guarded() as api:
            place = f"{REVIEWS}/namespaces/default" if kind.startswith("Local") else REVIEWS
            answer = await api.create(f"{place}/{kind.lower()}s", {"kind": kind, "spec": spec}, user=ADMIN)
            assert answer.code == 422, answer.body
            assert field in [cause["field"] for cause in answer.body["details"]["causes"]]

    run()


@on_loop
async def test_a_review_of_a_node_s_list_knows_its_selector() -> None:
    async with guarded() as api:
        for node, allowed in (("node-a", True), ("node-b", False)):
            requirement = {"key": "spec.nodeName", "operator": "In", "values": [node]}
            asked = {
                "verb": "list", "group": "resource.k8s.io", "resource": "resourceslices",
                "fieldSelector": {"requirements": [requirement]},
            }  # fmt: skip
            spec = {"user": NODE_A.name, "groups": ["system:nodes"], "resourceAttributes": asked}
            review = {"kind": "SubjectAccessReview", "spec": spec}
            answer = await api.create(f"{REVIEWS}/subjectaccessreviews", review, user=ADMIN)
            assert answer.body["status"]["allowed"] is allowed
