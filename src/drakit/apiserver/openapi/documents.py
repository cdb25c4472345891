"""The OpenAPI v3 document of each group and version, and the index of all.

In:  the registry of kinds, their schemas, and our descriptions.
Out: documents for `kubectl explain`, client-side validation and client-side apply. Made once, with a hash of the
     content.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from drakit.api import schemas
from drakit.api.registry import group_versions, served_in
from drakit.apiserver.openapi.operations import OperationSubject, paths_of, resources_path, root

_PREFIXES = ("io.k8s.api.resource.", "io.k8s.apimachinery.", "io.k8s.api.core.v1.NodeSelector")
_SECURITY = {
    "BearerToken": {
        "type": "apiKey",
        "in": "header",
        "name": "authorization",
        "description": "A bearer token.",
    }
}


def document(group: str, version: str) -> dict[str, Any]:
    """The document of a group and version; KeyError when it is not served. Nobody changes it."""
    return _document(f"{group}/{version}" if group else version)


@cache
def _document(group_version: str) -> dict[str, Any]:
    if group_version not in group_versions():
        raise KeyError(f"{group_version} is not served")
    known = schemas.load(group_version)
    names = _names_by_kind(known)
    paths = resources_path(group_version)
    for kind in served_in(group_version):
        paths |= paths_of(OperationSubject(kind, group_version, lambda version, name: names.get((version, name))))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": {path: paths[path] for path in sorted(paths)},
        "components": {
            "schemas": {name: _described(name, known[name]) for name in sorted(known)},
            "securitySchemes": _SECURITY,
        },
    }


def _names_by_kind(known: Mapping[str, schemas.Schema]) -> Mapping[tuple[str, str], str]:
    """Schema names by group, version and kind; kinds of other groups by their full name."""
    names: dict[tuple[str, str], str] = {}
    for name, schema in known.items():
        for each in schema.get("x-kubernetes-group-version-kind", ()):
            group, version = each["group"], each["version"]
            names[f"{group}/{version}" if group else version, each["kind"]] = name
    return names


@cache
def encoded(group_version: str) -> tuple[bytes, str]:
    """The document as bytes, and their hash."""
    body = msgspec.json.encode(_document(group_version))
    return body, hashlib.sha512(body).hexdigest().upper()


def index(served: Iterable[str] | None = None) -> dict[str, Any]:
    """The index: the URL of each document, with the hash of its content."""
    wanted = group_versions() if served is None else served
    paths = {root(each).removeprefix("/"): f"/openapi/v3{root(each)}?hash={encoded(each)[1]}" for each in wanted}
    return {"paths": {path: {"serverRelativeURL": paths[path]} for path in sorted(paths)}}


def _described(name: str, schema: schemas.Schema) -> schemas.Schema:
    """The schema with descriptions. They are our own words: upstream's are not ours to copy."""
    short, texts = name.rpartition(".")[2], _descriptions()
    # Types of other groups may have names that types of the resource group have too.
    own = describe(short) if name.startswith(_PREFIXES) else {}
    fields: Mapping[str, str] = {**describe("*"), **own} if own else texts["fields"]
    about = own.get("") or texts["others"].get(short, "")
    described = {**schema, "description": about} if about else {**schema}
    if "properties" in schema:
        described["properties"] = {
            field: {**each, "description": fields[field]} if fields.get(field) else each
            for field, each in schema["properties"].items()
        }
    return described


def describe(type_name: str) -> Mapping[str, str]:
    """Our descriptions of a type, by field; the empty field is the type itself."""
    found: Mapping[str, str] = _descriptions()["types"].get(type_name, {})
    return found


@cache
def _descriptions() -> Mapping[str, Mapping[str, Any]]:
    text = resources.files(__package__).joinpath("descriptions.json").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, Any]] = json.loads(text)
    return found
