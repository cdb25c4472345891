"""Slices: what the driver publishes, and what becomes of it."""

from __future__ import annotations

import msgspec

from drakit.api import Device, ObjectMeta, ResourcePool, ResourceSlice, ResourceSliceSpec
from drakit.client import SLICES
from drakit.conformance.pools import incomplete_pools, order_of
from drakit.conformance.rules import rule
from drakit.conformance.testbed import Testbed
from drakit.conformance.verdicts import Broken, NotApplicable
from drakit.validation import validate_create

_STALE_POOL = "drakit-conformance-stale"
_NEEDS = ("registration", "slices-valid", "slices-complete")


@rule(
    "slices-valid",
    "slices are published and valid",
    why="What the API server refuses is invisible to the scheduler, and only the driver's log says so.",
)
async def valid(bed: Testbed) -> None:
    slices = await bed.published()
    observer = bed.cluster.observer
    if observer is not None and observer.refused_slices:
        raise Broken(f"the API server refused a slice: {observer.refused_slices[0]}")
    if not slices:
        raise Broken(f"no slice within {bed.timeouts.publish:g} s for driver {bed.driver_name}")
    for each in slices:
        if errors := validate_create(each):
            raise Broken(f"slice {each.metadata.name}: {errors[0]}")
    if not any(each.spec.devices for each in slices):
        raise Broken("there is no device in any slice")


@rule(
    "slices-complete",
    "every pool is complete",
    why="A scheduler does not allocate from a pool as long as some of its slices are missing or outdated.",
    needs=("registration", "slices-valid"),
)
async def complete(bed: Testbed) -> None:
    if reasons := incomplete_pools(await bed.published()):
        raise Broken("; ".join(reasons))


@rule(
    "slices-owned",
    "slices of one node are owned by it",
    why="The garbage collector removes them with the node; without an owner they stay, and pods wait for a ghost.",
    needs=("registration", "slices-valid"),
)
async def owned(bed: Testbed) -> None:
    local = [each for each in await bed.published() if each.spec.node_name]
    if not local:
        raise NotApplicable("the driver has no slice of a single node")
    for each in local:
        owners = [(owner.kind, owner.name) for owner in each.metadata.owner_references]
        if ("Node", bed.cluster.node_name) not in owners:
            raise Broken(f"slice {each.metadata.name} has no owner reference to Node {bed.cluster.node_name}")


@rule(
    "slices-stable",
    "the order of devices survives a restart",
    why="Devices are allocated in the order of the slices: drivers put first what should be given first.",
    needs=_NEEDS,
)
async def stable(bed: Testbed) -> None:
    before = order_of(await bed.published())
    driver = await bed.driver()
    await bed.kill(driver)
    await bed.start()
    await bed.clock.sleep(bed.timeouts.settle)
    after = order_of(await bed.published())
    if after != before:
        raise Broken(f"the order is {after}; before the restart it was {before}")


@rule(
    "slices-repaired",
    "a slice that somebody edited is put right",
    why="What a slice says is what the scheduler gives away: an edit could hide devices or invent some.",
    needs=_NEEDS,
)
async def repaired(bed: Testbed) -> None:
    slices = await bed.published()
    # A slice of shared counters has no devices to edit out.
    victim = next(each for each in slices if each.spec.devices)
    spec = msgspec.structs.replace(victim.spec, devices=victim.spec.devices[1:] or (Device(name="invented"),))
    await bed.cluster.client.update(msgspec.structs.replace(victim, spec=spec))
    await _until_as_before(bed, slices, "a device was edited out of a slice")


@rule(
    "slices-published-again",
    "a slice that somebody deleted is published again",
    why="A kubelet that restarts removes the slices of its node; until they are back no pod gets a device there.",
    needs=_NEEDS,
)
async def published_again(bed: Testbed) -> None:
    slices = await bed.published()
    await bed.cluster.client.delete(SLICES, slices[0].metadata.name)
    await _until_as_before(bed, slices, "a slice was deleted")


async def _until_as_before(bed: Testbed, slices: list[ResourceSlice], what: str) -> None:
    wanted = _content(slices)

    async def is_back() -> bool:
        found = await bed.slices()
        return _content(found) == wanted and not incomplete_pools(found)

    if not await bed.until(is_back, bed.timeouts.repair):
        raise Broken(f"{bed.timeouts.repair:g} s after {what} it is not as it was")


def _content(slices: list[ResourceSlice]) -> dict[str, dict[str, Device]]:
    """Devices per pool, in whichever slice they are."""
    found: dict[str, dict[str, Device]] = {}
    for each in slices:
        found.setdefault(each.spec.pool.name, {}).update({device.name: device for device in each.spec.devices})
    return found


@rule(
    "slices-stale-removed",
    "a slice that an earlier version of the driver left behind is removed",
    why="Nobody else removes it as long as the node is there, and its devices would be given to pods.",
    needs=_NEEDS,
)
async def stale_removed(bed: Testbed) -> None:
    if not any(each.spec.node_name for each in await bed.published()):
        raise NotApplicable("the driver has no slice of a single node")
    made = await bed.cluster.client.create(_stale_slice(bed.driver_name, bed.cluster.node_name))

    async def is_gone() -> bool:
        return await bed.cluster.client.find(SLICES, made.metadata.name) is None

    if not await bed.until(is_gone, bed.timeouts.repair):
        await bed.cluster.client.delete(SLICES, made.metadata.name)
        raise Broken(
            f"{bed.timeouts.repair:g} s later slice {made.metadata.name} of the driver and node is still there"
        )


def _stale_slice(driver: str, node_name: str) -> ResourceSlice:
    pool = ResourcePool(name=_STALE_POOL, generation=1, resource_slice_count=1)
    spec = ResourceSliceSpec(driver=driver, node_name=node_name, pool=pool, devices=(Device(name="gone"),))
    return ResourceSlice(metadata=ObjectMeta(generate_name="conformance-stale-"), spec=spec)


@rule(
    "slices-kept",
    "slices stay when the driver stops",
    why="An update of the driver must not make the node's devices disappear; a kubelet removes them after 30 s.",
    needs=_NEEDS,
)
async def kept(bed: Testbed) -> None:
    before = order_of(await bed.published())
    await bed.stop(await bed.driver())
    await bed.clock.sleep(bed.timeouts.settle)
    after = order_of(await bed.slices())
    if after != before:
        raise Broken(f"after the stop there is {after or 'nothing'}; before there was {before}")


@rule(
    "slices-removed-on-request",
    "slices go when the driver is removed for good",
    why="Whoever uninstalls a driver wants its devices gone at once.",
    needs=_NEEDS,
)
async def removed_on_request(bed: Testbed) -> None:
    if not bed.hints.removal_arguments:
        raise NotApplicable("nothing says how the driver is told to remove its slices (--removal-arguments)")
    await bed.stop(await bed.driver())
    driver = await bed.start(further=bed.hints.removal_arguments)
    await bed.published()
    await bed.stop(driver)

    async def is_gone() -> bool:
        return not await bed.slices()

    if not await bed.until(is_gone, bed.timeouts.settle):
        raise Broken(f"slice {(await bed.slices())[0].metadata.name} is still there")
