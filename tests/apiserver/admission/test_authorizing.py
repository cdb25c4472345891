"""Policies that ask what a user may do: the variable `authorizer`."""

from __future__ import annotations

import pytest

from drakit.api.exchange import User
from drakit.apiserver import Settings
from drakit.apiserver.auth.roles.builders import account, binding, group, on, role
from tests.apiserver.admission.objects import BINDINGS, POLICIES, policy
from tests.apiserver.admission.objects import binding as binding_of_policy
from tests.apiserver.calls import CLAIMS, Api, on_loop, serving
from tests.builders.documents import claim_document

ADMIN = User(name="admin", groups=("system:masters",))
ANN = User(name="ann", groups=("team",))
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
CLAIM = "authorizer.group('resource.k8s.io').resource('resourceclaims').namespace('default')"

ROBOT = "authorizer.serviceAccount('default', 'robot')"


async def team(api: Api) -> None:
    """Ann's team may write claims, and use those of the name `a` in a way of its own."""
    rules = [
        on("create get patch", "resource.k8s.io", "resourceclaims"),
        on("reserve", "resource.k8s.io", "resourceclaims", "a"),
    ]
    await api.create(f"{ROLES}/roles", role("default", "team", rules), user=ADMIN)
    subjects = [group("team"), account("default", "robot")]
    await api.create(f"{ROLES}/rolebindings", binding("default", "team", subjects), user=ADMIN)


async def guard(api: Api, expression: str) -> None:
    assert (await api.create(POLICIES, policy("p", {"expression": expression}), user=ADMIN)).code == 201
    assert (await api.create(BINDINGS, binding_of_policy("b", "p"), user=ADMIN)).code == 201


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        (f"{CLAIM}.check('create').allowed()", True),
        (f"{CLAIM}.check('delete').allowed()", False),
        (f"{CLAIM}.name('a').check('reserve').allowed()", True),
        (f"{CLAIM}.name('b').check('reserve').allowed()", False),
        (f"{CLAIM}.subresource('status').check('update').allowed()", False),
        (f"{CLAIM.replace('default', 'other')}.check('create').allowed()", False),
        ("authorizer.requestResource.check('reserve').allowed()", True),
        ("authorizer.requestResource.check('delete').allowed()", False),
        ("authorizer.path('/metrics').check('get').allowed()", False),
        (f"{CLAIM.replace('authorizer', ROBOT)}.check('create').allowed()", True),
        (f"{CLAIM.replace('authorizer', ROBOT).replace('robot', 'other')}.check('create').allowed()", False),
        (f"!{CLAIM}.check('create').errored() && {CLAIM}.check('create').error() == ''", True),
        (f"{CLAIM}.check('create').reason().contains('team')", True),
    ],
)  # fmt: skip
def test_a_policy_asks_what_the_user_may_do(expression: str, holds: bool) -> None:
    @on_loop
    async def run() -> None:
        async with serving(Settings(modes=("RBAC",))) as api:
            await team(api)
            await guard(api, expression)
            answer = await api.create(CLAIMS, claim_document("a"), user=ANN)
            assert (answer.code == 201) is holds, answer.body

    run()


@on_loop
async def test_a_policy_may_not_ask_for_ever() -> None:
    many = " && ".join([f"{CLAIM}.check('create').allowed()"] * 30)
    async with serving(Settings(modes=("RBAC",))) as api:
        await team(api)
        await guard(api, many)
        refused = await api.create(CLAIMS, claim_document("a"), user=ANN)
        assert refused.code == 422
        assert "more than 28 checks of the authorizer" in refused.message
