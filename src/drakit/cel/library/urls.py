"""URLs: absolute ones and absolute paths, read the way Go reads a request URI."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, unquote, unquote_plus

from drakit.cel.checking.declarations import Function, Overload
from drakit.cel.checking.types import BOOL, STRING, list_of, map_of, struct
from drakit.cel.errors import EvalError
from drakit.cel.values import Opaque

URL = struct("kubernetes.URL")

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_HOST = re.compile(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"]|%(?:25|[89a-fA-F][0-9a-fA-F])|[^\x00-\x7f])*")
_USERINFO = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_VALID_PATH = re.compile(r"(?:[A-Za-z0-9\-_.~$&+,/:;=@!'()*\[\]]|%[0-9a-fA-F]{2})*", re.ASCII)
_PORT = re.compile(r":[0-9]*|", re.ASCII)


class URLValue(Opaque):
    """The parts that functions return. `rest` is everything else in which two URLs may differ."""

    __slots__ = ("host", "path", "query", "rest", "scheme")
    type_name = "kubernetes.URL"

    def __init__(self, scheme: str, host: str, path: str, query: str, rest: tuple[str, ...]) -> None:
        self.scheme = scheme
        self.host = host
        self.path = path
        self.query = query
        self.rest = rest

    @property
    def _written(self) -> tuple[object, ...]:
        """Everything as it would be written out again."""
        return self.scheme, self.host, _escaped_path(self), self.query, self.rest

    def same(self, other: Any) -> bool:
        return bool(self._written == other._written)

    def __hash__(self) -> int:
        return hash(self._written)

    def __repr__(self) -> str:
        user, fragment = self.rest[0], self.rest[-1]
        front = f"{self.scheme}:" if self.scheme else ""
        if self.host or user:
            front += f"//{user}{'@' if user else ''}{self.host}"
        query = f"?{self.query}" if self.query else ""
        return f"{front}{_escaped_path(self)}{query}{'#' if fragment else ''}{fragment}"


def _wrong(text: str, reason: str) -> EvalError:
    return EvalError(f'URL parse error during conversion from string: parse "{text}": {reason}')


@lru_cache(maxsize=1024)
def url_from_text(text: str) -> URLValue:
    """Parse a URL. It must be valid twice: as a request URI, and as a URL with a fragment."""
    # A request URI has no fragment, so `#` is a part of it in this reading.
    _parse(text, text, request=True)
    bare, _, fragment = text.partition("#")
    url = _parse(text, bare, request=False)
    if _BAD_ESCAPE.search(fragment):
        raise _wrong(text, "invalid URL escape")
    url.rest = (*url.rest, _escaped(fragment))
    return url


def _parse(text: str, rest: str, *, request: bool) -> URLValue:
    if not rest:
        raise _wrong(text, "empty url")
    if _CONTROL.search(rest):
        raise _wrong(text, "net/url: invalid control character in URL")
    if rest == "*":
        return URLValue("", "", rest, "", ("",))
    if rest.startswith(":"):
        raise _wrong(text, "missing protocol scheme")
    found = _SCHEME.match(rest)
    scheme = found[1].lower() if found else ""
    rest = rest[found.end() :] if found else rest
    rest, question, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:  # mailto:a@b and the like: nothing but a scheme to see
            return URLValue(scheme, "", "", query, ("", question, rest))
        raise _wrong(text, "invalid URI for request")
    user, host, slashes = "", "", ""
    if rest.startswith("//") and (scheme or (not request and not rest.startswith("///"))):
        authority, slash, tail = rest[2:].partition("/")
        (user, host), rest, slashes = _authority(text, authority), slash + tail, "//"
    if _BAD_ESCAPE.search(rest):
        raise _wrong(text, "invalid URL escape")
    return URLValue(scheme, host, rest, query, (user, question, slashes))


def _authority(text: str, authority: str) -> tuple[str, str]:
    """Userinfo and host; only an IPv6 address in brackets may have colons besides the one before the port."""
    # The last one, as in Go: a userinfo may have an `@` of its own.
    userinfo, at, host = authority.rpartition("@")
    if at and (not _USERINFO.fullmatch(userinfo) or _BAD_ESCAPE.search(userinfo)):
        raise _wrong(text, "net/url: invalid userinfo")
    if "[" in host:
        port = _port_behind_brackets(text, host)
    else:
        _, colon, digits = host.partition(":")
        port = colon + digits
    if not _PORT.fullmatch(port):
        raise _wrong(text, f'invalid port "{port}" after host')
    if not _HOST.fullmatch(host):
        raise _wrong(text, "invalid character in host name")
    return unquote(userinfo), unquote(host)


def _port_behind_brackets(text: str, host: str) -> str:
    inner, bracket, port = host[1:].rpartition("]")
    if not bracket:
        raise _wrong(text, "missing ']' in host")
    try:
        valid = host.startswith("[") and ip_address(unquote(inner)).version == 6
    except ValueError:
        valid = False
    if not valid:
        raise _wrong(text, "invalid host")
    return port


def _split_port(host: str) -> tuple[str, str]:
    colon = host.rfind(":")
    if colon >= 0 and _PORT.fullmatch(host[colon:]):
        host, port = host[:colon], host[colon + 1 :]
    else:
        port = ""
    return (host[1:-1] if host.startswith("[") and host.endswith("]") else host), port


def _escaped_path(url: URLValue) -> str:
    return _escaped(url.path)


def _escaped(text: str) -> str:
    """As it is, when every character may stand so; otherwise decoded and escaped anew."""
    if _VALID_PATH.fullmatch(text):
        return text
    return quote(unquote(text, errors="surrogateescape"), safe="/$&+,:;=@", errors="surrogateescape")


def _query(url: URLValue) -> dict[str, tuple[str, ...]]:
    """Values by name; parts that are not well formed are left out."""
    values: dict[str, tuple[str, ...]] = {}
    for part in url.query.split("&"):
        if not part or ";" in part or _BAD_ESCAPE.search(part):
            continue
        name, _, value = part.partition("=")
        key = unquote_plus(name)
        values[key] = (*values.get(key, ()), unquote_plus(value))
    return values


def is_request_uri(text: str) -> bool:
    try:
        _parse(text, text, request=True)
    except EvalError:
        return False
    return True


_READERS = (
    ("getScheme", "url_get_scheme", lambda url: url.scheme),
    ("getHost", "url_get_host", lambda url: url.host),
    ("getHostname", "url_get_hostname", lambda url: _split_port(url.host)[0]),
    ("getPort", "url_get_port", lambda url: _split_port(url.host)[1]),
    ("getEscapedPath", "url_get_escaped_path", _escaped_path),
)

FUNCTIONS = (
    Function("url", (Overload("string_to_url", (STRING,), URL, url_from_text),)),
    Function("isURL", (Overload("is_url_string", (STRING,), BOOL, is_request_uri, raises=False),)),
    *(
        Function(name, (Overload(overload, (URL,), STRING, read, member=True, raises=False),))
        for name, overload, read in _READERS
    ),
    Function(
        "getQuery",
        (Overload("url_get_query", (URL,), map_of(STRING, list_of(STRING)), _query, member=True, raises=False),),
    ),
)
