"""Positions: line and column of fields in a text.

In:  the text, and fields of its documents.
Out: per field its position, or that of the nearest thing above it that is in the text. The text is read once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from drakit.api.text import jsontext, yamltext
from drakit.api.text.problems import Malformed

DocumentField = tuple[int, str]
"""The index of a document in its text, and a path in it."""

_NAMED_KEY = re.compile(r"\[([^\]]*[^\]\d][^\]]*)\]")
_DEVICE = re.compile(r"(spec\.devices\[\d+\])\.")


def find_positions(content: str, fields: Collection[DocumentField]) -> dict[DocumentField, tuple[int, int]]:
    """Line and column of each field, counted from one; (0, 0) where nothing was found."""
    wanted = frozenset(candidate for _, field in fields for candidate in _candidates(field))
    keys = _key_positions(content, wanted)
    found = {}
    for document, field in fields:
        spots = (keys.get((document, candidate)) for candidate in _candidates(field))
        found[document, field] = next(filter(None, spots), (0, 0))
    return found


def _key_positions(content: str, wanted: frozenset[str]) -> Mapping[DocumentField, tuple[int, int]]:
    """The first position of each field that is in the text."""
    try:
        found = list(jsontext.key_positions(content, wanted)) if content.lstrip().startswith(("{", "[")) else []
        # Text that begins like JSON may be YAML in flow style.
        found = found or list(yamltext.key_positions(content, wanted))
    except Malformed:
        return {}
    return {(document, path): (line, column) for document, path, line, column in reversed(found)}


def _candidates(field: str) -> Iterator[str]:
    """The field, then what leads there, nearest first. v1beta1 writes requests flat and devices wrapped."""
    path = _NAMED_KEY.sub(r".\1", field)
    spellings = dict.fromkeys((path, path.replace(".exactly", ""), _DEVICE.sub(r"\1.basic.", path)))
    while any(spellings):
        for spelling in filter(None, spellings):
            yield spelling
            if spelling.endswith("]"):
                yield f"{spelling}.name"
        spellings = dict.fromkeys(map(_parent, spellings))
    yield "kind"


def _parent(path: str) -> str:
    return path[: path.rfind("[")] if path.endswith("]") else path.rpartition(".")[0]
