"""What is wrong with a configuration file: everything, each with its path."""

from __future__ import annotations

import pytest

from drakit.base.errors import DecodeError, InvalidObject, UsageError
from drakit.base.fields import quote
from drakit.base.gates import FeatureGates
from drakit.scheduler.config import load_configuration
from drakit.scheduler.config.args import STRATEGIES

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def errors(text: str, *, head: str = HEAD, gates: FeatureGates | None = None) -> list[str]:
    with pytest.raises(InvalidObject) as raised:
        load_configuration(head + text, source="scheduler.yaml", gates=gates)
    return [str(error) for error in raised.value.errors]


def of_args(plugin: str, args: str, gates: FeatureGates | None = None) -> list[str]:
    found = errors(f"profiles: [{{pluginConfig: [{{name: {plugin}, args: {args}}}]}}]", gates=gates)
    return [each.removeprefix("profiles[0].pluginConfig[0].args") for each in found]


def test_every_error_is_told_at_once_and_the_file_named() -> None:
    with pytest.raises(InvalidObject) as raised:
        load_configuration(HEAD + "parallelism: 0\nnonsense: 1\n", source="scheduler.yaml")
    assert str(raised.value) == (
        'KubeSchedulerConfiguration "scheduler.yaml" is invalid: [nonsense: Forbidden: unknown field, '
        "parallelism: Invalid value: 0: should be an integer value greater than zero]"
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "podMaxBackoffSecond: 3",
            'podMaxBackoffSecond: Forbidden: unknown field, did you mean "podMaxBackoffSeconds"?',
        ),
        ("parallelism: two", 'parallelism: Invalid value: "two": expected an integer'),
        ("parallelism: true", "parallelism: Invalid value: true: expected an integer"),
        ("profiles: {}", "profiles: Invalid value: {}: expected a list"),
        ("profiles: [3]", "profiles[0]: Invalid value: 3: expected an object"),
        ("leaderElection: [1]", "leaderElection: Invalid value: [1]: expected an object"),
        ("clientConnection: {qps: fast}", 'clientConnection.qps: Invalid value: "fast": expected a number'),
        ("enableProfiling: 1", "enableProfiling: Invalid value: 1: expected true or false"),
        ("percentageOfNodesToScore: 101", "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"),
        ("podInitialBackoffSeconds: 0", "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"),
        (
            "podInitialBackoffSeconds: 11",
            "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds",
        ),
        ("clientConnection: {burst: -1}", "clientConnection.burst: Invalid value: -1: must be non-negative"),
        ("extenders: [{urlPrefix: http://x}]", "extenders: Forbidden: drakit calls no extenders"),
        ("parallelism: 1\nparallelism: 2", 'parallelism: Duplicate value: "parallelism"'),
    ],
)
def test_settings_that_make_no_sense(text: str, error: str) -> None:
    assert errors(text) == [error]


@pytest.mark.parametrize(
    ("election", "error"),
    [
        ("leaseDuration: 5s", '.leaseDuration: Invalid value: "5s": must be greater than `RenewDeadline`'),
        ("retryPeriod: 0s", '.retryPeriod: Invalid value: "0s": must be greater than zero'),
        (
            "renewDeadline: soon",
            '.renewDeadline: Invalid value: "soon": expected a length of time such as "30s" or "1m30s"',
        ),
        ("resourceLock: endpoints", '.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"'),
        ('resourceName: ""', ".resourceName: Required value"),
    ],
)
def test_leader_election_that_cannot_work(election: str, error: str) -> None:
    assert errors(f"leaderElection: {{{election}}}") == [f"leaderElection{error}"]


def test_leader_election_that_is_off_is_not_looked_at() -> None:
    load_configuration(HEAD + "leaderElection: {leaderElect: false, resourceLock: endpoints}")


def test_a_file_of_another_kind_or_version() -> None:
    assert errors("", head="apiVersion: v1\nkind: Pod\n") == [
        'apiVersion: Unsupported value: "v1": supported values: "kubescheduler.config.k8s.io/v1"',
        'kind: Unsupported value: "Pod": supported values: "KubeSchedulerConfiguration"',
    ]


