"""Authorization: whether a user may do what it asks for.

In:  attributes of a request: user, verb, resource or path.
Out: allow, deny, or no opinion, with a reason. Authorizers are asked in turn; if none allows, the request is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Protocol

import msgspec

from drakit.api.exchange import User
from drakit.apiserver.failures import ApiError
from drakit.base import status


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """What a request is for. A non-resource request has a path and no resource."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    label_selector: str = ""
    field_selector: str = ""

    @property
    def is_resource(self) -> bool:
        return bool(self.resource) or not self.path


class Decision(Enum):
    ALLOW = "allow"
    DENY = "deny"
    NO_OPINION = "no opinion"


class AuthorizationResult(msgspec.Struct, frozen=True):
    """A decision and the reason for it; the reason may be empty."""

    decision: Decision
    reason: str = ""


class Authorizer(Protocol):
    async def authorize(self, attributes: Attributes) -> AuthorizationResult: ...


class AlwaysAllow:
    async def authorize(self, attributes: Attributes) -> AuthorizationResult:  # noqa: ARG002
        return AuthorizationResult(Decision.ALLOW)


class AlwaysDeny:
    async def authorize(self, attributes: Attributes) -> AuthorizationResult:  # noqa: ARG002
        return AuthorizationResult(Decision.NO_OPINION, "Everything is forbidden.")


MODES: Mapping[str, Callable[[], Authorizer]] = {"AlwaysAllow": AlwaysAllow, "AlwaysDeny": AlwaysDeny}
"""What `--authorization-mode` may name."""


class AuthorizerUnion:
    """Asks authorizers in turn: the first that allows or denies decides. If none does, all reasons are joined."""

    def __init__(self, authorizers: Sequence[Authorizer]) -> None:
        self._authorizers = tuple(authorizers)

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        reasons = []
        for authorizer in self._authorizers:
            result = await authorizer.authorize(attributes)
            if result.decision is not Decision.NO_OPINION:
                return result
            if result.reason:
                reasons.append(result.reason)
        return AuthorizationResult(Decision.NO_OPINION, "\n".join(reasons))


async def require(authorizer: Authorizer, attributes: Attributes) -> None:
    """Raise 403 unless the user is allowed."""
    result = await authorizer.authorize(attributes)
    if result.decision is not Decision.ALLOW:
        raise refusal(attributes, result.reason)


def refusal(attributes: Attributes, reason: str = "") -> ApiError:
    """403 with upstream's message."""
    user = f'User "{attributes.user.name}" cannot {attributes.verb}'
    tail = f": {reason}" if reason else ""
    if not attributes.resource:
        message = f'{user} path "{attributes.path}"{tail}'
        return ApiError(status.failure(403, "Forbidden", f"forbidden: {message}", status.StatusDetails()))
    what = attributes.resource + (f"/{attributes.subresource}" if attributes.subresource else "")
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    message = f'{user} resource "{what}" in API group "{attributes.group}" {where}{tail}'
    return ApiError(status.forbidden(attributes.resource, attributes.group, attributes.name, message))
