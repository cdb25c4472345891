"""The kubelet's protocols, built from field numbers alone: a client that shares no code with the driver kit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc.aio
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

FIELD = descriptor_pb2.FieldDescriptorProto
Fields = Mapping[str, tuple[int, str]]
"""By name: number and type; `*` in front of a type means repeated, `?` optional, `%` a map from strings."""

DRA = "k8s.io.kubelet.pkg.apis.dra"
CLAIM: Fields = {"namespace": (1, "string"), "uid": (2, "string"), "name": (3, "string")}
DEVICE: Fields = {
    "request_names": (1, "*string"),
    "pool_name": (2, "string"),
    "device_name": (3, "string"),
    "cdi_device_ids": (4, "*string"),
}
DRA_MESSAGES: Mapping[str, Fields] = {
    "Claim": CLAIM,
    "NodePrepareResourcesRequest": {"claims": (1, "*Claim")},
    "NodePrepareResourceResponse": {"devices": (1, "*Device"), "error": (2, "string")},
    "NodePrepareResourcesResponse": {"claims": (1, "%NodePrepareResourceResponse")},
    "NodeUnprepareResourcesRequest": {"claims": (1, "*Claim")},
    "NodeUnprepareResourceResponse": {"error": (1, "string")},
    "NodeUnprepareResourcesResponse": {"claims": (1, "%NodeUnprepareResourceResponse")},
}
MESSAGES: Mapping[str, Mapping[str, Fields]] = {
    "pluginregistration": {
        "InfoRequest": {},
        "PluginInfo": {
            "type": (1, "string"),
            "name": (2, "string"),
            "endpoint": (3, "string"),
            "supported_versions": (4, "*string"),
        },
        "RegistrationStatus": {"plugin_registered": (1, "bool"), "error": (2, "string")},
        "RegistrationStatusResponse": {},
    },
    f"{DRA}.v1": {"Device": {**DEVICE, "share_id": (5, "?string")}, **DRA_MESSAGES},
    f"{DRA}.v1beta1": {"Device": DEVICE, **DRA_MESSAGES},
    "v1alpha1": {
        "NodeWatchResourcesRequest": {},
        "NodeWatchResourcesResponse": {"devices": (1, "*DeviceHealth")},
        "DeviceIdentifier": {"pool_name": (1, "string"), "device_name": (2, "string")},
        "DeviceHealth": {
            "device": (1, "DeviceIdentifier"),
            "health": (2, "int32"),
            "last_updated_time": (3, "int64"),
            "health_check_timeout_seconds": (4, "int64"),
            "message": (5, "string"),
        },
    },
}
SCALARS = {"string": FIELD.TYPE_STRING, "bool": FIELD.TYPE_BOOL, "int64": FIELD.TYPE_INT64, "int32": FIELD.TYPE_INT32}


def _message(package: str, name: str, fields: Fields) -> descriptor_pb2.DescriptorProto:
    made = descriptor_pb2.DescriptorProto(name=name)
    for field, (number, kind) in fields.items():
        mark, plain = (kind[0], kind[1:]) if kind[0] in "*?%" else ("", kind)
        entry = made.field.add(name=field, number=number)
        entry.label = FIELD.LABEL_REPEATED if mark in ("*", "%") else FIELD.LABEL_OPTIONAL
        if mark == "%":
            inner = made.nested_type.add(name=f"{field.title()}Entry")
            inner.options.map_entry = True
            inner.field.add(name="key", number=1, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL)
            value = inner.field.add(name="value", number=2, type=FIELD.TYPE_MESSAGE, label=FIELD.LABEL_OPTIONAL)
            value.type_name = f".{package}.{plain}"
            plain = f"{name}.{inner.name}"
        if plain in SCALARS:
            entry.type = SCALARS[plain]
        else:
            entry.type, entry.type_name = FIELD.TYPE_MESSAGE, f".{package}.{plain}"
        if mark == "?":
            entry.proto3_optional, entry.oneof_index = True, len(made.oneof_decl)
            made.oneof_decl.add(name=f"_{field}")
    return made


def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for package, messages in MESSAGES.items():
        file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
        file.message_type.extend(_message(package, name, fields) for name, fields in messages.items())
        pool.Add(file)
    return pool


POOL = _pool()


def message(name: str) -> Any:
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(name))


class Kubelet:
    """Calls a socket by method names and plain data."""

    def __init__(self, socket: Path | str) -> None:
        self._channel = grpc.aio.insecure_channel(f"unix://{socket}")

    async def __aenter__(self) -> Kubelet:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()

    async def call(
        self, package: str, service: str, method: str, request: str, response: str, body: Mapping[str, Any]
    ) -> dict[str, Any]:
        call: Any = self._channel.unary_unary(
            f"/{package}.{service}/{method}",
            request_serializer=lambda sent: sent.SerializeToString(),
            response_deserializer=message(f"{package}.{response}").FromString,
        )
        sent = json_format.ParseDict(dict(body), message(f"{package}.{request}")())
        answer = await call(sent, timeout=45)
        plain: dict[str, Any] = json_format.MessageToDict(answer, preserving_proto_field_name=True)
        return plain

    async def info(self) -> dict[str, Any]:
        return await self.call("pluginregistration", "Registration", "GetInfo", "InfoRequest", "PluginInfo", {})

    async def notify(self, *, registered: bool, error: str = "") -> dict[str, Any]:
        body = {"plugin_registered": registered, "error": error}
        names = ("RegistrationStatus", "RegistrationStatusResponse")
        return await self.call("pluginregistration", "Registration", "NotifyRegistrationStatus", *names, body)

    async def prepare(self, claims: Sequence[Mapping[str, str]], *, version: str = "v1") -> dict[str, Any]:
        names = ("NodePrepareResources", "NodePrepareResourcesRequest", "NodePrepareResourcesResponse")
        answer = await self.call(f"{DRA}.{version}", "DRAPlugin", *names, {"claims": list(claims)})
        return answer.get("claims", {})  # type: ignore[no-any-return]

    async def unprepare(self, claims: Sequence[Mapping[str, str]], *, version: str = "v1") -> dict[str, Any]:
        names = ("NodeUnprepareResources", "NodeUnprepareResourcesRequest", "NodeUnprepareResourcesResponse")
        answer = await self.call(f"{DRA}.{version}", "DRAPlugin", *names, {"claims": list(claims)})
        return answer.get("claims", {})  # type: ignore[no-any-return]

    def health(self) -> Any:
        """The stream of health messages."""
        call: Any = self._channel.unary_stream(
            "/v1alpha1.DRAResourceHealth/NodeWatchResources",
            request_serializer=lambda sent: sent.SerializeToString(),
            response_deserializer=message("v1alpha1.NodeWatchResourcesResponse").FromString,
        )
        return call(message("v1alpha1.NodeWatchResourcesRequest")())


def plain(read: Any) -> dict[str, Any]:
    made: dict[str, Any] = json_format.MessageToDict(read, preserving_proto_field_name=True)
    return made
