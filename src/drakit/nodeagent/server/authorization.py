"""What a caller may do on the node: subresources of the Node object, as the API server's rules say.

In:  a user, the method and the path.
Out: allowed or not, by SubjectAccessReview; answers are kept, those that allow for longer.

The subresources are the kubelet's: `pods`, `healthz`, `stats`, `metrics`, and `proxy` for all else. One thing is
stricter: whatever runs a command or opens a connection needs `create`, also by GET, which is how WebSockets begin.
"""

from __future__ import annotations

from typing import Any, Protocol

from drakit.api.exchange import User
from drakit.base.clock import Clock
from drakit.client import Client
from drakit.nodeagent.server.answers import AnswerCache

ALLOWED_SECONDS = 300.0
REFUSED_SECONDS = 30.0

_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# Fine-grained kubelet authorization: the own subresource of the path first, then `nodes/proxy`.
_FINE = {"pods": ("pods", "proxy"), "runningpods": ("pods", "proxy"), "healthz": ("healthz", "proxy")}
_OWN = {"stats": ("stats",), "metrics": ("metrics",), "logs": ("log",)}
_CONNECTING = ("exec", "attach", "portForward", "run")


class NodeRequestAuthorizer(Protocol):
    async def refusal(self, user: User, method: str, path: str) -> str:
        """Empty when the user may. Raise a Retryable when nobody can tell right now."""
        ...


def subresources(path: str) -> tuple[str, ...]:
    """What a path belongs to: the caller needs one of these."""
    root = path.split("/", 2)[1] if path.startswith("/") else ""
    return _FINE.get(root) or _OWN.get(root) or ("proxy",)


def verb(method: str, path: str) -> str:
    if path.split("/", 2)[1] in _CONNECTING:
        return "create"
    return _VERBS.get(method, method.lower())


class NodeAuthorization:
    def __init__(self, client: Client, clock: Clock, node_name: str) -> None:
        self._client = client
        self._node = node_name
        self._answers: AnswerCache[tuple[object, ...], bool] = AnswerCache(clock)

    async def refusal(self, user: User, method: str, path: str) -> str:
        asked, wanted = verb(method, path), subresources(path)
        for subresource in wanted:
            if await self._allowed(user, asked, subresource):
                return ""
        return f"Forbidden (user={user.name}, verb={asked}, resource=nodes, subresource(s)=[{' '.join(wanted)}])"

    async def _allowed(self, user: User, asked: str, subresource: str) -> bool:
        key = (user.name, user.uid, user.groups, repr(user.extra), asked, subresource)
        return await self._answers.get(
            key, lambda: self._review(user, asked, subresource), lambda yes: ALLOWED_SECONDS if yes else REFUSED_SECONDS
        )

    async def _review(self, user: User, asked: str, subresource: str) -> bool:
        attributes = {"verb": asked, "version": "v1", "resource": "nodes", "subresource": subresource}
        spec: dict[str, Any] = {
            "user": user.name,
            "groups": list(user.groups),
            "resourceAttributes": {**attributes, "name": self._node},
        }
        if user.uid:
            spec["uid"] = user.uid
        if user.extra:
            spec["extra"] = {name: list(values) for name, values in user.extra.items()}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        status = (await self._client.create(review)).document.get("status") or {}
        return bool(status.get("allowed"))
