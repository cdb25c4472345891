"""What `apply` takes, as objects; names and taints as a test writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from drakit.api import DeviceTaint
from drakit.base.structs import Model
from drakit.drivers.profiles import YAML_LOADER

Applied = str | Path | Mapping[str, Any] | Model
_EFFECTS = ("NoSchedule", "NoExecute", "None")


def objects_of(source: Applied) -> Iterable[Model | Mapping[str, Any]]:
    """Text with a line break or a colon is YAML; other text is a path. Raise ValueError for what is no object."""
    if isinstance(source, Path) or (isinstance(source, str) and "\n" not in source and ":" not in source):
        path = Path(source)
        paths = sorted(each for each in path.iterdir() if each.suffix in (".yaml", ".yml")) if path.is_dir() else [path]
        return [each for found in paths for each in _documents(found.read_text(encoding="utf-8"), str(found))]
    return _documents(source, "the text") if isinstance(source, str) else [source]


def _documents(text: str, source: str) -> list[Mapping[str, Any]]:
    found = [each for each in yaml.load_all(text, YAML_LOADER) if each]
    for each in found:
        if not isinstance(each, Mapping):
            raise ValueError(f"{source} has no Kubernetes object but {each!r}")
    return [part for each in found for part in (each["items"] if each.get("kind") == "List" else [each])]


def split_name(name: str) -> tuple[str, str]:
    """Namespace and name; `default` unless it says `namespace/name`."""
    namespace, _, rest = name.rpartition("/")
    return namespace or "default", rest


def taint_of(given: DeviceTaint | str) -> DeviceTaint:
    """Of `key=value:Effect`. Raise ValueError."""
    if isinstance(given, DeviceTaint):
        return given
    pair, _, effect = given.rpartition(":")
    key, _, value = pair.partition("=")
    if not key or effect not in _EFFECTS:
        raise ValueError(f"{given!r} is no taint: key=value:Effect, with an effect of {', '.join(_EFFECTS)}")
    return DeviceTaint(key=key, value=value, effect=effect)
