"""Large but legal: what a user with few rights may send, at the largest size that anybody thought of."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

import aiohttp

from benchmarks.attacking.scene import CLAIMS, MAPS, PODS, SECONDS, Attack, Scene, Session, pod


def told(codes: Counter[int]) -> str:
    return "answers: " + ", ".join(f"{count} × {code}" for code, count in sorted(codes.items()))


async def alias_bomb(scene: Scene) -> str:
    """1.9 MB of YAML that stand for 3.9 GB, ten times."""
    body = f"a: &a {'x' * 1_900_000}\nb: [{', '.join(['*a'] * 2000)}]".encode()
    codes: Counter[int] = Counter()
    async with scene.session() as mob:
        for _ in range(10):
            code, _ = await mob.send("POST", CLAIMS, data=body, headers={"content-type": "application/yaml"})
            codes[code] += 1
    return told(codes)


async def growing_by_patches(scene: Scene) -> str:
    """Six patches of the status that add 3 MB each."""
    codes: Counter[int] = Counter()
    async with scene.session() as mob:
        await mob.send("POST", PODS, json=pod("big", 1_000_000))
        for number in range(6):
            conditions = [{"type": f"t{number}", "status": "True", "message": "x" * 2_900_000}]
            codes[await mob.patch(f"{PODS}/big/status", {"status": {"conditions": conditions}}, "strategic-merge")] += 1
        _, body = await mob.send("GET", f"{PODS}/big")
    return f"{told(codes)}; the pod has {len(body):,} bytes"


async def patches_of_a_large_pod(scene: Scene) -> str:
    """60 small patches of a pod of 1.4 MB."""
    codes: Counter[int] = Counter()
    async with scene.session() as mob:
        await mob.send("POST", PODS, json=pod("big", 1_400_000))
        for number in range(60):
            codes[await mob.patch(f"{PODS}/big", {"metadata": {"labels": {"n": str(number)}}})] += 1
    return told(codes)


async def near_maximum_bodies(scene: Scene) -> str:
    """40 pods of 1.5 MB and 40 bodies of 3 MB, eight at a time."""
    codes: Counter[int] = Counter()

    async def some(first: int) -> None:
        for number in range(first, first + 10):
            size = 1_500_000 if number % 2 else 3_100_000
            codes[(await mob.send("POST", PODS, json=pod(f"p{number}", size)))[0]] += 1

    async with scene.session() as mob:
        await asyncio.gather(*(some(first) for first in range(0, 80, 10)))
    return told(codes)


async def strategic_patches(scene: Scene) -> str:
    """A strategic patch with 70,000 elements of a merged list, five times."""
    env = [{"name": f"E{number}", "value": "1"} for number in range(70_000)]
    patch = {"spec": {"containers": [{"name": "c", "env": env}]}}
    return await patched(scene, patch, "strategic-merge")


async def json_patches(scene: Scene) -> str:
    """A JSON patch with 70,000 operations, five times. The last, which fails, makes all of it in vain."""
    patch = [{"op": "test", "path": "/kind", "value": "Pod"}] * 70_000
    return await patched(scene, patch, "json")


async def patched(scene: Scene, patch: object, kind: str) -> str:
    codes: Counter[int] = Counter()
    async with scene.session() as mob:
        await mob.send("POST", PODS, json=pod("p", 1000))
        for _ in range(5):
            codes[await mob.patch(f"{PODS}/p", patch, kind)] += 1
    return told(codes)


SELECTOR = "a notin (" + ",".join(f"value-{number:05}" for number in range(5000)) + ")"
"""60 kB."""


async def selectors_of_lists(scene: Scene) -> str:
    """2,000 config maps, listed 100 times with a label selector of 60 kB, ten at a time."""
    codes: Counter[int] = Counter()
    async with scene.session() as mob:
        await fill(mob, 2000)

        async def some() -> None:
            for _ in range(10):
                codes[(await mob.send("GET", f"{MAPS}?labelSelector={SELECTOR.replace(' ', '%20')}"))[0]] += 1

        await asyncio.gather(*(some() for _ in range(10)))
    return told(codes)


async def fill(mob: Session, count: int) -> None:
    for start in range(0, count, 50):
        names = [f"m{number}" for number in range(start, start + 50)]
        made = ({"metadata": {"name": name, "labels": {"a": f"value-{name}"}}} for name in names)
        await asyncio.gather(*(mob.send("POST", MAPS, json=each) for each in made))


async def watch(scene: Scene, query: str, token: str, heard: Counter[int]) -> None:
    """Open a watch, and count what comes until it is cancelled."""
    async with scene.session(token, limit=0) as session:
        with suppress(aiohttp.ClientError, OSError):
            async with session.raw.get(f"{scene.url}{MAPS}?watch=true{query}") as answer:
                heard[-answer.status] += 1
                async for _ in answer.content:
                    heard[1] += 1


async def watched(scene: Scene, count: int, query: str, writes: int) -> str:
    """Open watches; write when they are open; end them."""
    heard: Counter[int] = Counter()
    watches = [asyncio.create_task(watch(scene, query, "of-mob", heard)) for _ in range(count)]
    # Only the watches themselves know when they are open.
    while sum(number for code, number in heard.items() if code < 0) < count:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    async with scene.session(scene.admin) as admin:
        for number in range(writes):
            await admin.send("POST", MAPS, json={"metadata": {"name": f"w{number}", "labels": {"a": f"v{number}"}}})
    await asyncio.sleep(SECONDS / 2)
    for each in watches:
        each.cancel()
    await asyncio.gather(*watches, return_exceptions=True)
    return f"{heard[-200]} watches open, {heard[-429]} × 429; {heard[1]} events heard"


async def selectors_of_watches(scene: Scene) -> str:
    """50 watches with a label selector of 60 kB each, and 200 writes."""
    return await watched(scene, 50, "&labelSelector=" + SELECTOR.replace(" ", "%20"), 200)


async def many_watches(scene: Scene) -> str:
    """5,000 watches of one collection by one user, and 20 writes."""
    return await watched(scene, 5000, "", 20)


async def deaf_readers(scene: Scene) -> str:
    """60 clients ask for a list of 27 MB and do not read it."""
    async with scene.session() as mob:
        for number in range(30):
            data = {"metadata": {"name": f"m{number}"}, "data": {"a": "x" * 900_000}}
            await mob.send("POST", MAPS, json=data)
    opened = [await scene.connect() for _ in range(60)]
    for _, writer in opened:
        writer.write(f"GET {MAPS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer of-mob\r\n\r\n".encode())
    await asyncio.sleep(SECONDS)
    for _, writer in opened:
        writer.close()
    return ""


async def unknown_fields(scene: Scene) -> str:
    """100,000 unknown fields, ten times."""
    codes: Counter[int] = Counter()
    sent = {"metadata": {"name": "u"}, **{f"unknown{number}": 1 for number in range(100_000)}}
    warnings = 0
    async with scene.session() as mob:
        for _ in range(10):
            async with mob.raw.post(f"{scene.url}{MAPS}?dryRun=All", json=sent) as answer:
                codes[answer.status] += 1
                warnings = len(answer.headers.getall("warning", []))
    return f"{told(codes)}; {warnings} warnings"


ATTACKS = (
    Attack("1.9 MB of YAML that stand for 3.9 GB", "3.9 GB, the process dies", alias_bomb),
    Attack("six patches of 3 MB on one pod", "a pod of 18 MB", growing_by_patches),
    Attack("60 patches of a pod of 1.4 MB", "83 MB more with each, kept", patches_of_a_large_pod),
    Attack("80 bodies of 1.5 and 3 MB", "", near_maximum_bodies),
    Attack("strategic patches of 70,000 elements", "", strategic_patches),
    Attack("JSON patches of 70,000 operations", "", json_patches),
    Attack("lists with selectors of 60 kB", "", selectors_of_lists),
    Attack("50 watches with selectors of 60 kB", "", selectors_of_watches),
    Attack("5,000 watches of one collection", "", many_watches),
    Attack("60 readers who do not read 27 MB", "1,176 ms at worst", deaf_readers),
    Attack("100,000 unknown fields", "", unknown_fields),
)
