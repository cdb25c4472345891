"""Who looks at the page, and how their requests reach the API server: always with their own credentials.

In:  the headers of a request to the dashboard.
Out: a Viewer, and for it a transport whose requests carry its credentials and nobody else's.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import unquote

import msgspec

from drakit.api.exchange import Handler, Request, Response, User
from drakit.base.errors import UsageError
from drakit.client import Access, Fixed
from drakit.client.transport.http import Http
from drakit.client.transport.transports import Transport

IMPERSONATE = "impersonate-"
GROUPS = "drakit-act-as-groups"
"""Groups to act as, in one header, as the page sends them."""
_GROUP = f"{IMPERSONATE}group"
_BEARER = "bearer "


class Viewer(msgspec.Struct, frozen=True, kw_only=True):
    """Equal viewers have equal credentials: they may share what was read with them.

    `own` is a viewer that has proven to be the one who started the dashboard, by its login token.
    """

    token: str = ""
    own: bool = False
    certificate: bytes | None = None
    acting_as: tuple[tuple[str, str], ...] = ()
    """Impersonation headers, which the API server checks."""
    namespace: str = ""
    """The only namespace to look at; empty is all."""

    @property
    def headers(self) -> dict[str, str]:
        """What proves to the API server who asks."""
        proof = {"authorization": f"Bearer {self.token}"} if self.token else {}
        return {**proof, **dict(self.acting_as)}


Connect = Callable[[Viewer], Transport]


def viewer_of(request: Request, login: str, namespace: str = "") -> Viewer:
    """The viewer of a request. `login` is the token of whoever started the dashboard; if empty, no viewer is `own`."""
    said = request.headers.get("authorization", "")
    token = said[len(_BEARER) :].strip() if said.lower().startswith(_BEARER) else ""
    own = bool(login) and hmac.compare_digest(token.encode(), login.encode())
    acting = tuple(sorted(_acting_as(request.headers)))
    return Viewer(
        # The login token is ours: the API server does not know it, and must never see it.
        token="" if own else token,
        own=own,
        # A token says who it is; a certificate that the browser sends along must not add to that.
        certificate=None if token else request.certificate,
        acting_as=acting,
        namespace=namespace,
    )


def _acting_as(headers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from (each for each in headers.items() if each[0].startswith(IMPERSONATE) and each[0] != _GROUP)
    # Repeated headers are joined by line ends. A page cannot repeat a header: it sends a list, each name escaped.
    groups = [headers[_GROUP]] if _GROUP in headers else []
    groups += [unquote(each.strip()) for each in headers.get(GROUPS, "").split(",") if each.strip()]
    if any("\n" in each or "\r" in each for each in groups if each is not headers.get(_GROUP)):
        raise UsageError(f"{GROUPS}: a group has no line end in its name")
    if groups:
        yield _GROUP, "\n".join(groups)


def within_process(server: Handler, owner: User) -> Connect:
    """To the server of this process. Whoever has the login token is `owner`."""
    return lambda viewer: _CarryingTransport(server, viewer, owner)


def over_http(access: Access) -> Connect:
    """To any server. Whoever has the login token is who the access says; others are who their tokens say."""

    def connect(viewer: Viewer) -> Transport:
        headers: Mapping[str, str] = {**access.headers, **dict(viewer.acting_as)} if viewer.own else viewer.headers
        credentials = access.credentials if viewer.own else Fixed()
        return Http(msgspec.structs.replace(access, credentials=credentials, headers=headers))

    return connect


class _CarryingTransport:
    in_process = True
    page_size = 0

    def __init__(self, server: Handler, viewer: Viewer, owner: User) -> None:
        self._server = server
        self._viewer = viewer
        self._user = owner if viewer.own else None

    async def handle(self, request: Request) -> Response:
        headers = {**request.headers, **self._viewer.headers}
        carried = msgspec.structs.replace(
            request, headers=headers, user=self._user, certificate=self._viewer.certificate
        )
        return await self._server.handle(carried)

    async def close(self) -> None:
        return
