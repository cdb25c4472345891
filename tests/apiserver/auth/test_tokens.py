"""Tokens are good for whom, where and as long as they say, and no longer than what they are bound to."""

from __future__ import annotations

import base64
import json

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from drakit.api.exchange import User
from drakit.apiserver.auth.tokens.serviceaccounts import new_key
from drakit.apiserver.serving.composition import ISSUER
from tests.apiserver.auth.bearers import ACCOUNTS, account, code, token
from tests.apiserver.auth.people import ADMIN, ALICE, Plain, grant, guarded, rule
from tests.apiserver.calls import CLAIMS, NAMESPACES, PODS, Api, namespace, on_loop
from tests.builders.documents import pod_document

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


async def review(api: Api, bearer: str, *audiences: str) -> Plain:
    spec = {"token": bearer, **({"audiences": list(audiences)} if audiences else {})}
    answer = await api.create(REVIEWS, {"kind": "TokenReview", "spec": spec}, user=ADMIN)
    status: Plain = answer.body["status"]
    return status


@on_loop
async def test_a_token_stands_for_its_account() -> None:
    async with guarded() as api:
        await account(api)
        await grant(
            api, "system:serviceaccount:default:bot", rule("list", "resource.k8s.io", "resourceclaims"), name="r"
        )
        bearer = {"authorization": f"Bearer {await token(api)}"}
        assert (await api.get(CLAIMS, headers=bearer)).code == 200
        assert (await api.get(PODS, headers=bearer)).code == 403


@on_loop
async def test_a_token_ends_at_its_time() -> None:
    async with guarded() as api:
        await account(api)
        bearer = await token(api, expirationSeconds=600)
        api.clock.advance(599.0)
        assert await code(api, bearer) == 201
        api.clock.advance(2.0)
        assert await code(api, bearer) == 401
        assert (await review(api, bearer))["error"] == "[invalid bearer token, service account token has expired]"


@on_loop
async def test_a_token_for_another_audience_opens_nothing_here() -> None:
    async with guarded() as api:
        await account(api)
        bearer = await token(api, audiences=["vault"])
        assert await code(api, bearer) == 401
        assert (await review(api, bearer))["error"].startswith('[invalid bearer token, token audiences ["vault"]')
        found = await review(api, bearer, "vault", "other")
        assert (found["authenticated"], found["audiences"]) == (True, ["vault"])


def forged(key: ec.EllipticCurvePrivateKey, good: str) -> str:
    claims = jwt.decode(good, options={"verify_signature": False})
    return jwt.encode(claims, key, algorithm="ES256")


def unsigned(good: str) -> str:
    head = base64.urlsafe_b64encode(json.dumps({"alg": "none", "typ": "JWT"}).encode()).decode().rstrip("=")
    return f"{head}.{good.split('.')[1]}."


def tampered(good: str) -> str:
    head, body, signature = good.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    claims["kubernetes.io"]["serviceaccount"]["name"] = "root"
    return f"{head}.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.{signature}"


@on_loop
async def test_a_wrong_signature_is_refused() -> None:
    async with guarded() as api:
        await account(api)
        good = await token(api)
        assert await code(api, good) == 201
        hmac = jwt.encode(jwt.decode(good, options={"verify_signature": False}), "x" * 32, algorithm="HS256")
        for bad in (forged(new_key(), good), unsigned(good), tampered(good), hmac, good[:-4] + "AAAA", "a.b.c", "."):
            assert await code(api, bad) == 401, bad
        assert await review(api, forged(new_key(), good)) == {"user": {}, "error": "[invalid bearer token, unknown]"}


@on_loop
async def test_a_token_of_another_issuer_is_refused() -> None:
    key = new_key()
    async with guarded(signing_key=key) as api:
        await account(api)
        claims = jwt.decode(await token(api), options={"verify_signature": False})
        assert claims["iss"] == ISSUER
        foreign = jwt.encode({**claims, "iss": "https://elsewhere.example.com"}, key, algorithm="ES256")
        assert await code(api, foreign) == 401


@on_loop
async def test_a_token_ends_with_its_account_also_when_one_of_the_same_name_comes() -> None:
    async with guarded() as api:
        await account(api)
        bearer = await token(api)
        await api.delete(f"{ACCOUNTS}/bot", user=ADMIN)
        assert await code(api, bearer) == 401
        await account(api)
        assert await code(api, bearer) == 401


