"""Discovery: the documents per group and version, and the aggregated ones (v2).

In:  the served kinds.
Out: documents that stay the same until the server restarts; the aggregated ones with an ETag.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec

from drakit.api.exchange import JSON, Document, Raw, Request, Response
from drakit.api.registry import Kind, Subresource
from drakit.apiserver.kinds.served import Served
from drakit.apiserver.requests.negotiation import DISCOVERY_LIST, negotiate

# The order in which a real server lists its groups.
_ORDER = (
    *("apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io"),
    *("autoscaling", "batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io"),
    *("storage.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io"),
    *("coordination.k8s.io", "node.k8s.io", "discovery.k8s.io", "resource.k8s.io", "flowcontrol.apiserver.k8s.io"),
)


_EMPTY_GROUPS = {"apiextensions.k8s.io": ("v1",)}
"""Listed as on every server, without kinds: custom resources are not served, and not promised."""
_STORED_IN = {
    "DeviceTaintRule": "v1alpha3", "MutatingAdmissionPolicy": "v1beta1", "MutatingAdmissionPolicyBinding": "v1beta1",
}  # fmt: skip
"""The version that a real server stores where it is not the one that drakit stores. Clients compare the hash of it."""


def storage_version_hash(kind: Kind) -> str:
    stored = _STORED_IN.get(kind.kind, kind.internal)
    # Events of both groups are stored in the core group.
    group = "" if kind.kind == "Event" else kind.group
    digest = hashlib.sha256(f"{group}/{stored}/{kind.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


class Discovery:
    """Answers `/api`, `/apis`, `/apis/<group>`, `/api/v1` and `/apis/<group>/<version>`."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def answer(self, request: Request, address: str = "") -> Response | None:
        """The document of a path; None when the path has no discovery document."""
        parts = [part for part in request.path.split("/") if part]
        accept = request.headers.get("accept", "")
        match parts:
            case ["api"]:
                return self._root(request, accept, self._legacy(address), legacy=True)
            case ["apis"]:
                return self._root(request, accept, self._groups, legacy=False)
            case ["apis", group] if group in self._announced:
                negotiate(accept, objects=False, protobuf=True)
                return Response(content=Document({"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}))
            case ["api", version] if version in self._served:
                return self._resources(version, accept)
            case ["apis", group, version] if version in self._announced.get(group, ()):
                return self._resources(f"{group}/{version}", accept)
        return None

    def knows_group(self, group: str) -> bool:
        return group in self._versions

    def _root(self, request: Request, accept: str, plain: Mapping[str, Any], *, legacy: bool) -> Response:
        wanted = negotiate(accept, discovery=True, objects=False, protobuf=True)
        if wanted.transform != DISCOVERY_LIST:
            return Response(content=Document(plain))
        body, tag = self._legacy_aggregate if legacy else self._aggregate
        headers = (("etag", tag), ("vary", "Accept"), ("cache-control", "public"))
        if tag in request.headers.get("if-none-match", ""):
            return Response(code=304, content=Raw(b""), headers=headers)
        return Response(content=Raw(body), content_type=wanted.content_type, headers=headers)

    def _resources(self, group_version: str, accept: str) -> Response:
        negotiate(accept, objects=False, protobuf=True)
        resources = [entry for kind in self._kinds(group_version) for entry in _entries(kind)]
        return Response(
            content=Document(
                {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}
            ),
            content_type=JSON,
        )

    def _legacy(self, address: str) -> Mapping[str, Any]:
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}

    @cached_property
    def _versions(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for group_version in self._served:
            group, _, version = group_version.rpartition("/")
            found.setdefault(group, []).append(version)
        return found

    @cached_property
    def _announced(self) -> dict[str, tuple[str, ...]]:
        """Groups and versions of the plain documents, in the order of a real server."""
        known = _EMPTY_GROUPS | {group: tuple(versions) for group, versions in self._versions.items() if group}
        return {group: known[group] for group in dict.fromkeys((*_ORDER, *known)) if group in known}

    @cached_property
    def _groups(self) -> Mapping[str, Any]:
        groups = [self._group(group) for group in self._announced]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _group(self, group: str) -> dict[str, Any]:
        versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in self._announced[group]]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    @cached_property
    def _aggregate(self) -> tuple[bytes, str]:
        return _tagged(_aggregated([self._aggregated_group(group) for group in self._announced]))

    @cached_property
    def _legacy_aggregate(self) -> tuple[bytes, str]:
        return _tagged(_aggregated([self._aggregated_group("")]))

    def _aggregated_group(self, group: str) -> dict[str, Any]:
        versions = [
            {
                "version": version,
                "resources": [
                    _aggregated_kind(kind) for kind in self._kinds(f"{group}/{version}" if group else version)
                ],
                "freshness": "Current",
            }
            for version in self._announced.get(group, self._versions.get(group, ()))
        ]
        return {"metadata": {"name": group} if group else {}, "versions": versions}

    def _kinds(self, group_version: str) -> list[Kind]:
        return sorted(self._served.get(group_version, {}).values(), key=lambda kind: kind.plural)


def _entries(kind: Kind) -> Iterator[dict[str, Any]]:
    entry: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if "create" in kind.verbs and "get" in kind.verbs:
        entry["storageVersionHash"] = storage_version_hash(kind)
    yield entry
    for subresource in kind.subresources:
        yield _subresource_entry(kind, subresource)


def _subresource_entry(kind: Kind, subresource: Subresource) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": f"{kind.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": kind.namespaced,
    }
    group, _, version = subresource.group_version.rpartition("/")
    if group:
        entry |= {"group": group, "version": version}
    return {**entry, "kind": subresource.kind or kind.kind, "verbs": list(subresource.verbs)}


def _aggregated(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": DISCOVERY_LIST, "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_kind(kind: Kind) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": _response_kind(kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.subresources:
        entry["subresources"] = [_aggregated_subresource(kind, each) for each in kind.subresources]
    return entry


def _aggregated_subresource(kind: Kind, subresource: Subresource) -> dict[str, Any]:
    response = _response_kind(subresource.kind or kind.kind, subresource.group_version)
    return {"subresource": subresource.name, "responseKind": response, "verbs": list(subresource.verbs)}


def _response_kind(kind: str, group_version: str = "") -> dict[str, str]:
    """Group and version are there only where they differ from those around."""
    group, _, version = group_version.rpartition("/")
    return {"group": group, "version": version if group else "", "kind": kind}


def _tagged(document: Mapping[str, Any]) -> tuple[bytes, str]:
    body = msgspec.json.encode(document) + b"\n"
    return body, f'"{hashlib.sha512(body).hexdigest().upper()}"'
