"""Plain data to YAML text that Kubernetes and drakit read back as the same data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cmp_to_key
from typing import Any

import msgspec
import yaml

from drakit.api.text.yamltext import resolve

_DUMPER: Any = yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper


_MERGE = "tag:yaml.org,2002:merge"


class _Dumper(_DUMPER):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Always: data that occurs twice is written twice, because readers do not expect anchors."""
        return True

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> yaml.MappingNode:
        """A key `<<` is quoted: bare, it would merge its value into the mapping."""
        node: yaml.MappingNode = super().represent_mapping(tag, mapping, flow_style)
        for key, _ in node.value:
            if key.tag == _MERGE:
                key.tag, key.style = "tag:yaml.org,2002:str", '"'
        return node


_BARE = {"=": "tag:yaml.org,2002:value", "<<": _MERGE}


def _text(dumper: Any, value: str) -> yaml.ScalarNode:
    """Quote a text that would be read as another type. Write a text of several lines as a block."""
    if value in _BARE:
        # With the tag that a reader would give it, the text stands as it is: so Go writes it.
        bare: yaml.ScalarNode = dumper.represent_scalar(_BARE[value], value)
        return bare
    style = None
    if "\n" in value:
        style = "|"
    elif not isinstance(resolve(value), str) or _is_other(dumper, value):
        style = '"'
    node: yaml.ScalarNode = dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)
    return node


def _is_other(dumper: Any, value: str) -> bool:
    """Whether a YAML 1.1 reader takes the text for a time, a boolean or a number."""
    tag = dumper.resolve(yaml.ScalarNode, value, (True, False))
    return tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:yaml")


_Dumper.add_representer(str, _text)


def sorted_keys(value: Any) -> Any:
    """The same data with the keys of every object in the order in which Kubernetes writes them."""
    if isinstance(value, Mapping):
        return {key: sorted_keys(value[key]) for key in sorted(value, key=cmp_to_key(_compare))}
    return [sorted_keys(each) for each in value] if isinstance(value, list) else value


def _compare(first: str, second: str) -> int:
    """Compare two keys: numbers in them by value (2 before 10), letters after all other characters."""
    digits = False
    for at, (one, other) in enumerate(zip(first, second, strict=False)):
        if one == other:
            digits = one.isdigit()
        elif one.isalpha() and other.isalpha():
            return -1 if one < other else 1
        elif one.isalpha() or other.isalpha():
            # After a digit the letter comes first: the number on the other side goes on, and so is larger.
            return -1 if one.isalpha() == digits else 1
        else:
            left, right = _number_at(first, at), _number_at(second, at)
            return -1 if (*left, one) < (*right, other) else 1
    return len(first) - len(second)


def _number_at(text: str, at: int) -> tuple[int, int]:
    """The number around the first difference, and how many of its digits follow from there."""
    start, end = at, at
    while start and text[start - 1].isdigit():
        start -= 1
    while end < len(text) and text[end].isdigit():
        end += 1
    return int(text[start:end] or 0), end - at


def dump_yaml(value: Any) -> str:
    """One document. Keys keep their order."""
    try:
        text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False)
    except RecursionError:  # nobody indents hundreds of levels; JSON is YAML, too
        return msgspec.json.encode(value).decode() + "\n"
    return text