@on_loop
async def test_a_token_bound_to_a_pod_ends_with_it_and_tells_pod_and_node() -> None:
    async with guarded() as api:
        await account(api)
        node = await api.create("/api/v1/nodes", {"kind": "Node", "metadata": {"name": "node-a"}}, user=ADMIN)
        made = await api.create(
            PODS, pod_document("p", {"nodeName": "node-a", "serviceAccountName": "bot"}), user=ADMIN
        )
        bearer = await token(api, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})
        user = (await review(api, bearer))["user"]
        extra = {key.removeprefix("authentication.kubernetes.io/"): value for key, value in user["extra"].items()}
        assert extra.pop("credential-id")[0].startswith("JTI=")
        assert extra == {
            "pod-name": ["p"], "pod-uid": [made.body["metadata"]["uid"]],
            "node-name": ["node-a"], "node-uid": [node.body["metadata"]["uid"]],
        }  # fmt: skip
        await api.delete(f"{PODS}/p", user=ADMIN, gracePeriodSeconds="0")
        assert await code(api, bearer) == 401


@on_loop
async def test_a_pod_that_is_ending_keeps_its_token_for_a_moment() -> None:
    async with guarded() as api:
        await account(api)
        await api.create(PODS, pod_document("p", {"nodeName": "node-a", "serviceAccountName": "bot"}), user=ADMIN)
        bearer = await token(api, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})
        await api.delete(f"{PODS}/p", user=ADMIN, gracePeriodSeconds="30")
        assert await code(api, bearer) == 201
        api.clock.advance(120.0)
        assert await code(api, bearer) == 401


@pytest.mark.parametrize(
    ("kind", "path"), [("Secret", "/api/v1/namespaces/default/secrets"), ("Node", "/api/v1/nodes")]
)
def test_a_token_ends_with_the_object_that_it_is_bound_to(kind: str, path: str) -> None:
    @on_loop
    async def run() -> None:
        async with guarded() as api:
            await account(api)
            await api.create(path, {"kind": kind, "metadata": {"name": "x"}}, user=ADMIN)
            bearer = await token(api, boundObjectRef={"kind": kind, "apiVersion": "v1", "name": "x"})
            assert await code(api, bearer) == 201
            await api.delete(f"{path}/x", user=ADMIN)
            assert await code(api, bearer) == 401

    run()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"expirationSeconds": 60}, 422),
        ({"expirationSeconds": 1 << 40}, 422),
        ({"expirationSeconds": "soon"}, 400),
        ({"audiences": "vault"}, 400),
        ({"boundObjectRef": {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "name": "x"}}, 400),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "none"}}, 404),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "other"}}, 400),
        ({"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "n", "uid": "x"}}, 409),
    ],
)
def test_a_token_that_cannot_be_is_refused(spec: Plain, expected: int) -> None:
    @on_loop
    async def run() -> None:
        async with guarded() as api:
            await account(api)
            await api.create(PODS, pod_document("other"), user=ADMIN)
            await api.create("/api/v1/nodes", {"kind": "Node", "metadata": {"name": "n"}}, user=ADMIN)
            answer = await api.create(f"{ACCOUNTS}/bot/token", {"spec": spec}, user=ADMIN)
            assert answer.code == expected, answer.body

    run()


@on_loop
async def test_tokens_outlive_a_restart_with_the_same_key_and_only_then() -> None:
    key = new_key()
    async with guarded(signing_key=key, new_uid=lambda: "same") as api:
        await account(api)
        bearer = await token(api)
    async with guarded(signing_key=key, new_uid=lambda: "same") as api:
        await account(api)
        assert await code(api, bearer) == 201
    async with guarded(new_uid=lambda: "same") as api:
        await account(api)
        assert await code(api, bearer) == 401


@on_loop
async def test_to_make_tokens_is_a_right_of_its_own() -> None:
    async with guarded() as api:
        await account(api)
        await grant(api, "alice", rule("*", "", "serviceaccounts"))
        assert (await api.get(f"{ACCOUNTS}/bot", user=ALICE)).code == 200
        assert (await api.create(f"{ACCOUNTS}/bot/token", {}, user=ALICE)).code == 403


@on_loop
async def test_a_server_without_roles_knows_its_tokens_too() -> None:
    async with guarded(modes=()) as api:
        await account(api)
        bearer = await token(api)
        assert await code(api, bearer) == 201
        await api.create(NAMESPACES, namespace("x"), user=User(name="anybody"))
        await api.delete(f"{ACCOUNTS}/bot", user=ADMIN)
        assert await code(api, bearer) == 401
