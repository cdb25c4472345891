"""The devices of the cluster as the scheduler knows them.

In:  informers of nodes, slices, classes and (with their gate) taint rules.
Out: one `Inventory`, always as recent as the informers. Its ledger of claims is kept by `claims`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from drakit.allocator import Inventory
from drakit.api.objects.partial import Partial
from drakit.base.gates import FeatureGates
from drakit.client import CLASSES, NODES, SLICES, TAINT_RULES, Resource, metadata_of
from drakit.informers import Informers

T = TypeVar("T")


def follow_devices(informers: Informers, gates: FeatureGates) -> Inventory:
    """An inventory that is kept up to date from now on."""
    inventory = Inventory(gates)
    _follow(informers, NODES, inventory.put_node, inventory.remove_node)
    _follow(informers, SLICES, inventory.put_slice, inventory.remove_slice)
    _follow(informers, CLASSES, inventory.put_class, inventory.remove_class)
    if gates.enabled("DRADeviceTaintRules"):
        _follow(informers, TAINT_RULES, inventory.put_rule, inventory.remove_rule)
    return inventory


def _follow(
    informers: Informers, resource: Resource[Any], put: Callable[[Any], None], remove: Callable[[str], None]
) -> None:
    def handler(old: Any, new: Any) -> None:
        if new is not None:
            put(new.view if type(new) is Partial else new)
        else:
            remove(metadata_of(old).name)

    informers.of(resource).subscribe(handler)
