"""The guide's manifests do what the guide says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from drakit.client import CLAIMS, POD_GROUPS, PODS
from tests.builders.schedulercluster import on_loop, scheduling
from tests.scheduler.dynamicresources.scenes import message_of
from tests.scheduler.gangs.scenes import GATES, placed, scheduled

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "scheduling-groups.md"


def manifests() -> list[list[Any]]:
    """The YAML of the guide, as it stands there: cluster, gang, more, shared."""
    blocks = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    found = [list(yaml.safe_load_all(block)) for block in blocks]
    for document in (each for block in found for each in block):
        if document["kind"] not in ("Node", "DeviceClass", "ResourceSlice"):
            document["metadata"]["namespace"] = "default"
    return found


@on_loop
async def test_the_gang_waits_for_the_second_device_and_tells_so() -> None:
    cluster, gang, more, _ = manifests()
    async with scheduling(gates=GATES) as it:
        await it.create(*cluster, *gang)
        await it.run_for(5)
        assert await placed(it, ["training-0", "training-1"]) == []
        condition = await scheduled(it, "training")
        assert condition is not None
        said = " ".join(GUIDE.read_text().split())
        assert re.sub(r"training-\d", "training-0", condition.message) in said
        assert condition.message in {await message_of(it, name) for name in ("training-0", "training-1")}
        await it.create(*more)
        await it.run_for(5)
        assert await placed(it, ["training-0", "training-1"]) == ["training-0", "training-1"]


@on_loop
async def test_the_shared_claim_stays_until_the_group_goes() -> None:
    cluster, _, _, shared = manifests()
    async with scheduling(gates=GATES) as it:
        await it.create(*cluster, *shared)
        await it.run_for(5)
        assert await placed(it, ["shared-0", "shared-1"]) == ["shared-0", "shared-1"]
        for name in ("shared-0", "shared-1"):
            await it.delete(PODS, name)
        [claim] = await it.all(CLAIMS)
        assert [each.name for each in claim.status.reserved_for] == ["shared"]
        await it.delete(POD_GROUPS, "shared")
        await it.run_for(5)
        assert await it.all(CLAIMS) == []