@pytest.mark.parametrize("text", ["", HEAD + "---\n" + HEAD])
def test_a_file_has_one_document(text: str) -> None:
    with pytest.raises(UsageError, match=r"scheduler.yaml: expected one KubeSchedulerConfiguration .* found"):
        load_configuration(text, source="scheduler.yaml")


def test_text_that_is_no_yaml_is_told_with_its_place() -> None:
    with pytest.raises(DecodeError, match=r"scheduler.yaml: line 2, column 1"):
        load_configuration("a: [", source="scheduler.yaml")


def test_profiles_must_have_names_of_their_own() -> None:
    assert errors("profiles: [{}, {schedulerName: a}, {schedulerName: a}, {schedulerName: ''}]") == [
        "profiles[0].schedulerName: Required value",
        'profiles[2].schedulerName: Duplicate value: "a"',
        "profiles[3].schedulerName: Required value",
    ]


def test_what_does_not_fit_does_not_shift_the_paths_of_what_follows() -> None:
    assert errors("profiles: [3, {schedulerName: a, percentageOfNodesToScore: 200}]") == [
        "profiles[0]: Invalid value: 3: expected an object",
        "profiles[1].percentageOfNodesToScore: Invalid value: 200: not in valid range [0-100]",
    ]


def test_plugins_that_nobody_knows() -> None:
    found = errors(
        "profiles: [{plugins: {filter: {enabled: [{name: Mine}], disabled: [{name: Yours}, {name: '*'}]}},"
        " pluginConfig: [{name: Theirs}]}]"
    )
    assert [each.split(": supported")[0] for each in found] == [
        'profiles[0].pluginConfig[0].name: Unsupported value: "Theirs"',
        'profiles[0].plugins.filter.disabled[0].name: Unsupported value: "Yours"',
        'profiles[0].plugins.filter.enabled[0].name: Unsupported value: "Mine"',
    ]


def test_plugins_that_are_on_twice_weigh_less_than_nothing_or_cannot_sort() -> None:
    found = errors(
        "profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: -1}, {name: NodeAffinity}, {}]},"
        " queueSort: {enabled: [{name: NodeName}]}}}]"
    )
    assert [each.removeprefix("profiles[0].plugins.") for each in found] == [
        'queueSort.enabled[0].name: Unsupported value: "NodeName": supported values: "PrioritySort"',
        "score.enabled[0].weight: Invalid value: -1: must not be negative",
        'score.enabled[1].name: Duplicate value: "NodeAffinity"',
        "score.enabled[2].name: Required value",
    ]


def test_a_plugin_is_told_once_and_only_if_it_listens() -> None:
    assert of_args("NodeName", "{a: 1}") == [": Forbidden: NodeName takes no args"]
    text = "profiles: [{pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}]}]"
    assert errors(text) == ['profiles[0].pluginConfig[1]: Duplicate value: "NodeAffinity"']


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ("{filterTimeout: -1s}", '.filterTimeout: Invalid value: "-1s": must be zero or positive'),
        ("{bindingTimeout: 10ms}", '.bindingTimeout: Invalid value: "10ms": must be at least 1 second'),
        ("{filterTimeout: 10}", ".filterTimeout: Invalid value: 10: expected a string"),
        (
            "{deviceStrategy: tight}",
            '.deviceStrategy: Unsupported value: "tight": supported values: "binpack", "spread"',
        ),
        ("{preemption: maybe}", '.preemption: Invalid value: "maybe": expected true or false'),
        ("{preemtion: true}", '.preemtion: Forbidden: unknown field, did you mean "preemption"?'),
        ("{kind: OtherArgs}", '.kind: Unsupported value: "OtherArgs": supported values: "DynamicResourcesArgs"'),
        ("{preemption: true, preemption: false}", '.preemption: Duplicate value: "preemption"'),
        ("[1]", ": Invalid value: [1]: expected an object"),
    ],
)
def test_args_of_dynamic_resources(args: str, error: str) -> None:
    assert of_args("DynamicResources", args) == [error]


