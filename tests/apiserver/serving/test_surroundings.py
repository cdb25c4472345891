"""What parts of Kubernetes look for around the objects: endpoints, the token issuer, health, roles, components."""

from __future__ import annotations

import jwt

from drakit.api.exchange import User
from drakit.apiserver import Settings
from tests.apiserver.calls import Api, on_loop, serving

ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"
ENDPOINT_SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
COMPONENTS = "/api/v1/componentstatuses"
ADMIN = User(name="admin", groups=("system:masters",))
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


async def pointed_at(api: Api) -> tuple[str, int]:
    subset = (await api.get(ENDPOINTS)).body["subsets"][0]
    endpoint = (await api.get(ENDPOINT_SLICE)).body
    assert endpoint["endpoints"][0]["addresses"] == [subset["addresses"][0]["ip"]]
    assert endpoint["ports"][0]["port"] == subset["ports"][0]["port"]
    return subset["addresses"][0]["ip"], subset["ports"][0]["port"]


@on_loop
async def test_the_service_kubernetes_leads_to_the_server() -> None:
    async with serving() as api:
        assert (await api.get(ENDPOINTS)).code == 404
        await api.server.announce("192.0.2.7:6443")
        assert await pointed_at(api) == ("192.0.2.7", 6443)
        before = (await api.get(ENDPOINTS)).version
        await api.server.announce("192.0.2.7:6443")
        assert (await api.get(ENDPOINTS)).version == before
        await api.server.announce("[2001:db8::1]:7443")
        assert await pointed_at(api) == ("2001:db8::1", 7443)
        assert (await api.get(ENDPOINT_SLICE)).body["addressType"] == "IPv6"
        await api.server.announce("a-name:6443", client_ca="PEM")  # cannot be pointed to
        trusted = await api.get("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")
        assert trusted.body["data"] == {"client-ca-file": "PEM"}
        assert await pointed_at(api) == ("2001:db8::1", 7443)


@on_loop
async def test_a_token_can_be_verified_by_what_discovery_of_the_issuer_says() -> None:
    async with serving() as api:
        await api.server.announce("192.0.2.7:6443")
        await api.create(ACCOUNTS, {"metadata": {"name": "a"}})
        issued = await api.create(f"{ACCOUNTS}/a/token", {"spec": {"audiences": ["them"]}})
        about = await api.get("/.well-known/openid-configuration")
        assert about.body["jwks_uri"] == "https://192.0.2.7:6443/openid/v1/jwks"
        keys = await api.get("/openid/v1/jwks")
        assert keys.response.content_type == "application/jwk-set+json"
        token = issued.body["status"]["token"]
        (key,) = (each for each in keys.body["keys"] if each["kid"] == jwt.get_unverified_header(token)["kid"])
        claims = jwt.decode(
            token, jwt.PyJWK(key), algorithms=about.body["id_token_signing_alg_values_supported"], audience="them",
            issuer=about.body["issuer"], options={"verify_exp": False, "verify_nbf": False, "verify_iat": False},
        )  # fmt: skip
        assert claims["sub"] == "system:serviceaccount:default:a"


@on_loop
async def test_readiness_says_which_part_is_not_ready() -> None:
    async with serving(Settings(modes=("RBAC",))) as api:
        answers = (await api.get("/readyz", verbose="", user=ADMIN)).body
        assert answers.endswith("readyz check passed\n")
        for name in ("ping", "store", "etcd", "informer-sync", "poststarthook/rbac/bootstrap-roles"):
            assert f"[+]{name} ok\n" in answers
            assert (await api.get(f"/readyz/{name}", user=ADMIN)).body == "ok"
        await api.delete(f"{ROLES}/cluster-admin", user=ADMIN)
        refused = await api.get("/readyz", user=ADMIN)
        assert refused.code == 500
        assert "[-]poststarthook/rbac/bootstrap-roles failed: the role cluster-admin is not there" in refused.body
        assert (await api.get("/livez", user=ADMIN)).body == "ok"


@on_loop
async def test_the_controllers_of_kubernetes_have_their_roles() -> None:
    async with serving(Settings(modes=("RBAC",))) as api:
        names = {item["metadata"]["name"] for item in (await api.get(ROLES, user=ADMIN)).body["items"]}
        for name in ("ttl-controller", "legacy-service-account-token-cleaner", "job-controller", "endpoint-controller"):
            assert f"system:controller:{name}" in names


@on_loop
async def test_the_state_of_components_is_told() -> None:
    async with serving() as api:
        shown = {item["metadata"]["name"]: item["conditions"][0] for item in (await api.get(COMPONENTS)).body["items"]}
        assert shown["etcd-0"] == {"type": "Healthy", "status": "True", "message": "ok"}
        assert shown["scheduler"]["status"] == "Unknown"
        renewed = api.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": renewed}
        await api.create(LEASES, {"metadata": {"name": "kube-scheduler"}, "spec": spec})
        assert (await api.get(f"{COMPONENTS}/scheduler")).body["conditions"][0]["status"] == "True"
        api.clock.advance(60)
        late = (await api.get(f"{COMPONENTS}/scheduler")).body["conditions"][0]
        assert (late["status"], late["message"]) == ("False", "me has not renewed its lease for 60 s")
        assert (await api.get(f"{COMPONENTS}/nobody")).code == 404
        table = (await api.get(COMPONENTS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")).body
        assert table["rows"][2]["cells"] == ["etcd-0", "Healthy", "ok", ""]
