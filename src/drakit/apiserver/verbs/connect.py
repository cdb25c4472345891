"""What leads to a pod's node: its logs, commands in it, connections to its ports.

In:  a call for pods/log, pods/exec, pods/attach or pods/portforward.
Out: what the node's agent answers: a body that goes on, or the client's connection joined with the node's.

The server does not look into the streams: it asks the node with the client's own handshake, and carries bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from drakit.api.exchange import Response
from drakit.api.objects.plain import Plain
from drakit.api.podstreams import (
    PodLogOptions,
    log_option_problems,
    parse_log_options,
    parse_ports,
    parse_stream_options,
)
from drakit.api.registry import lookup
from drakit.apiserver.admission.chain import CONNECT
from drakit.apiserver.auth.authorization import require
from drakit.apiserver.failures import ApiError, bad_request, internal
from drakit.apiserver.nodes import (
    NodeAddress,
    NodeBody,
    NodeClient,
    NodeResponse,
    NodeTunnel,
    NodeUnreachable,
    address_of,
)
from drakit.apiserver.verbs.context import ApiCall, ServerContext
from drakit.apiserver.verbs.proxy import PROXY, Proxy
from drakit.base import status
from drakit.base.status import StatusDetails

LOG = "log"
UPGRADED = ("attach", "exec", "portforward")
SUBRESOURCES = (LOG, PROXY, *UPGRADED)

_ASKED = ("upgrade", "sec-websocket-key", "sec-websocket-version", "x-stream-protocol-version")
_ANSWERED = ("upgrade", "sec-websocket-accept", "sec-websocket-protocol", "x-stream-protocol-version")
_CREDENTIALS = "base64url.bearer.authorization.k8s.io."
"""A browser's way to send a token. It is not for the node."""
_REASONS = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed", 422: "Invalid"}


class Connector:
    def __init__(self, context: ServerContext, nodes: NodeClient) -> None:
        self._context = context
        self._nodes = nodes
        self._node_kind = lookup("nodes")
        self._proxy = Proxy(context, nodes)

    async def log(self, call: ApiCall) -> tuple[Response, NodeBody]:
        """The log of a container. The body is to be closed."""
        options = parse_log_options(call.request.query)
        if problems := tuple(log_option_problems(options)):
            raise ApiError(status.invalid("PodLogOptions", "", call.name, problems))
        pod = await self._pod(call)
        container = chosen_container(pod, options.container)
        if not (pod.get("spec") or {}).get("nodeName"):
            # Nobody has written anything yet: that is an empty log, and no mistake of the client.
            empty = NodeBody(None)
            return Response(content=empty, content_type="text/plain"), empty
        path = f"/containerLogs/{call.namespace}/{call.name}/{container}"
        answer = await self._ask_for_log(await self._node_of(pod), path, options)
        if answer.code != 200:
            raise await _refused(answer, call)
        body = NodeBody(answer)
        return Response(content=body, content_type="text/plain"), body

    async def proxy(self, call: ApiCall) -> tuple[Response, NodeBody]:
        """What a node, a pod or a service answers to the rest of the path. The body is to be closed."""
        await self._admit(call)
        return await self._proxy.pass_on(call)

    async def upgrade(self, call: ApiCall) -> tuple[Response, NodeTunnel]:
        """Join the client with the node. The tunnel is to be closed."""
        await self._require_create(call)
        await self._admit(call)
        pod = await self._pod(call)
        path = self._upgrade_path(call, pod)
        address = await self._node_of(pod)
        headers = _upgrade_headers(call.request.headers)
        answer = await self._ask(address, call.request.method, path, headers)
        if answer.code != 101:
            raise await _refused(answer, call)
        passed_on = tuple((name, answer.headers[name]) for name in _ANSWERED if name in answer.headers)
        tunnel = NodeTunnel(answer)
        return Response(code=101, content=tunnel, headers=(("connection", "Upgrade"), *passed_on)), tunnel

    async def _require_create(self, call: ApiCall) -> None:
        """A WebSocket begins with a GET, yet it is no reading: since v1.35 whoever may only `get` is refused."""
        if call.verb != "create":
            await require(self._context.authorizer, call.attributes("create"))

    async def _admit(self, call: ApiCall) -> None:
        """Call admission with the options of the connection as the object: policies and webhooks may refuse."""
        sent = _options_document(call)
        change = call.change(CONNECT, call.name, new=None, old=None, dry_run=False, sent=sent)
        await self._context.admission.admit(change)
        await self._context.admission.validate(change)

    async def _pod(self, call: ApiCall) -> Mapping[str, Any]:
        stored = await self._context.objects.get(call.kind, call.namespace, call.name)
        return stored.document

    async def _node_of(self, pod: Mapping[str, Any]) -> NodeAddress:
        name = (pod.get("spec") or {}).get("nodeName") or ""
        if not name:
            raise bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")
        stored = await self._context.objects.get(self._node_kind, "", name)
        return address_of(stored.document)

    def _upgrade_path(self, call: ApiCall, pod: Mapping[str, Any]) -> str:
        query = call.request.query
        if call.subresource == "portforward":
            ports = parse_ports(query, "ports")
            asked = [("port", ",".join(map(str, ports)))] if ports else []
            return _target(f"/portForward/{call.namespace}/{call.name}", asked)
        options = parse_stream_options(query)
        container = chosen_container(pod, options.container)
        return _target(f"/{call.subresource}/{call.namespace}/{call.name}/{container}", options.query())

    async def _ask_for_log(self, address: NodeAddress, path: str, options: PodLogOptions) -> NodeResponse:
        verify = not options.insecure_skip_tls_verify_backend
        return await self._ask(address, "GET", _target(path, options.query()), {"connection": "close"}, verify=verify)

    async def _ask(
        self, address: NodeAddress, method: str, target: str, headers: Mapping[str, str], *, verify: bool = True
    ) -> NodeResponse:
        try:
            return await self._nodes.ask(address, method, target, headers, verify=verify)
        except NodeUnreachable as error:
            raise internal(str(error)) from None


