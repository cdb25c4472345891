"""Who is asking.

In:  a request with a bearer token, a verified client certificate, or nothing.
Out: a User; a token that nobody issued raises 401, no credential at all is `system:anonymous` (or 401).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from cryptography import x509
from cryptography.x509.oid import NameOID

from drakit.api.exchange import Request, User
from drakit.apiserver.failures import unauthorized
from drakit.base.errors import UsageError

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User(name="system:anonymous", groups=(UNAUTHENTICATED,))


class Authenticator(Protocol):
    def authenticate(self, request: Request) -> User | None:
        """The user, none if this is not for me to say; raise 401 for a credential that is mine and wrong."""
        ...


class TokenSource(Protocol):
    def user(self, token: str) -> User | None:
        """Whom a bearer token stands for, none when this source has not issued it."""
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
        """These tokens and some more."""
        return StaticTokens({**self._users, **users})

    def user(self, token: str) -> User | None:
        return self._users.get(token)


class BearerTokens:
    """Asks each source of tokens in turn."""

    def __init__(self, sources: Sequence[TokenSource]) -> None:
        self._sources = tuple(sources)

    def authenticate(self, request: Request) -> User | None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return None
        for source in self._sources:
            if (user := source.user(token.strip())) is not None:
                return user
        raise unauthorized()


class ClientCertificates:
    """The common name is the user, the organizations are its groups. The transport has verified the chain."""

    def authenticate(self, request: Request) -> User | None:
        if request.certificate is None:
            return None
        subject = x509.load_der_x509_certificate(request.certificate).subject
        names = [str(each.value) for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        if not names or not names[0]:
            return None
        groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        return User(name=names[0], groups=tuple(str(each.value) for each in groups))


class Authentication:
    """All ways to say who one is, in order."""

    def __init__(self, authenticators: Iterable[Authenticator], *, anonymous: bool = True) -> None:
        self._authenticators = tuple(authenticators)
        self._anonymous = anonymous

    def authenticate(self, request: Request) -> User:
        if request.user is not None:
            return authenticated(request.user)
        for authenticator in self._authenticators:
            if (user := authenticator.authenticate(request)) is not None:
                return authenticated(user)
        if not self._anonymous:
            raise unauthorized()
        return ANONYMOUS


def authenticated(user: User) -> User:
    """The user as one who has proved who it is."""
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return User(name=user.name, uid=user.uid, groups=(*user.groups, AUTHENTICATED), extra=user.extra)
