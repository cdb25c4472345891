"""What others need to verify tokens of service accounts: the issuer and its public keys (OpenID discovery).

In:  GET `/.well-known/openid-configuration` and `/openid/v1/jwks`.
Out: documents that clients may cache for an hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from drakit.api.exchange import JSON, Raw, Request, Response
from drakit.apiserver.auth.tokens.serviceaccounts import ALGORITHM, ServiceAccountTokens

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"
_CACHED = (("cache-control", "public, max-age=3600"),)


class IssuerPages:
    """Answers the two paths of OpenID discovery."""

    def __init__(self, tokens: ServiceAccountTokens) -> None:
        self._tokens = tokens

    def answer(self, request: Request, address: str) -> Response | None:
        """The answer; None for any other path. `address` is where clients reach the server."""
        if request.path == CONFIGURATION:
            return _page(self._configuration(address), JSON)
        return (
            _page({"keys": [self._tokens.public_key()]}, "application/jwk-set+json") if request.path == KEYS else None
        )

    def _configuration(self, address: str) -> Mapping[str, Any]:
        return {
            "issuer": self._tokens.issuer,
            "jwks_uri": f"https://{address}{KEYS}" if address else f"{self._tokens.issuer}{KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [ALGORITHM],
        }


def _page(document: Mapping[str, Any], content_type: str) -> Response:
    return Response(content=Raw(msgspec.json.encode(document)), content_type=content_type, headers=_CACHED)