def _options_document(call: ApiCall) -> Plain:
    """Fields that are false or empty are left out, as on the wire."""
    if call.subresource == PROXY:
        return {}
    if call.subresource == "portforward":
        ports = parse_ports(call.request.query, "ports")
        return {"ports": list(ports)} if ports else {}
    options = parse_stream_options(call.request.query)
    fields = {
        "stdin": options.stdin,
        "stdout": options.stdout,
        "stderr": options.stderr,
        "tty": options.tty,
        "container": options.container,
        "command": list(options.command),
    }
    return {name: value for name, value in fields.items() if value}


def chosen_container(pod: Mapping[str, Any], name: str) -> str:
    """The container that is named, or the only one."""
    pod_name, spec = pod["metadata"]["name"], pod.get("spec") or {}
    containers = list(spec.get("containers") or ())
    if not name and len(containers) == 1:
        return str(containers[0]["name"])
    # In the order in which the words of Kubernetes list them.
    listed = [
        str(each["name"])
        for field in ("initContainers", "containers", "ephemeralContainers")
        for each in spec.get(field) or ()
    ]
    if not name:
        choice = f", choose one of: [{' '.join(listed)}]" if containers else ""
        raise bad_request(f"a container name must be specified for pod {pod_name}{choice}")
    if name not in listed:
        raise bad_request(f"container {name} is not valid for pod {pod_name}")
    return name


def _target(path: str, query: list[tuple[str, str]]) -> str:
    return quote(path) + (f"?{urlencode(query)}" if query else "")


def _upgrade_headers(given: Mapping[str, str]) -> dict[str, str]:
    """The client's handshake, and nothing else of what it sent: its credentials are not for the node."""
    wanted = [token.strip().lower() for token in given.get("connection", "").split(",")]
    if "upgrade" not in wanted or not given.get("upgrade"):
        raise bad_request("Upgrade request required")
    headers = {"connection": "Upgrade"} | {name: given[name] for name in _ASKED if name in given}
    protocols = [name.strip() for name in given.get("sec-websocket-protocol", "").split(",")]
    if spoken := [name for name in protocols if name and not name.startswith(_CREDENTIALS)]:
        headers["sec-websocket-protocol"] = ", ".join(spoken)
    return headers


async def _refused(answer: NodeResponse, call: ApiCall) -> ApiError:
    """The node's error as a Status of this server."""
    try:
        text = await answer.text() or f"the node answered with code {answer.code}"
    except OSError as error:
        text = str(error)
    finally:
        answer.close()
    if answer.code == 400:
        return bad_request(text)
    if answer.code == 401 or answer.code not in _REASONS:
        # The node does not know this server, or is at a loss: that is nothing the client did.
        return internal(text if answer.code >= 500 else f"the node answered with code {answer.code}: {text}")
    details = StatusDetails(name=call.name, kind=call.kind.plural)
    return ApiError(status.failure(answer.code, _REASONS[answer.code], text, details))
