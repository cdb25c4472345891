"""Reviews: objects that ask a question, are answered and are not stored.

In:  the review with its spec.
Out: the same review with its status.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drakit.api.exchange import User
from drakit.api.objects.plain import Plain
from drakit.apiserver.auth.authentication import TokenSource, authenticated
from drakit.apiserver.auth.authorization import Attributes, Authorizer, Decision
from drakit.apiserver.auth.rbac.coverage import quoted
from drakit.apiserver.auth.tokens.serviceaccounts import ServiceAccountTokens, TokenRefused
from drakit.apiserver.auth.users import user_info
from drakit.apiserver.failures import ApiError, bad_request
from drakit.apiserver.verbs.context import ApiCall
from drakit.base.fields import FieldError, Path, invalid
from drakit.base.fieldselectors import Term
from drakit.base.status import invalid as invalid_status

KINDS = (
    "SelfSubjectReview",
    "TokenReview",
    "SelfSubjectAccessReview",
    "SelfSubjectRulesReview",
    "SubjectAccessReview",
    "LocalSubjectAccessReview",
)
_EVERYTHING = ("*",)
_SPEC = Path("spec")


class Reviewer:
    """Answers reviews, by the authorizer and the token sources of this server."""

    def __init__(self, authorizer: Authorizer, tokens: Sequence[TokenSource]) -> None:
        self._authorizer = authorizer
        self._tokens = tuple(tokens)

    async def review(self, call: ApiCall, document: Plain, now: str) -> Plain:
        spec = document.get("spec") or {}
        match call.kind.kind:
            case "SelfSubjectReview":
                # The only review whose answer has a creationTimestamp.
                status: dict[str, Any] = {"userInfo": user_info(call.user)}
                document = {**document, "metadata": {**document.get("metadata", {}), "creationTimestamp": now}}
            case "TokenReview":
                status = review_token(self._tokens, str(spec.get("token", "")), spec.get("audiences") or ())
            case "SelfSubjectRulesReview":
                status = await self._rules(call, str(spec.get("namespace", "")))
            case "SelfSubjectAccessReview":
                _require(call, _attribute_problems(spec))
                status = await self._access(call.user, spec)
            case _:
                _require(call, [*_attribute_problems(spec), *_subject_problems(call, spec)])
                status = await self._access(_subject(spec), spec)
        return {**document, "status": status}

    async def _access(self, user: User, spec: Mapping[str, Any]) -> dict[str, Any]:
        result = await self._authorizer.authorize(_attributes(user, spec))
        status: dict[str, Any] = {"allowed": result.decision is Decision.ALLOW}
        if result.decision is Decision.DENY:
            status["denied"] = True
        if result.reason:
            status["reason"] = result.reason
        return status

    async def _rules(self, call: ApiCall, namespace: str) -> dict[str, Any]:
        """The rules that the authorizer lists. One that cannot list is asked whether everything is allowed."""
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


def review_token(sources: Sequence[TokenSource], token: str, wanted: Sequence[str]) -> dict[str, Any]:
    """Whose token it is and for which of the wanted audiences. No audience asked for means this server's."""
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    accounts = next((source for source in sources if isinstance(source, ServiceAccountTokens)), None)
    own = accounts.audiences if accounts else ()
    audiences = tuple(wanted) or own
    problem = "unknown"
    for source in sources:
        try:
            user, meant = _examine(source, token, audiences, own)
        except TokenRefused as error:
            problem = str(error)
            continue
        if user is not None:
            return {"authenticated": True, "user": user_info(authenticated(user)), "audiences": meant}
    return {"user": {}, "error": f"[invalid bearer token, {problem}]"}


def _examine(
    source: TokenSource, token: str, audiences: Sequence[str], own: Sequence[str]
) -> tuple[User | None, list[str]]:
    if isinstance(source, ServiceAccountTokens):
        return source.examine(token, audiences) or (None, [])
    # A token from a file names no audience: it is meant for this server.
    user, meant = source.user(token), [each for each in audiences if each in own]
    if user is not None and not meant:
        raise TokenRefused(f"token audiences {quoted(own)} is invalid for the target audiences {quoted(audiences)}")
    return user, meant


def _subject(spec: Mapping[str, Any]) -> User:
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return User(name=spec.get("user", ""), uid=spec.get("uid", ""), groups=tuple(spec.get("groups") or ()), extra=extra)


def _attributes(user: User, spec: Mapping[str, Any]) -> Attributes:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is None:
        path = path or {}
        return Attributes(user=user, verb=path.get("verb", ""), path=path.get("path", ""))
    return Attributes(
        user=user,
        verb=resource.get("verb", ""),
        group=resource.get("group", ""),
        version=resource.get("version", ""),
        resource=resource.get("resource", ""),
        subresource=resource.get("subresource", ""),
        namespace=resource.get("namespace", ""),
        name=resource.get("name", ""),
        field_selector=_field_selector(resource.get("fieldSelector") or {}),
    )


def _field_selector(selector: Mapping[str, Any]) -> str:
    """The field selector of a review, as the text of a query."""
    if raw := selector.get("rawSelector"):
        return str(raw)
    # Only requirements that allow a single value matter to authorizers: as upstream.
    single = [each for each in selector.get("requirements") or () if each.get("operator") == "In"]
    terms = [Term(each.get("key", ""), each["values"][0]) for each in single if len(each.get("values") or ()) == 1]
    return ",".join(map(str, terms))


def _require(call: ApiCall, found: Sequence[FieldError]) -> None:
    if found:
        raise ApiError(invalid_status(call.kind.kind, call.kind.group, "", found))


def _attribute_problems(spec: Mapping[str, Any]) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        why = "cannot be specified in combination with resourceAttributes"
        return [invalid(_SPEC / "nonResourceAttributes", path, why)]
    if resource is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [invalid(_SPEC / "resourceAttributes", None, why)]
    return []


def _subject_problems(call: ApiCall, spec: Mapping[str, Any]) -> Iterator[FieldError]:
    if not spec.get("user") and not spec.get("groups"):
        yield invalid(_SPEC / "user", "", "at least one of user or group must be specified")
    if call.kind.kind != "LocalSubjectAccessReview":
        return
    if spec.get("nonResourceAttributes") is not None:
        why = "disallowed on this kind of request"
        yield invalid(_SPEC / "nonResourceAttributes", spec["nonResourceAttributes"], why)
    given = (spec.get("resourceAttributes") or {}).get("namespace", "")
    if spec.get("resourceAttributes") is not None and given != call.namespace:
        yield invalid(_SPEC / "resourceAttributes" / "namespace", given, "must match metadata.namespace")
