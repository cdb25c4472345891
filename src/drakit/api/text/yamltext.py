"""YAML text to plain data, the way that Kubernetes reads YAML: as another notation of JSON.

In:  text of unknown origin, one or more documents.
Out: plain data as from JSON (see `jsontext`); on demand, the positions of keys.

It is built from libyaml's events with a stack of its own: nothing recurses, so depth is a number that is checked, and
aliases are counted before they are followed. Words are resolved as go-yaml does (`y`, `on`, `014`, `1e3`).
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from drakit.api.text.jsontext import Repeated, position_at
from drakit.api.text.problems import TOO_DEEP, Malformed, Position

_MAX_DEPTH = 900  # as deep as the JSON reader goes on Python's default stack
_MAX_ALIASED = 100_000  # values that aliases may add to what stands in the text
MAX_EXPANDED = 3 * 1024 * 1024
"""Bytes of a document that has aliases, each counted where it stands: as much as the body of a request may have."""
_LOADER = yaml.CLoader if yaml.__with_libyaml__ else yaml.Loader

_WORDS: dict[str, object] = {
    **dict.fromkeys(["", "~", "null", "Null", "NULL"], None),
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], math.inf),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], -math.inf),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
}
_NUMBER_START = frozenset("0123456789+-.")
_INT = re.compile(r"([-+]?)(?:0[bB]([01]+)|0[xX]([0-9a-fA-F]+)|0[oO]([0-7]+)|0([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES = (2, 16, 8, 8, 10)
_MAX_DIGITS = 400
_WHOLE = 1e21  # from here on JSON has an exponent
_TAG = "tag:yaml.org,2002:"
_MERGE = object()


def resolve(text: str) -> object:
    """What a plain scalar means: null, a bool, a number, or the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_START or len(text) > _MAX_DIGITS:
        return text
    digits = text.replace("_", "")
    if found := _INT.fullmatch(digits):
        base, body = next((base, body) for base, body in zip(_BASES, found.groups()[1:], strict=True) if body)
        return -int(body, base) if found[1] == "-" else int(body, base)
    return float(digits) if _FLOAT.fullmatch(digits) else text


def parse_yaml_documents(text: str, *, source: str = "") -> list[Any]:
    """Read every document that is not empty."""
    return [value for value in _Builder(source).documents(text) if value is not None]


def key_positions(text: str, wanted: frozenset[str]) -> Iterator[tuple[int, str, int, int]]:
    """For every key whose path is wanted: index of its document, path, line, column, in the order of the text."""
    found: list[tuple[int, str, int, int]] = []
    index = 0

    def note(path: str, line: int, column: int) -> None:
        if path in wanted:
            found.append((index, path, line, column))

    for value in _Builder("", note).documents(text):
        index += value is not None
    yield from found


class _Frame:
    """A list or object that is being read."""

    __slots__ = ("anchor", "key", "key_next", "line", "pairs", "path", "sequence", "size", "weight")

    def __init__(self, *, sequence: bool, anchor: str | None, path: str, line: int) -> None:
        self.sequence = sequence
        self.anchor = anchor
        self.path = path
        self.line = line
        self.key_next = not sequence
        self.key: Any = None
        self.pairs: list[Any] = []  # values of a sequence, (key, value) of a mapping
        self.size = 1
        self.weight = 2


