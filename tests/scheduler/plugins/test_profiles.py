"""From a configuration to plugins, sorted by extension point."""

from __future__ import annotations

from random import Random

import pytest
from prometheus_client import CollectorRegistry

from drakit.base.clock import FakeClock
from drakit.base.errors import UsageError
from drakit.base.gates import FeatureGates
from drakit.client import Client, InProcess
from drakit.informers import Informers
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.config import default_configuration, load_configuration
from drakit.scheduler.config.names import DEFAULTS
from drakit.scheduler.framework import Handle, Profile
from drakit.scheduler.plugins import MAKERS, make_profile
from drakit.scheduler.plugins.profiles import interests_of
from tests.builders.cluster import cluster, on_loop

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


async def profile(text: str = "") -> Profile:
    config = load_configuration(HEAD + text) if text else default_configuration()
    async with cluster() as here:
        client = Client(InProcess(here.server), clock=here.clock)
        handle = Handle(
            client,
            Informers(client),
            SchedulerCache(),
            clock=FakeClock(),
            gates=FeatureGates.defaults(),
            registry=CollectorRegistry(),
            random=Random(1),
            new_uid=lambda: "uid",
        )
        return make_profile(config.profiles[0], handle)


def names(plugins: object) -> list[str]:
    return [each.name for each in plugins]  # type: ignore[attr-defined]


def test_every_default_has_a_maker() -> None:
    assert {name for name, _ in DEFAULTS} <= set(MAKERS)


@on_loop
async def test_the_defaults_stand_where_they_have_a_part() -> None:
    found = await profile()
    assert names(found.pre_enqueue) == ["SchedulingGates", "DynamicResources"]
    assert names(found.filter) == [
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "DynamicResources",
        "PodTopologySpread",
        "InterPodAffinity",
    ]
    assert [(plugin.name, weight) for plugin, weight in found.score] == [
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodeResourcesFit", 1),
        ("DynamicResources", 2),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("NodeResourcesBalancedAllocation", 1),
    ]
    assert names(found.bind) == ["DefaultBinder"]
    assert set(names(found.plugins)) == {name for name, _ in DEFAULTS}


@on_loop
async def test_plugins_that_refuse_nobody_hope_for_nothing() -> None:
    """So a scheduler that knows no devices need not follow kinds that its server may not have."""
    quiet = {each.name for each in (await profile()).plugins if not interests_of(each)}
    assert quiet == {"PrioritySort", "NodeResourcesBalancedAllocation", "DefaultBinder"}


@on_loop
async def test_a_plugin_can_be_off_at_one_point_and_have_another_weight_at_one() -> None:
    found = await profile(
        "profiles: [{plugins: {score: {disabled: [{name: TaintToleration}],"
        " enabled: [{name: NodeAffinity, weight: 9}]}, filter: {disabled: [{name: NodePorts}]}}}]"
    )
    assert [(plugin.name, weight) for plugin, weight in found.score][:2] == [
        ("NodeAffinity", 9),
        ("NodeResourcesFit", 1),
    ]
    assert "TaintToleration" in names(found.filter)
    assert "NodePorts" not in names(found.filter)


@on_loop
async def test_everything_can_be_off_but_what_is_named() -> None:
    found = await profile(
        'profiles: [{plugins: {multiPoint: {disabled: [{name: "*"}], enabled: [{name: DefaultBinder}]},'
        " queueSort: {enabled: [{name: PrioritySort}]}, filter: {enabled: [{name: NodeResourcesFit}]}}}]"
    )
    assert names(found.filter) == ["NodeResourcesFit"]
    assert found.score == ()
    assert names(found.plugins) == ["DefaultBinder", "PrioritySort", "NodeResourcesFit"]


@on_loop
async def test_a_plugin_that_is_on_at_a_point_it_has_no_part_in_is_an_error() -> None:
    with pytest.raises(UsageError, match=r'plugin "NodeName" has no part in score'):
        await profile("profiles: [{plugins: {score: {enabled: [{name: NodeName}]}}}]")


@on_loop
async def test_somebody_must_bind() -> None:
    with pytest.raises(UsageError, match="at least one bind plugin is needed"):
        await profile("profiles: [{plugins: {bind: {disabled: [{name: DefaultBinder}]}}}]")


@pytest.mark.parametrize("point", ["queueSort", "multiPoint"])
@on_loop
async def test_somebody_must_sort(point: str) -> None:
    with pytest.raises(UsageError, match="a queue sort plugin is needed: PrioritySort"):
        await profile(f"profiles: [{{plugins: {{{point}: {{disabled: [{{name: PrioritySort}}]}}}}}}]")


@on_loop
async def test_plugins_that_drakit_does_not_have_are_left_out() -> None:
    found = await profile("profiles: [{plugins: {multiPoint: {enabled: [{name: VolumeBinding}]}}}]")
    assert "VolumeBinding" not in names(found.plugins)
