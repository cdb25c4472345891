"""Whether a quota has room for what an object would add.

Nothing is enforced before the quota's status says what is hard: until then its usage has not been counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from drakit.api import Pod, ResourceQuota
from drakit.base.quantity import ZERO, Quantity
from drakit.base.structs import Model
from drakit.quota.pods import unspecified_names


@dataclass(frozen=True, slots=True)
class Excess:
    """Invariant: every name of `requested` exceeds its limit, and is in all three."""

    quota: str
    requested: Mapping[str, Quantity]
    used: Mapping[str, Quantity]
    limited: Mapping[str, Quantity]

    def __str__(self) -> str:
        return (
            f"exceeded quota: {self.quota}, requested: {_listing(self.requested)}, "
            f"used: {_listing(self.used)}, limited: {_listing(self.limited)}"
        )


def increase(new: Mapping[str, Quantity], old: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """The amounts that an object adds. Those that it gives back are counted later, by the usage controller."""
    grown = {name: amount - old.get(name, ZERO) for name, amount in new.items()}
    return {name: amount for name, amount in grown.items() if amount.sign > 0}


def excess(quota: ResourceQuota, added: Mapping[str, Quantity]) -> Excess | None:
    """The limits that `added` would exceed, or None."""
    hard, used = quota.status.hard, quota.status.used
    # By the status, not the spec: a limit that was just changed is enforced when its usage has been counted.
    over = [name for name, amount in added.items() if name in hard and used.get(name, ZERO) + amount > hard[name]]
    if not over:
        return None
    return Excess(
        quota.metadata.name,
        {name: added[name] for name in over},
        {name: used.get(name, ZERO) for name in over},
        {name: hard[name] for name in over},
    )


def unknown(quota: ResourceQuota, names: Iterable[str]) -> str:
    """The message about limits whose usage has not been counted yet; empty if all have been."""
    names = sorted(names)
    if all(name in quota.status.used for name in names):
        return ""
    return f"status unknown for quota: {quota.metadata.name}, resources: {','.join(names)}"


def unspecified(quota: ResourceQuota, obj: Model | None) -> str:
    """The message about a pod that does not specify a resource that the quota limits; empty if it specifies all."""
    if not isinstance(obj, Pod):
        return ""
    missing = unspecified_names(obj, frozenset(quota.status.hard))
    if not missing:
        return ""
    parts = "; ".join(f"{name} for: {','.join(containers)}" for name, containers in missing.items())
    return f"failed quota: {quota.metadata.name}: must specify {parts}"


def _listing(amounts: Mapping[str, Quantity]) -> str:
    return ",".join(f"{name}={amount}" for name, amount in sorted(amounts.items()))