class _Builder:
    def __init__(self, source: str, note: Callable[[str, int, int], None] | None = None) -> None:
        self._source = source
        self._note = note
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int, int]] = {}
        self._aliased = 0
        self._expanded = 0  # bytes of the document so far, aliases included
        self._root: Any = None

    def documents(self, text: str) -> Iterator[Any]:
        mark: Any = None
        try:
            for event in yaml.parse(text, Loader=_LOADER):
                mark = event.start_mark
                if isinstance(event, yaml.DocumentStartEvent):
                    self._root, self._anchors, self._aliased, self._expanded = None, {}, 0, 0
                elif isinstance(event, yaml.DocumentEndEvent):
                    yield self._root
                else:
                    self._take(event)
        except yaml.MarkedYAMLError as error:
            raise Malformed(_expected(error), self._position(error.problem_mark or mark)) from None
        except yaml.reader.ReaderError as error:  # a character that YAML has nowhere: the first of it is the place
            place = position_at(text, text.find(chr(error.character)), self._source)
            raise Malformed(f"expected YAML: {error.reason}", place) from None

    def _take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            value, weight = self._scalar(event), 2 + len(event.value.encode())
            self._remember(event.anchor, value, 1, weight)
            self._add(value, 1, weight, event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)

    def _open(self, event: Any) -> None:
        if len(self._frames) >= _MAX_DEPTH:
            raise self._error(TOO_DEEP, event)
        if self._frames and self._frames[-1].key_next:
            raise self._error("expected a text as key, not a list or object", event)
        sequence = isinstance(event, yaml.SequenceStartEvent)
        frame = _Frame(sequence=sequence, anchor=event.anchor, path=self._child_path(), line=event.start_mark.line)
        self._frames.append(frame)

    def _close(self, event: Any) -> None:
        frame = self._frames.pop()
        value = frame.pairs if frame.sequence else self._mapping(frame, event)
        self._remember(frame.anchor, value, frame.size, frame.weight)
        self._expanded -= frame.weight - 2  # its parts were counted when they came
        self._add(value, frame.size, frame.weight, event)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            known = any(frame.anchor == event.anchor for frame in self._frames)
            problem = f"anchor '{event.anchor}' value contains itself" if known else f"unknown anchor '{event.anchor}'"
            raise self._error(f"expected an anchor: {problem}", event)
        value, size, weight = self._anchors[event.anchor]
        self._aliased += size
        self._add(value, size, weight, event)

    def _remember(self, anchor: str | None, value: Any, size: int, weight: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size, weight)

    def _add(self, value: Any, size: int, weight: int, event: Any) -> None:
        self._expanded += weight
        # Text without aliases has the size of the text: whoever sends it bounds that.
        if self._aliased > _MAX_ALIASED or (self._aliased and self._expanded > MAX_EXPANDED):
            raise self._error("document contains excessive aliasing", event)
        if not self._frames:
            self._root = value
            return
        frame = self._frames[-1]
        frame.size += size
        frame.weight += weight
        if frame.sequence:
            frame.pairs.append(value)
        elif frame.key_next:
            frame.key, frame.key_next = self._key(value, event), False
        else:
            frame.pairs.append((frame.key, value))
            frame.key_next = True

    def _key(self, value: Any, event: Any) -> Any:
        if value is _MERGE:
            return value
        if value is None or isinstance(value, list | dict):
            raise self._error("expected a text as key", event)
        key = value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value).lower()
        if self._note:
            path = self._frames[-1].path
            self._note(f"{path}.{key}" if path else key, event.start_mark.line + 1, event.start_mark.column + 1)
        return key

    def _mapping(self, frame: _Frame, event: Any) -> dict[str, Any]:
        pairs = frame.pairs
        if any(key is _MERGE for key, _ in pairs):
            own = [(key, value) for key, value in pairs if key is not _MERGE]
            named = {key for key, _ in own}
            merged = dict(self._merged([value for key, value in pairs if key is _MERGE], event))
            pairs = [(key, value) for key, value in merged.items() if key not in named] + own
        made = dict(pairs)
        return made if len(made) == len(pairs) else Repeated(pairs)

    def _merged(self, values: list[Any], event: Any) -> Iterator[tuple[str, Any]]:
        """Entries of `<<`, the ones that win last: of several sources an earlier one wins over a later one."""
        for value in values:
            sources = value if isinstance(value, list) else [value]
            for source in reversed(sources):
                if not isinstance(source, dict):
                    raise self._error("expected an object, or a list of objects, after '<<'", event)
                yield from source.items()

    def _scalar(self, event: Any) -> Any:
        plain, _ = event.implicit
        tag = event.tag
        if tag is None or tag == "!":
            if not plain or tag == "!":
                return event.value
            if event.value == "<<":
                return _MERGE if self._frames and self._frames[-1].key_next else "<<"
            return self._finite(resolve(event.value), event)
        if tag in (_TAG + "str", _TAG + "timestamp"):
            return event.value
        if tag == _TAG + "binary":
            return self._binary(event)
        return self._finite(self._tagged(tag, event), event)

    def _tagged(self, tag: str, event: Any) -> object:
        value = resolve(event.value)
        wanted: dict[str, type | tuple[type, ...]] = {
            "int": int, "float": (float, int), "bool": bool, "null": type(None)
        }  # fmt: skip
        name = tag.removeprefix(_TAG)
        if name in wanted and not isinstance(value, wanted[name]):
            raise self._error(f"expected a value of type {name}", event)
        return float(value) if name == "float" and isinstance(value, int) else value

    def _binary(self, event: Any) -> str:
        try:
            return base64.b64decode("".join(event.value.split()), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise self._error("expected base64 of UTF-8 text", event) from None

    def _finite(self, value: object, event: Any) -> object:
        """The number as JSON has it: `1.0` and `1e3` become integers, so that an integer field accepts them."""
        if not isinstance(value, float):
            return value
        if not math.isfinite(value):
            raise self._error(f"expected a number that JSON has: {event.value} is none", event)
        return int(value) if value.is_integer() and abs(value) < _WHOLE else value

    def _child_path(self) -> str:
        if not self._note or not self._frames:
            return ""
        frame = self._frames[-1]
        if frame.sequence:
            return f"{frame.path}[{len(frame.pairs)}]"
        return f"{frame.path}.{frame.key}" if frame.path else str(frame.key)

    def _error(self, expected: str, event: Any) -> Malformed:
        return Malformed(expected, self._position(event.start_mark))

    def _position(self, mark: Any) -> Position:
        return Position(self._source, mark.line + 1, mark.column + 1) if mark else Position(self._source)


def _expected(error: yaml.MarkedYAMLError) -> str:
    """`while parsing a flow sequence: expected ',' or ']'`."""
    problem = (error.problem or "malformed YAML").replace("did not find expected", "expected")
    return f"{error.context}: {problem}" if error.context else problem
