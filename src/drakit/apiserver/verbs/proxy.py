"""Requests that are passed on to a node, a pod or a service: `nodes/proxy`, `pods/proxy`, `services/proxy`.

In:  a call whose path goes on behind `proxy/`; the object may be named `scheme:name:port`.
Out: what is answered there, with its code; the credentials of the client stay here.

A node's agent is asked with the server's own certificate. Pods and services are asked without TLS, or with TLS and no
look at the certificate, as upstream does. What is no address of a pod's network (loopback, link-local) is refused,
but for a pod that shares its node's address: nobody gets at other services of this machine through an object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlencode

import msgspec

from drakit.api.exchange import Response
from drakit.api.registry import Kind, lookup
from drakit.apiserver.failures import bad_request, internal, unavailable
from drakit.apiserver.nodes import NodeAddress, NodeBody, NodeClient, NodeUnreachable, address_of
from drakit.apiserver.storage.objectstore import prefix_of
from drakit.apiserver.verbs.context import ApiCall, ServerContext

PROXY = "proxy"
_SCHEMES = ("", "http", "https")
_KEPT_BACK = frozenset(
    (
        "authorization", "connection", "content-length", "cookie", "host", "keep-alive", "proxy-authorization", "te",
        "trailer", "transfer-encoding", "upgrade",
    )
)  # fmt: skip
"""Headers that concern this connection or its user, and not what is behind it."""
_ANSWERED = frozenset(("content-type", "connection", "content-length", "keep-alive", "transfer-encoding"))
_SERVICE_LABEL = "kubernetes.io/service-name"


class ProxyTarget(msgspec.Struct, frozen=True):
    """`tls` is None for a node's agent, whose certificate is verified."""

    address: NodeAddress
    tls: bool | None = None


class Proxy:
    def __init__(self, context: ServerContext, nodes: NodeClient) -> None:
        self._context = context
        self._nodes = nodes

    async def pass_on(self, call: ApiCall) -> tuple[Response, NodeBody]:
        """The answer of what is behind the object. The body is to be closed."""
        scheme, name, port = split_name(call.name)
        found = await self._find(call, name, scheme, port)
        headers = {each: value for each, value in call.request.headers.items() if each.lower() not in _KEPT_BACK}
        headers = {each: value for each, value in headers.items() if not each.lower().startswith("impersonate-")}
        try:
            answer = await self._nodes.ask(
                found.address, call.request.method, _target(call), {**headers, "connection": "close"},
                verify=found.tls is None, tls=found.tls is not False, body=call.request.body,
            )  # fmt: skip
        except NodeUnreachable as error:
            raise unavailable(f"error trying to reach service: {error}") from None
        body = NodeBody(answer)
        passed = tuple((each, value) for each, value in answer.headers.items() if each not in _ANSWERED)
        kind = answer.headers.get("content-type", "")
        return Response(code=answer.code, content=body, content_type=kind, headers=passed), body

    async def _find(self, call: ApiCall, name: str, scheme: str, port: str) -> ProxyTarget:
        if call.kind.kind == "Node":
            return await self._node(call.kind, name, scheme, port)
        if call.kind.kind == "Pod":
            return await self._pod(call.kind, call.namespace, name, scheme, port)
        return await self._service(call.kind, call.namespace, name, scheme, port)

    async def _node(self, kind: Kind, name: str, scheme: str, port: str) -> ProxyTarget:
        address = address_of((await self._context.objects.get(kind, "", name)).document)
        if not port or port == str(address.port):
            return ProxyTarget(address)
        return ProxyTarget(msgspec.structs.replace(address, port=_number(port)), scheme == "https")

    async def _pod(self, kind: Kind, namespace: str, name: str, scheme: str, port: str) -> ProxyTarget:
        pod = (await self._context.objects.get(kind, namespace, name)).document
        told = pod.get("status") or {}
        host = told.get("podIP") or ""
        if not host:
            raise internal("address not allowed")
        own = host == told.get("hostIP")
        wanted = _number(port) if port else next(_ports(pod), 80)
        return ProxyTarget(NodeAddress(name, _allowed(host, node=own), wanted), scheme == "https")

    async def _service(self, kind: Kind, namespace: str, name: str, scheme: str, port: str) -> ProxyTarget:
        service = (await self._context.objects.get(kind, namespace, name)).document
        ports = (service.get("spec") or {}).get("ports") or ()
        known = [each for each in ports if port in (each.get("name") or "", str(each.get("port")))]
        if not known and not (len(ports) == 1 and not port):
            raise unavailable(f'no service port "{port}" found for service "{name}"')
        wanted = next(iter(known or ports)).get("name") or ""
        for document in await self._slices(namespace, name):
            for address, number in _endpoints(document, wanted):
                return ProxyTarget(NodeAddress(name, _allowed(address), number), scheme == "https")
        raise unavailable(f'no endpoints available for service "{name}"')

    async def _slices(self, namespace: str, name: str) -> list[Mapping[str, Any]]:
        objects, kind = self._context.objects, lookup("endpointslices")
        page = await objects.store.list(prefix_of(kind, namespace))
        found = [objects.from_record(kind, record).document for record in page.records]
        return [each for each in found if (each["metadata"].get("labels") or {}).get(_SERVICE_LABEL) == name]


def split_name(name: str) -> tuple[str, str, str]:
    """Scheme, name and port of `name`, `name:port` or `scheme:name:port`."""
    parts = name.split(":")
    if len(parts) > 3 or (len(parts) == 3 and parts[0] not in _SCHEMES):
        raise bad_request(f"invalid node request {name!r}")
    if len(parts) == 3:
        return parts[0], parts[1], parts[2]
    return "", parts[0], parts[1] if len(parts) == 2 else ""


def _number(port: str) -> int:
    if not port.isdecimal() or not 0 < int(port[:6]) < 65536:
        raise bad_request(f"invalid port {port!r}")
    return int(port)


def _ports(pod: Mapping[str, Any]) -> Iterator[int]:
    for container in (pod.get("spec") or {}).get("containers") or ():
        for port in container.get("ports") or ():
            yield port["containerPort"]


def _allowed(host: str, *, node: bool = False) -> str:
    try:
        address = ip_address(host)
    except ValueError:
        raise internal("address not allowed") from None
    if address.is_unspecified or address.is_link_local or (address.is_loopback and not node):
        raise internal("address not allowed")
    return host


def _endpoints(document: Mapping[str, Any], port: str) -> Iterator[tuple[str, int]]:
    numbers = [each.get("port") for each in document.get("ports") or () if (each.get("name") or "") == port]
    for endpoint in document.get("endpoints") or ():
        if (endpoint.get("conditions") or {}).get("ready", True) and numbers and numbers[0]:
            yield endpoint["addresses"][0], numbers[0]


def _target(call: ApiCall) -> str:
    """What follows `/proxy` in the path, with its query."""
    before = 6 if call.kind.kind == "Node" else 8
    rest = "/" + "/".join(call.request.path.split("/")[before:])
    return rest + (f"?{urlencode(call.request.query)}" if call.request.query else "")
