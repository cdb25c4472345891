"""Where a scene plays: a namespace of its own, gone with all that is in it when the scene is over.

A cluster that goes away for a while, killed and started again, only makes it take longer: every step may be repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any, Self, TypeVar

import yaml

from drakit.api import Partial, Pod
from drakit.api.registry import find_kind
from drakit.base.errors import DrakitError, Retryable
from drakit.cli.commands.demo.failures import SceneFailed
from drakit.client import CLAIMS, NAMESPACES, PODS, AlreadyExists, Client, NotFound, Resource

_PATIENCE = 30.0
_PAUSE = 0.1
OnePod = Partial[Pod]
Pods = dict[str, OnePod]
T = TypeVar("T")


class Stage:
    def __init__(self, client: Client, scene: str) -> None:
        self.client = client
        self.scene = scene
        self.namespace = f"demo-{scene}"

    async def __aenter__(self) -> Self:
        labels = {"resource.kubernetes.io/admin-access": "true"} if self.scene == "admin-access" else {}
        metadata = {"name": self.namespace, "labels": labels}
        await self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        return self

    async def __aexit__(self, *_: object) -> None:
        """The devices are free for the next scene when the claims are gone."""
        await self.delete(NAMESPACES, self.namespace)
        await self.insist(self._delete_pods)
        await self.insist(self._until_no_claims, "claims are left")

    async def insist(self, step: Callable[[], Awaitable[T]], what: str = "the cluster does not answer") -> T:
        """What comes of the step, tried again as long as the server cannot be reached. Raise SceneFailed in the end."""
        why = ""
        try:
            async with asyncio.timeout(_PATIENCE):
                while True:
                    try:
                        return await step()
                    except (Retryable, StopAsyncIteration) as error:
                        why = f": {error}" if str(error) else ""
                        await asyncio.sleep(_PAUSE)
        except TimeoutError:
            raise SceneFailed(f"{what} after {_PATIENCE:g} s{why}") from None
        except DrakitError as error:
            raise SceneFailed(str(error)) from error

    async def create(self, document: Mapping[str, Any]) -> None:
        async def step() -> None:
            try:
                await self.client.create(document)
            except AlreadyExists:
                return  # by an earlier try, whose answer was lost

        await self.insist(step)

    async def delete(self, resource: Resource[Any], name: str) -> None:
        async def step() -> None:
            try:
                await self.client.delete(resource, name)
            except NotFound:
                return

        await self.insist(step)

    async def apply(self) -> None:
        """The scene's manifests, in its namespace."""
        text = (files("drakit.cli.commands.demo") / "scenes" / f"{self.scene}.yaml").read_text(encoding="utf-8")
        for document in yaml.safe_load_all(text):
            kind = find_kind(document["apiVersion"], document["kind"])
            if kind is not None and kind.namespaced:
                document["metadata"]["namespace"] = self.namespace
            await self.create(document)

    async def running(self, count: int, *, but: str = "") -> list[OnePod]:
        """The pods of the scene, once that many run; `but` names one that does not count."""

        def wanted(pods: Pods) -> list[OnePod] | None:
            there = [each for name, each in sorted(pods.items()) if name != but and each.view.status.phase == "Running"]
            return there if len(there) == count else None

        found: list[OnePod] = await self.until(wanted, f"{count} running pods")
        return found

    async def until(self, wanted: Callable[[Pods], Any | None], what: str) -> Any:
        pods: Pods = {}

        async def step() -> Any:
            # The watch begins anew with everything that is there: pods deleted meanwhile must not stay.
            pods.clear()
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
            raise StopAsyncIteration("the watch ended")

        try:
            return await self.insist(step, f"no {what}")
        except SceneFailed as failure:
            raise SceneFailed(f"{failure}; {_phases(pods)}") from None

    async def printed(self, pod: OnePod) -> str:
        """What the container says of its devices: `node: NAME=value, …`."""
        name = pod.view.metadata.name
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/log"

        async def step() -> str:
            while not (log := await self.client.text(path)):  # noqa: ASYNC110 - nobody tells when a line is written
                await asyncio.sleep(_PAUSE)
            return log

        log = await self.insist(step, f"{name} has printed nothing")
        return f"{name} on {pod.view.spec.node_name}: {', '.join(log.split())}"

    async def _delete_pods(self) -> None:
        for pod in await self.client.list(PODS, namespace=self.namespace):
            try:
                await self.client.delete_object(pod, grace=0)
            except NotFound:
                continue

    async def _until_no_claims(self) -> None:
        # Watch first, then list: a deletion in between is seen by one of them.
        async with self.client.watch(CLAIMS, namespace=self.namespace, initial=True) as changes:
            left = {each.metadata.name for each in await self.client.list(CLAIMS, namespace=self.namespace)}
            while left:
                change = await anext(aiter(changes))
                if change.type == "DELETED" and change.object is not None:
                    left.discard(change.object.metadata.name)


def _phases(pods: Pods) -> str:
    return "; ".join(f"{name} is {pod.view.status.phase}{_why(pod)}" for name, pod in pods.items()) or "there is no pod"


def _why(pod: OnePod) -> str:
    told = (each.message for each in pod.view.status.conditions if each.status == "False" and each.message)
    return next((f" ({message})" for message in told), "")
