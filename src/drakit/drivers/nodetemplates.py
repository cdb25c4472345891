"""The device profiles as templates of nodes: what could be added to a cluster.

In:  the name of a profile.
Out: the documents of a Node, of the slices that its driver would publish, and of the classes that come with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from drakit.api import to_wire
from drakit.drivers.inventory import CAPACITY
from drakit.drivers.profiles import load_profile, profile_names, profile_slices

Documents = tuple[Mapping[str, Any], ...]


class ProfileTemplates(Mapping[str, Documents]):
    """Read when somebody asks for one: most questions need none."""

    def __init__(self) -> None:
        self._names = profile_names()

    def __getitem__(self, name: str) -> Documents:
        if name not in self._names:
            raise KeyError(name)
        return _documents(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@cache
def _documents(name: str) -> Documents:
    profile = load_profile(name)
    metadata = {"name": name, "labels": dict(profile.node_labels)}
    status = {"capacity": CAPACITY, "allocatable": CAPACITY}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}
    return node, *map(to_wire, profile_slices(profile, name)), *profile.classes


PROFILE_TEMPLATES: Mapping[str, Documents] = ProfileTemplates()
