"""ResourcePoolStatusRequest: a question that does not change, and an answer that is given once."""

from __future__ import annotations

from collections.abc import Iterator

from drakit.api import (
    PoolStatus,
    ResourcePoolStatusRequest,
    ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
    to_plain,
)
from drakit.base import names
from drakit.base.fields import FieldError, Path, invalid, required, too_long, too_many
from drakit.validation.context import Context
from drakit.validation.fields.conditions import check_conditions
from drakit.validation.fields.declared import check_caseless_name, check_long_name, check_pool_name, check_range
from drakit.validation.fields.gonames import as_go
from drakit.validation.fields.metadata import IMMUTABLE, check_metadata, check_metadata_update
from drakit.validation.fields.sequences import each, repeated

LIMIT = 1000
POOLS = 1000
CONDITIONS = 10
ERROR_LENGTH = 256
_SPEC = Path("spec")
_STATUS = Path("status")


def check_request(request: ResourcePoolStatusRequest, _ctx: Context) -> Iterator[FieldError]:
    yield from check_metadata(request.metadata, namespaced=False)
    yield from _check_question(request.spec)


def check_request_update(
    new: ResourcePoolStatusRequest, old: ResourcePoolStatusRequest, _ctx: Context
) -> Iterator[FieldError]:
    yield from check_metadata_update(new.metadata, old.metadata)
    if new.spec != old.spec:
        yield invalid(_SPEC, None, IMMUTABLE)


def check_request_status_update(
    new: ResourcePoolStatusRequest, old: ResourcePoolStatusRequest, _ctx: Context
) -> Iterator[FieldError]:
    yield from check_metadata_update(new.metadata, old.metadata)
    if new.status == old.status:
        return
    if old.status is not None:
        yield invalid(_STATUS, as_go(new.status), IMMUTABLE)
    elif new.status is not None:
        yield from check_conditions(new.status.conditions, _STATUS / "conditions")
    if new.status is not None:
        yield from _check_answer(new.status)


def _check_question(spec: ResourcePoolStatusRequestSpec) -> Iterator[FieldError]:
    if not spec.driver:
        yield required(_SPEC / "driver")
    else:
        yield from check_caseless_name(spec.driver, _SPEC / "driver")
    if spec.pool_name is not None:
        yield from check_pool_name(spec.pool_name, _SPEC / "poolName")
    yield from check_range(spec.limit, _SPEC / "limit", least=1, most=LIMIT)


def _check_answer(status: ResourcePoolStatusRequestStatus) -> Iterator[FieldError]:
    if status.pool_count is None:
        yield required(_STATUS / "poolCount")
    yield from check_range(status.pool_count, _STATUS / "poolCount", least=0)
    yield from each(status.pools, _STATUS / "pools", _check_pool, limit=POOLS)
    if len(status.conditions) > CONDITIONS:
        yield too_many(_STATUS / "conditions", len(status.conditions), CONDITIONS)
    else:
        yield from repeated(status.conditions, _STATUS / "conditions", lambda condition: condition.type, show=to_plain)


def _check_pool(pool: PoolStatus, path: Path) -> Iterator[FieldError]:
    """A generation of zero counts as none."""
    if not pool.driver:
        yield required(path / "driver")
    else:
        yield from check_caseless_name(pool.driver, path / "driver")
    if not pool.pool_name:
        yield required(path / "poolName")
    else:
        yield from check_pool_name(pool.pool_name, path / "poolName")
    if not pool.generation:
        yield required(path / "generation")
    yield from check_range(pool.generation, path / "generation", least=0)
    yield from check_range(pool.resource_slice_count, path / "resourceSliceCount", least=1)
    yield from check_range(pool.total_devices, path / "totalDevices", least=0)
    yield from check_range(pool.allocated_devices, path / "allocatedDevices", least=0)
    yield from check_range(pool.available_devices, path / "availableDevices", least=0)
    yield from check_range(pool.unavailable_devices, path / "unavailableDevices", least=0)
    if pool.node_name is not None:
        yield from check_long_name(pool.node_name, path / "nodeName")
    if pool.validation_error is not None and names.size(pool.validation_error) > ERROR_LENGTH:
        yield too_long(path / "validationError", ERROR_LENGTH)
