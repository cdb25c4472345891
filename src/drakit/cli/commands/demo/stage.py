"""Where a scene plays: a namespace of its own, gone with all that is in it when the scene is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Self

import yaml

from drakit.api import Partial, Pod
from drakit.api.registry import find_kind
from drakit.base.errors import DrakitError
from drakit.cli.commands.demo.failures import SceneFailed
from drakit.client import CLAIMS, NAMESPACES, PODS, Client

_PATIENCE = 30.0
OnePod = Partial[Pod]


class Stage:
    def __init__(self, client: Client, scene: str) -> None:
        self.client = client
        self.scene = scene
        self.namespace = f"demo-{scene}"

    async def __aenter__(self) -> Self:
        labels = {"resource.kubernetes.io/admin-access": "true"} if self.scene == "admin-access" else {}
        metadata = {"name": self.namespace, "labels": labels}
        await self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        return self

    async def __aexit__(self, *_: object) -> None:
        """The devices are free for the next scene when the claims are gone."""
        await self.client.delete(NAMESPACES, self.namespace)
        for pod in await self.client.list(PODS, namespace=self.namespace):
            await self.client.delete_object(pod, grace=0)
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._until_no_claims()
        except TimeoutError:
            raise SceneFailed(f"claims are left after {_PATIENCE:g} s") from None

    async def _until_no_claims(self) -> None:
        async with self.client.watch(CLAIMS, namespace=self.namespace, initial=True) as changes:
            left = {each.metadata.name for each in await self.client.list(CLAIMS, namespace=self.namespace)}
            while left:
                change = await anext(aiter(changes))
                if change.type == "DELETED" and change.object is not None:
                    left.discard(change.object.metadata.name)

    async def apply(self) -> None:
        """The scene's manifests, in its namespace."""
        text = (files("drakit.cli.commands.demo") / "scenes" / f"{self.scene}.yaml").read_text(encoding="utf-8")
        for document in yaml.safe_load_all(text):
            kind = find_kind(document["apiVersion"], document["kind"])
            if kind is not None and kind.namespaced:
                document["metadata"]["namespace"] = self.namespace
            await self.client.create(document)

    async def running(self, count: int, *, but: str = "") -> list[OnePod]:
        """The pods of the scene, once that many run; `but` names one that does not count."""

        def wanted(pods: dict[str, OnePod]) -> list[OnePod] | None:
            there = [each for name, each in sorted(pods.items()) if name != but and each.view.status.phase == "Running"]
            return there if len(there) == count else None

        found: list[OnePod] = await self.until(wanted, f"{count} running pods")
        return found

    async def until(self, wanted: Callable[[dict[str, OnePod]], Any | None], what: str) -> Any:
        pods: dict[str, OnePod] = {}
        try:
            async with asyncio.timeout(_PATIENCE):
                async with self.client.watch(PODS, namespace=self.namespace, initial=True) as changes:
                    async for change in changes:
                        if change.object is None:
                            continue
                        name = change.object.view.metadata.name
                        if change.type == "DELETED":
                            pods.pop(name, None)
                        else:
                            pods[name] = change.object
                        if (found := wanted(pods)) is not None:
                            return found
        except TimeoutError:
            raise SceneFailed(f"no {what} after {_PATIENCE:g} s: {_phases(pods)}") from None
        except DrakitError as error:
            raise SceneFailed(str(error)) from error
        raise SceneFailed(f"no {what}: the watch ended; {_phases(pods)}")

    async def printed(self, pod: OnePod) -> str:
        """What the container says of its devices: `node: NAME=value, …`."""
        name = pod.view.metadata.name
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/log"
        async with asyncio.timeout(_PATIENCE):
            while not (log := await self.client.text(path)):  # noqa: ASYNC110 - nobody tells when a line is written
                await asyncio.sleep(0.02)
        return f"{name} on {pod.view.spec.node_name}: {', '.join(log.split())}"


def _phases(pods: dict[str, OnePod]) -> str:
    return "; ".join(f"{name} is {pod.view.status.phase}{_why(pod)}" for name, pod in pods.items()) or "there is no pod"


def _why(pod: OnePod) -> str:
    told = (each.message for each in pod.view.status.conditions if each.status == "False" and each.message)
    return next((f" ({message})" for message in told), "")
