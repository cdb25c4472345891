"""Tokens of service accounts: JSON web tokens with an audience, an expiry and the objects that they are bound to.

In:  a checked TokenRequest; a bearer token.
Out: a signed token; the user of a token, or the reason why it is not valid.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from drakit.api.exchange import User
from drakit.api.text.times import format_time
from drakit.apiserver.auth.identities import NODE_NAME, account
from drakit.apiserver.auth.rbac.coverage import quoted
from drakit.apiserver.auth.tokens.boundobjects import BoundObjects
from drakit.apiserver.auth.tokens.requests import Bound, TokenRequestSpec
from drakit.base.clock import Clock

ALGORITHM = "ES256"
_PREFIX = "authentication.kubernetes.io/"
_INVALIDATED = "service account token has been invalidated"
_REMEMBERED = 4096
_LONG = 8 * 1024
"""Longer tokens are verified each time: what is remembered is bounded by bytes as well."""


class _Named(msgspec.Struct, frozen=True):
    name: str
    uid: str = ""


class _Private(msgspec.Struct, frozen=True):
    """What Kubernetes adds to the standard claims."""

    namespace: str
    serviceaccount: _Named
    secret: _Named | None = None
    pod: _Named | None = None
    node: _Named | None = None

    def bound(self) -> Iterator[tuple[str, str, _Named]]:
        """Kind, namespace and name of what the token is bound to."""
        if self.secret is not None:
            yield "Secret", self.namespace, self.secret
        if self.pod is not None:
            yield "Pod", self.namespace, self.pod
        # A token for a pod names the node only for information: it is bound to the pod.
        elif self.node is not None:
            yield "Node", "", self.node


class TokenClaims(msgspec.Struct, frozen=True):
    """The claims of a token. A token that lacks one of them, or has it in another form, is no token of ours."""

    aud: tuple[str, ...]
    exp: float
    nbf: float
    private: _Private = msgspec.field(name="kubernetes.io")
    jti: str = ""


class TokenRefused(Exception):
    """A token of this server is not valid, or not any more. The text says why."""


class ServiceAccountTokens:
    """Issues tokens and verifies them.

    Invariant: `_verified` has claims whose signature is right. Time, audience and bound objects are checked each time.
    """

    def __init__(
        self,
        key: ec.EllipticCurvePrivateKey,
        issuer: str,
        audiences: Sequence[str],
        clock: Clock,
        bound_objects: BoundObjects,
        new_id: Callable[[], str],
    ) -> None:
        self.audiences = tuple(audiences)
        """The audiences of this server."""
        self._key = key
        self.issuer = issuer
        self._key_id = _key_id(key)
        self._clock = clock
        self._bound_objects = bound_objects
        self._new_id = new_id
        self._verified: dict[str, TokenClaims] = {}

    async def issue(
        self, namespace: str, name: str, uid: str, wanted: TokenRequestSpec, bound: Bound
    ) -> dict[str, Any]:
        """The TokenRequest with its status."""
        # From the first token on, what tokens are bound to is followed.
        await self._bound_objects.start()
        audiences = list(wanted.audiences or self.audiences)
        now = self._clock.now()
        ends = now + timedelta(seconds=wanted.expiration_seconds)
        private = {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}, **bound.claims()}
        claims = {
            "iss": self.issuer,
            "sub": account(namespace, name).name,
            "aud": audiences,
            "iat": int(now.timestamp()),
            "nbf": int(now.timestamp()),
            "exp": int(ends.timestamp()),
            "jti": self._new_id(),
            "kubernetes.io": private,
        }
        token = jwt.encode(claims, self._key, algorithm=ALGORITHM, headers={"kid": self._key_id})
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": format_time(now)},
            "spec": {
                "audiences": audiences,
                "expirationSeconds": wanted.expiration_seconds,
                "boundObjectRef": msgspec.to_builtins(wanted.bound_object_ref),
            },
            "status": {"token": token, "expirationTimestamp": format_time(ends)},
        }

    def public_key(self) -> dict[str, Any]:
        """The key by which others verify tokens, as a JSON web key."""
        made: dict[str, Any] = jwt.algorithms.ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return {"use": "sig", **made, "kid": self._key_id, "alg": ALGORITHM}

    def user(self, token: str) -> User | None:
        """The service account of a valid token for this server; None for any other token."""
        try:
            found = self.examine(token, self.audiences)
        except TokenRefused:
            return None
        return found[0] if found else None

    def examine(self, token: str, audiences: Sequence[str]) -> tuple[User, list[str]] | None:
        """The user and the matching audiences; None for a token that this server did not issue. Raise TokenRefused."""
        claims = self._claims(token)
        if claims is None:
            return None
        meant = [each for each in audiences if each in claims.aud]
        if not meant:
            own, wanted = quoted(claims.aud), quoted(audiences)
            raise TokenRefused(f"token audiences {own} is invalid for the target audiences {wanted}")
        self._check(claims)
        return _user(claims), meant

    def _claims(self, token: str) -> TokenClaims | None:
        """The claims of a token, if this server signed it."""
        found = self._verified.get(token)
        if found is not None:
            return found
        try:
            decoded: dict[str, Any] = jwt.decode(
                token,
                self._key.public_key(),
                algorithms=[ALGORITHM],
                issuer=self.issuer,
                options={
                    "require": ["exp", "nbf", "aud", "sub"],
                    # `_check` and `examine` do this, with this server's clock and the wanted audiences.
                    "verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": False,
                },
            )  # fmt: skip
            claims = msgspec.convert(decoded, TokenClaims)
        except (jwt.InvalidTokenError, ValueError, RecursionError):  # msgspec's ValidationError is a ValueError
            return None
        # Checking a signature is expensive, and a client sends the same token with every request.
        if len(self._verified) >= _REMEMBERED:
            self._verified.clear()
        if len(token) < _LONG:
            self._verified[token] = claims
        return claims

    def _check(self, claims: TokenClaims) -> None:
        now = self._clock.now()
        if now.timestamp() >= claims.exp:
            raise TokenRefused("service account token has expired")
        if now.timestamp() < claims.nbf:
            raise TokenRefused("service account token is not valid yet")
        namespace, owner = claims.private.namespace, claims.private.serviceaccount
        if not self._bound_objects.has("ServiceAccount", namespace, owner.name, owner.uid, now):
            raise TokenRefused(f"service account {namespace}/{owner.name} has been deleted")
        for kind, place, bound in claims.private.bound():
            if not self._bound_objects.has(kind, place, bound.name, bound.uid, now):
                raise TokenRefused(_INVALIDATED)


def _user(claims: TokenClaims) -> User:
    private = claims.private
    extra = {f"{_PREFIX}credential-id": (f"JTI={claims.jti}",)} if claims.jti else {}
    if private.node is not None:
        extra[NODE_NAME] = (private.node.name,)
        if private.node.uid:
            extra[f"{_PREFIX}node-uid"] = (private.node.uid,)
    if private.pod is not None:
        extra[f"{_PREFIX}pod-name"] = (private.pod.name,)
        extra[f"{_PREFIX}pod-uid"] = (private.pod.uid,)
    named = account(private.namespace, private.serviceaccount.name)
    return User(name=named.name, uid=private.serviceaccount.uid, groups=named.groups, extra=extra)


def _key_id(key: ec.EllipticCurvePrivateKey) -> str:
    """A name for the key that follows from it: two servers with one key name it alike."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    digest = hashlib.sha256(key.public_key().public_bytes(serialization.Encoding.DER, form)).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())
