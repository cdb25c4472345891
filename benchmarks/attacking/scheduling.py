"""Claims that cost a scheduler of its own process much, and files that cost `drakit allocate` much."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.attacking.data import drakit
from benchmarks.attacking.scene import CLAIMS, PODS, Attack, Scene, Session, pod
from benchmarks.attacking.users import claiming, expensive, node, slice_of, until

_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
_NODES = 5000
_SLICES = 10


async def own_scheduler(scene: Scene) -> str:
    """5,000 nodes, 1,280 devices, four expensive selectors, and a pod that needs nothing."""
    async with scene.session(scene.admin) as admin, scene.session() as mob:
        await inventory(admin)
        line = [sys.executable, "-m", "drakit.cli.main", "scheduler", "--port", "0", "--leader-elect"]
        line += ["--kubeconfig", str(scene.directory / "admin.kubeconfig")]
        scheduler = await asyncio.create_subprocess_exec(*line, stdout=DEVNULL, stderr=DEVNULL)
        try:
            return await contested(admin, mob, scheduler)
        finally:
            with suppress(ProcessLookupError):
                scheduler.terminate()
            await scheduler.wait()


def requests() -> list[dict[str, object]]:
    return [
        {"name": f"r{number}", "exactly": {"deviceClassName": "c", "selectors": [{"cel": {"expression": text}}]}}
        for number, text in enumerate(map(expensive, range(4)))
    ]


async def inventory(admin: Session) -> None:
    """Nodes, and devices that every node reaches: none of the nodes can be answered without a look at the selectors."""
    await admin.send("POST", "/apis/resource.k8s.io/v1/deviceclasses", json={"metadata": {"name": "c"}, "spec": {}})
    for number in range(_SLICES):
        made: Any = slice_of(number, 128)
        del made["spec"]["nodeName"]
        made["spec"]["allNodes"] = True
        await admin.send("POST", "/apis/resource.k8s.io/v1/resourceslices", json=made)
    for first in range(0, _NODES, 50):
        names = (f"n{number}" for number in range(first, first + 50))
        await asyncio.gather(*(admin.send("POST", "/api/v1/nodes", json=node(name)) for name in names))


async def contested(admin: Session, mob: Session, scheduler: Process) -> str:
    await mob.send("POST", PODS, json=pod("first", 1000))
    started = await until(mob, "first", lambda found: bool(found["spec"].get("nodeName")), 40.0)
    await mob.send("POST", CLAIMS, json={"metadata": {"name": "slow"}, "spec": {"devices": {"requests": requests()}}})
    await mob.send("POST", PODS, json=claiming("slow"))
    await asyncio.sleep(1)
    begun = time.perf_counter()
    await mob.send("POST", PODS, json=pod("quick", 1000))
    bound = await until(mob, "quick", lambda found: bool(found["spec"].get("nodeName")), 40.0)
    waited = time.perf_counter() - begun
    held = await lease_kept(admin)
    lives = scheduler.returncode is None
    return (
        f"{'' if started else 'it did not start; '}another pod is bound after {waited:.1f} s{'' if bound else ' not'}; "
        f"the lease is {'kept' if held else 'lost'}; the scheduler {'lives' if lives else 'is dead'}"
    )


async def lease_kept(admin: Session) -> bool:
    """Whether the lease is renewed by the holder that it always had, over 12 s."""
    seen = []
    for _ in range(5):
        _, body = await admin.send("GET", _LEASE)
        seen.append(json.loads(body).get("spec", {}))
        await asyncio.sleep(3)
    renewed = {each.get("renewTime") for each in seen}
    return (
        len({each.get("holderIdentity") for each in seen}) == 1
        and len(renewed) > 1
        and not seen[-1].get("leaseTransitions")
    )


def hostile(file: Path) -> None:
    """A claim with four expensive selectors, and 100 nodes with 128 devices each."""
    spec = {"devices": {"requests": requests()}}
    objects: list[dict[str, object]] = [
        {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}},
        {"kind": "ResourceClaim", "metadata": {"name": "slow", "namespace": "default"}, "spec": spec},
        *({"kind": "ResourceSlice", **slice_of(number, 128)} for number in range(100)),
    ]
    texts = [json.dumps({"apiVersion": "resource.k8s.io/v1", **each}) for each in objects]
    file.write_text("\n---\n".join(texts))


async def allocating(scene: Scene) -> str:
    """`drakit allocate` with such a claim, and two seconds."""
    file = Path(scene.directory / "hostile.yaml")
    hostile(file)
    begun = time.perf_counter()
    code, said = await drakit("allocate", "--timeout", "2", "-f", str(file))
    return f"exit code {code} after {time.perf_counter() - begun:.0f} s: {said[:80]}"


ATTACKS = (
    Attack("a scheduler of its own, 5,000 nodes", "outlives its lease by 36 s, exits", own_scheduler),
    Attack("`drakit allocate` with such a claim", "no limit", allocating),
)
