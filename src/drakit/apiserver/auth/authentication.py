"""Authentication: who sent a request.

In:  a request with a bearer token, a verified client certificate, or nothing.
Out: a User. An unknown token raises 401; no credential is `system:anonymous`, or 401.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from cryptography import x509
from cryptography.x509.oid import NameOID

from drakit.api.exchange import Request, User
from drakit.apiserver.failures import unauthorized
from drakit.base.errors import UsageError

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User(name="system:anonymous", groups=(UNAUTHENTICATED,))


class RequestAuthenticator(Protocol):
    def authenticate(self, request: Request) -> User | None:
        """The user; None if the request has no credential of this type. Raise 401 if the credential is wrong."""
        ...


class TokenSource(Protocol):
    def user(self, token: str) -> User | None:
        """The user of a bearer token; None if it is not a token of this source."""
        ...


class StaticTokens:
    """The lines of a token file: `token,user,uid,"group,group"`."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = dict(users)

    @staticmethod
    def parse(text: str, *, source: str = "token file") -> StaticTokens:
        users: dict[str, User] = {}
        for number, row in enumerate(csv.reader(io.StringIO(text), skipinitialspace=True), 1):
            if not row or row[0].startswith("#"):
                continue
            if len(row) < 3 or not row[0]:
                raise UsageError(f"{source}, line {number}: expected at least token, user name and user uid")
            groups = tuple(group.strip() for group in row[3].split(",")) if len(row) > 3 and row[3] else ()
            users[row[0]] = User(name=row[1], uid=row[2], groups=groups)
        return StaticTokens(users)

    def extended(self, users: Mapping[str, User]) -> StaticTokens:
        """These tokens and more."""
        return StaticTokens({**self._users, **users})

    def user(self, token: str) -> User | None:
        return self._users.get(token)


class BearerTokens:
    """Looks a bearer token up in each source in turn."""

    def __init__(self, sources: Sequence[TokenSource]) -> None:
        self._sources = tuple(sources)

    def authenticate(self, request: Request) -> User | None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return None
        for source in self._sources:
            if (user := source.user(token.strip())) is not None:
                return user
        # A token that nobody knows is an error, even if anonymous requests are allowed.
        raise unauthorized()


class ClientCertificates:
    """Reads the user from the common name and the groups from the organizations. TLS has verified the chain."""

    def authenticate(self, request: Request) -> User | None:
        return _user_of(request.certificate) if request.certificate is not None else None


# A connection sends the same certificate with each request, and reading it takes longer than a get.
@lru_cache(maxsize=1024)
def _user_of(certificate: bytes) -> User | None:
    subject = x509.load_der_x509_certificate(certificate).subject
    names = [str(each.value) for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if not names or not names[0]:
        return None
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return User(name=names[0], groups=tuple(str(each.value) for each in groups))


class Authentication:
    """All authenticators, in order."""

    def __init__(self, authenticators: Iterable[RequestAuthenticator], *, anonymous: bool = True) -> None:
        self._authenticators = tuple(authenticators)
        self._anonymous = anonymous

    def authenticate(self, request: Request) -> User:
        # Set only by a client in this process. HTTP cannot set it.
        if request.user is not None:
            return authenticated(request.user)
        for authenticator in self._authenticators:
            if (user := authenticator.authenticate(request)) is not None:
                return authenticated(user)
        if not self._anonymous:
            raise unauthorized()
        return ANONYMOUS


def authenticated(user: User) -> User:
    """The user as a member of `system:authenticated`."""
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return User(name=user.name, uid=user.uid, groups=(*user.groups, AUTHENTICATED), extra=user.extra)
