"""DefaultBinder: give the pod its node, through the API.

A binding is sent once. When it is not certain whether it was done (no answer came, or the pod turns out to be bound),
the pod is read again: what counts is where it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from drakit.api.objects.partial import Partial
from drakit.api.objects.pods import Pod
from drakit.base.errors import Conflict, DeadlineExceeded, DrakitError, Unavailable
from drakit.client import PODS, Client, bind
from drakit.scheduler.config.names import DEFAULT_BINDER
from drakit.scheduler.framework import SUCCESS, CycleState, Interest, PluginStatus

_IN_DOUBT = (Conflict, Unavailable, DeadlineExceeded)


class DefaultBinder:
    name = DEFAULT_BINDER

    def __init__(self, client: Client) -> None:
        self._client = client

    def interests(self) -> Sequence[Interest]:
        """None: it refuses no pod, and a binding that fails is retried after the backoff."""
        return ()

    async def bind(self, state: CycleState, pod: Pod, node: str) -> PluginStatus:
        """SUCCESS when the pod is on that node; else ERROR with what the server said."""
        try:
            await bind(self._client, Partial(state.document or {}, pod), node)
        except _IN_DOUBT as error:
            return SUCCESS if await self._is_on(pod, node) else PluginStatus.failed(error)
        except DrakitError as error:
            return PluginStatus.failed(error)
        return SUCCESS

    async def _is_on(self, pod: Pod, node: str) -> bool:
        try:
            now = await self._client.find(PODS, pod.metadata.name, namespace=pod.metadata.namespace)
        except DrakitError:
            return False
        return now is not None and now.view.metadata.uid == pod.metadata.uid and now.view.spec.node_name == node
