"""OpenAPI v2 (Swagger) of the whole API, in JSON and in protobuf.

In:  the v3 document of every served group and version.
Out: one v2 document with the same paths and definitions, for clients that know nothing newer: `kubectl` before 1.27,
     and `kubectl explain --output=plaintext-openapiv2` of any version.

v2 has no `oneOf` and no defaults beside references: amounts are strings there, as upstream writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from drakit.api.objects.plain import Plain
from drakit.api.release import KUBERNETES
from drakit.apiserver.openapi.documents import document
from drakit.apiserver.openapi.operations import METHODS

TITLE = "Kubernetes"
_V3, _V2 = "#/components/schemas/", "#/definitions/"
_KEPT = ("description", "format", "required", "enum")
_SECURITY = {
    "BearerToken": {"type": "apiKey", "name": "authorization", "in": "header", "description": "A bearer token."}
}


def swagger(served: Iterable[str]) -> Plain:
    """The document of these groups and versions."""
    paths: Plain = {}
    definitions: Plain = {}
    for group_version in served:
        group, _, version = group_version.rpartition("/")
        found = document(group, version)
        paths |= {path: _path_item(item) for path, item in found["paths"].items()}
        schemas = found["components"]["schemas"]
        definitions |= {name: _schema(each) for name, each in schemas.items() if name not in definitions}
    return {
        "swagger": "2.0",
        "info": {"title": TITLE, "version": KUBERNETES},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
        "securityDefinitions": _SECURITY,
        "security": [{"BearerToken": []}],
    }


def _schema(schema: Mapping[str, Any]) -> Plain:
    reference = schema.get("$ref") or next((each.get("$ref") for each in schema.get("allOf", ())), None)
    if reference is not None:
        found = {"$ref": _V2 + reference.removeprefix(_V3)}
        return found | ({"description": schema["description"]} if "description" in schema else {})
    made: Plain = {name: schema[name] for name in _KEPT if name in schema}
    made |= {name: each for name, each in schema.items() if name.startswith("x-kubernetes-")}
    # A type of its own that may be a number as well as text.
    if "oneOf" in schema:
        made["type"] = "string"
    elif "type" in schema:
        made["type"] = schema["type"]
    if "items" in schema:
        made["items"] = _schema(schema["items"])
    if "properties" in schema:
        made["properties"] = {name: _schema(each) for name, each in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), Mapping):
        made["additionalProperties"] = _schema(schema["additionalProperties"])
    return made


def _path_item(item: Mapping[str, Any]) -> Plain:
    made: Plain = {method: _operation(item[method]) for method in METHODS if method in item}
    if "parameters" in item:
        made["parameters"] = [_parameter(each) for each in item["parameters"]]
    return made


def _operation(operation: Mapping[str, Any]) -> Plain:
    body = operation.get("requestBody")
    parameters = [_parameter(each) for each in operation.get("parameters", ())]
    if body is not None:
        content = next(iter(body["content"].values()))
        required = {"required": True} if body.get("required") else {}
        parameters.insert(0, {"name": "body", "in": "body", "schema": _schema(content["schema"]), **required})
    answers = operation["responses"]
    produced = [media for answer in answers.values() for media in answer.get("content", ())]
    return {
        **{name: operation[name] for name in ("description", "operationId", "tags") if name in operation},
        "schemes": ["https"],
        "consumes": list(body["content"]) if body is not None else ["*/*"],
        "produces": list(dict.fromkeys(produced)),
        **({"parameters": parameters} if parameters else {}),
        "responses": {code: _answer(answer) for code, answer in answers.items()},
        **{name: each for name, each in operation.items() if name.startswith("x-kubernetes-")},
    }


def _parameter(parameter: Mapping[str, Any]) -> Plain:
    """In v2 the type of a parameter stands beside its name."""
    return {name: each for name, each in parameter.items() if name != "schema"} | dict(parameter["schema"])


def _answer(answer: Mapping[str, Any]) -> Plain:
    content = next(iter(answer.get("content", {}).values()), None)
    made = {"description": answer["description"]}
    return made | ({"schema": _schema(content["schema"])} if content is not None else {})
