"""What a configuration file can say."""

from __future__ import annotations

import logging

import pytest

from drakit.base.gates import FeatureGates
from drakit.scheduler.config import (
    DynamicResourcesArgs,
    NodeResourcesFitArgs,
    ProfileConfig,
    SchedulerConfiguration,
    default_configuration,
    load_configuration,
)

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def load(text: str, gates: FeatureGates | None = None) -> SchedulerConfiguration:
    return load_configuration(HEAD + text, gates=gates)


def profile(text: str) -> ProfileConfig:
    return load(f"profiles: [{text}]").profiles[0]


def dynamic(text: str, gates: FeatureGates | None = None) -> DynamicResourcesArgs:
    args = f"{{name: DynamicResources, args: {text}}}"
    found = load(f"profiles: [{{pluginConfig: [{args}]}}]", gates).profiles[0].args["DynamicResources"]
    assert isinstance(found, DynamicResourcesArgs)
    return found


def test_an_empty_file_gives_the_defaults() -> None:
    assert load("") == default_configuration()


def test_json_is_as_good_as_yaml() -> None:
    text = '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 2}'
    assert load_configuration(text).parallelism == 2


def test_the_plain_settings() -> None:
    found = load(
        "percentageOfNodesToScore: 30\npodInitialBackoffSeconds: 2\npodMaxBackoffSeconds: 20\nparallelism: 4\n"
        "leaderElection: {leaderElect: false, leaseDuration: 1m30s, resourceName: mine}\n"
        "clientConnection: {kubeconfig: /etc/kube, qps: 7.5}\n"
        "enableProfiling: false\nenableContentionProfiling: false\ndelayCacheUntilActive: true\n"
    )
    assert found.percentage_of_nodes_to_score == 30
    assert (found.pod_initial_backoff_seconds, found.pod_max_backoff_seconds, found.parallelism) == (2.0, 20.0, 4)
    election = found.leader_election
    assert (election.leader_elect, election.lease_duration, election.resource_name) == (False, 90.0, "mine")
    assert (found.client_connection.kubeconfig, found.client_connection.qps) == ("/etc/kube", 7.5)


def test_profiles_are_found_by_the_name_that_pods_use() -> None:
    found = load(
        "percentageOfNodesToScore: 30\n"
        "profiles: [{schedulerName: one}, {schedulerName: two, percentageOfNodesToScore: 50}]"
    )
    one, two = found.profile("one"), found.profile("two")
    assert one is not None
    assert two is not None
    assert (one.percentage_of_nodes_to_score, two.percentage_of_nodes_to_score) == (30, 50)
    assert found.profile("default-scheduler") is None


def test_the_only_profile_need_not_be_named() -> None:
    assert profile("{}").scheduler_name == "default-scheduler"


def test_a_default_that_is_turned_on_again_keeps_its_place_and_takes_the_weight() -> None:
    found = profile("{plugins: {multiPoint: {enabled: [{name: NodeAffinity, weight: 7}]}}}")
    assert [use.name for use in found.multi_point.enabled] == list(default_configuration().profiles[0].plugins)
    assert (found.weight("NodeAffinity"), found.weight("TaintToleration"), found.weight("NodeName")) == (7, 3, 1)


def test_defaults_can_be_turned_off_one_by_one_and_all_at_once() -> None:
    without = profile("{plugins: {multiPoint: {disabled: [{name: NodePorts}, {name: NodeName}]}}}")
    assert set(default_configuration().profiles[0].plugins) - set(without.plugins) == {"NodePorts", "NodeName"}
    alone = profile('{plugins: {multiPoint: {disabled: [{name: "*"}], enabled: [{name: DefaultBinder}]}}}')
    assert alone.plugins == ("DefaultBinder",)


