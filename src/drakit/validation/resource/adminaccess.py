"""Admin access: whether an object asks for it, or has it.

In:  a claim or a template.
Out: whether the rules must know if its namespace is labelled for admin access.
"""

from __future__ import annotations

from drakit.api import DeviceRequest, Partial, ResourceClaim, ResourceClaimTemplate
from drakit.base.structs import Model


def has_admin_access(obj: Model | Partial[Model]) -> bool:
    if isinstance(obj, ResourceClaim):
        return any(map(_asks, obj.spec.devices.requests)) or _has_result(obj)
    return isinstance(obj, ResourceClaimTemplate) and any(map(_asks, obj.spec.spec.devices.requests))


def _asks(request: DeviceRequest) -> bool:
    return request.exactly is not None and bool(request.exactly.admin_access)


def _has_result(claim: ResourceClaim) -> bool:
    allocation = claim.status.allocation
    return allocation is not None and any(result.admin_access for result in allocation.devices.results)
