"""Questions that are asked by a POST and stored nowhere: who am I, may I, may they, what may I do.

In:  the review with its spec.
Out: the same review with its status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drakit.api.exchange import User
from drakit.apiserver.authentication import AUTHENTICATED, TokenSource
from drakit.apiserver.authorization import Attributes, Authorizer, Decision
from drakit.apiserver.failures import bad_request
from drakit.apiserver.machinery import Call
from drakit.apiserver.objects import Plain

KINDS = (
    "SelfSubjectReview",
    "TokenReview",
    "SelfSubjectAccessReview",
    "SelfSubjectRulesReview",
    "SubjectAccessReview",
    "LocalSubjectAccessReview",
)
_EVERYTHING = ("*",)


class Reviewer:
    def __init__(self, authorizer: Authorizer, tokens: Sequence[TokenSource]) -> None:
        self._authorizer = authorizer
        self._tokens = tuple(tokens)

    async def review(self, call: Call, document: Plain) -> Plain:
        spec = document.get("spec") or {}
        match call.kind.kind:
            case "SelfSubjectReview":
                status: dict[str, Any] = {"userInfo": user_info(call.user)}
            case "TokenReview":
                status = self._token(str(spec.get("token", "")))
            case "SelfSubjectRulesReview":
                status = await self._rules(call, str(spec.get("namespace", "")))
            case "SelfSubjectAccessReview":
                status = await self._access(call.user, spec)
            case _:
                _check_namespace(call, spec)
                status = await self._access(_subject(spec), spec)
        return {**document, "status": status}

    def _token(self, token: str) -> dict[str, Any]:
        for source in self._tokens:
            if (user := source.user(token)) is not None:
                groups = user.groups if AUTHENTICATED in user.groups else (*user.groups, AUTHENTICATED)
                named = User(name=user.name, uid=user.uid, groups=groups, extra=user.extra)
                return {"authenticated": True, "user": user_info(named)}
        return {"user": {}, "error": "[invalid bearer token, unknown]"}

    async def _access(self, user: User, spec: Mapping[str, Any]) -> dict[str, Any]:
        verdict = await self._authorizer.authorize(_attributes(user, spec))
        status: dict[str, Any] = {"allowed": verdict.decision is Decision.ALLOW}
        if verdict.decision is Decision.DENY:
            status["denied"] = True
        if verdict.reason:
            status["reason"] = verdict.reason
        return status

    async def _rules(self, call: Call, namespace: str) -> dict[str, Any]:
        """What the authorizer lists; one that lists nothing is asked whether everything is allowed."""
        if not namespace:
            raise bad_request("no namespace on request")
        listing = getattr(self._authorizer, "rules_for", None)
        if listing is not None:
            found: dict[str, Any] = await listing(call.user, namespace)
            return found
        asked = Attributes(user=call.user, verb="*", group="*", resource="*", namespace=namespace)
        allowed = (await self._authorizer.authorize(asked)).decision is Decision.ALLOW
        everything = list(_EVERYTHING)
        return {
            "resourceRules": [{"verbs": everything, "apiGroups": everything, "resources": everything}]
            if allowed
            else [],
            "nonResourceRules": [{"verbs": everything, "nonResourceURLs": everything}] if allowed else [],
            "incomplete": False,
        }


def user_info(user: User) -> dict[str, Any]:
    info: dict[str, Any] = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


def _subject(spec: Mapping[str, Any]) -> User:
    if not spec.get("user") and not spec.get("groups"):
        raise bad_request("at least one of user or group must be specified")
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return User(name=spec.get("user", ""), uid=spec.get("uid", ""), groups=tuple(spec.get("groups") or ()), extra=extra)


def _attributes(user: User, spec: Mapping[str, Any]) -> Attributes:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if path is not None and resource is None:
        return Attributes(user=user, verb=path.get("verb", ""), path=path.get("path", ""))
    if path is not None or resource is None:
        raise bad_request("exactly one of nonResourceAttributes or resourceAttributes must be specified")
    return Attributes(
        user=user,
        verb=resource.get("verb", ""),
        group=resource.get("group", ""),
        version=resource.get("version", ""),
        resource=resource.get("resource", ""),
        subresource=resource.get("subresource", ""),
        namespace=resource.get("namespace", ""),
        name=resource.get("name", ""),
    )


def _check_namespace(call: Call, spec: Mapping[str, Any]) -> None:
    if call.kind.kind != "LocalSubjectAccessReview":
        return
    given = (spec.get("resourceAttributes") or {}).get("namespace", "")
    if given != call.namespace:
        raise bad_request(
            f"spec.resourceAttributes.namespace must match namespace: {given!r} is not {call.namespace!r}"
        )
