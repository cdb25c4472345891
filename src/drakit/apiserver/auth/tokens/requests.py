"""Requests for tokens of service accounts.

In:  the body of a POST to `serviceaccounts/<name>/token`.
Out: the checked spec, and the object to bind the token to. Raises 400, 404, 409 or 422.
"""

from __future__ import annotations

from typing import Any

import msgspec

from drakit.apiserver.failures import ApiError, bad_request
from drakit.apiserver.kinds.served import known_kind
from drakit.apiserver.storage.objects import StoredObject
from drakit.apiserver.storage.objectstore import ObjectStore, conflict
from drakit.base import fields, status
from drakit.base.fields import Path

DEFAULT_SECONDS = 3600
SHORTEST_SECONDS = 600
LONGEST_SECONDS = 1 << 32
_KINDS = ("Pod", "Node", "Secret")
_GROUP = "authentication.k8s.io"


class Reference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"api_version": "apiVersion"}):
    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class TokenRequestSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The spec of a TokenRequest."""

    audiences: tuple[str, ...] = ()
    expiration_seconds: int = DEFAULT_SECONDS
    bound_object_ref: Reference | None = None


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Request(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: TokenRequestSpec = TokenRequestSpec()


class Bound(msgspec.Struct, frozen=True):
    """The objects that a token is bound to, by kind in lower case. A pod comes with its node."""

    objects: tuple[tuple[str, str, str], ...] = ()

    def claims(self) -> dict[str, Any]:
        return {kind: {"name": name, "uid": uid} if uid else {"name": name} for kind, name, uid in self.objects}


def read_request(body: Any, namespace: str, name: str) -> TokenRequestSpec:
    if body is not None and not isinstance(body, dict):
        raise bad_request("expected a TokenRequest")
    try:
        request = msgspec.convert(_without_nulls(body or {}), _Request)
    except msgspec.ValidationError as error:
        raise bad_request(f"TokenRequest cannot be read: {error}") from None
    _check_place(request.metadata, namespace, name)
    _check_seconds(request.spec.expiration_seconds)
    return request.spec


def _check_place(metadata: _Meta, namespace: str, name: str) -> None:
    for field, given, right in (("name", metadata.name, name), ("namespace", metadata.namespace, namespace)):
        if given and given != right:
            why = f"must match the service account {field} if specified"
            raise _invalid(name, fields.invalid(Path("metadata") / field, given, why))


def _check_seconds(seconds: int) -> None:
    path = Path("spec") / "expirationSeconds"
    if seconds < SHORTEST_SECONDS:
        raise _invalid("", fields.invalid(path, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > LONGEST_SECONDS:
        raise _invalid("", fields.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"))


async def bind(objects: ObjectStore, wanted: TokenRequestSpec, namespace: str, name: str) -> Bound:
    """Find the object that the token is bound to: the token ends with it."""
    reference = wanted.bound_object_ref
    if reference is None:
        return Bound()
    group, _, version = reference.api_version.rpartition("/")
    if group or reference.kind not in _KINDS:
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={reference.kind}")
    kind = known_kind("v1", reference.kind)
    found = await objects.get(kind, namespace if kind.namespaced else "", reference.name)
    if reference.uid and reference.uid != found.uid:
        raise conflict(
            kind,
            reference.name,
            f"the UID in the bound object reference ({reference.uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated",
        )
    bound = [(reference.kind.lower(), found.name, found.uid)]
    # The node of the pod goes into the token too: drivers prove by it where they run.
    if kind.kind == "Pod":
        bound += await _node_of(objects, found, name)
    return Bound(tuple(bound))


async def _node_of(objects: ObjectStore, pod: StoredObject, account: str) -> list[tuple[str, str, str]]:
    spec = pod.document["spec"]
    if spec.get("serviceAccountName", "") != account:
        raise bad_request(
            f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
        )
    if not spec.get("nodeName"):
        return []
    node = await objects.find(known_kind("v1", "Node"), "", spec["nodeName"])
    return [("node", spec["nodeName"], node.uid if node else "")]


def _invalid(name: str, error: fields.FieldError) -> ApiError:
    return ApiError(status.invalid("TokenRequest", _GROUP, name, [error]))


def _without_nulls(value: Any) -> Any:
    """Drop nulls: they mean that the field is not set."""
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(each) for name, each in value.items() if each is not None}
