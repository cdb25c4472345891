"""Few rights stay few: nobody creates without the right to create, and no token stands for more than it says."""

from __future__ import annotations

import jwt
import pytest

from drakit.apiserver.auth.tokens.serviceaccounts import new_key
from tests.apiserver.auth.bearers import account, code, token
from tests.apiserver.auth.people import ALICE, Plain, grant, guarded, rule
from tests.apiserver.calls import PODS, on_loop
from tests.builders.documents import pod_document

APPLY = "application/apply-patch+yaml"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
LEASE: Plain = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}}


@on_loop
async def test_an_apply_creates_only_for_who_may_create() -> None:
    async with guarded() as api:
        await grant(api, "alice", rule("get patch", "", "pods"))
        sent: Plain = {"user": ALICE, "content": APPLY, "fieldManager": "alice"}
        refused = await api.patch(f"{PODS}/a", pod_document("a"), **sent)
        assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
        assert 'User "alice" cannot create resource "pods"' in refused.message
        assert (await api.get(f"{PODS}/a", user=ALICE)).code == 404
        await grant(api, "alice", rule("create", "", "pods"), name="more")
        assert (await api.patch(f"{PODS}/a", pod_document("a"), **sent)).code == 201
        assert (await api.patch(f"{PODS}/a", pod_document("a", {"priority": 0}), **sent)).code == 200


@on_loop
async def test_an_update_creates_only_for_who_may_create() -> None:
    async with guarded() as api:
        await grant(api, "alice", rule("update", "coordination.k8s.io", "leases"))
        refused = await api.update(f"{LEASES}/a", LEASE, user=ALICE)
        assert refused.code == 403
        assert 'cannot create resource "leases"' in refused.message
        await grant(api, "alice", rule("create", "coordination.k8s.io", "leases"), name="more")
        assert (await api.update(f"{LEASES}/a", LEASE, user=ALICE)).code == 201


@pytest.mark.parametrize(
    "change",
    [
        {"kubernetes.io": None},
        {"kubernetes.io": {}},
        {"kubernetes.io": {"namespace": "default"}},
        {"kubernetes.io": {"namespace": "default", "serviceaccount": "bot"}},
        {"kubernetes.io": {"namespace": "default", "serviceaccount": {"uid": "x"}}},
        {"exp": "soon"},
        {"nbf": {}},
        {"aud": 7},
        {"jti": ["a"]},
    ],
)
def test_a_token_that_lacks_claims_is_unauthorized(change: Plain) -> None:
    @on_loop
    async def run() -> None:
        key = new_key()
        async with guarded(signing_key=key) as api:
            await account(api)
            good = await token(api)
            claims = {**jwt.decode(good, options={"verify_signature": False}), **change}
            bad = jwt.encode({name: value for name, value in claims.items() if value is not None}, key, "ES256")
            assert (await code(api, good), await code(api, bad)) == (201, 401)

    run()
