"""What the plugin tells: each step at `-v 4`, nodes and devices at `-v 5`."""

from __future__ import annotations

import logging

import pytest

from drakit.client import V
from tests.builders.manifests import claim
from tests.builders.schedulercluster import on_loop
from tests.scheduler.dynamicresources.scenes import bare_slice, exactly, scene, user


async def story() -> None:
    nic = {
        "name": "nic",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "8", "requestPolicy": {"default": "1"}}},
    }
    async with scene() as it:
        await it.create(bare_slice("slice", [nic]))
        for name, amount in (("a", "6"), ("b", "4")):
            asked = exactly("r", capacity={"requests": {"memory": amount}})
            await it.create(claim(name, asked), user(f"pod-{name}", name))


def told(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    caplog.set_level(level, logger="drakit")
    on_loop(story)()
    return [each.message for each in caplog.records if each.name == "drakit.scheduler"]


def test_each_step_is_told_at_v_4(caplog: pytest.LogCaptureFixture) -> None:
    lines = told(caplog, V[4])
    assert "pod default/pod-a: claims allocated: none; to allocate: default/a" in lines
    assert "pod default/pod-a: 1 of 1 nodes fit its claims" in lines
    assert any(each.startswith("pod default/pod-a: claim default/a gets ") for each in lines)
    assert "pod default/pod-a: claims default/a are stored and reserved for node node-1" in lines
    assert "pod default/pod-b: 0 of 1 nodes fit its claims" in lines
    assert not any("Device capacity not enough" in each for each in lines)


def test_nodes_and_devices_are_told_at_v_5_in_the_words_of_the_troubleshooting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines = told(caplog, V[5])
    assert any(each.startswith("Allocating one device: request r, device nic, capacities") for each in lines)
    assert any("Device capacity not enough: capacity memory: 4 needed, 2 left" in each for each in lines)
    assert "pod default/pod-b: node node-1: cannot allocate all claims" in lines


def test_nothing_of_it_is_told_below(caplog: pytest.LogCaptureFixture) -> None:
    assert not any("nodes fit its claims" in each for each in told(caplog, logging.INFO))
