"""The rules of plugin args. Every broken one is told, with its path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from drakit.base.fields import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from drakit.base.gates import FeatureGates
from drakit.base.names import check_qualified_name
from drakit.base.nodeselectors import (
    DOES_NOT_EXIST,
    EXISTS,
    GT,
    IN,
    LT,
    NAME_FIELD,
    NOT_IN,
    OPERATORS,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    integer,
)
from drakit.base.structs import Model
from drakit.scheduler.config.args import (
    DEVICE_STRATEGIES,
    LIST_DEFAULTING,
    REQUESTED_TO_CAPACITY,
    STRATEGIES,
    SYSTEM_DEFAULTING,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ScoringStrategy,
    ShapePoint,
)
from drakit.scheduler.config.durations import seconds
from drakit.scheduler.config.wire import WireDynamicResourcesArgs


def check_args(args: Model, path: Path, gates: FeatureGates) -> Iterator[FieldError]:
    match args:
        case NodeResourcesFitArgs():
            yield from _check_fit(args, path)
        case NodeResourcesBalancedAllocationArgs():
            yield from _check_balanced(args, path / "resources")
        case NodeAffinityArgs():
            yield from _check_affinity(args, path / "addedAffinity")
        case InterPodAffinityArgs():
            weight = args.hard_pod_affinity_weight
            if not 0 <= weight <= _MOST_WEIGHT:
                yield invalid(path / "hardPodAffinityWeight", weight, f"not in valid range [0, {_MOST_WEIGHT}]")
        case PodTopologySpreadArgs():
            yield from _check_spread(args, path)
        case WireDynamicResourcesArgs():
            yield from _check_dynamic(args, path, gates)


_MOST_WEIGHT = 100


def _check_spread(args: PodTopologySpreadArgs, path: Path) -> Iterator[FieldError]:
    kinds = (SYSTEM_DEFAULTING, LIST_DEFAULTING)
    if args.defaulting_type not in kinds:
        yield not_supported(path / "defaultingType", args.defaulting_type, kinds)
    elif args.defaulting_type == SYSTEM_DEFAULTING and args.default_constraints:
        told = f"when .defaultingType is {SYSTEM_DEFAULTING}"
        yield invalid(path / "defaultingType", args.defaulting_type, f"must be empty: defaultConstraints {told}")
    for at, each in enumerate(args.default_constraints):
        where = (path / "defaultConstraints")[at]
        if each.max_skew <= 0:
            yield invalid(where / "maxSkew", each.max_skew, "not in valid range (0, inf)")
        if not each.topology_key:
            yield required(where / "topologyKey", "can not be empty")
        if each.when_unsatisfiable not in _UNSATISFIABLE:
            yield not_supported(where / "whenUnsatisfiable", each.when_unsatisfiable, _UNSATISFIABLE)
        if each.label_selector is not None:
            yield forbidden(
                where / "labelSelector", "constraint must not define a selector, as they deduced for each pod"
            )


_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")


def check_duration(text: str, path: Path, *, least: float, rule: str) -> Iterator[FieldError]:
    length = seconds(text)
    if length is None:
        yield invalid(path, text, 'expected a length of time such as "30s" or "1m30s"')
    elif length < least:
        yield invalid(path, text, rule)


def _check_fit(args: NodeResourcesFitArgs, path: Path) -> Iterator[FieldError]:
    for at, name in enumerate(args.ignored_resources):
        yield from (invalid((path / "ignoredResources")[at], name, why) for why in check_qualified_name(name))
    for at, group in enumerate(args.ignored_resource_groups):
        place = (path / "ignoredResourceGroups")[at]
        if "/" in group:
            yield invalid(place, group, "resource group name can't contain '/'")
        else:
            yield from (invalid(place, group, why) for why in check_qualified_name(group))
    yield from _check_strategy(args.scoring_strategy, path / "scoringStrategy")


def _check_strategy(strategy: ScoringStrategy, path: Path) -> Iterator[FieldError]:
    if strategy.type not in STRATEGIES:
        yield not_supported(path / "type", strategy.type, STRATEGIES)
    for at, each in enumerate(strategy.resources):
        if not 0 < each.weight <= 100:
            rule = f"resource weight of {each.name} not in valid range (0, 100]"
            yield invalid((path / "resources")[at] / "weight", each.weight, rule)
    place = path / "requestedToCapacityRatio"
    ratio = strategy.requested_to_capacity_ratio
    if strategy.type != REQUESTED_TO_CAPACITY:
        if ratio is not None:
            yield forbidden(place, "must be nil when type is not RequestedToCapacityRatio")
    elif ratio is None:
        yield required(place, "must be specified when type is RequestedToCapacityRatio")
    else:
        yield from _check_shape(ratio.shape, place / "shape")


def _check_shape(shape: Sequence[ShapePoint], path: Path) -> Iterator[FieldError]:
    if not shape:
        yield required(path, "at least one point must be specified")
    for at, (left, right) in enumerate(pairwise(shape), start=1):
        if left.utilization >= right.utilization:
            yield invalid(path[at] / "utilization", right.utilization, "values must be sorted in increasing order")
            break
    for at, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield invalid(path[at] / "utilization", point.utilization, "not in valid range [0, 100]")
        if not 0 <= point.score <= 10:
            yield invalid(path[at] / "score", point.score, "not in valid range [0, 10]")


def _check_balanced(args: NodeResourcesBalancedAllocationArgs, path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for at, each in enumerate(args.resources):
        if each.name in seen:
            yield duplicate(path[at] / "name", each.name)
        seen.add(each.name)
        if each.weight != 1:
            yield invalid(path[at] / "weight", each.weight, "must be 1")


def _check_dynamic(args: WireDynamicResourcesArgs, path: Path, gates: FeatureGates) -> Iterator[FieldError]:
    place = path / "filterTimeout"
    if args.filter_timeout is not None and not gates.enabled("DRASchedulerFilterTimeout"):
        yield forbidden(place, "DRASchedulingFilterTimeout feature gate is disabled")
    elif args.filter_timeout is not None:
        yield from check_duration(args.filter_timeout, place, least=0, rule="must be zero or positive")
    place = path / "bindingTimeout"
    if args.binding_timeout is not None and not waits_for_devices(gates):
        yield forbidden(place, "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled")
    elif args.binding_timeout is not None:
        yield from check_duration(args.binding_timeout, place, least=1, rule="must be at least 1 second")
    if args.device_strategy and args.device_strategy not in DEVICE_STRATEGIES:
        yield not_supported(path / "deviceStrategy", args.device_strategy, DEVICE_STRATEGIES)


def waits_for_devices(gates: FeatureGates) -> bool:
    """Whether binding conditions are on."""
    return gates.enabled("DRADeviceBindingConditions") and gates.enabled("DRAResourceClaimDeviceStatus")


def _check_affinity(args: NodeAffinityArgs, path: Path) -> Iterator[FieldError]:
    added = args.added_affinity
    if added is None:
        return
    if (selector := added.required_during_scheduling_ignored_during_execution) is not None:
        place = path / "requiredDuringSchedulingIgnoredDuringExecution" / "nodeSelectorTerms"
        for at, term in enumerate(selector.node_selector_terms):
            yield from _check_term(term, place[at])
    for at, preferred in enumerate(added.preferred_during_scheduling_ignored_during_execution):
        place = (path / "preferredDuringSchedulingIgnoredDuringExecution")[at]
        yield from _check_term(preferred.preference, place / "preference")


def _check_term(term: NodeSelectorTerm, path: Path) -> Iterator[FieldError]:
    for at, each in enumerate(term.match_expressions):
        yield from _check_requirement(each, (path / "matchExpressions")[at])
    for at, each in enumerate(term.match_fields):
        place = (path / "matchFields")[at]
        if each.key != NAME_FIELD:
            yield not_supported(place / "key", each.key, (NAME_FIELD,))
        if each.operator not in (IN, NOT_IN):
            yield not_supported(place / "operator", each.operator, (IN, NOT_IN))
        if len(each.values) != 1:
            yield invalid(place / "values", each.values, "must have one element")


def _check_requirement(requirement: NodeSelectorRequirement, path: Path) -> Iterator[FieldError]:
    operator, values = requirement.operator, requirement.values
    yield from (invalid(path / "key", requirement.key, why) for why in check_qualified_name(requirement.key))
    if operator not in OPERATORS:
        yield not_supported(path / "operator", operator, OPERATORS)
    if operator in (IN, NOT_IN) and not values:
        yield required(path / "values", "for 'in', 'notin' operators, values set can't be empty")
    if operator in (EXISTS, DOES_NOT_EXIST) and values:
        yield invalid(path / "values", values, "values set must be empty for exists and does not exist")
    if operator in (GT, LT) and (len(values) != 1 or integer(values[0]) is None):
        yield invalid(path / "values", values, "for 'Gt', 'Lt' operators, exactly one integer is required")
