"""The bodies of patches as plain data.

In:  bytes of a request.
Out: plain data; 400 with Kubernetes' message for a malformed body. Findings of strict decoding (duplicate fields,
     unknown members of an operation) are reported apart: `fieldValidation` makes them warnings or errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import yaml
from yaml.scanner import ScannerError

from drakit.api.codec.documents import read_text
from drakit.api.schemas.shapes import word_for
from drakit.api.text.jsontext import Repeated, parse_json
from drakit.api.text.problems import Malformed
from drakit.api.text.yamltext import parse_yaml_documents
from drakit.apiserver.patching.rejections import malformed

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)

_MAP = "map[string]interface {}"
_OPERATIONS = "[]handlers.jsonPatchOp"
_CONTAINERS = (dict, list)
_MEMBERS = frozenset(("op", "path", "from", "value"))


def read_operations(body: bytes) -> list[Any]:
    """A JSON patch: a list of objects. Whether they are operations shows when they are applied."""
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
    """An applied object, in YAML. JSON is YAML as well."""
    try:
        text = read_text(body)
        documents = parse_yaml_documents(text)
    except Malformed as error:
        words = _yaml_words(body) or str(error)
        raise malformed(f"error decoding YAML: error converting YAML to JSON: yaml: {words}") from None
    return _object(documents[0] if documents else {}, "error decoding patch: ")


def _yaml_words(body: bytes) -> str:
    """libyaml's message as Go's port words it: lines count from zero, except for bad tokens."""
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


class PatchBody:
    """The body of a patch, decoded once, on first use.

    A patch that came as a `document` was never text: it has no duplicate keys.
    """

    __slots__ = ("_clean", "_data", "_text", "content_type")

    def __init__(self, content_type: str, text: bytes, document: Any = None) -> None:
        self.content_type = content_type
        self._text = text
        self._clean = isinstance(document, dict) and content_type != JSON_PATCH
        self._data: Any = msgspec.json.decode(text) if self._clean else None

    @property
    def data(self) -> Any:
        """A list of operations, or an object; ApiError if it is malformed. Nobody changes it."""
        if self._data is None:
            self._data = _READERS[self.content_type](self._text)
        return self._data

    def findings(self) -> tuple[str, ...]:
        """Findings of strict decoding."""
        if self.content_type == JSON_PATCH:
            return tuple(dict.fromkeys(f"json patch {each}" for each in _operation_findings(self.data)))
        found: dict[str, None] = {}
        if not self._clean:
            _note_repeated(self.data, "", found)
        return tuple(found)


def _operation_findings(operations: list[Any]) -> Iterator[str]:
    for index, operation in enumerate(operations):
        for name in operation:
            if name not in _MEMBERS:
                yield f'unknown field "[{index}].{name}"'
        found: dict[str, None] = {}
        _note_repeated(operation, f"[{index}]", found)
        yield from found


def _note_repeated(value: Any, path: str, found: dict[str, None]) -> None:
    if isinstance(value, Repeated):
        counts = Counter(name for name, _ in value.pairs)
        for name, count in counts.items():
            if count > 1:
                found[f'duplicate field "{f"{path}.{name}" if path else name}"'] = None
    if isinstance(value, dict):
        for name, each in value.items():
            if isinstance(each, _CONTAINERS):
                _note_repeated(each, f"{path}.{name}" if path else name, found)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            if isinstance(each, _CONTAINERS):
                _note_repeated(each, f"{path}[{index}]", found)


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


_READERS: Mapping[str, Callable[[bytes], Any]] = {
    JSON_PATCH: read_operations,
    MERGE_PATCH: read_merge,
    STRATEGIC_MERGE_PATCH: read_strategic,
    APPLY_PATCH: read_applied,
}