def test_timeouts_whose_gates_are_off() -> None:
    off = FeatureGates.of({"DRASchedulerFilterTimeout": False, "DRADeviceBindingConditions": False})
    conditions = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus"
    assert of_args("DynamicResources", "{filterTimeout: 1s, bindingTimeout: 1s}", off) == [
        f".bindingTimeout: Forbidden: {conditions} feature gate is disabled",
        ".filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled",
    ]


@pytest.mark.parametrize(
    ("strategy", "error"),
    [
        (
            "{type: Best}",
            f'.type: Unsupported value: "Best": supported values: {", ".join(map(quote, STRATEGIES))}',
        ),
        (
            "{type: RequestedToCapacityRatio}",
            ".requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio",
        ),
        (
            "{requestedToCapacityRatio: {}}",
            ".requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio",
        ),
        (
            "{resources: [{name: cpu, weight: 101}]}",
            ".resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]",
        ),
    ],
)
def test_strategies_that_cannot_score(strategy: str, error: str) -> None:
    assert of_args("NodeResourcesFit", f"{{scoringStrategy: {strategy}}}") == [f".scoringStrategy{error}"]


def test_groups_of_resources_have_no_slash() -> None:
    assert of_args("NodeResourcesFit", "{ignoredResourceGroups: [a.example/b]}") == [
        ".ignoredResourceGroups[0]: Invalid value: \"a.example/b\": resource group name can't contain '/'"
    ]


def test_shapes_rise_within_their_bounds() -> None:
    points = "[{utilization: 50, score: 11}, {utilization: 50, score: -1}, {utilization: 101}]"
    ratio = f"type: RequestedToCapacityRatio, requestedToCapacityRatio: {{shape: {points}}}"
    place = ".scoringStrategy.requestedToCapacityRatio.shape"
    assert of_args("NodeResourcesFit", f"{{scoringStrategy: {{{ratio}}}}}") == [
        f"{place}[0].score: Invalid value: 11: not in valid range [0, 10]",
        f"{place}[1].score: Invalid value: -1: not in valid range [0, 10]",
        f"{place}[1].utilization: Invalid value: 50: values must be sorted in increasing order",
        f"{place}[2].utilization: Invalid value: 101: not in valid range [0, 100]",
    ]


def test_balance_has_no_weights_and_no_resource_twice() -> None:
    assert of_args("NodeResourcesBalancedAllocation", "{resources: [{name: cpu, weight: 2}, {name: cpu}]}") == [
        ".resources[0].weight: Invalid value: 2: must be 1",
        '.resources[1].name: Duplicate value: "cpu"',
    ]


def test_affinity_that_a_profile_adds_is_checked() -> None:
    terms = (
        "[{matchExpressions: [{key: a, operator: In}, {key: a, operator: Exists, values: [x]},"
        " {key: a, operator: Gt, values: [x]}, {key: a, operator: Near}],"
        " matchFields: [{key: metadata.uid, operator: In, values: [x]}]}]"
    )
    found = of_args(
        "NodeAffinity",
        f"{{addedAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: {terms}}}}}}}",
    )
    place = ".addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
    assert [each.removeprefix(place) for each in found] == [
        "matchExpressions[0].values: Required value: for 'in', 'notin' operators, values set can't be empty",
        'matchExpressions[1].values: Invalid value: ["x"]: values set must be empty for exists and does not exist',
        "matchExpressions[2].values: Invalid value: [\"x\"]: for 'Gt', 'Lt' operators, exactly one integer is required",
        (
            'matchExpressions[3].operator: Unsupported value: "Near": supported values: "In", "NotIn", "Exists",'
            ' "DoesNotExist", "Gt", "Lt"'
        ),
        'matchFields[0].key: Unsupported value: "metadata.uid": supported values: "metadata.name"',
    ]
