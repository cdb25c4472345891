"""Environment of a container: values, references, objects."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from drakit.nodeagent.containers.environment import ContainerEnvironment, environment_of
from drakit.nodeagent.containers.expansion import expand
from drakit.nodeagent.containers.failures import ConfigUnavailable
from drakit.nodeagent.containers.fieldrefs import NodeFacts
from tests.nodeagent.containers.pods import Objects, container, stored_pod

NODE = NodeFacts(host_ips=("10.0.0.1", "fd00::1"), pod_ips=("10.1.0.7",), allocatable={"cpu": "3500m", "memory": "8Gi"})


def environment(subject: dict[str, Any], *, objects: Objects | None = None, **changes: Any) -> ContainerEnvironment:
    whole = stored_pod(subject, **changes)
    return asyncio.run(environment_of(whole, subject, objects=objects or Objects(), node=NODE))


def values(*env: dict[str, Any], objects: Objects | None = None, **changes: Any) -> dict[str, str]:
    return environment(container(env=list(env), **changes), objects=objects).values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("a$(A)$(B)z", "a12z"),
        ("$(NO)", "$(NO)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A $", "$A $"),
        ("$(A", "$(A"),
        ("$()", "$()"),
    ],
)
def test_references_are_expanded(text: str, expected: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expected


def test_values_refer_to_those_before_them() -> None:
    found = values({"name": "A", "value": "1"}, {"name": "B", "value": "$(A)$(C)"}, {"name": "C", "value": "3"})
    assert found == {"A": "1", "B": "1$(C)", "C": "3"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "web"),
        ("metadata.namespace", "shop"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['app']", "front"),
        ("metadata.annotations['none']", ""),
        ("spec.nodeName", "node-a"),
        ("spec.serviceAccountName", "robot"),
        ("status.hostIP", "10.0.0.1"),
        ("status.hostIPs", "10.0.0.1,fd00::1"),
        ("status.podIP", "10.1.0.7"),
    ],
)
def test_field_references(path: str, expected: str) -> None:
    subject = container(env=[{"name": "F", "valueFrom": {"fieldRef": {"fieldPath": path}}}])
    found = environment(subject, metadata={"labels": {"app": "front"}}, serviceAccountName="robot")
    assert found.values == {"F": expected}


def test_an_unknown_field_is_told() -> None:
    with pytest.raises(ConfigUnavailable, match=r"unsupported fieldPath: status\.nothing"):
        values({"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "status.nothing"}}})


@pytest.mark.parametrize(
    ("resource", "divisor", "expected"),
    [
        ("requests.cpu", None, "1"),
        ("requests.cpu", "1m", "250"),
        ("limits.memory", "1Mi", "64"),
        ("limits.memory", None, str(64 << 20)),
        ("requests.memory", "1Ki", "65536"),
        ("limits.cpu", None, "4"),
        ("requests.ephemeral-storage", None, "0"),
    ],
)
def test_resource_references_round_up_and_fall_back_to_the_node(
    resource: str, divisor: str | None, expected: str
) -> None:
    reference = {"resource": resource} | ({"divisor": divisor} if divisor else {})
    resources = {"requests": {"cpu": "250m"}, "limits": {"memory": "64Mi"}}
    found = values({"name": "R", "valueFrom": {"resourceFieldRef": reference}}, resources=resources)
    assert found == {"R": expected}


def test_keys_of_config_maps_and_secrets() -> None:
    objects = Objects(config_maps={"settings": {"mode": b"fast"}}, secrets={"key": {"token": b"s3cret"}})
    found = values(
        {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode"}}},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "key", "key": "token"}}},
        {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "none", "key": "x", "optional": True}}},
        {"name": "AGAIN", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "no", "optional": True}}},
        objects=objects,
    )
    assert found == {"MODE": "fast", "TOKEN": "s3cret"}
    assert objects.asked == ["configmap shop/settings", "secret shop/key", "secret shop/none"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMapKeyRef": {"name": "none", "key": "x"}}, 'configmap "none" not found'),
        ({"secretKeyRef": {"name": "none", "key": "x"}}, 'secret "none" not found'),
        ({"configMapKeyRef": {"name": "settings", "key": "x"}}, "couldn't find key x in ConfigMap shop/settings"),
        ({"fileKeyRef": {"key": "x"}}, "valueFrom.fileKeyRef is not supported by this node"),
    ],
)
def test_what_is_missing_is_named(source: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigUnavailable) as error:
        values({"name": "V", "valueFrom": source}, objects=Objects(config_maps={"settings": {}}))
    assert message in str(error.value)


def test_all_keys_of_an_object_come_first_and_single_values_win() -> None:
    objects = Objects(config_maps={"all": {"A": b"1", "B": b"2", "b=d": b"x"}}, secrets={"more": {"B": b"3"}})
    subject = container(
        envFrom=[
            {"configMapRef": {"name": "all"}},
            {"prefix": "S_", "secretRef": {"name": "more"}},
            {"secretRef": {"name": "none", "optional": True}},
        ],
        env=[{"name": "A", "value": "own"}, {"name": "C", "value": "$(S_B)"}],
    )
    found = environment(subject, objects=objects)
    assert found.values == {"A": "own", "B": "2", "S_B": "3", "C": "3"}
    assert found.skipped == ["b=d"]
