"""Parse the path of a request.

In:  `GET /apis/resource.k8s.io/v1/namespaces/default/resourceclaims/train-0/status`.
Out: a Target: verb, kind, version, namespace, name, subresource; or a path that names no resource.

`parse` does not look at what is served. Authorization comes between `parse` and `resolve`, so that a user who may not
see a resource is not told whether it exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from drakit.api.exchange import Request
from drakit.api.registry import Kind, Subresource
from drakit.apiserver.failures import bad_request, method_not_allowed, resource_not_found
from drakit.apiserver.kinds.events import CORE, GROUP_VERSION

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_PROXY = "proxy"
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_SHORT = 512
"""Longer paths are not cached: nobody can fill the memory with them."""
LEGACY = "api"
GROUPS = "apis"


class RequestInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a path. Without a resource it is a path of the server itself: discovery, health, …"""

    verb: str
    path: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    watch_path: bool = False
    """Whether it is the old form of a watch: `/watch/` in the path."""
    collection: bool = False
    group_version: str = ""
    """Group and version as an apiVersion has them."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A served resource that a request names."""

    info: RequestInfo
    kind: Kind
    version: str
    """A version of the kind. For an Event it may be `events.k8s.io/v1`: the other group counts as a version."""
    subresource: Subresource | None = None

    @property
    def verb(self) -> str:
        return self.info.verb

    @property
    def namespace(self) -> str:
        return self.info.namespace

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def group_version(self) -> str:
        return self.info.group_version


def parse(request: Request) -> RequestInfo:
    """Parse a path. `watch=true` in the query makes a list a watch."""
    method, path, watch = request.method, request.path, _wants_watch(request)
    if len(path) >= _SHORT:
        return _parse_path(method, path, watch)
    parts = path.split("/")
    # Where the name is in /api/v1/namespaces/<namespace>/<plural>/<name>, and in the longer form with /apis/<group>.
    at = 6 if parts[1:2] == [LEGACY] else 7
    if len(parts) - at not in (1, 2) or parts[at - 3] != "namespaces" or "" in parts[1:] or parts[at] in (".", ".."):
        return _remembered(method, path, watch)
    # Cached with a placeholder for the name: objects come and go, their collections stay.
    name, parts[at] = parts[at], "name"
    return msgspec.structs.replace(_remembered(method, "/".join(parts), watch), path=path, name=name)


def _parse_path(method: str, path: str, watch: bool) -> RequestInfo:
    parts = [part for part in path.split("/") if part]
    prefix = 2 if parts[:1] == [LEGACY] else 3
    if not parts or parts[0] not in (LEGACY, GROUPS) or len(parts) <= prefix:
        return RequestInfo(verb=method.lower(), path=path)
    group, version = ("", parts[1]) if parts[0] == LEGACY else (parts[1], parts[2])
    rest = parts[prefix:]
    watch_path = rest[0] == "watch" and len(rest) > 1
    if watch_path:
        rest = rest[1:]
    namespace, resource, name, subresource = _segments(rest)
    # Clients and proxies resolve dots in paths; an object of that name could never be reached.
    for segment in (name, namespace):
        if segment in (".", ".."):
            raise bad_request(f"invalid path segment {segment!r}")
    return RequestInfo(
        verb=_verb(method, named=bool(name), watch=watch or watch_path),
        path=path,
        group=group,
        version=version,
        namespace=namespace,
        resource=resource,
        name=name,
        subresource=subresource,
        watch_path=watch_path,
        collection=not name,
        group_version=f"{group}/{version}" if group else version,
    )


_remembered = lru_cache(maxsize=4096)(_parse_path)


def _segments(rest: list[str]) -> tuple[str, str, str, str]:
    """Namespace, resource, name and subresource."""
    if rest[0] != "namespaces" or len(rest) == 1:
        return "", *_padded(rest)
    if len(rest) == 2 or (len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES):
        # A Namespace counts as being in itself: a role in a namespace may allow reading the Namespace.
        return rest[1], *_padded(rest)
    return rest[1], *_padded(rest[2:])


def _padded(rest: list[str]) -> tuple[str, str, str]:
    resource, name, *more = [*rest, "", ""][: max(len(rest), 3)]
    if more[0] == _PROXY:  # what follows is a path elsewhere
        return resource, name, _PROXY
    return resource, name, "/".join(part for part in more if part)


def _wants_watch(request: Request) -> bool:
    watch = request.parameter("watch") if request.query and request.method == "GET" else ""
    return bool(watch) and watch not in ("0", "false", "False", "f", "F", "FALSE")


def _verb(method: str, *, named: bool, watch: bool) -> str:
    if watch and method == "GET":
        # HEAD never watches: its response must end. It describes the list instead.
        return "watch"
    if method in ("GET", "HEAD"):
        return "get" if named else "list"
    if method == "DELETE":
        return "delete" if named else "deletecollection"
    return _VERBS.get(method, method.lower())


class Routes:
    """The served kinds, by group and version and then by plural name."""

    def __init__(self, served: Mapping[str, Mapping[str, Kind]]) -> None:
        self.served = served
        self._known: set[tuple[str, str, str]] = set()

    def knows(self, info: RequestInfo) -> bool:
        """Whether a path names a served kind, and a subresource that it has."""
        place = (info.group_version, info.resource, info.subresource)
        # Of unknown paths there is no end: they are looked up each time.
        if place not in self._known and self._serves(info):
            self._known.add(place)
        return place in self._known

    def _serves(self, info: RequestInfo) -> bool:
        kind = self.served.get(info.group_version, {}).get(info.resource)
        return kind is not None and (not info.subresource or kind.subresource(info.subresource) is not None)

    def resolve(self, info: RequestInfo, method: str) -> Target:
        """The kind that a path names; 404 when there is none, 405 when it has no such verb there."""
        kinds = self.served.get(info.group_version)
        kind = kinds.get(info.resource) if kinds else None
        if kind is None:
            raise resource_not_found()
        if info.subresource:
            return self._subresource(info, kind)
        if info.namespace and not kind.namespaced and kind.plural != "namespaces":
            raise resource_not_found()
        if method == "HEAD":
            raise method_not_allowed()
        # Upstream's order of checks: it decides between 404 and 405.
        if method == "POST" and not info.collection:
            raise method_not_allowed()
        if info.collection and (method in ("PUT", "PATCH") or (method == "POST" and _lacks_namespace(info, kind))):
            raise method_not_allowed()
        if not info.collection and kind.namespaced and not info.namespace:
            raise resource_not_found()
        if info.verb not in kind.verbs:
            raise method_not_allowed()
        return _target(info, kind)

    def _subresource(self, info: RequestInfo, kind: Kind) -> Target:
        found = kind.subresource(info.subresource)
        if found is None or (kind.namespaced and not info.namespace):
            raise resource_not_found()
        if info.verb not in found.verbs:
            raise method_not_allowed()
        return _target(info, kind, found)


def _target(info: RequestInfo, kind: Kind, subresource: Subresource | None = None) -> Target:
    if info.group_version == GROUP_VERSION and kind.kind == CORE.kind:
        return Target(info=info, kind=CORE, version=GROUP_VERSION, subresource=subresource)
    return Target(info=info, kind=kind, version=info.version, subresource=subresource)


def _lacks_namespace(info: RequestInfo, kind: Kind) -> bool:
    return kind.namespaced and not info.namespace
