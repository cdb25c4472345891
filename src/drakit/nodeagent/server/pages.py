"""The pages of a node that are answered at once: pods, health, metrics, a summary of what runs.

In:  what the agent knows.
Out: JSON or text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from drakit.nodeagent.runtimes.contract import ContainerState, Runtime
from drakit.nodeagent.server.lookup import PodDocument, PodSource

Metrics = Callable[[], bytes]
Health = Callable[[], Awaitable[str]]
"""Empty when all is well, else what is not."""

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class NodePages:
    def __init__(self, node_name: str, pods: PodSource, runtime: Runtime, *, metrics: Metrics, health: Health) -> None:
        self._node_name = node_name
        self._pods = pods
        self._runtime = runtime
        self._metrics = metrics
        self._health = health

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/healthz", self.healthz),
            web.get("/pods", self.all_pods),
            web.get("/pods/", self.all_pods),
            web.get("/runningpods/", self.running_pods),
            web.get("/metrics", self.metrics),
            web.get("/stats/summary", self.summary),
        ]

    async def healthz(self, _: web.Request) -> web.Response:
        if problem := await self._health():
            return web.Response(status=500, text=problem)
        return web.Response(text="ok")

    async def all_pods(self, _: web.Request) -> web.Response:
        return _pod_list(self._pods.all())

    async def running_pods(self, _: web.Request) -> web.Response:
        """Those of which the runtime runs a container."""
        uids = {each.pod.uid for each in await self._runtime.containers() if each.state is ContainerState.RUNNING}
        return _pod_list(pod for pod in self._pods.all() if pod["metadata"].get("uid") in uids)

    async def metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics(), headers={"content-type": METRICS_TYPE})

    async def summary(self, _: web.Request) -> web.Response:
        """Which containers run and since when. What they use of the node is not measured, so it is not there."""
        containers: dict[str, list[dict[str, Any]]] = {}
        for each in await self._runtime.containers():
            if each.state is ContainerState.RUNNING and each.started is not None:
                entry = {"name": each.name, "startTime": each.started.strftime("%Y-%m-%dT%H:%M:%SZ")}
                containers.setdefault(each.pod.uid, []).append(entry)
        pods = [
            {"podRef": _reference(pod), "containers": containers[pod["metadata"]["uid"]]}
            for pod in self._pods.all()
            if pod["metadata"].get("uid") in containers
        ]
        return _json({"node": {"nodeName": self._node_name}, "pods": pods})


def _reference(pod: PodDocument) -> dict[str, str]:
    metadata = pod["metadata"]
    return {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]}


def _pod_list(pods: Any) -> web.Response:
    return _json({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": list(pods)})


def _json(document: dict[str, Any]) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), headers={"content-type": "application/json"})