def test_a_point_puts_what_it_repeats_first_and_what_only_it_has_last() -> None:
    found = profile(
        '{plugins: {multiPoint: {disabled: [{name: "*"}],'
        " enabled: [{name: NodeName}, {name: NodePorts}, {name: NodeAffinity}]},"
        " filter: {enabled: [{name: NodeResourcesFit}, {name: NodeAffinity}], disabled: [{name: NodePorts}]}}}"
    )
    assert found.at("filter") == ("NodeAffinity", "NodeName", "NodeResourcesFit")
    assert found.at("preFilter") == ("NodeName", "NodePorts", "NodeAffinity")


def test_a_point_can_turn_off_everything_but_its_own() -> None:
    found = profile('{plugins: {filter: {disabled: [{name: "*"}], enabled: [{name: NodeName}]}}}')
    assert found.at("filter") == ("NodeName",)
    assert "NodePorts" in found.at("preFilter")


def test_the_weight_at_the_point_is_the_last_word() -> None:
    found = profile(
        "{plugins: {multiPoint: {enabled: [{name: NodeAffinity, weight: 7}]},"
        " score: {enabled: [{name: NodeAffinity, weight: 4}, {name: TaintToleration}]}}}"
    )
    assert (found.weight("NodeAffinity"), found.weight("TaintToleration")) == (4, 1)


def test_timeouts_and_our_own_options_of_dynamic_resources() -> None:
    assert dynamic("{}") == DynamicResourcesArgs(filter_timeout=10.0, binding_timeout=600.0)
    assert dynamic("{filterTimeout: 0s, bindingTimeout: 2m, deviceStrategy: spread, preemption: true}") == (
        DynamicResourcesArgs(filter_timeout=0.0, binding_timeout=120.0, device_strategy="spread", preemption=True)
    )


def test_without_their_gates_there_are_no_timeouts() -> None:
    off = FeatureGates.of({"DRASchedulerFilterTimeout": False, "DRADeviceBindingConditions": False})
    assert dynamic("{}", off) == DynamicResourcesArgs(filter_timeout=None, binding_timeout=None)
    args = default_configuration(off).profiles[0].args["DynamicResources"]
    assert args == DynamicResourcesArgs(filter_timeout=None, binding_timeout=None)


def test_args_may_say_what_they_are_and_weights_of_zero_are_one() -> None:
    found = profile(
        "{pluginConfig: [{name: NodeResourcesFit, args: {apiVersion: kubescheduler.config.k8s.io/v1,"
        " kind: NodeResourcesFitArgs, scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 0}]}}}]}"
    ).args["NodeResourcesFit"]
    assert isinstance(found, NodeResourcesFitArgs)
    strategy = found.scoring_strategy
    assert (strategy.type, [(each.name, each.weight) for each in strategy.resources]) == ("MostAllocated", [("cpu", 1)])


def test_no_resources_are_cpu_and_memory() -> None:
    found = profile(
        "{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: []}}}]}"
    ).args["NodeResourcesFit"]
    assert isinstance(found, NodeResourcesFitArgs)
    assert [each.name for each in found.scoring_strategy.resources] == ["cpu", "memory"]


def test_gang_scheduling_comes_with_its_gate() -> None:
    on = FeatureGates.of({"GenericWorkload": True, "GangScheduling": True})
    assert default_configuration(on).profiles[0].plugins[-1] == "GangScheduling"
    assert "GangScheduling" not in default_configuration().profiles[0].plugins


def test_plugins_that_drakit_does_not_have_are_accepted_and_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    text = (
        "profiles: [{plugins: {multiPoint: {enabled: [{name: VolumeBinding}], disabled: [{name: ImageLocality}]}},"
        " pluginConfig: [{name: NodeVolumeLimits, args: {most: 3}}]}]"
    )
    with caplog.at_level(logging.WARNING):
        load_configuration(HEAD + text, source="scheduler.yaml")
    assert caplog.messages == [
        "scheduler.yaml: drakit does not have these plugins, they do nothing: NodeVolumeLimits, VolumeBinding"
    ]


def test_a_file_without_such_plugins_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    load("profiles: [{plugins: {multiPoint: {disabled: [{name: ImageLocality}]}}}]")
    assert caplog.messages == []
