"""Small or legal texts that stand for much work: numbers, depth, patterns, copies, managers, other forms of a list."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections import Counter

from benchmarks.attacking.large import fill, told
from benchmarks.attacking.scene import CLAIMS, MAPS, PODS, Attack, Scene, pod

_PROTOBUF = "application/vnd.kubernetes.protobuf"
_TIMES = 2


async def posted(scene: Scene, bodies: list[tuple[str, bytes, str]]) -> str:
    """Send each body some times. The content type may have an encoding behind it."""
    codes: Counter[int] = Counter()
    async with scene.session() as mob:
        for path, body, content in bodies * _TIMES:
            kind, _, coding = content.partition(" ")
            headers = {"content-type": kind} | ({"content-encoding": coding} if coding else {})
            codes[(await mob.send("POST", path, data=body, headers=headers))[0]] += 1
    return told(codes)


async def numbers(scene: Scene) -> str:
    """A million digits, 1,400,000 numbers and then NaN, 600 numbers of 4,200 digits, odd quantities."""
    spec = b'{"metadata":{"name":"n"},"spec":{"priority":%b}}'
    bodies = [spec % (b"9" * 1_000_000), spec % (b"1e" + b"9" * 1_000_000), b'{"data":[' + b"1," * 1_400_000 + b"NaN]}",
              b'{"a":[' + b",".join([b"9" * 4200] * 600) + b"]}"]  # fmt: skip
    for quantity in ("1e308", "9" * 1_000_000, "1e999999999", "0." + "0" * 1_000_000 + "1"):
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": quantity}}}
        bodies.append(json.dumps({"metadata": {"name": "n"}, "spec": {"containers": [container]}}).encode())
    return await posted(scene, [(f"{PODS}?dryRun=All", body, "application/json") for body in bodies])


async def deep(scene: Scene) -> str:
    """Lists in lists, a million deep, in JSON and YAML."""
    bodies = (b"[" * 1_400_000 + b"]" * 1_400_000, b'{"a":' * 500_000, b"- " * 1_400_000, b"[" + b"[]," * 900_000 + b"[" * 9000)  # fmt: skip  # noqa: E501
    return await posted(scene, [(MAPS, body, f"application/{form}") for body in bodies for form in ("json", "yaml")])


async def compressed(scene: Scene) -> str:
    """500 MB in half a megabyte of gzip."""
    packed = await asyncio.to_thread(gzip.compress, b" " * 500_000_000, 1)
    return await posted(scene, [(MAPS, packed[:3_000_000], "application/json gzip")])


def field(number: int, data: bytes) -> bytes:
    """A field of a protobuf message, with its length."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes((*made, value))


async def messages(scene: Scene) -> str:
    """Protobuf: 20,000 deep, lengths that lie, 180,000 entries of a map, a million unknown fields, empty metadata."""
    nested = b""
    for _ in range(20_000):
        nested = field(1, nested)
    metadata = field(1, field(1, b"pb"))
    entries = b"".join(field(2, field(1, b"k%d" % number) + field(2, b"v")) for number in range(180_000))
    raws = (nested, metadata + b"\x12\xff\xff\xff\xff\x0f", metadata + entries,
            metadata + b"\xb8\x3e\x01" * 1_000_000, b"\x0a\x00" * 1_400_000)  # fmt: skip
    kind = field(1, b"v1") + field(2, b"ConfigMap")
    bodies = [b"k8s\x00" + field(1, kind) + field(2, raw) for raw in raws]
    return await posted(scene, [(f"{MAPS}?dryRun=All", body, _PROTOBUF) for body in bodies])


