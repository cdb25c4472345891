"""Who is calling the node: a client certificate, or a bearer token that the API server vouches for.

In:  the certificate that TLS has verified against the client CA, and the Authorization header.
Out: a user, or none: then the answer is 401. There are no anonymous callers.

A token is asked about once and remembered for a while, as a kubelet does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Protocol

from cryptography import x509
from cryptography.x509.oid import NameOID

from drakit.api.exchange import User
from drakit.base.clock import Clock
from drakit.client import Client
from drakit.nodeagent.server.answers import AnswerCache

TOKEN_SECONDS = 120.0
_AUTHENTICATED = "system:authenticated"


class Authenticator(Protocol):
    async def user(self, certificate: bytes | None, authorization: str) -> User | None:
        """None for nobody that is known. Raise Unavailable or another Retryable when nobody can tell right now."""
        ...


class NodeAuthentication:
    """By certificate; else by TokenReview."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._answers: AnswerCache[bytes, User | None] = AnswerCache(clock)

    async def user(self, certificate: bytes | None, authorization: str) -> User | None:
        # A certificate here was verified by TLS. It wins over a token, as in a kubelet.
        if certificate is not None:
            return certificate_user(certificate)
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return None
        return await self._token_user(token.strip())

    async def _token_user(self, token: str) -> User | None:
        key = hashlib.sha256(token.encode()).digest()  # the tokens themselves are not kept
        return await self._answers.get(key, lambda: self._review(token), lambda _: TOKEN_SECONDS)

    async def _review(self, token: str) -> User | None:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = (await self._client.create(review)).document.get("status") or {}
        return _user(status.get("user") or {}) if status.get("authenticated") else None


def certificate_user(certificate: bytes) -> User | None:
    """The common name and the organizations, as Kubernetes reads them; none without a name."""
    subject = x509.load_der_x509_certificate(certificate).subject
    names = [str(part.value) for part in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if not names or not names[0]:
        return None
    groups = [str(part.value) for part in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    return User(name=names[0], groups=(*groups, _AUTHENTICATED))


def _user(info: Mapping[str, Any]) -> User:
    return User(
        name=str(info.get("username") or ""),
        uid=str(info.get("uid") or ""),
        groups=tuple(info.get("groups") or ()),
        extra={name: tuple(values) for name, values in (info.get("extra") or {}).items()},
    )
