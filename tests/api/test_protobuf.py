"""Protobuf bodies: those that kubectl 1.32 has sent, and those that nobody should send."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.api.codec.documents import decode_plain, to_wire
from drakit.api.codec.protobuf import MAGIC, decode_protobuf
from drakit.base.errors import DecodeError, Unsupported

DATA = Path(__file__).parent / "data"
RECORDED = {path.stem: path.read_bytes() for path in sorted(DATA.glob("*.bin"))}


def content(name: str) -> dict[str, Any]:
    """What was sent, without the zero values that the wire carries along."""
    decoded = decode_protobuf(RECORDED[name])
    return {key: value for key, each in decoded.items() if (value := _filled(each)) not in ({}, "", False, 0)}


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        parts = {key: _filled(each) for key, each in value.items()}
        return {key: each for key, each in parts.items() if each not in ("", 0, {}, None) or key == "replicas"}
    return [_filled(each) for each in value] if isinstance(value, list) else value


def test_a_namespace_is_read_as_kubectl_creates_it() -> None:
    expected = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}
    assert content("namespace") == expected
    assert to_wire(decode_plain(decode_protobuf(RECORDED["namespace"]), strict=True).object) == {
        **expected, "spec": {}, "status": {},
    }  # fmt: skip


def test_quantities_are_texts() -> None:
    hard = {"pods": "4", "requests.cpu": "1500m", "count/resourceclaims.resource.k8s.io": "8"}
    assert content("quota")["spec"] == {"hard": hard, "scopes": ["NotTerminating"]}


def test_bytes_are_base64() -> None:
    assert content("secret")["data"] == {"user": "YWRtaW4=", "bin": "Af8="}


def test_an_empty_value_of_a_map_is_there() -> None:
    assert decode_protobuf(RECORDED["configmap"])["data"] == {"a": "1", "b": ""}


def test_rules_and_bindings_are_read() -> None:
    rule = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"]}
    assert decode_protobuf(RECORDED["role"])["rules"] == [rule]
    assert content("clusterrole")["rules"] == [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]
    assert [each["kind"] for each in content("rolebinding")["subjects"]] == ["User", "Group", "ServiceAccount"]
    assert content("clusterrolebinding")["roleRef"]["name"] == "cr"


def test_a_service_has_ports_by_number() -> None:
    (port,) = content("service")["spec"]["ports"]
    assert port == {"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080, "nodePort": 30001}
    assert content("clusterip")["spec"]["clusterIP"] == "None"
    assert content("externalname")["spec"]["externalName"] == "example.com"


def test_a_deployment_keeps_a_zero_that_was_meant() -> None:
    spec = content("deployment")["spec"]
    assert spec["replicas"] == 0
    (container,) = spec["template"]["spec"]["containers"]
    assert container == {"name": "nginx", "image": "nginx:1", "ports": [{"containerPort": 80}]}


def test_reviews_are_read() -> None:
    attributes = {"namespace": "default", "verb": "get", "resource": "pods", "subresource": "log"}
    assert content("can-i")["spec"] == {"resourceAttributes": attributes}
    assert content("can-i-list")["spec"] == {"namespace": "default"}
    assert content("whoami") == {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    assert content("token")["spec"] == {"audiences": ["a"], "expirationSeconds": 600}


def test_a_priority_class_is_read() -> None:
    assert content("priorityclass") == {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}, "value": 1000,
        "globalDefault": True, "description": "d", "preemptionPolicy": "Never",
    }  # fmt: skip


SERVED = (
    "namespace quota secret configmap serviceaccount role clusterrole rolebinding clusterrolebinding priorityclass "
    "service can-i whoami"
)


@pytest.mark.parametrize("name", SERVED.split())
def test_what_is_read_is_an_object_without_unknown_fields(name: str) -> None:
    decode_plain(decode_protobuf(RECORDED[name]), strict=True)


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def envelope(version: str, kind: str, raw: bytes, **rest: str) -> bytes:
    types = field(1, version.encode()) + field(2, kind.encode())
    tail = b"".join(field(3 if key == "encoding" else 4, each.encode()) for key, each in rest.items())
    return MAGIC + field(1, types) + field(2, raw) + tail


def test_delete_options_are_read_in_any_version() -> None:
    preconditions = field(1, b"u0")
    raw = field(1, 0) + field(2, preconditions) + field(4, b"Foreground") + field(5, b"All")
    for version in ("v1", "meta.k8s.io/v1", "resource.k8s.io/v1"):
        options = decode_protobuf(envelope(version, "DeleteOptions", raw))
        assert options["gracePeriodSeconds"] == 0
        assert options["preconditions"] == {"uid": "u0"}
        assert (options["propagationPolicy"], options["dryRun"]) == ("Foreground", ["All"])


def test_times_and_negative_numbers_are_read() -> None:
    micro = field(1, 1_600_000_000) + field(2, 123_456_789)
    spec = field(1, b"me") + field(2, (1 << 64) - 5) + field(4, micro)
    lease = decode_protobuf(envelope("coordination.k8s.io/v1", "Lease", field(2, spec)))["spec"]
    assert lease == {"holderIdentity": "me", "leaseDurationSeconds": -5, "renewTime": "2020-09-13T12:26:40.123456Z"}


def test_json_may_be_in_the_envelope() -> None:
    body = envelope("v1", "Namespace", b'{"metadata":{"name":"x"}}', content="application/json")
    assert decode_protobuf(body) == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}


@pytest.mark.parametrize(
    "body",
    [
        envelope("v1", "Namespace", b"", encoding="gzip"),
        envelope("v1", "Namespace", b"", content="application/cbor"),
    ],
)
def test_what_nobody_sends_as_protobuf_is_unsupported(body: bytes) -> None:
    with pytest.raises(Unsupported):
        decode_protobuf(body)


@pytest.mark.parametrize(
    "raw",
    [
        b"\x0a\xff\xff\xff\xff\x0f",  # longer than what follows
        b"\x0a" + b"\xff" * 20,  # a length without an end
        b"\x00",  # field number zero
        b"\x0b",  # a group
        b"\x08\x01",  # a number where a message stands
        field(1, field(1, b"\xff\xfe")),  # text that is no UTF-8
        field(1, field(8, field(1, 1 << 62))),  # a time beyond all times
        b"\x0a\x05\x0a",  # cut off
    ],
)
def test_malformed_messages_are_told(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_protobuf(envelope("v1", "Namespace", raw))


def test_a_kind_that_nobody_knows_is_told() -> None:
    for body in (envelope("v1", "Unheard", b""), envelope("v2", "Namespace", b"")):
        with pytest.raises(DecodeError, match="no kind"):
            decode_protobuf(body)


def test_something_else_than_protobuf_is_told() -> None:
    with pytest.raises(DecodeError, match="expected prefix"):
        decode_protobuf(b"{}")


def test_fields_that_are_not_known_are_passed_over() -> None:
    raw = (
        field(1, field(1, b"x"))
        + field(900, b"new")
        + varint(901 << 3 | 5)
        + b"1234"
        + varint(902 << 3 | 1)
        + b"12345678"
    )
    assert decode_protobuf(envelope("v1", "Namespace", raw))["metadata"] == {"name": "x"}


@given(st.binary(max_size=200))
def test_random_bytes_never_do_harm(noise: bytes) -> None:
    for body in (MAGIC + noise, envelope("apps/v1", "Deployment", noise), envelope("v1", "Event", noise)):
        try:
            decode_protobuf(body)
        except (DecodeError, Unsupported):
            continue


@given(st.sampled_from(sorted(RECORDED)), st.integers(0, 400), st.integers(0, 255))
def test_damaged_recordings_never_do_harm(name: str, at: int, byte: int) -> None:
    body = bytearray(RECORDED[name])
    body[at % len(body)] = byte
    for damaged in (bytes(body), bytes(body[: at % len(body)])):
        try:
            decode_protobuf(damaged)
        except (DecodeError, Unsupported):
            continue