async def copies(scene: Scene) -> str:
    """JSON patches that double an object 60 times, and move and insert in long lists; orders of 60,000 elements."""
    doubling = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "x" * 1000}}]
    doubling += [{"op": "copy", "from": "/metadata/annotations", "path": f"/metadata/annotations/{n}"} for n in range(60)]  # fmt: skip  # noqa: E501
    listed = {"op": "add", "path": "/x", "value": ["a"] * 200_000}
    order = {"$setElementOrder/containers": [{"name": f"c{n}"} for n in range(60_000)],
             "containers": [{"name": f"c{n}"} for n in range(60_000)]}  # fmt: skip
    patches = (
        (doubling, "json"),
        ([listed, *[{"op": "add", "path": "/x/0", "value": 1}] * 9000], "json"),
        ([listed, *[{"op": "copy", "from": "/x", "path": "/y"}] * 9000], "json"),
        ({"spec": order}, "strategic-merge"),
    )
    codes: Counter[int] = Counter()
    async with scene.session() as mob:
        await mob.send("POST", PODS, json=pod("p", 1000))
        for patch, kind in patches * _TIMES:
            codes[await mob.patch(f"{PODS}/p", patch, kind)] += 1
    return told(codes)


async def managers(scene: Scene) -> str:
    """An apply by each of 200 managers; two managers who own 30,000 fields each, and a third in conflict."""
    codes: Counter[int] = Counter()
    headers = {"content-type": "application/apply-patch+yaml"}
    async with scene.session() as mob:

        async def apply(name: str, manager: str, data: dict[str, str], force: str = "") -> None:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
            path = f"{MAPS}/{name}?fieldManager={manager}{force}"
            codes[(await mob.send("PATCH", path, data=json.dumps(body), headers=headers))[0]] += 1

        for number in range(200):
            await apply("a", f"m{number}", {f"k{number}": "v"})
        many = {f"k{number}": "v" for number in range(30_000)}
        await apply("b", "x", many)
        await apply("b", "y", many, "&force=true")
        await apply("b", "z", dict.fromkeys(many, "w"))
    return told(codes)


async def patterns(scene: Scene) -> str:
    """Regular expressions that stand for large programs, 80 of them in one selector, ten times."""
    codes: Counter[int] = Counter()
    async with scene.session() as mob:
        for number in range(10):
            many = " && ".join(f"device.driver.matches('[a-z]{{1,990}}{number}-{each}')" for each in range(80))
            for text in (many, "device.driver.matches('" + "[a-z]{1,1000}" * 10 + f"{number}')"):
                exactly = {"deviceClassName": "c", "selectors": [{"cel": {"expression": text}}]}
                spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
                codes[(await mob.send("POST", f"{CLAIMS}?dryRun=All", json={"metadata": {"name": "x"}, "spec": spec}))[0]] += 1  # fmt: skip  # noqa: E501
    return told(codes)


async def many_elements(scene: Scene) -> str:
    """Pods with 40,000 containers, ports, volumes, claims; claims with 30,000 requests."""
    count = 30_000
    one = [{"name": "c", "image": "i"}]
    specs: tuple[dict[str, object], ...] = (
        {"containers": [{"name": f"c{n}", "image": "i"} for n in range(count)]},
        {"containers": [{**one[0], "ports": [{"containerPort": n + 1} for n in range(count)]}]},
        {"containers": one, "volumes": [{"name": f"v{n}", "emptyDir": {}} for n in range(count)]},
        {"containers": one, "resourceClaims": [{"name": f"v{n}", "resourceClaimName": "c"} for n in range(count)]},
    )
    bodies: list[tuple[str, object]] = [
        (f"{PODS}?dryRun=All", {"metadata": {"name": "p"}, "spec": spec}) for spec in specs
    ]
    requests = [{"name": f"r{n}", "exactly": {"deviceClassName": "c"}} for n in range(count)]
    bodies.append((CLAIMS, {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}))
    return await posted(scene, [(path, json.dumps(body).encode(), "application/json") for path, body in bodies])


