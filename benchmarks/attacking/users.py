"""Attacks of a user with few rights: floods, expensive claims, and rights that were not given."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from benchmarks.attacking.scene import CLAIMS, MAPS, PODS, SECONDS, Attack, Scene, Session, pod

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"


async def creating_by_patch(scene: Scene) -> str:
    """Who may patch pods applies one that is not there."""
    async with scene.session("of-pat") as pat:
        headers = {"content-type": "application/apply-patch+yaml"}
        sent = json.dumps(pod("new", 1000))
        code, _ = await pat.send("PATCH", f"{PODS}/new?fieldManager=pat", data=sent, headers=headers)
    return f"answer: {code}"


async def flood(scene: Scene, method: str, path: str, body: object | None = None) -> str:
    """300 requests of one user at the same time, for a while; a component renews its lease meanwhile."""
    codes: Counter[int] = Counter()
    leases: list[float] = []
    ends = time.monotonic() + SECONDS

    async def one(user: Session) -> None:
        while time.monotonic() < ends:
            codes[(await user.send(method, path, **({"json": body} if body else {})))[0]] += 1

    async def renew(admin: Session) -> None:
        lease = {"metadata": {"name": "n"}, "spec": {"holderIdentity": "n"}}
        await admin.send("POST", _LEASES, json=lease)
        while not leases or time.monotonic() < ends:  # once at least, however busy the machine is
            begun = time.perf_counter()
            await admin.patch(f"{_LEASES}/n", {"spec": {"leaseDurationSeconds": 1 + len(leases) % 40}})
            leases.append(time.perf_counter() - begun)

    async with scene.session(limit=300) as user, scene.session(scene.admin) as admin:
        await asyncio.gather(renew(admin), *(one(user) for _ in range(300)))
    told = ", ".join(f"{count} × {code}" for code, count in sorted(codes.items()))
    return f"{told}; a lease is renewed in {max(leases) * 1000:.0f} ms at worst, the attacker's process included"


async def flood_of_reads(scene: Scene) -> str:
    return await flood(scene, "GET", PODS)


async def flood_of_writes(scene: Scene) -> str:
    return await flood(scene, "POST", MAPS, {"metadata": {"generateName": "m-"}})


def expensive(number: int) -> str:
    """A selector that is accepted, and looks at 64,000 triples of numbers for each device."""
    listed = "[" + ",".join(str(each + number) for each in range(40)) + "]"
    return f"{listed}.all(a, {listed}.all(b, {listed}.all(c, a + b + c + size(device.driver) > 0)))"


async def expensive_claims(scene: Scene) -> str:
    """Four such selectors, over 1,280 devices that all differ, and a pod that needs nothing."""
    async with scene.session(scene.admin) as admin, scene.session() as mob:
        await admin.send("POST", _CLASSES, json={"metadata": {"name": "c"}, "spec": {}})
        for number in range(10):
            await admin.send("POST", "/api/v1/nodes", json=node(f"n{number}"))
            await admin.send("POST", _SLICES, json=slice_of(number, 128))
        requests = [
            {"name": f"r{number}", "exactly": {"deviceClassName": "c", "selectors": [{"cel": {"expression": text}}]}}
            for number, text in enumerate(map(expensive, range(4)))
        ]
        claim = {"metadata": {"name": "slow"}, "spec": {"devices": {"requests": requests}}}
        code, _ = await mob.send("POST", CLAIMS, json=claim)
        await mob.send("POST", PODS, json=claiming("slow"))
        await asyncio.sleep(2)
        begun = time.perf_counter()
        await mob.send("POST", PODS, json=pod("quick", 1000))
        bound = await until(mob, "quick", lambda found: bool(found["spec"].get("nodeName")), 40.0)
        waited = time.perf_counter() - begun
        slow = await until(mob, "slow", lambda found: bool(found["status"].get("conditions")), 60.0)
    words = slow["status"]["conditions"][0].get("message", "") if slow else "nothing is said"
    return f"claim: {code}; another pod is bound after {waited:.1f} s{'' if bound else ' not'}; told: {words[:90]}"


def node(name: str) -> dict[str, object]:
    room = {"cpu": "64", "memory": "64Gi", "pods": "100"}
    ready = {"type": "Ready", "status": "True"}
    return {"metadata": {"name": name}, "status": {"capacity": room, "allocatable": room, "conditions": [ready]}}


def slice_of(number: int, count: int) -> dict[str, object]:
    devices = [{"name": f"d{each}", "attributes": {"id": {"int": number * count + each}}} for each in range(count)]
    pool = {"name": f"n{number}", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": f"n{number}", "pool": pool, "devices": devices}
    return {"metadata": {"name": f"s{number}"}, "spec": spec}


def claiming(claim: str) -> dict[str, object]:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "x"}]}}
    spec = {"containers": [container], "resourceClaims": [{"name": "x", "resourceClaimName": claim}]}
    return {"metadata": {"name": claim}, "spec": spec}


async def until(user: Session, name: str, holds: Callable[[Any], bool], seconds: float) -> Any:
    """The pod, when something holds of it; None when that takes too long."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        code, body = await user.send("GET", f"{PODS}/{name}")
        if code == 200 and holds(found := json.loads(body)):
            return found
        await asyncio.sleep(0.05)
    return None


_UP = ("up", "--nodes", "0", "--no-dashboard")
ATTACKS = (
    Attack("apply of a new pod by who may only patch", "201", creating_by_patch),
    Attack("four expensive selectors, 1,280 devices", "blocks 41 s, again and again", expensive_claims, command=_UP),
    Attack("300 clients of one user read", "409 ms at p99, 814 ms at worst", flood_of_reads),
    Attack("300 clients of one user write", "", flood_of_writes),
)
