"""What to write so that the server has a pool as the driver has it.

In:  a pool, and the slices of it that there are.
Out: slices to create, update and delete. As few as possible, and never a state in between that looks whole and is not:
     when the set of slices changes, or a device moves from one to another, all get a new generation. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from drakit.api import (
    Device,
    DeviceTaint,
    ObjectMeta,
    OwnerReference,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from drakit.driverkit.pools import DevicePool
from drakit.driverkit.slices.layout import SliceContent, cut

Same = Callable[[ResourceSliceSpec, ResourceSlice], bool]
"""Whether a slice of the server is what it makes of a spec that we send."""
_NUMBERED = re.compile(r"(\d{5})-")


class SlicePlan(msgspec.Struct, frozen=True):
    create: tuple[ResourceSlice, ...] = ()
    update: tuple[ResourceSlice, ...] = ()
    delete: tuple[ResourceSlice, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.create or self.update or self.delete)

    def __add__(self, other: SlicePlan) -> SlicePlan:
        return SlicePlan(self.create + other.create, self.update + other.update, self.delete + other.delete)


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """Who publishes."""

    driver: str
    node_name: str
    owner: OwnerReference | None = None
    """The node, which takes its slices with it when it goes."""


def plan_pool(pool: DevicePool, current: Iterable[ResourceSlice], who: Publication, *, same: Same) -> SlicePlan:
    ours, surplus = _numbered(current)
    newest = max((each.spec.pool.generation for each in (*ours.values(), *surplus)), default=0)
    kept = [ours[number] for number in sorted(ours)]
    before = [[device.name for device in each.spec.devices] for each in kept if each.spec.devices]
    contents = cut(pool, before)
    renewed = bool(kept) and _is_other_set(kept, contents)
    # The scheduler ignores older generations, and a pool that is not complete. So it never sees a mix.
    generation = newest + 1 if renewed else max(newest, 1)
    create, update = [], []
    for number, content in enumerate(contents):
        spec = _spec(pool, content, generation, len(contents), who)
        found = ours.get(number)
        if found is None:
            create.append(_new(number, spec, pool, who))
        elif (changed := _changed(found, spec, pool, who, same)) is not None:
            update.append(changed)
    delete = [*surplus, *(each for number, each in ours.items() if number >= len(contents))]
    return SlicePlan(tuple(create), tuple(update), tuple(delete))


def desired_slices(pool: DevicePool, who: Publication) -> list[ResourceSlice]:
    """The slices of a pool of which nothing is there yet; for checks."""
    contents = cut(pool)
    return [
        _new(
            number,
            _spec(pool, content, 1, len(contents), who),
            pool,
            who,
        )
        for number, content in enumerate(contents)
    ]


def _numbered(slices: Iterable[ResourceSlice]) -> tuple[dict[int, ResourceSlice], list[ResourceSlice]]:
    """Slices by the number in their name, which keeps the order of devices; and the rest, which has to go.

    The rest has no number, or a number that another slice has too.
    """
    ours: dict[int, ResourceSlice] = {}
    surplus: list[ResourceSlice] = []
    # Newest generation first: of two slices with one number the older one is surplus.
    for each in sorted(slices, key=lambda found: (-found.spec.pool.generation, found.metadata.name)):
        number = _NUMBERED.match(each.metadata.name)
        if number is None or int(number.group(1)) in ours:
            surplus.append(each)
        else:
            ours[int(number.group(1))] = each
    return ours, surplus


def _is_other_set(kept: Sequence[ResourceSlice], contents: Sequence[SliceContent]) -> bool:
    """Whether slices come or go, or a device or counter set is in another one than before."""
    # Different generations: an earlier update stopped half-way, so the pool has to become whole again.
    if len(kept) != len(contents) or len({each.spec.pool.generation for each in kept}) > 1:
        return True
    was = _homes((each.spec.devices, each.spec.shared_counters) for each in kept)
    will_be = _homes((each.devices, each.shared_counters) for each in contents)
    return any(was[name] != will_be[name] for name in was.keys() & will_be.keys())


def _homes(contents: Iterable[tuple[Sequence[object], Sequence[object]]]) -> dict[tuple[type, str], int]:
    return {
        (type(each), str(getattr(each, "name", ""))): index
        for index, parts in enumerate(contents)
        for part in parts
        for each in part
    }


def _spec(pool: DevicePool, content: SliceContent, generation: int, count: int, who: Publication) -> ResourceSliceSpec:
    return ResourceSliceSpec(
        driver=who.driver,
        pool=ResourcePool(name=pool.name, generation=generation, resource_slice_count=count),
        node_name=who.node_name if pool.is_local else None,
        node_selector=pool.node_selector,
        all_nodes=True if pool.all_nodes else None,
        per_device_node_selection=True if pool.per_device else None,
        devices=content.devices,
        shared_counters=content.shared_counters,
    )


def _new(number: int, spec: ResourceSliceSpec, pool: DevicePool, who: Publication) -> ResourceSlice:
    place = who.node_name if pool.is_local else pool.name.replace("/", "-")
    owners = (who.owner,) if who.owner is not None and pool.is_local else ()
    metadata = ObjectMeta(generate_name=f"{number:05d}-{who.driver}-{place}-", owner_references=owners)
    return ResourceSlice(metadata=metadata, spec=spec)


def _changed(
    found: ResourceSlice, spec: ResourceSliceSpec, pool: DevicePool, who: Publication, same: Same
) -> ResourceSlice | None:
    """The slice as it should be; none when it is."""
    wanted = msgspec.structs.replace(spec, devices=tuple(_with_times(spec.devices, found.spec.devices)))
    metadata = _owned(found.metadata, who.owner if pool.is_local else None)
    if metadata == found.metadata and same(wanted, found):
        return None
    return msgspec.structs.replace(found, metadata=metadata, spec=wanted)


def _owned(metadata: ObjectMeta, owner: OwnerReference | None) -> ObjectMeta:
    """With the node as its owner; whatever else people put there stays."""
    if owner is None or any(each.uid == owner.uid for each in metadata.owner_references):
        return metadata
    others = tuple(each for each in metadata.owner_references if (each.kind, each.name) != (owner.kind, owner.name))
    return msgspec.structs.replace(metadata, owner_references=(*others, owner))


def _with_times(devices: Iterable[Device], before: Iterable[Device]) -> Iterator[Device]:
    """A taint that is there already keeps the time since when; else every update would begin its time anew."""
    known: Mapping[str, Device] = {each.name: each for each in before}
    for device in devices:
        old = known.get(device.name)
        if not device.taints or old is None:
            yield device
        else:
            taints = tuple(_with_time(taint, old.taints) for taint in device.taints)
            yield msgspec.structs.replace(device, taints=taints)


def _with_time(taint: DeviceTaint, before: Sequence[DeviceTaint]) -> DeviceTaint:
    if taint.time_added is not None:
        return taint
    for old in before:
        if (old.key, old.value, old.effect) == (taint.key, taint.value, taint.effect):
            return msgspec.structs.replace(taint, time_added=old.time_added)
    return taint
