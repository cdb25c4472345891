"""The paths of a group and version with their operations.

In:  the kinds that the group and version serves, with their verbs and subresources.
Out: OpenAPI path items. Each operation says which kind it is about and what it does to it: by that, clients find out
     which parameters a kind's operations take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from drakit.api.objects.plain import Plain
from drakit.api.registry import Kind, Subresource
from drakit.apiserver.openapi import parameters

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_MEDIA = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_STREAMS = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_STREAMED = ("attach", "exec", "portforward", "proxy")
METHODS = ("get", "put", "post", "delete", "patch")
_METHODS = {"get": "get", "update": "put", "patch": "patch", "create": "post", "delete": "delete"}


class OperationSubject(NamedTuple):
    """The kind that operations are for. `schema` finds the schema of a kind, if the document has one."""

    kind: Kind
    group_version: str
    schema: Callable[[str, str], str | None]

    @property
    def prefix(self) -> str:
        """`ResourceV1Namespaced`, which operation ids have in the middle."""
        return id_prefix(self.group_version) + ("Namespaced" if self.kind.namespaced else "")

    @property
    def own_schema(self) -> str:
        return self.schema(self.group_version, self.kind.kind) or _META + "Status"

    @property
    def list_schema(self) -> str:
        return self.schema(self.group_version, self.kind.list_kind) or _META + "Status"


def id_prefix(group_version: str) -> str:
    """`CoreV1`, `ResourceV1beta1`, `RbacAuthorizationV1`."""
    group, _, version = group_version.rpartition("/")
    words = (group.removesuffix(".k8s.io") or "core").split(".")
    return "".join(word.capitalize() for word in (*words, version))


def root(group_version: str) -> str:
    return f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"


def paths_of(subject: OperationSubject) -> Plain:
    """Every path under which objects of the kind are served."""
    kind = subject.kind
    scope = "/namespaces/{namespace}" if kind.namespaced else ""
    base = root(subject.group_version)
    paths = {f"{base}{scope}/{kind.plural}": _collection(subject)}
    if "get" in kind.verbs:
        paths[f"{base}{scope}/{kind.plural}/{{name}}"] = _item(subject)
    for each in kind.subresources:
        paths[f"{base}{scope}/{kind.plural}/{{name}}/{each.name}"] = _subresource(subject, each)
    if "watch" in kind.verbs:
        paths |= _watches(subject, base, scope)
    if kind.namespaced and "list" in kind.verbs:
        paths[f"{base}/{kind.plural}"] = _everywhere(subject)
    return paths


def resources_path(group_version: str) -> Plain:
    """The path of a group and version: the list of its resources."""
    operation = {
        "operationId": f"get{id_prefix(group_version)}APIResources",
        "description": "The resources of this group and version.",
        "tags": [_tag(group_version)],
        "responses": _responses(_META + "APIResourceList"),
    }
    return {f"{root(group_version)}/": {"get": operation}}


def _collection(subject: OperationSubject) -> Plain:
    kind, name = subject.kind, subject.prefix + subject.kind.kind
    item: Plain = {"parameters": _shared(kind, named=False)}
    if "list" in kind.verbs:
        item["get"] = _operation(
            subject, "list", f"list{name}", f"List objects of kind {kind.kind}, or watch them.", parameters.LIST,
            responses=_responses(subject.list_schema, streams=True),
        )  # fmt: skip
    if "create" in kind.verbs:
        item["post"] = _operation(
            subject, "post", f"create{name}", f"Create an object of kind {kind.kind}.", parameters.WRITE,
            body=subject.own_schema, responses=_responses(subject.own_schema, codes=("200", "201", "202")),
        )  # fmt: skip
    if "deletecollection" in kind.verbs:
        collection = id_prefix(subject.group_version) + "Collection" + ("Namespaced" if kind.namespaced else "")
        item["delete"] = _operation(
            subject, "deletecollection", f"delete{collection}{kind.kind}",
            f"Delete every object of kind {kind.kind} that is selected.", parameters.DELETE_COLLECTION,
            body=_META + "DeleteOptions", responses=_responses(_META + "Status"),
        )  # fmt: skip
    return item


def _item(subject: OperationSubject) -> Plain:
    kind, name = subject.kind, subject.prefix + subject.kind.kind
    item: Plain = {"parameters": _shared(kind, named=True)}
    item["get"] = _read(subject, name)
    if "update" in kind.verbs:
        item["put"] = _replace(subject, name)
    if "patch" in kind.verbs:
        item["patch"] = _patch(subject, name)
    if "delete" in kind.verbs:
        item["delete"] = _operation(
            subject, "delete", f"delete{name}", f"Delete an object of kind {kind.kind}.", parameters.DELETE,
            body=_META + "DeleteOptions", responses=_responses(_META + "Status", codes=("200", "202")),
        )  # fmt: skip
    return item


def _read(subject: OperationSubject, name: str) -> Plain:
    text = f"Read an object of kind {subject.kind.kind}."
    return _operation(subject, "get", f"read{name}", text, (), responses=_responses(subject.own_schema))


def _replace(subject: OperationSubject, name: str) -> Plain:
    text = f"Replace an object of kind {subject.kind.kind}."
    responses = _responses(subject.own_schema, codes=("200", "201"))
    return _operation(
        subject, "put", f"replace{name}", text, parameters.WRITE, body=subject.own_schema, responses=responses
    )


def _patch(subject: OperationSubject, name: str) -> Plain:
    text = f"Change parts of an object of kind {subject.kind.kind}."
    responses = _responses(subject.own_schema, codes=("200", "201"))
    return _operation(
        subject, "patch", f"patch{name}", text, parameters.PATCH, body=_META + "Patch", media=_PATCHES,
        responses=responses,
    )  # fmt: skip


def _subresource(subject: OperationSubject, part: Subresource) -> Plain:
    item: Plain = {"parameters": _shared(subject.kind, named=True)}
    version = part.group_version or subject.group_version
    about = part.kind or subject.kind.kind
    schema = subject.schema(version, about) or _META + "Status"
    for verb in part.verbs:
        method = _METHODS[verb]
        operation = _subresource_operation(subject, part, method, schema)
        operation["x-kubernetes-group-version-kind"] = _named(version, about)
        item[method] = operation
    return item


def _subresource_operation(subject: OperationSubject, part: Subresource, method: str, schema: str) -> Plain:
    name = subject.prefix + subject.kind.kind + part.name.capitalize()
    text = f"{part.name} of an object of kind {subject.kind.kind}."
    if part.name in _STREAMED:
        where = id_prefix(subject.group_version) + method.capitalize()
        suffix = name.removeprefix(id_prefix(subject.group_version))
        return _operation(subject, "connect", f"connect{where}{suffix}", text, (), responses=_text_response())
    match method:
        case "get" if part.name == "log":
            return _operation(subject, "get", f"read{name}", text, (), responses=_text_response())
        case "get":
            return _operation(subject, "get", f"read{name}", text, (), responses=_responses(schema))
        case "patch":
            return {**_patch(subject, name), "responses": _responses(schema, codes=("200", "201"))}
        case "put":
            names, action, verb = parameters.WRITE, "put", "replace"
        case _:
            names, action, verb = parameters.WRITE, "post", "create"
    responses = _responses(schema, codes=("200", "201"))
    return _operation(subject, action, f"{verb}{name}", text, names, body=schema, responses=responses)


def _watches(subject: OperationSubject, base: str, scope: str) -> Plain:
    """The deprecated watch paths; lists with `watch=true` replace them."""
    kind, name = subject.kind, subject.prefix + subject.kind.kind
    event = _responses(_META + "WatchEvent", streams=True)
    query = parameters.query(tuple(sorted({*parameters.LIST, "pretty"})))

    def item(action: str, identifier: str, path: list[parameters.Parameter]) -> Plain:
        text = f"Deprecated: use watch with a list of {kind.kind}."
        return {
            "parameters": [*path, *query],
            "get": _operation(subject, action, identifier, text, (), responses=event),
        }

    where = [_NAMESPACE] if kind.namespaced else []
    one = [parameters.path("name", f"The name of the {kind.kind}."), *where]
    paths = {
        f"{base}/watch{scope}/{kind.plural}": item("watchlist", f"watch{name}List", where),
        f"{base}/watch{scope}/{kind.plural}/{{name}}": item("watch", f"watch{name}", one),
    }
    if kind.namespaced:
        everywhere = f"watch{id_prefix(subject.group_version)}{kind.kind}ListForAllNamespaces"
        paths[f"{base}/watch/{kind.plural}"] = item("watchlist", everywhere, [])
    return paths


def _everywhere(subject: OperationSubject) -> Plain:
    kind = subject.kind
    identifier = f"list{id_prefix(subject.group_version)}{kind.kind}ForAllNamespaces"
    text = f"List objects of kind {kind.kind} of all namespaces, or watch them."
    responses = _responses(subject.list_schema, streams=True)
    operation = _operation(subject, "list", identifier, text, (), responses=responses)
    names = tuple(sorted({*parameters.LIST, "pretty"}))
    return {"parameters": parameters.query(names), "get": operation}


_NAMESPACE = parameters.path("namespace", "The namespace of the object.")


def _shared(kind: Kind, *, named: bool) -> list[parameters.Parameter]:
    name = [parameters.path("name", f"The name of the {kind.kind}.")] if named else []
    return [*name, *([_NAMESPACE] if kind.namespaced else []), *parameters.query(("pretty",))]


def _operation(
    subject: OperationSubject,
    action: str,
    identifier: str,
    description: str,
    query: tuple[str, ...],
    *,
    responses: Plain,
    body: str = "",
    media: tuple[str, ...] = ("application/json",),
) -> Plain:
    operation: Plain = {"operationId": identifier, "description": description, "tags": [_tag(subject.group_version)]}
    if query:
        operation["parameters"] = parameters.query(query)
    if body:
        operation["requestBody"] = {"content": _content(body, media), "required": action != "delete"}
    operation["responses"] = responses
    operation["x-kubernetes-action"] = action
    operation["x-kubernetes-group-version-kind"] = _named(subject.group_version, subject.kind.kind)
    return operation


def _named(group_version: str, kind: str) -> Mapping[str, str]:
    group, _, version = group_version.rpartition("/")
    return {"group": group, "kind": kind, "version": version}


def _tag(group_version: str) -> str:
    group, _, version = group_version.rpartition("/")
    return f"{(group or 'core').removesuffix('.k8s.io').replace('.', '_')}_{version}"


def _content(schema: str, media: tuple[str, ...]) -> Plain:
    return {each: {"schema": {"$ref": f"#/components/schemas/{schema}"}} for each in media}


_WORDS = {"200": "OK", "201": "Created", "202": "Accepted"}


def _responses(schema: str, *, codes: tuple[str, ...] = ("200",), streams: bool = False) -> Plain:
    media = (*_MEDIA, *_STREAMS) if streams else _MEDIA
    answers: Plain = {code: {"description": _WORDS[code], "content": _content(schema, media)} for code in codes}
    return {**answers, "401": {"description": "Unauthorized"}}


def _text_response() -> Plain:
    text = {"text/plain": {"schema": {"type": "string"}}}
    return {"200": {"description": "OK", "content": text}, "401": {"description": "Unauthorized"}}
