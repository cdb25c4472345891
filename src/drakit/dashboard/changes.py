"""Makes the changes of a what-if question for real, with the viewer's own rights, if the dashboard allows changes.

In:  the question that was asked of the what-if engine.
Out: the same changes, made: objects applied, pods evicted, devices tainted.
"""

from __future__ import annotations

from typing import Any

from drakit.base.errors import UsageError
from drakit.client import PODS, Client
from drakit.explain import WhatIf

MANAGER = "drakit-dashboard"
_TAINT_KEY = "drakit.dev/dashboard"


async def make_changes(client: Client, question: WhatIf) -> list[str]:
    """Return what was done, in words. Raise the server's error for the first change that fails; earlier ones stay."""
    if question.add_nodes or question.remove_nodes or question.drain or question.smallest:
        raise UsageError("nodes are not made, drained or removed from here: objects, taints and evictions are")
    done = []
    for document in question.put:
        await client.apply(document, manager=MANAGER)
        done.append(f"applied {document.get('kind')} {(document.get('metadata') or {}).get('name')}")
    for number, text in enumerate(question.taint):
        rule = taint_rule(text, number)
        await client.apply(rule, manager=MANAGER)
        done.append(f"applied DeviceTaintRule {rule['metadata']['name']}")
    # Evictions last: a change before them that is refused leaves all pods running.
    for text in question.evict:
        namespace, _, name = text.rpartition("/")
        await client.delete(PODS, name, namespace=namespace or "default")
        done.append(f"deleted pod {text}")
    return done


def taint_rule(text: str, number: int) -> dict[str, Any]:
    """`driver/pool/device=key:effect` as a DeviceTaintRule."""
    device, _, said = text.partition("=")
    key, _, effect = said.partition(":")
    driver, _, rest = device.partition("/")
    pool, _, name = rest.rpartition("/")
    if not (driver and pool and name):
        raise UsageError(f'taint "{text}": driver/pool/device is needed')
    selector = {"driver": driver, "pool": pool, "device": name}
    called = f"dashboard-{name}-{number}" if number else f"dashboard-{name}"
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": called},
        "spec": {
            "deviceSelector": selector,
            "taint": {"key": key or _TAINT_KEY, "effect": effect or "NoExecute"},
        },
    }
