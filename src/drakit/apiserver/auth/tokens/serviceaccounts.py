"""Tokens of service accounts: signed, for an audience, good for a time, and no longer than what they are bound to.

In:  a TokenRequest below a service account; a bearer token.
Out: a JSON web token; the user that a token stands for, or why it stands for nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from drakit.api.exchange import User
from drakit.api.text.times import format_time
from drakit.apiserver.auth.identities import NODE_NAME, account
from drakit.apiserver.auth.rbac.coverage import quoted
from drakit.apiserver.auth.tokens.boundobjects import BoundObjects
from drakit.apiserver.auth.tokens.requests import Bound, TokenRequestSpec
from drakit.base.clock import Clock

_ALGORITHM = "ES256"
_PREFIX = "authentication.kubernetes.io/"
_INVALIDATED = "service account token has been invalidated"
_REMEMBERED = 4096


class TokenRefused(Exception):
    """A token of this server that is not good, or not good any more; the text says why."""


class ServiceAccountTokens:
    """Issues tokens, and knows its own again.

    Invariant: `_verified` holds claims whose signature was right. Time, audience and the objects that a token is bound
    to are looked at each time.
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
        """Those that this server itself is one of."""
        self._key = key
        self._issuer = issuer
        self._clock = clock
        self._bound_objects = bound_objects
        self._new_id = new_id
        self._verified: dict[str, Mapping[str, Any]] = {}

    async def issue(
        self, namespace: str, name: str, uid: str, wanted: TokenRequestSpec, bound: Bound
    ) -> dict[str, Any]:
        """The TokenRequest with its status."""
        await self._bound_objects.start()
        audiences = list(wanted.audiences or self.audiences)
        now = self._clock.now()
        ends = now + timedelta(seconds=wanted.expiration_seconds)
        private = {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}, **bound.claims()}
        claims = {
            "iss": self._issuer,
            "sub": account(namespace, name).name,
            "aud": audiences,
            "iat": int(now.timestamp()),
            "nbf": int(now.timestamp()),
            "exp": int(ends.timestamp()),
            "jti": self._new_id(),
            "kubernetes.io": private,
        }
        token = jwt.encode(claims, self._key, algorithm=_ALGORITHM)
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

    def user(self, token: str) -> User | None:
        """The service account of a token that this server takes; none for any other token."""
        try:
            found = self.examine(token, self.audiences)
        except TokenRefused:
            return None
        return found[0] if found else None

    def examine(self, token: str, audiences: Sequence[str]) -> tuple[User, list[str]] | None:
        """The user and for which of the audiences; none for a token that was not issued here. Raise Refused."""
        claims = self._claims(token)
        if claims is None:
            return None
        meant = [each for each in audiences if each in claims["aud"]]
        if not meant:
            own, wanted = quoted(claims["aud"]), quoted(audiences)
            raise TokenRefused(f"token audiences {own} is invalid for the target audiences {wanted}")
        self._check(claims)
        return _user(claims), meant

    def _claims(self, token: str) -> Mapping[str, Any] | None:
        """What a token says, if this server has signed it."""
        found = self._verified.get(token)
        if found is not None:
            return found
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key.public_key(),
                algorithms=[_ALGORITHM],
                issuer=self._issuer,
                options={
                    "require": ["exp", "nbf", "aud", "sub"],
                    # Against this server's clock and the audiences in question, below.
                    "verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": False,
                },
            )  # fmt: skip
        except jwt.InvalidTokenError:
            return None
        if len(self._verified) >= _REMEMBERED:
            self._verified.clear()
        self._verified[token] = claims
        return claims

    def _check(self, claims: Mapping[str, Any]) -> None:
        now = self._clock.now()
        if now.timestamp() >= claims["exp"]:
            raise TokenRefused("service account token has expired")
        if now.timestamp() < claims["nbf"]:
            raise TokenRefused("service account token is not valid yet")
        private = claims["kubernetes.io"]
        namespace, owner = private["namespace"], private["serviceaccount"]
        if not self._bound_objects.has("ServiceAccount", namespace, owner["name"], owner["uid"], now):
            raise TokenRefused(f"service account {namespace}/{owner['name']} has been deleted")
        for kind, place in (("Secret", namespace), ("Pod", namespace), ("Node", "")):
            bound = private.get(kind.lower())
            # The node of a pod is told for information: the pod stands for both.
            told = kind == "Node" and "pod" in private
            if bound and not told and not self._bound_objects.has(kind, place, bound["name"], bound["uid"], now):
                raise TokenRefused(_INVALIDATED)


def _user(claims: Mapping[str, Any]) -> User:
    private = claims["kubernetes.io"]
    owner = private["serviceaccount"]
    extra = {f"{_PREFIX}credential-id": (f"JTI={claims['jti']}",)} if claims.get("jti") else {}
    if node := private.get("node"):
        extra[NODE_NAME] = (node["name"],)
        if node.get("uid"):
            extra[f"{_PREFIX}node-uid"] = (node["uid"],)
    if pod := private.get("pod"):
        extra[f"{_PREFIX}pod-name"] = (pod["name"],)
        extra[f"{_PREFIX}pod-uid"] = (pod["uid"],)
    named = account(private["namespace"], owner["name"])
    return User(name=named.name, uid=owner["uid"], groups=named.groups, extra=extra)


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())
