"""Nobody grants what he does not have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.auth.people import (
    ADMIN,
    ALICE,
    GROUP,
    RBAC,
    Plain,
    account,
    binding,
    grant,
    guarded,
    person,
    role,
    rule,
)
from tests.apiserver.calls import on_loop

ROLES = f"{RBAC}/namespaces/default/roles"
BINDINGS = f"{RBAC}/namespaces/default/rolebindings"
MANAGE = rule("create update patch get", GROUP, "roles rolebindings clusterroles clusterrolebindings")
PODS = rule("get list", "", "pods")
SECRETS = rule("get", "", "secrets")


@on_loop
async def test_a_role_holds_no_more_than_its_maker() -> None:
    async with guarded() as api:
        await grant(api, "alice", MANAGE, PODS)
        assert (await api.create(ROLES, role("fine", PODS), user=ALICE)).code == 201
        refused = await api.create(ROLES, role("greedy", PODS, SECRETS), user=ALICE)
        assert refused.code == 403
        assert refused.message == (
            'roles.rbac.authorization.k8s.io "greedy" is forbidden: user "alice" '
            '(groups=["dev" "system:authenticated"]) '
            "is attempting to grant RBAC permissions not currently held:\n"
            '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
        )


@on_loop
async def test_an_update_or_patch_adds_no_more_than_its_maker_has() -> None:
    async with guarded() as api:
        await grant(api, "alice", MANAGE, PODS)
        await api.create(ROLES, role("r", PODS), user=ADMIN)
        assert (await api.update(f"{ROLES}/r", role("r", SECRETS), user=ALICE)).code == 403
        assert (await api.patch(f"{ROLES}/r", {"rules": [PODS, SECRETS]}, user=ALICE)).code == 403
        assert (await api.update(f"{ROLES}/new", role("new", SECRETS), user=ALICE)).code == 403
        assert (await api.patch(f"{ROLES}/r", {"rules": []}, user=ALICE)).code == 200


@on_loop
async def test_housekeeping_needs_no_rights_of_the_role() -> None:
    async with guarded() as api:
        await grant(api, "alice", MANAGE)
        await api.create(ROLES, role("r", SECRETS), user=ADMIN)
        answer = await api.patch(f"{ROLES}/r", {"metadata": {"finalizers": ["example.com/hold"]}}, user=ALICE)
        assert answer.code == 200
        assert (await api.patch(f"{ROLES}/r", {"metadata": {"labels": {"a": "b"}}}, user=ALICE)).code == 403


@on_loop
async def test_a_binding_gives_no_more_than_its_maker_has() -> None:
    async with guarded() as api:
        await grant(api, "alice", MANAGE)
        await api.create(ROLES, role("r", SECRETS), user=ADMIN)
        refused = await api.create(BINDINGS, binding("b", "r", person("alice")), user=ALICE)
        assert refused.code == 403
        assert "not currently held" in refused.message
        missing = await api.create(BINDINGS, binding("b", "none", person("alice")), user=ALICE)
        assert (missing.code, missing.message) == (404, f'roles.{GROUP} "none" not found')


@on_loop
async def test_the_verbs_bind_and_escalate_lift_the_check() -> None:
    async with guarded() as api:
        await grant(api, "alice", MANAGE, rule("bind", GROUP, "roles", "r"), rule("escalate", GROUP, "roles", "mine"))
        await api.create(ROLES, role("r", SECRETS), user=ADMIN)
        await api.create(ROLES, role("other", SECRETS), user=ADMIN)
        await api.create(ROLES, role("mine"), user=ADMIN)
        assert (await api.create(BINDINGS, binding("b", "r", person("bob")), user=ALICE)).code == 201
        assert (await api.create(BINDINGS, binding("c", "other", person("bob")), user=ALICE)).code == 403
        assert (await api.update(f"{ROLES}/mine", role("mine", SECRETS), user=ALICE)).code == 200
        assert (await api.update(f"{ROLES}/other", role("other", PODS), user=ALICE)).code == 403


@on_loop
async def test_aggregation_is_for_those_who_may_do_everything() -> None:
    async with guarded() as api:
        await grant(api, "alice", MANAGE, namespace="")
        selector: Plain = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
        made = role("sum", kind="ClusterRole", aggregationRule=selector)
        refused = await api.create(f"{RBAC}/clusterroles", made, user=ALICE)
        assert refused.message.endswith("must have cluster-admin privileges to use the aggregationRule")
        assert (await api.create(f"{RBAC}/clusterroles", made, user=ADMIN)).code == 201


@on_loop
async def test_the_check_cannot_be_switched_off() -> None:
    with pytest.raises(Exception, match="unknown admission plugin"):
        async with guarded(disable_plugins=("RBACEscalation",)):
            pass


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (role("r", {"verbs": [], "apiGroups": [""], "resources": ["pods"]}), "rules[0].verbs"),
        (role("r", {"verbs": ["get"], "resources": ["pods"]}), "rules[0].apiGroups"),
        (role("r", {"verbs": ["get"], "apiGroups": [""]}), "rules[0].resources"),
        (role("r", {"verbs": ["get"], "nonResourceURLs": ["/x"]}), "rules[0].nonResourceURLs"),
        (binding("b", "r", {"kind": "Robot", "name": "x"}), "subjects[0].kind"),
        (binding("b", "r", account("UPPER", "default")), "subjects[0].name"),
        (binding("b", "a/b", person("alice")), "roleRef.name"),
        (binding("b", "r", person("alice"), role_kind="Realm"), "roleRef.kind"),
    ],
)
def test_what_makes_no_sense_is_refused(document: dict[str, Any], field: str) -> None:
    @on_loop
    async def run() -> None:
        async with guarded() as api:
            path = ROLES if document["kind"] == "Role" else BINDINGS
            answer = await api.create(path, document, user=ADMIN)
            assert answer.code == 422
            assert field in [cause["field"] for cause in answer.body["details"]["causes"]]

    run()


@on_loop
async def test_a_binding_stays_with_its_role() -> None:
    async with guarded() as api:
        await api.create(BINDINGS, binding("b", "r", person("alice")), user=ADMIN)
        answer = await api.update(f"{BINDINGS}/b", binding("b", "other", person("alice")), user=ADMIN)
        assert answer.code == 422
        assert "cannot change roleRef" in answer.message
