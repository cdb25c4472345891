"""ResourceSlice: the rules for what drivers publish."""

from __future__ import annotations

from collections.abc import Iterator

from drakit.api import CounterSet, Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from drakit.base.fields import FieldError, Path, invalid, required
from drakit.validation.context import Context
from drakit.validation.fields.gonames import as_go, set_fields
from drakit.validation.fields.metadata import check_metadata, check_metadata_update, immutable
from drakit.validation.fields.names import check_driver, check_pool, check_subdomain
from drakit.validation.fields.nodeselectors import check_node_selector
from drakit.validation.fields.sequences import each_once
from drakit.validation.resource.devices import check_counters, check_device, has_lists, is_attribute_list

DEVICES = 128
ADVANCED_DEVICES = 64
COUNTER_SETS = 8
SPEC = Path("spec")
_ONE_OF = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_UNSET_OR_TRUE = "must be either unset or set to true"


def check_slice(slice_: ResourceSlice, ctx: Context) -> Iterator[FieldError]:
    yield from check_metadata(slice_.metadata, namespaced=False)
    yield from _check_spec(slice_.spec, None, ctx)


def check_slice_update(new: ResourceSlice, old: ResourceSlice, ctx: Context) -> Iterator[FieldError]:
    yield from check_metadata_update(new.metadata, old.metadata)
    yield from _check_spec(new.spec, old.spec, ctx)
    yield from immutable(new.spec.pool.name, old.spec.pool.name, SPEC / "pool" / "name")
    yield from immutable(new.spec.driver, old.spec.driver, SPEC / "driver")
    yield from immutable(new.spec.node_name, old.spec.node_name, SPEC / "nodeName")


def _check_spec(spec: ResourceSliceSpec, old: ResourceSliceSpec | None, ctx: Context) -> Iterator[FieldError]:
    yield from check_driver(spec.driver, SPEC / "driver")
    yield from _check_pool(spec.pool, SPEC / "pool")
    yield from _check_nodes(spec)
    if _given(spec.shared_counters, "sharedCounters", ctx) and _given(spec.devices, "devices", ctx):
        yield invalid(SPEC, "", "only one of `sharedCounters` or `devices` is allowed")
    yield from _check_devices(spec, old, ctx)
    yield from each_once(
        spec.shared_counters,
        SPEC / "sharedCounters",
        _check_counter_set,
        lambda counter_set: counter_set.name,
        limit=COUNTER_SETS,
    )


def _given(items: tuple[object, ...], name: str, ctx: Context) -> bool:
    return bool(items) or str(SPEC / name) in ctx.empty_lists


def _check_pool(pool: ResourcePool, path: Path) -> Iterator[FieldError]:
    yield from check_pool(pool.name, path / "name")
    if pool.resource_slice_count <= 0:
        yield invalid(path / "resourceSliceCount", pool.resource_slice_count, "must be greater than zero")
    if pool.generation < 0:
        yield invalid(path / "generation", pool.generation, "must be greater than or equal to zero")


def _check_nodes(spec: ResourceSliceSpec) -> Iterator[FieldError]:
    chosen = []
    if spec.node_name:
        chosen.append("nodeName")
        yield from check_subdomain(spec.node_name, SPEC / "nodeName")
    elif spec.node_name is not None:
        yield invalid(SPEC / "nodeName", "", "must be either unset or set to a non-empty string")
    if spec.node_selector is not None:
        chosen.append("nodeSelector")
        yield from _check_selector(spec)
    for name, value in (("allNodes", spec.all_nodes), ("perDeviceNodeSelection", spec.per_device_node_selection)):
        if value:
            chosen.append(name)
        elif value is not None:
            yield invalid(SPEC / name, False, _UNSET_OR_TRUE)
    if not chosen:
        yield required(SPEC, _ONE_OF)
    elif len(chosen) > 1:
        yield invalid(SPEC, set_fields(chosen), f"{_ONE_OF}, but multiple fields are set")


def _check_selector(spec: ResourceSliceSpec) -> Iterator[FieldError]:
    """One term, so that the selectors of several slices can be merged."""
    if spec.node_selector is None:
        return
    yield from check_node_selector(spec.node_selector, SPEC / "nodeSelector")
    terms = spec.node_selector.node_selector_terms
    if len(terms) != 1:
        detail = "must have exactly one node selector term"
        yield invalid(SPEC / "nodeSelector" / "nodeSelectorTerms", as_go(terms), detail)


def _check_devices(spec: ResourceSliceSpec, old: ResourceSliceSpec | None, ctx: Context) -> Iterator[FieldError]:
    per_device = bool(spec.per_device_node_selection)
    before = {device.name: device for device in old.devices} if old else {}
    same_nodes = old is not None and bool(old.per_device_node_selection) == per_device

    def check(device: Device, where: Path) -> Iterator[FieldError]:
        known = before.get(device.name)
        # A slice of 128 devices changes one of them: the others are not checked again.
        if not (same_nodes and known == device):
            yield from check_device(device, where, ctx, old=known, per_device=per_device)

    advanced = any(map(_is_advanced, spec.devices)) or any(map(is_attribute_list, ctx.empty_lists))
    # One such device lowers the limit for the whole slice: the limit bounds the size of the object.
    limit = ADVANCED_DEVICES if advanced else DEVICES
    yield from each_once(spec.devices, SPEC / "devices", check, lambda device: device.name, limit=limit)


def _is_advanced(device: Device) -> bool:
    """Whether a device has something that makes every device of its slice larger or dearer."""
    return bool(device.taints or device.consumes_counters or any(map(has_lists, device.attributes.values())))


def _check_counter_set(counter_set: CounterSet, path: Path) -> Iterator[FieldError]:
    return check_counters(counter_set.name, path / "name", counter_set.counters, path / "counters")
