"""Impersonation: acting as another user, as with `kubectl --as`.

In:  a request with `Impersonate-…` headers, and the user that sent it.
Out: the user to act as. Name, uid, each group and each extra need a right of their own.

A header that came several times has its values joined by line ends, which no header value can contain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import unquote

import msgspec

from drakit.api.exchange import User
from drakit.apiserver.auth.authentication import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED
from drakit.apiserver.auth.authorization import Attributes, Authorizer, require
from drakit.apiserver.auth.identities import is_account
from drakit.apiserver.auth.rbac.policy import ACCOUNT_PREFIX
from drakit.apiserver.failures import bad_request

PREFIX = "impersonate-"
_EXTRA = f"{PREFIX}extra-"
_AUTHENTICATION = "authentication.k8s.io"


class Impersonation(msgspec.Struct, frozen=True, kw_only=True):
    """The user that the headers ask for."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


def asks_for_another(headers: Mapping[str, str]) -> bool:
    """Whether the headers ask to act as another user."""
    # One search over all names: almost no request has such a header.
    return PREFIX in " ".join(headers) and any(name.startswith(PREFIX) for name in headers)


async def impersonate(authorizer: Authorizer, user: User, headers: Mapping[str, str]) -> User:
    """The user to act as, as the headers ask. Raise 400 or 403."""
    wanted = read(headers)
    for attributes in _needed(user, wanted):
        await require(authorizer, attributes)
    return User(name=wanted.name, uid=wanted.uid, groups=_groups(wanted), extra=wanted.extra)


def read(headers: Mapping[str, str]) -> Impersonation:
    extra: dict[str, tuple[str, ...]] = {}
    for name, text in headers.items():
        if name.startswith(_EXTRA):
            key = unquote(name.removeprefix(_EXTRA).lower())
            extra[key] = (*extra.get(key, ()), *text.split("\n"))
    groups = headers.get(f"{PREFIX}group")
    wanted = Impersonation(
        name=_single(headers, f"{PREFIX}user"),
        uid=_single(headers, f"{PREFIX}uid"),
        groups=tuple(groups.split("\n")) if groups is not None else (),
        extra=extra,
    )
    if not wanted.name:
        parts = ", ".join(sorted(name for name in headers if name.startswith(PREFIX)))
        raise bad_request(f"requested {parts} without impersonating a user")
    return wanted


def _single(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name, "")
    if "\n" in value:
        raise bad_request(f"the header {name} may be given once only")
    return value


def _needed(user: User, wanted: Impersonation) -> Iterator[Attributes]:
    if is_account(wanted.name):
        namespace, _, name = wanted.name.removeprefix(ACCOUNT_PREFIX).partition(":")
        yield Attributes(
            user=user, verb="impersonate", version="v1", resource="serviceaccounts", namespace=namespace, name=name
        )
    else:
        yield Attributes(user=user, verb="impersonate", version="v1", resource="users", name=wanted.name)
    for group in wanted.groups:
        yield Attributes(user=user, verb="impersonate", version="v1", resource="groups", name=group)
    for key, values in wanted.extra.items():
        for value in values:
            yield Attributes(
                user=user, verb="impersonate", group=_AUTHENTICATION, version="v1", resource="userextras",
                subresource=key, name=value,
            )  # fmt: skip
    if wanted.uid:
        yield Attributes(
            user=user, verb="impersonate", group=_AUTHENTICATION, version="v1", resource="uids", name=wanted.uid
        )


def _groups(wanted: Impersonation) -> tuple[str, ...]:
    """The groups of the impersonated user: as asked for, or those of a service account; and `system:authenticated`."""
    groups = wanted.groups
    if not groups and is_account(wanted.name):
        namespace = wanted.name.split(":")[2]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    if wanted.name == ANONYMOUS.name:
        return groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    if AUTHENTICATED in groups or UNAUTHENTICATED in groups:
        return groups
    return (*groups, AUTHENTICATED)
