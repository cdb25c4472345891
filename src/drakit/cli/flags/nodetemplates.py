"""Kinds of nodes by name: a node of the cluster, a device profile, or a file with a Node and its slices."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drakit.api import Node, ResourceSlice
from drakit.base.errors import UsageError
from drakit.base.gates import FeatureGates
from drakit.cli.flags.saved import read_saved
from drakit.drivers import PROFILE_TEMPLATES
from drakit.explain import ClusterObjects

Documents = tuple[Mapping[str, Any], ...]


def read_template(cluster: ClusterObjects, name: str) -> Documents:
    """The objects of such a node; nothing for a node of the cluster, which is known there. Raise UsageError."""
    if cluster.find(Node, name) is not None:
        return ()
    if Path(name).exists():
        found = read_saved([name], FeatureGates.all_on()).objects
        return tuple(each.document for each in found if isinstance(each.view, Node | ResourceSlice))
    if name not in PROFILE_TEMPLATES:
        raise UsageError(
            f'"{name}" is no node of the cluster, no file, and no device profile ({_some(PROFILE_TEMPLATES)})'
        )
    return PROFILE_TEMPLATES[name]


def _some(names: Any) -> str:
    return ", ".join(list(names)[:4]) + ", …"
