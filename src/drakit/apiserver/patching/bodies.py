"""The bodies of patches as plain data.

In:  bytes of a request.
Out: plain data, or the 400 that Kubernetes gives, in its words. What strict decoding finds besides (fields that are
     there twice, members of an operation that none has) is told apart: whether it is a warning or an error is up to
     the request's `fieldValidation`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import yaml
from yaml.scanner import ScannerError

from drakit.api.codec import read_text
from drakit.api.jsontext import Repeated, parse_json
from drakit.api.problems import Malformed
from drakit.api.shapes import word_for
from drakit.api.yamltext import parse_yaml_documents
from drakit.apiserver.patching.rejections import malformed

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)

_MAP = "map[string]interface {}"
_OPERATIONS = "[]handlers.jsonPatchOp"
_MEMBERS = frozenset(("op", "path", "from", "value"))


def read_operations(body: bytes) -> list[Any]:
    """A JSON patch: a list. What its elements are is found out when they are applied."""
    data = _json(body, "error decoding patch: ")
    if not isinstance(data, list):
        raise malformed(f"error decoding patch: {_mismatch(data, _OPERATIONS)}")
    for each in data:
        if not isinstance(each, dict):
            raise malformed(f"error decoding patch: {_mismatch(each, 'handlers.jsonPatchOp')}")
    return data


def read_merge(body: bytes) -> dict[str, Any]:
    return _object(_json(body, "error decoding patch: "), "error decoding patch: ")


def read_strategic(body: bytes) -> dict[str, Any]:
    return _object(_json(body, ""), "")


def read_applied(body: bytes) -> dict[str, Any]:
    """An applied object: YAML, of which JSON is a part."""
    try:
        text = read_text(body)
        documents = parse_yaml_documents(text)
    except Malformed as error:
        words = _yaml_words(body) or str(error)
        raise malformed(f"error decoding YAML: error converting YAML to JSON: yaml: {words}") from None
    return _object(documents[0] if documents else {}, "error decoding patch: ")


def _yaml_words(body: bytes) -> str:
    """What libyaml says is wrong, as Go's port of it says it: it counts lines from zero, save for bad tokens."""
    try:
        for _ in yaml.parse(body, Loader=yaml.CLoader if yaml.__with_libyaml__ else yaml.Loader):
            pass
    except yaml.MarkedYAMLError as error:
        marks = [mark.line for mark in (error.context_mark, error.problem_mark) if mark is not None and mark.line]
        line = marks[0] + isinstance(error, ScannerError) if marks else 0
        return f"line {line}: {error.problem}" if line else str(error.problem)
    except yaml.YAMLError as error:
        return str(error)
    return ""


def findings(content_type: str, body: bytes) -> tuple[str, ...]:
    """What strict decoding has to say about the body of a patch that can be read."""
    if content_type == APPLY_PATCH:
        return tuple(dict.fromkeys(_repeated(read_applied(body), "")))
    if content_type == JSON_PATCH:
        return tuple(dict.fromkeys(f"json patch {each}" for each in _operation_findings(read_operations(body))))
    read = read_strategic if content_type == STRATEGIC_MERGE_PATCH else read_merge
    return tuple(dict.fromkeys(_repeated(read(body), "")))


def _operation_findings(operations: list[Any]) -> Iterator[str]:
    for index, operation in enumerate(operations):
        for name in operation:
            if name not in _MEMBERS:
                yield f'unknown field "[{index}].{name}"'
        yield from _repeated(operation, f"[{index}]")


def _repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, Repeated):
        counts = Counter(name for name, _ in value.pairs)
        for name, count in counts.items():
            if count > 1:
                yield f'duplicate field "{f"{path}.{name}" if path else name}"'
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _repeated(each, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _repeated(each, f"{path}[{index}]")


def _json(body: bytes, prefix: str) -> Any:
    try:
        return parse_json(read_text(body))
    except Malformed as error:
        expected = error.expected
        short = "unexpected end of JSON input" if expected.startswith("unexpected end of JSON input") else str(error)
        raise malformed(prefix + short) from None


def _object(data: Any, prefix: str) -> dict[str, Any]:
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise malformed(prefix + _mismatch(data, _MAP))
    return data


def _mismatch(data: Any, wanted: str) -> str:
    return f"json: cannot unmarshal {word_for(data)} into Go value of type {wanted}"
