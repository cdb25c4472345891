"""Tokens of service accounts: signed, bound to an audience, good for a time.

In:  a TokenRequest below a service account; a bearer token.
Out: a JSON web token; the user that such a token stands for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from drakit.api.exchange import User
from drakit.api.times import format_time
from drakit.apiserver.failures import bad_request
from drakit.base.clock import Clock

DEFAULT_SECONDS = 3600
SHORTEST_SECONDS = 600
_ALGORITHM = "ES256"


class ServiceAccountTokens:
    """Issues tokens, and knows its own again."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, issuer: str, audiences: Sequence[str], clock: Clock) -> None:
        self._key = key
        self._issuer = issuer
        self._audiences = tuple(audiences)
        self._clock = clock

    def issue(self, namespace: str, name: str, uid: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """The TokenRequest with its status."""
        spec = request.get("spec") or {}
        seconds = spec.get("expirationSeconds") or DEFAULT_SECONDS
        if type(seconds) is not int or seconds < SHORTEST_SECONDS:
            raise bad_request(
                f"spec.expirationSeconds: may not specify a duration less than {SHORTEST_SECONDS} seconds"
            )
        audiences = list(spec.get("audiences") or self._audiences)
        now = self._clock.now()
        ends = now + timedelta(seconds=seconds)
        account = {"name": name, "uid": uid}
        claims = {
            "iss": self._issuer,
            "sub": f"system:serviceaccount:{namespace}:{name}",
            "aud": audiences,
            "iat": int(now.timestamp()),
            "nbf": int(now.timestamp()),
            "exp": int(ends.timestamp()),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": account},
        }
        token = jwt.encode(claims, self._key, algorithm=_ALGORITHM)
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": format_time(now)},
            "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
            "status": {"token": token, "expirationTimestamp": format_time(ends)},
        }

    def user(self, token: str) -> User | None:
        """The service account of a token that was issued here and is still good."""
        try:
            claims = jwt.decode(
                token,
                self._key.public_key(),
                algorithms=[_ALGORITHM],
                audience=list(self._audiences),
                issuer=self._issuer,
                options={"verify_exp": False, "verify_nbf": False, "verify_iat": False},
            )
        except jwt.InvalidTokenError:
            return None
        now = self._clock.now().timestamp()
        if not claims.get("nbf", now) <= now < claims.get("exp", 0):
            return None
        return _user(claims)


def _user(claims: Mapping[str, Any]) -> User | None:
    private = claims.get("kubernetes.io") or {}
    account = private.get("serviceaccount") or {}
    namespace, name = private.get("namespace"), account.get("name")
    if not namespace or not name:
        return None
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return User(name=f"system:serviceaccount:{namespace}:{name}", uid=account.get("uid", ""), groups=groups)


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())
