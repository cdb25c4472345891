"""What goes into an API server and what comes out, whichever way it travels.

In:  a Request, made by an HTTP adapter from bytes, or by a client in the same process from typed objects.
Out: a Response whose content is encoded only if somebody asks for bytes. In process, objects are handed over as they
     are: decoded once per write, shared by every reader, changed by nobody.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from drakit.base.status import ListMeta, Status
from drakit.base.structs import Model

JSON = "application/json"


class User(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asking, after authentication."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


Account = Callable[[int], None]
"""Called with the size of each part of a body before it is kept. Raises if there is no room for it."""
BodyReader = Callable[[Account], Awaitable[bytes]]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Header names are in lower case; the path is decoded. `document` takes the place of `body` in process."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = {}
    body: bytes = b""
    document: Mapping[str, Any] | Model | None = None
    read_body: BodyReader | None = None
    """Reads the body, once. A transport that has not read it gives this, so that nobody's body is read before the
    server knows whose it is and that they may send it."""
    refusal: Status | None = None
    """Set by a transport for a request that it could not read: the answer to it."""
    source: str = ""
    """The address of the client; empty in process and on a Unix socket."""
    user: User | None = None
    """Set by a transport that has authenticated its caller by other means; then no credential is looked at."""
    certificate: bytes | None = None
    """The client's certificate (DER), which the transport has verified against the server's client CA."""
    identified: Callable[[str], None] | None = None
    """Told the name of who sends the request, as soon as it is known. Nobody is told about strangers."""
    open_body: bool = False
    """Whether a client wants the answer piece by piece (`OpenBody`), as it comes."""

    def parameter(self, name: str) -> str:
        """The first value of a query parameter; empty when it is not there."""
        for key, value in self.query:
            if key == name:
                return value
        return ""

    def parameters(self, name: str) -> list[str]:
        return [value for key, value in self.query if key == name]


class Content(ABC):
    """What a response carries."""

    whole = True
    """Whether it is sent all at once. What comes piece by piece says no."""

    @abstractmethod
    def encode(self) -> bytes:
        """The content as it goes over the wire. Encoding again costs next to nothing."""


class Raw(Content):
    """Bytes, made elsewhere."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def encode(self) -> bytes:
        return self.data


class Document(Content):
    """Plain data that is no stored object: discovery, reviews, tables."""

    __slots__ = ("document",)

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document

    def encode(self) -> bytes:
        return msgspec.json.encode(self.document) + b"\n"


class StatusContent(Content):
    """A Status: why it failed, or that it is done."""

    __slots__ = ("status",)

    def __init__(self, status: Status) -> None:
        self.status = status

    def encode(self) -> bytes:
        return msgspec.json.encode(self.status) + b"\n"


class OneObject(Content):
    """An object in the version that was asked for."""

    @property
    @abstractmethod
    def document(self) -> Mapping[str, Any]:
        """Plain data with resourceVersion, apiVersion and kind. Nobody changes it."""

    @property
    @abstractmethod
    def typed(self) -> Model:
        """The struct of the internal version (a view, for kinds that are modelled in part). Nobody changes it."""


class ManyObjects(Content):
    """A list, all from one revision."""

    metadata: ListMeta

    @property
    @abstractmethod
    def items(self) -> Sequence[OneObject]: ...


class WatchEvent(msgspec.Struct, frozen=True):
    """`type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR; of a bookmark only the resource version is there."""

    type: str
    object: OneObject | None
    resource_version: str = ""
    status: Status | None = None
    initial_end: bool = False
    """The bookmark that closes the initial events of a streaming list."""


class Parted(Content):
    """A content that may be long: it can be read in parts."""

    whole = False

    @abstractmethod
    def parts(self) -> tuple[int, Iterator[bytes]]:
        """The number of bytes, and the bytes in parts. A part is made when it is asked for."""


class EventStream(Content):
    """A watch: for one reader, in bytes or in events. It must be closed."""

    whole = False

    def encode(self) -> bytes:
        raise TypeError("a watch has no end to encode: read its lines")

    @abstractmethod
    def lines(self) -> AsyncIterator[bytes]:
        """The stream as it goes over the wire."""

    @abstractmethod
    def events(self) -> AsyncIterator[WatchEvent]:
        """The stream as objects."""

    @abstractmethod
    async def close(self) -> None:
        """Idempotent."""


class OpenBody(Content):
    """A body that goes on as long as there is something to say: a log. For one reader. It must be closed."""

    whole = False

    def encode(self) -> bytes:
        raise TypeError("a body without a known end: read its pieces")

    @abstractmethod
    def pieces(self) -> AsyncIterator[bytes]:
        """As they come. Raise OSError when it breaks off."""

    @abstractmethod
    async def close(self) -> None:
        """Idempotent."""


class Tunnel(Content):
    """From here on the connection speaks another protocol (101): exec, attach, port-forward. It must be closed."""

    whole = False

    def encode(self) -> bytes:
        raise TypeError("a connection that was taken over has no content")

    @abstractmethod
    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry bytes between the client and the other end until one of them ends. Closing both is left to others."""

    @abstractmethod
    async def close(self) -> None:
        """Idempotent."""


class Response(msgspec.Struct, frozen=True, kw_only=True):
    code: int = 200
    content: Content
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    """Texts for the user, which go into Warning headers."""


class Handler(Protocol):
    """Answers requests: an API server, or anything that stands in front of one or looks like one."""

    async def handle(self, request: Request) -> Response:
        """Never raises for what the request asks: that is a Status."""
        ...
