"""The rules of a configuration file, but for plugin args. Every broken one is told, with its path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drakit.base.fields import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from drakit.scheduler.config.argrules import check_duration
from drakit.scheduler.config.durations import seconds
from drakit.scheduler.config.names import ELSEWHERE, EVERYTHING, OURS, PRIORITY_SORT
from drakit.scheduler.config.wire import (
    GROUP_VERSION,
    KIND,
    POINTS,
    WireConfiguration,
    WireLeaderElection,
    WirePlugin,
    WireProfile,
)

_ROOT = Path()
_PERCENTAGE_RULE = "not in valid range [0-100]"


def check_configuration(file: WireConfiguration) -> Iterator[FieldError]:
    if file.api_version != GROUP_VERSION:
        yield not_supported(_ROOT / "apiVersion", file.api_version, (GROUP_VERSION,))
    if file.kind != KIND:
        yield not_supported(_ROOT / "kind", file.kind, (KIND,))
    yield from _check_numbers(file)
    yield from _check_leader_election(file.leader_election, _ROOT / "leaderElection")
    yield from _check_profiles(file.profiles, _ROOT / "profiles")
    if file.extenders:
        yield forbidden(_ROOT / "extenders", "drakit calls no extenders")


def _check_numbers(file: WireConfiguration) -> Iterator[FieldError]:
    if file.parallelism <= 0:
        yield invalid(_ROOT / "parallelism", file.parallelism, "should be an integer value greater than zero")
    if not 0 <= file.percentage_of_nodes_to_score <= 100:
        yield invalid(_ROOT / "percentageOfNodesToScore", file.percentage_of_nodes_to_score, _PERCENTAGE_RULE)
    first, last = file.pod_initial_backoff_seconds, file.pod_max_backoff_seconds
    if first <= 0:
        yield invalid(_ROOT / "podInitialBackoffSeconds", first, "must be greater than 0")
    if last < first:
        rule = "must be greater than or equal to PodInitialBackoffSeconds"
        yield invalid(_ROOT / "podMaxBackoffSeconds", last, rule)
    if file.client_connection.burst < 0:
        yield invalid(_ROOT / "clientConnection" / "burst", file.client_connection.burst, "must be non-negative")


def _check_leader_election(election: WireLeaderElection, path: Path) -> Iterator[FieldError]:
    if not election.leader_elect:
        return
    times = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for name, text in times.items():
        yield from check_duration(text, path / name, least=1e-9, rule="must be greater than zero")
    lease, renew = seconds(election.lease_duration), seconds(election.renew_deadline)
    if lease is not None and renew is not None and lease <= renew:
        yield invalid(path / "leaseDuration", election.lease_duration, "must be greater than `RenewDeadline`")
    if election.resource_lock != "leases":
        yield invalid(path / "resourceLock", election.resource_lock, 'resourceLock value must be "leases"')
    if not election.resource_name:
        yield required(path / "resourceName")
    if not election.resource_namespace:
        yield required(path / "resourceNamespace")


def _check_profiles(profiles: Sequence[WireProfile], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for at, profile in enumerate(profiles):
        name, place = profile.scheduler_name, path[at]
        if not name and (name is not None or len(profiles) > 1):
            yield required(place / "schedulerName")
        elif name in seen:
            yield duplicate(place / "schedulerName", name)
        seen.add(name or "")
        share = profile.percentage_of_nodes_to_score
        if share is not None and not 0 <= share <= 100:
            yield invalid(place / "percentageOfNodesToScore", share, _PERCENTAGE_RULE)
        yield from _check_plugins(profile, place)


def _check_plugins(profile: WireProfile, path: Path) -> Iterator[FieldError]:
    for attribute, point in {"multi_point": "multiPoint", **POINTS}.items():
        said, place = getattr(profile.plugins, attribute), path / "plugins" / point
        yield from _check_enabled(said.enabled, place / "enabled")
        for at, plugin in enumerate(said.disabled):
            if plugin.name != EVERYTHING:
                yield from check_plugin_name(plugin.name, (place / "disabled")[at] / "name")
    for at, plugin in enumerate(profile.plugins.queue_sort.enabled):
        if plugin.name != PRIORITY_SORT:
            place = (path / "plugins" / "queueSort" / "enabled")[at] / "name"
            yield not_supported(place, plugin.name, (PRIORITY_SORT,))


def _check_enabled(enabled: Sequence[WirePlugin], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for at, plugin in enumerate(enabled):
        yield from check_plugin_name(plugin.name, path[at] / "name")
        if plugin.name in seen:
            yield duplicate(path[at] / "name", plugin.name)
        seen.add(plugin.name)
        if plugin.weight < 0:
            yield invalid(path[at] / "weight", plugin.weight, "must not be negative")


def check_plugin_name(name: str, path: Path) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    elif name not in OURS and name not in ELSEWHERE:
        yield not_supported(path, name, sorted(OURS))
