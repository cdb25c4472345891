"""Tell in a pod's status that a controller takes it away, before it does.

In:  a pod, and why it must go.
Out: the condition DisruptionTarget.
"""

from __future__ import annotations

from drakit.api import Pod
from drakit.api.objects.partial import Partial
from drakit.api.text.times import format_time
from drakit.base.clock import Clock
from drakit.client import STRATEGIC, Client


async def mark_disrupted(client: Client, clock: Clock, pod: Partial[Pod], reason: str, message: str) -> None:
    """Set the condition, unless it is there."""
    if any(each.type == "DisruptionTarget" and each.status == "True" for each in pod.view.status.conditions):
        return
    condition = {
        "type": "DisruptionTarget", "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": format_time(clock.now()),
    }  # fmt: skip
    await client.patch(pod, {"status": {"conditions": [condition]}}, kind=STRATEGIC, subresource="status")
