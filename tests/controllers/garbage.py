"""Scenes and objects for the tests of garbage, here and elsewhere."""

from __future__ import annotations

from typing import Any

from drakit.client import CONFIG_MAPS
from tests.builders.cluster import Cluster
from tests.builders.documents import Plain


def owned_by(*owners: Any, block: bool = False) -> list[Plain]:
    return [
        {
            "apiVersion": owner.api_version, "kind": owner.kind, "name": owner.metadata.name,
            "uid": owner.metadata.uid, "blockOwnerDeletion": block,
        }
        for owner in owners
    ]  # fmt: skip


def config(name: str, *owners: Any, block: bool = False, **metadata: Any) -> Plain:
    about = {"name": name, "namespace": "default", "ownerReferences": owned_by(*owners, block=block), **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about}


async def chain(it: Cluster, *, block: bool = False) -> None:
    """a owns b, b owns c."""
    await it.create(config("a"))
    await it.create(config("b", await it.find(CONFIG_MAPS, "a"), block=block))
    await it.create(config("c", await it.find(CONFIG_MAPS, "b"), block=block))
