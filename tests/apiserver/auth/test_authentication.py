"""Who asks: tokens, certificates, nobody; and what happens to those who may not."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from drakit.api.exchange import Request, User
from drakit.apiserver import Settings
from drakit.apiserver.auth.authentication import (
    ANONYMOUS,
    Authentication,
    BearerTokens,
    ClientCertificates,
    StaticTokens,
)
from drakit.apiserver.auth.authorization import (
    AlwaysAllow,
    AlwaysDeny,
    Attributes,
    AuthorizationResult,
    AuthorizerUnion,
    Decision,
)
from drakit.apiserver.auth.certificates import Authority
from drakit.apiserver.failures import ApiError
from drakit.base.clock import FakeClock
from drakit.base.errors import UsageError
from tests.apiserver.calls import CLAIMS, on_loop, serving

TOKENS = 'secret,ann,7,"dev,ops"\nplain,bob,8\n# a comment\n'


def asking(token: str = "", certificate: bytes | None = None) -> Request:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return Request(method="GET", path="/", headers=headers, certificate=certificate)


def test_a_token_file_has_users_uids_and_groups() -> None:
    tokens = StaticTokens.parse(TOKENS)
    assert tokens.user("secret") == User(name="ann", uid="7", groups=("dev", "ops"))
    assert tokens.user("plain") == User(name="bob", uid="8")
    assert tokens.user("other") is None


def test_a_line_that_is_too_short_is_named() -> None:
    with pytest.raises(UsageError, match="tokens, line 2"):
        StaticTokens.parse("a,b,c\nonly,two\n", source="tokens")


def test_a_token_that_nobody_issued_is_refused_and_none_at_all_is_anonymous() -> None:
    authentication = Authentication([BearerTokens([StaticTokens.parse(TOKENS)])])
    assert authentication.authenticate(asking("secret")).groups == ("dev", "ops", "system:authenticated")
    assert authentication.authenticate(asking()) == ANONYMOUS
    with pytest.raises(ApiError) as refused:
        authentication.authenticate(asking("guess"))
    assert refused.value.status.code == 401


def test_anonymous_requests_can_be_refused() -> None:
    with pytest.raises(ApiError):
        Authentication([], anonymous=False).authenticate(asking())


def test_a_certificate_names_its_user_and_groups(tmp_path_factory: pytest.TempPathFactory) -> None:
    authority = Authority(tmp_path_factory.mktemp("pki"), FakeClock().now())
    pair = authority.client("ann", ("dev", "ops"), "ann")
    der = x509.load_pem_x509_certificate(pair.certificate.read_bytes()).public_bytes(Encoding.DER)
    user = Authentication([ClientCertificates()]).authenticate(asking(certificate=der))
    assert (user.name, set(user.groups)) == ("ann", {"dev", "ops", "system:authenticated"})


@on_loop
async def test_a_wrong_token_is_unauthorized_before_anything_else() -> None:
    async with serving(Settings(tokens=StaticTokens.parse(TOKENS))) as api:
        headers = {"authorization": "Bearer guess"}
        for path in (CLAIMS, "/healthz", "/apis/none"):
            answer = await api.get(path, headers=headers)
            assert (answer.code, answer.body["reason"]) == (401, "Unauthorized")


@on_loop
async def test_who_may_not_is_told_what_and_not_whether_it_exists() -> None:
    ann = User(name="ann")
    async with serving(Settings(authorizer=AlwaysDeny())) as api:
        refused = await api.get(f"{CLAIMS}/a", user=ann)
        assert refused.code == 403
        assert refused.message == (
            'resourceclaims.resource.k8s.io "a" is forbidden: User "ann" cannot get resource "resourceclaims" in API '
            'group "resource.k8s.io" in the namespace "default": Everything is forbidden.'
        )
        unknown = await api.get("/apis/resource.k8s.io/v1/nothings", user=ann)
        assert unknown.code == 403
        page = await api.get("/metrics", user=ann)
        assert page.message == 'forbidden: User "ann" cannot get path "/metrics": Everything is forbidden.'


@on_loop
async def test_the_first_opinion_counts() -> None:
    class Denies:
        async def authorize(self, attributes: Attributes) -> AuthorizationResult:  # noqa: ARG002
            return AuthorizationResult(Decision.DENY, "never")

    asked = Attributes(user=ANONYMOUS, verb="get", resource="pods")
    assert (await AuthorizerUnion([AlwaysDeny(), AlwaysAllow()]).authorize(asked)).decision is Decision.ALLOW
    assert (await AuthorizerUnion([Denies(), AlwaysAllow()]).authorize(asked)).reason == "never"
    assert (await AuthorizerUnion([AlwaysDeny()]).authorize(asked)).decision is Decision.NO_OPINION
