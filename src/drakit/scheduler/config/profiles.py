"""One profile of a file: which plugins are on, and what they are told.

What the file says about all extension points is merged with the defaults: a default that the file turns off is off
(`*`: all of them), one that it turns on again keeps its place and takes the file's weight, others come at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from drakit.api.text.jsontext import Repeated
from drakit.base.fields import Path, duplicate, forbidden, not_supported
from drakit.base.gates import FeatureGates
from drakit.base.structs import Model
from drakit.scheduler.config.argrules import check_args, waits_for_devices
from drakit.scheduler.config.args import (
    BINDING_TIMEOUT,
    CPU_AND_MEMORY,
    FILTER_TIMEOUT,
    Args,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
)
from drakit.scheduler.config.durations import seconds
from drakit.scheduler.config.model import DEFAULT_SCHEDULER, EnabledPlugin, PluginSet, ProfileConfig
from drakit.scheduler.config.names import EVERYTHING, OURS, default_plugins
from drakit.scheduler.config.reader import Errors, read, untold
from drakit.scheduler.config.rules import check_plugin_name
from drakit.scheduler.config.wire import (
    ARGS,
    GROUP_VERSION,
    POINTS,
    WireDynamicResourcesArgs,
    WirePluginConfig,
    WirePluginSet,
    WireProfile,
)


def build_profile(file: WireProfile, percentage: int, gates: FeatureGates, path: Path, errors: Errors) -> ProfileConfig:
    own = file.percentage_of_nodes_to_score
    sets = {point: _plugin_set(getattr(file.plugins, attribute)) for attribute, point in POINTS.items()}
    return ProfileConfig(
        scheduler_name=file.scheduler_name or DEFAULT_SCHEDULER,
        percentage_of_nodes_to_score=percentage if own is None else own,
        multi_point=_merged(_plugin_set(file.plugins.multi_point), gates),
        points={point: each for point, each in sets.items() if each != PluginSet()},
        args=_read_all_args(file, gates, path / "pluginConfig", errors),
    )


def _plugin_set(file: WirePluginSet) -> PluginSet:
    return PluginSet(
        tuple(EnabledPlugin(each.name, each.weight) for each in file.enabled),
        frozenset(each.name for each in file.disabled),
    )


def _merged(said: PluginSet, gates: FeatureGates) -> PluginSet:
    own = {use.name: use for use in said.enabled}
    kept: dict[str, EnabledPlugin] = {}
    if EVERYTHING not in said.disabled:
        defaults = (EnabledPlugin(name, weight) for name, weight in default_plugins(gates))
        kept = {use.name: own.get(use.name, use) for use in defaults if use.name not in said.disabled}
    return PluginSet((*kept.values(), *(use for use in said.enabled if use.name not in kept)), said.disabled)


def _read_all_args(file: WireProfile, gates: FeatureGates, path: Path, errors: Errors) -> Mapping[str, Args]:
    found: dict[str, Args] = {}
    seen: set[str] = set()
    for at, each in enumerate(file.plugin_config):
        errors += check_plugin_name(each.name, path[at] / "name")
        if each.name in seen:
            errors.append(duplicate(path[at], each.name))
        seen.add(each.name)
        args = _read_args(each, gates, path[at] / "args", errors)
        if args is not None:
            found[each.name] = _finished(args, gates)
    return {name: found.get(name) or _finished(model(), gates) for name, model in ARGS.items()}


def _read_args(file: WirePluginConfig, gates: FeatureGates, path: Path, errors: Errors) -> Model | None:
    model = ARGS.get(file.name)
    if model is None:
        if file.args and file.name in OURS:
            errors.append(forbidden(path, f"{file.name} takes no args"))
        return None
    args = _defaulted(read(model, _without_types(file, path, errors), path, errors))
    errors += untold(check_args(args, path, gates), errors)
    return args


def _without_types(file: WirePluginConfig, path: Path, errors: Errors) -> Any:
    """The args without kind and apiVersion. If given, both must match the plugin."""
    if not isinstance(file.args, dict):
        return {} if file.args is None else file.args
    types = {"apiVersion": GROUP_VERSION, "kind": f"{file.name}Args"}
    for field, right in types.items():
        if file.args.get(field, right) != right:
            errors.append(not_supported(path / field, file.args[field], (right,)))
    pairs = file.args.pairs if isinstance(file.args, Repeated) else file.args.items()
    return Repeated([(name, value) for name, value in pairs if name not in types])


def _defaulted(args: Model) -> Model:
    """Without resources, cpu and memory count; without a weight, it is one."""
    match args:
        case NodeResourcesFitArgs():
            strategy = args.scoring_strategy
            strategy = msgspec.structs.replace(strategy, resources=_weighted(strategy.resources))
            return msgspec.structs.replace(args, scoring_strategy=strategy)
        case NodeResourcesBalancedAllocationArgs():
            return msgspec.structs.replace(args, resources=_weighted(args.resources))
    return args


def _weighted(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    weighted = tuple(each if each.weight else ResourceSpec(name=each.name) for each in resources)
    return weighted or CPU_AND_MEMORY


def _finished(args: Model, gates: FeatureGates) -> Args:
    match args:
        case WireDynamicResourcesArgs():
            return _dynamic(args, gates)
        case NodeResourcesFitArgs() | NodeResourcesBalancedAllocationArgs() | NodeAffinityArgs():
            return args
        case InterPodAffinityArgs() | PodTopologySpreadArgs():
            return args
    raise TypeError(f"no args of a plugin: {args!r}")


def _dynamic(file: WireDynamicResourcesArgs, gates: FeatureGates) -> DynamicResourcesArgs:
    filtering = FILTER_TIMEOUT if file.filter_timeout is None else seconds(file.filter_timeout)
    binding = BINDING_TIMEOUT if file.binding_timeout is None else seconds(file.binding_timeout)
    return DynamicResourcesArgs(
        filter_timeout=filtering if gates.enabled("DRASchedulerFilterTimeout") else None,
        binding_timeout=binding if waits_for_devices(gates) else None,
        device_strategy=file.device_strategy,
        preemption=file.preemption,
    )
