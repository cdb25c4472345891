"""ResourcePoolStatusRequest: a question about pools, answered once. Served in v1alpha3 and v1beta2, one structure."""

from __future__ import annotations

from drakit.api.objects.meta import Condition, ObjectMeta
from drakit.api.objects.wire import constant, nested, number, text
from drakit.base.structs import Model


class ResourcePoolStatusRequestSpec(Model):
    driver: str = text()
    pool_name: str | None = None
    limit: int | None = None


class PoolStatus(Model):
    driver: str = ""
    pool_name: str = ""
    generation: int = number()
    resource_slice_count: int | None = None
    total_devices: int | None = None
    allocated_devices: int | None = None
    available_devices: int | None = None
    unavailable_devices: int | None = None
    node_name: str | None = None
    validation_error: str | None = None


class ResourcePoolStatusRequestStatus(Model):
    pool_count: int | None = None
    pools: tuple[PoolStatus, ...] = ()
    conditions: tuple[Condition, ...] = ()


class ResourcePoolStatusRequest(Model):
    """`status` is set once; a request that has one is done."""

    kind: str = constant("ResourcePoolStatusRequest")
    api_version: str = constant("resource.k8s.io/v1alpha3")
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: ResourcePoolStatusRequestSpec = nested(ResourcePoolStatusRequestSpec)
    status: ResourcePoolStatusRequestStatus | None = None