async def other_forms(scene: Scene) -> str:
    """A list of 2,000 objects in YAML, as a table, as metadata, in protobuf; watches that begin with all of them."""
    codes: Counter[int] = Counter()
    meta = "v=v1;g=meta.k8s.io"
    accepted = ("application/yaml", f"application/json;as=Table;{meta}", _PROTOBUF,
                f"application/json;as=PartialObjectMetadataList;{meta}")  # fmt: skip
    async with scene.session() as mob:
        await fill(mob, 2000)
        for accept in accepted * _TIMES:
            codes[(await mob.send("GET", MAPS, headers={"accept": accept}))[0]] += 1
            watch = f"{MAPS}?watch=true&timeoutSeconds=1&allowWatchBookmarks=true"
            codes[(await mob.send("GET", watch, headers={"accept": accept}))[0]] += 1
    return told(codes)


async def odd_queries(scene: Scene) -> str:
    """Forged tokens of pages, revisions of 5,000 digits, selectors of 60 kB in other forms."""
    token = base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":999999999,"start":"a"}').decode().rstrip("=")
    names = ",".join(f"k{number}" for number in range(9000))
    queries = (f"limit=1&continue={token}", f"resourceVersion={'9' * 5000}", f"limit={'9' * 5000}",
               f"labelSelector=a%20in%20({names})", f"labelSelector={names}", "fieldSelector=" + "%5C" * 20_000,
               "fieldSelector=" + ",".join(f"metadata.name!%3Dk{number}" for number in range(2500)))  # fmt: skip
    codes: Counter[int] = Counter()
    async with scene.session() as mob:
        await fill(mob, 500)
        for query in queries * 10:
            codes[(await mob.send("GET", f"{MAPS}?{query}"))[0]] += 1
    return told(codes)


async def owners(scene: Scene) -> str:
    """1,000 dependents of an object that is deleted, with finalizers; 10,000 owners, 30,000 finalizers of one."""
    codes: Counter[int] = Counter()
    async with scene.session() as mob:
        _, made = await mob.send("POST", MAPS, json={"metadata": {"name": "own"}})
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "own", "uid": json.loads(made)["metadata"]["uid"]}

        async def some(first: int) -> None:
            for number in range(first, first + 50):
                meta = {"name": f"d{number}", "ownerReferences": [owner], "finalizers": ["a.b/c"]}
                codes[(await mob.send("POST", MAPS, json={"metadata": meta}))[0]] += 1

        await asyncio.gather(*(some(50 * number) for number in range(20)))
        codes[(await mob.send("DELETE", f"{MAPS}/own?propagationPolicy=Foreground"))[0]] += 1
        many = [{**owner, "name": f"o{number}", "uid": f"u{number}"} for number in range(10_000)]
        for meta in ({"name": "o", "ownerReferences": many}, {"name": "f", "finalizers": [f"a.b/{n}" for n in range(30_000)]}):  # fmt: skip  # noqa: E501
            codes[(await mob.send("POST", MAPS, json={"metadata": meta}))[0]] += 1
            codes[(await mob.send("DELETE", f"{MAPS}/{meta['name']}"))[0]] += 1
        await asyncio.sleep(2)
    return told(codes)


_UP = ("up", "--nodes", "0", "--no-dashboard")
ATTACKS = (
    Attack("numbers of a million digits", "5 s to find a NaN", numbers),
    Attack("nesting a million deep", "", deep),
    Attack("500 MB in gzip", "", compressed),
    Attack("protobuf that lies", "394 ms held", messages),
    Attack("patches that double an object", "", copies),
    Attack("apply by many managers", "", managers),
    Attack("80 patterns in a selector", "2.4 s held, kept", patterns),
    Attack("objects of 30,000 elements", "300 ms held", many_elements),
    Attack("a list in other forms", "2.9 s held for YAML", other_forms),
    Attack("forged tokens and odd queries", "500 for a revision", odd_queries),
    Attack("owners and finalizers", "", owners, command=_UP),
)
