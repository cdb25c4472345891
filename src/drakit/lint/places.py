"""Places: line and column of what was found.

In:  findings with the field that they are about.
Out: the same with the place of that field in its text, or of what is nearest above it. Each text is read once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from drakit.api.text import jsontext, yamltext
from drakit.api.text.problems import Malformed
from drakit.lint.findings import Draft, Finding

_KEY = re.compile(r"\[([^\]]*[^\]\d][^\]]*)\]")
_DEVICE = re.compile(r"(spec\.devices\[\d+\])\.")

Places = Mapping[tuple[int, str], tuple[int, int]]


def locate(drafts: Iterable[Draft], texts: Mapping[str, str]) -> Iterator[Finding]:
    by_source: dict[str, list[Draft]] = defaultdict(list)
    for draft in drafts:
        by_source[draft.finding.source].append(draft)
    for source, found in by_source.items():
        wanted = frozenset(candidate for draft in found for candidate in _candidates(draft.field))
        places = _places(texts[source], wanted)
        for draft in found:
            spots = (places.get((draft.document, candidate)) for candidate in _candidates(draft.field))
            line, column = next(filter(None, spots), (0, 0))
            yield replace(draft.finding, line=line, column=column)


def _places(content: str, wanted: frozenset[str]) -> Places:
    """The first place of each field that is in the text."""
    try:
        found = list(jsontext.key_positions(content, wanted)) if content.lstrip().startswith(("{", "[")) else []
        found = found or list(yamltext.key_positions(content, wanted))
    except Malformed:
        return {}
    return {(document, path): (line, column) for document, path, line, column in reversed(found)}


def _candidates(field: str) -> Iterator[str]:
    """The field, then what leads there, nearest first. v1beta1 writes requests flat and devices wrapped."""
    path = _KEY.sub(r".\1", field)
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
