"""Ways to spell a path: whichever is taken, the rights are those for what is reached."""

from __future__ import annotations

import pytest

from tests.apiserver.auth.people import ADMIN, ALICE, grant, guarded, rule
from tests.apiserver.calls import CLAIMS, NAMESPACES, namespace, on_loop
from tests.builders.documents import claim_document

V1 = "/apis/resource.k8s.io/v1"
OTHER = f"{V1}/namespaces/other/resourceclaims"
SECRETS = "/api/v1/namespaces/default/secrets"
TRICKS = (
    f"{V1}/namespaces/default/../other/resourceclaims/theirs",
    f"{V1}/namespaces/default/resourceclaims/../../other/resourceclaims/theirs",
    f"{V1}/namespaces/./other/resourceclaims/theirs",
    f"{V1}//namespaces//other//resourceclaims//theirs",
    f"/{V1}/namespaces/other/resourceclaims/theirs/",
    f"{V1}/namespaces/other/resourceclaims/theirs/status",
    f"{V1}/namespaces/other/resourceclaims/theirs/status/",
    f"{V1}/watch/namespaces/other/resourceclaims/theirs",
    f"{V1}/watch/watch/namespaces/other/resourceclaims",
    f"{V1}/resourceclaims",
    f"{V1}/resourceclaims/theirs",
    f"{V1}/namespaces/default,other/resourceclaims/theirs",
    f"{V1}/namespaces/*/resourceclaims",
    f"{V1}/namespaces/OTHER/resourceclaims/theirs",
    f"{V1}/namespaces/other/RESOURCECLAIMS/theirs",
    f"{V1}/namespaces/other/resourceclaim/theirs",
    f"{V1}beta1/namespaces/other/resourceclaims/theirs",
    f"{V1}beta2/namespaces/other/resourceclaims/theirs",
    f"{V1}/namespaces/other\x00/resourceclaims/theirs",
    f"{V1}/namespaces/default\\..\\other/resourceclaims/theirs",
    f"{V1}/namespaces/default%2f..%2fother/resourceclaims/theirs",
    f"{V1}/namespaces/other;/resourceclaims/theirs",
    f"{V1}/namespaces/other/resourceclaims/theirs?namespace=default",
    f"{SECRETS}/key",
    f"{SECRETS}/../secrets/key",
    f"{SECRETS}//key",
    "/api/v1/proxy/namespaces/default/secrets/key",
    "/metrics",
    "/healthz/../metrics",
    "/openapi/../metrics",
    "/version/../metrics",
    "/METRICS",
    "metrics",
)


@pytest.mark.parametrize("path", TRICKS)
def test_no_spelling_of_a_path_leads_around_the_rights(path: str) -> None:
    @on_loop
    async def run() -> None:
        async with guarded() as api:
            await api.create(NAMESPACES, namespace("other"), user=ADMIN)
            for place, name in ((CLAIMS, "mine"), (OTHER, "theirs")):
                assert (await api.create(place, claim_document(name), user=ADMIN)).code == 201
            secret = {"metadata": {"name": "key"}, "stringData": {"a": "secret"}}
            await api.create(SECRETS, secret, user=ADMIN)
            await grant(api, "alice", rule("*", "resource.k8s.io", "resourceclaims resourceclaims/status"))
            assert (await api.get(f"{CLAIMS}/mine", user=ALICE)).code == 200
            for method in ("GET", "DELETE", "PUT", "PATCH", "POST"):
                answer = await api.send(method, path, {} if method != "GET" else None, user=ALICE)
                assert answer.code in (400, 403, 404, 405), (method, answer.body)
            assert (await api.get(f"{OTHER}/theirs", user=ADMIN)).code == 200

    run()


@on_loop
async def test_an_object_does_not_name_the_namespace_that_it_goes_to() -> None:
    async with guarded() as api:
        await api.create(NAMESPACES, namespace("other"), user=ADMIN)
        await grant(api, "alice", rule("create", "resource.k8s.io", "resourceclaims"))
        assert (await api.create(CLAIMS, claim_document("a", namespace="other"), user=ALICE)).code == 400
        assert (await api.create(OTHER, claim_document("a", namespace="default"), user=ALICE)).code == 403
        assert (await api.get(OTHER, user=ADMIN)).names == []


@on_loop
async def test_a_right_on_one_name_is_none_on_a_name_that_the_body_brings() -> None:
    async with guarded() as api:
        await api.create(CLAIMS, claim_document("theirs"), user=ADMIN)
        await api.create(CLAIMS, claim_document("mine"), user=ADMIN)
        await grant(api, "alice", rule("get update patch delete", "resource.k8s.io", "resourceclaims", "mine"))
        assert (await api.update(f"{CLAIMS}/mine", claim_document("theirs"), user=ALICE)).code == 400
        assert (await api.patch(f"{CLAIMS}/mine", {"metadata": {"name": "theirs"}}, user=ALICE)).code in (400, 422)
        assert (await api.delete(f"{CLAIMS}/theirs", user=ALICE)).code == 403
        assert (await api.delete(CLAIMS, user=ALICE, fieldSelector="metadata.name=theirs")).code == 403
        assert (await api.get(f"{CLAIMS}/theirs", user=ADMIN)).code == 200
