"""A configuration file to a SchedulerConfiguration.

In:  text of a KubeSchedulerConfiguration (`kubescheduler.config.k8s.io/v1`), YAML or JSON, and the feature gates.
Out: the configuration; or InvalidObject with every unknown field, wrong type and bad value, each with its path.

Plugins of kube-scheduler that drakit does not have are let through: a log line names them.
"""

from __future__ import annotations

import logging

from drakit.api.codec.documents import parse_documents, read_text
from drakit.base.errors import InvalidObject, UsageError
from drakit.base.fields import Path, in_order
from drakit.base.gates import FeatureGates
from drakit.scheduler.config.durations import seconds
from drakit.scheduler.config.model import (
    ClientConnection,
    LeaderElection,
    ProfileConfig,
    SchedulerConfiguration,
)
from drakit.scheduler.config.names import ELSEWHERE
from drakit.scheduler.config.profiles import build_profile
from drakit.scheduler.config.reader import Errors, read, untold
from drakit.scheduler.config.rules import check_configuration
from drakit.scheduler.config.wire import (
    GROUP_VERSION,
    KIND,
    WireClientConnection,
    WireConfiguration,
    WireLeaderElection,
    WireProfile,
)

log = logging.getLogger("drakit.scheduler.config")


def default_configuration(gates: FeatureGates | None = None) -> SchedulerConfiguration:
    """The configuration of a scheduler without a file."""
    return _build(WireConfiguration(), gates or FeatureGates.defaults(), [])


def load_configuration(
    data: bytes | str, *, source: str = "", gates: FeatureGates | None = None
) -> SchedulerConfiguration:
    """Read a configuration file; `source` is its name in errors."""
    documents = parse_documents(read_text(data, source), source=source)
    if len(documents) != 1:
        raise UsageError(f"{source or 'the text'}: expected one {KIND} ({GROUP_VERSION}), found {len(documents)}")
    errors: Errors = []
    file = read(WireConfiguration, documents[0], Path(), errors)
    errors += untold(check_configuration(file), errors)
    configuration = _build(file, gates or FeatureGates.defaults(), errors)
    if errors:
        raise InvalidObject(KIND, source or "configuration", in_order(errors))
    if absent := sorted({name for profile in file.profiles for name in _names(profile)} & ELSEWHERE):
        log.warning("%s: drakit does not have these plugins, they do nothing: %s", source or KIND, ", ".join(absent))
    return configuration


def _build(file: WireConfiguration, gates: FeatureGates, errors: Errors) -> SchedulerConfiguration:
    """Invariant: the outcome is used only when there are no errors."""
    return SchedulerConfiguration(
        profiles=_profiles(file, gates, errors),
        percentage_of_nodes_to_score=file.percentage_of_nodes_to_score,
        pod_initial_backoff_seconds=float(file.pod_initial_backoff_seconds),
        pod_max_backoff_seconds=float(file.pod_max_backoff_seconds),
        parallelism=file.parallelism,
        leader_election=_leader_election(file.leader_election),
        client_connection=_client_connection(file.client_connection),
    )


def _profiles(file: WireConfiguration, gates: FeatureGates, errors: Errors) -> tuple[ProfileConfig, ...]:
    return tuple(
        build_profile(each, file.percentage_of_nodes_to_score, gates, (Path() / "profiles")[at], errors)
        for at, each in enumerate(file.profiles or (WireProfile(),))
    )


def _leader_election(file: WireLeaderElection) -> LeaderElection:
    return LeaderElection(
        leader_elect=file.leader_elect,
        lease_duration=seconds(file.lease_duration) or 0.0,
        renew_deadline=seconds(file.renew_deadline) or 0.0,
        retry_period=seconds(file.retry_period) or 0.0,
        resource_lock=file.resource_lock,
        resource_name=file.resource_name,
        resource_namespace=file.resource_namespace,
    )


def _client_connection(file: WireClientConnection) -> ClientConnection:
    return ClientConnection(
        kubeconfig=file.kubeconfig,
        accept_content_types=file.accept_content_types,
        content_type=file.content_type,
        qps=file.qps,
        burst=file.burst,
    )


def _names(profile: WireProfile) -> list[str]:
    """Every plugin that a profile turns on or tells something."""
    sets = [getattr(profile.plugins, name) for name in profile.plugins.__struct_fields__]
    return [each.name for said in sets for each in said.enabled] + [each.name for each in profile.plugin_config]
