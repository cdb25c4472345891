"""The standard gRPC health service, asked once: `grpc.health.v1.Health/Check`.

Two messages of one field each are read and written here by hand: `HealthCheckRequest{service=1 string}` and
`HealthCheckResponse{status=1 enum}`.
"""

from __future__ import annotations

import grpc

from drakit.nodeagent.containers.failures import HandlerBroken, HandlerFailed

_METHOD = "/grpc.health.v1.Health/Check"
_SERVICE_FIELD = 0x0A
_STATUS_FIELD = 0x08
_STATUS_NAMES = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}


async def check_health(address: str, service: str) -> None:
    """Raises HandlerFailed unless the service says SERVING."""
    async with grpc.aio.insecure_channel(address) as channel:
        check = channel.unary_unary(_METHOD, request_serializer=_request, response_deserializer=_status)
        try:
            status = await check(service)
        except grpc.aio.AioRpcError as error:
            raise _failed(error, address) from None
    if status != "SERVING":
        raise HandlerFailed(f'service unhealthy (responded with "{status}")')


def _request(service: str) -> bytes:
    name = service.encode()
    return bytes([_SERVICE_FIELD]) + _varint(len(name)) + name if name else b""


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _status(message: bytes) -> str:
    """An empty message is the default, UNKNOWN."""
    if not message:
        return _STATUS_NAMES[0]
    if len(message) < 2 or message[0] != _STATUS_FIELD:
        raise HandlerBroken("the health service's answer cannot be read")
    return _STATUS_NAMES.get(message[1], str(message[1]))


def _failed(error: grpc.aio.AioRpcError, address: str) -> HandlerFailed:
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return HandlerFailed("error: this server does not implement the grpc health protocol (grpc.health.v1.Health)")
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        return HandlerFailed(f'error: failed to connect service "{address}": {error.details()}')
    return HandlerFailed(f"error: health rpc failed: {error.details()}")
