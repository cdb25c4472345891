"""Kinds of nodes by name: a node of the cluster, a device profile, or a file with a Node and its slices."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drakit.api import Node, ResourceSlice, to_wire
from drakit.base.errors import UsageError
from drakit.base.gates import FeatureGates
from drakit.cli.flags.saved import read_saved
from drakit.drivers import load_profile, profile_names, profile_slices
from drakit.explain import ClusterObjects

CAPACITY = {"cpu": "32", "memory": "128Gi", "ephemeral-storage": "500Gi", "pods": "110"}
"""What a node of a profile has, as in `drakit up --cluster`."""
Documents = tuple[Mapping[str, Any], ...]


def read_template(cluster: ClusterObjects, name: str) -> Documents:
    """The objects of such a node; nothing for a node of the cluster, which is known there. Raise UsageError."""
    if cluster.find(Node, name) is not None:
        return ()
    if Path(name).exists():
        found = read_saved([name], FeatureGates.all_on()).objects
        return tuple(each.document for each in found if isinstance(each.view, Node | ResourceSlice))
    if name not in profile_names():
        raise UsageError(
            f'"{name}" is no node of the cluster, no file, and no device profile ({_some(profile_names())})'
        )
    profile = load_profile(name)
    capacity = {"capacity": CAPACITY, "allocatable": CAPACITY}
    metadata = {"name": name, "labels": dict(profile.node_labels)}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": capacity}
    return node, *(to_wire(each) for each in profile_slices(profile, name))


def _some(names: Any) -> str:
    return ", ".join(list(names)[:4]) + ", …"
