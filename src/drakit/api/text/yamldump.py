"""Plain data to YAML text that Kubernetes and drakit read back as the same data."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from drakit.api.text.yamltext import resolve

_DUMPER: Any = yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper


class _Dumper(_DUMPER):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Shared parts are written out: anchors surprise readers."""
        return True


def _text(dumper: Any, value: str) -> yaml.ScalarNode:
    """Quote what would be read as something else than text; write several lines as a block."""
    style = None
    if not isinstance(resolve(value), str) or value == "<<":
        style = '"'
    elif "\n" in value:
        style = "|"
    node: yaml.ScalarNode = dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)
    return node


_Dumper.add_representer(str, _text)


def dump_yaml(value: Any) -> str:
    """One document, keys in the order that they have."""
    try:
        text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False)
    except RecursionError:  # nobody indents hundreds of levels; JSON is YAML, too
        return msgspec.json.encode(value).decode() + "\n"
    return text
