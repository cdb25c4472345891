"""What is fuzzed: bodies, patches, protobuf, expressions, selectors, queries and kubeconfigs.

In:  a source of randomness, and a server.
Out: nothing; an exception for an input that broke something. Errors that a target has words for are answers.
"""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from drakit.api.codec.protobuf import CONTENT_TYPE as PROTOBUF
from drakit.base import fieldselectors, labels
from drakit.base.errors import DrakitError
from drakit.client.access.kubeconfig import load_kubeconfig
from drakit.selectors import compile_selector
from tests.apiserver.calls import CLAIMS, CLASSES, PODS, SLICES, Api, serving
from tests.builders.documents import claim_document, class_document, pod_document, slice_document

Plain = dict[str, Any]
Target = Callable[[Random, Api], Awaitable[None]]
_SCALARS: tuple[Any, ...] = (
    None, True, False, 0, -1, 1 << 63, 1 << 70, 1e308, -0.0, "", "a", "A" * 300, "\u0000", "\ud83d\ude00",
    "é" * 64, "1Gi",
    "-1", "1e400", "0x10", "2024-01-01T00:00:00Z", "gpu.example.com/a", "../..", "*", "null",
)  # fmt: skip
_EXPRESSION = (
    "device", "driver", "attributes", "capacity", "[", "]", "(", ")", '"gpu.example.com"', ".", "==", "!=",
    "<", "&&", "||", "!", "?", ":", "true", "false", "1", "1.5", "'a'", "in", "{", "}", ",", "matches", "exists",
    "all", "x", "size",
    "quantity", "+", "-",
    "optional", "semver", "cel.bind", "b'\\x00'", "null", "\u00e9", "\n", "//",
)  # fmt: skip
_SELECTOR = (
    "a",
    "b.example.com/c",
    "=",
    "==",
    "!=",
    "in",
    "notin",
    "(",
    ")",
    ",",
    "!",
    " ",
    "metadata.name",
    "\\",
    "\u00e9",
    "x" * 70,
)


@asynccontextmanager
async def running() -> AsyncIterator[Api]:
    async with serving() as api:
        for path, document in STARTS:
            await api.create(path, document)
        yield api


STARTS = (
    (CLAIMS, claim_document("a")),
    (CLASSES, class_document("a", "true")),
    (SLICES, slice_document("a", "d0", "d1")),
    (PODS, pod_document("a", {"containers": [{"name": "c", "image": "i"}]})),
)


def mutated(random: Random, value: Any, depth: int = 0) -> Any:
    """The value with something else in some place."""
    roll = random.random()
    if roll < 0.08 or depth > 12:
        return random.choice(_SCALARS)
    if roll < 0.11:
        return [value] * random.randrange(4)
    if roll < 0.14:
        return {str(random.choice(_SCALARS)): value}
    if isinstance(value, dict):
        made = {name: mutated(random, each, depth + 1) for name, each in value.items() if random.random() > 0.03}
        if random.random() < 0.1:
            made[str(random.choice(_SCALARS))] = random.choice(_SCALARS)
        return made
    if isinstance(value, list):
        return [mutated(random, each, depth + 1) for each in value for _ in range(random.choice((0, 1, 1, 1, 2)))]
    return value


def damaged(random: Random, data: bytes) -> bytes:
    """The bytes with some of them changed, missing or twice."""
    made = bytearray(data)
    for _ in range(random.randrange(8)):
        at = random.randrange(len(made) + 1)
        match random.randrange(3):
            case 0:
                made[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                del made[at : at + random.randrange(1, 20)]
            case _:
                made[at:at] = made[at : at + random.randrange(1, 20)]
    return bytes(made)


def encoded(random: Random, value: Any) -> bytes:
    data = json.dumps(value).encode()
    return damaged(random, data) if random.random() < 0.3 else data


async def answered(api: Api, method: str, path: str, body: bytes, content: str, **query: str) -> None:
    options: Plain = {**query}
    answer = await api.send(method, path, body, content=content, **options)
    if answer.code >= 500 and answer.code != 504:
        raise AssertionError(f"{method} {path} ({content}) {query}: {answer.code} {answer.body}\n{body[:2000]!r}")
    if answer.code == 201 and method == "POST":
        await api.delete(f"{path}/{answer.body['metadata']['name']}", gracePeriodSeconds="0")


async def bodies(random: Random, api: Api) -> None:
    path, document = random.choice(STARTS)
    named = {**document, "metadata": {"name": "fuzz"}}
    body = encoded(random, mutated(random, named))
    content = random.choice(("application/json", "application/yaml"))
    validation = random.choice(("", "Strict", "Warn", "Ignore", "x"))
    await answered(api, "POST", path, body, content, fieldValidation=validation)
    await answered(api, "PUT", f"{path}/a", body, content, dryRun="All")


def operation(random: Random, places: tuple[str, ...]) -> Plain:
    """One operation of a JSON patch."""
    kind = random.choice(("add", "remove", "replace", "move", "copy", "test", "x"))
    value = random.choice(_SCALARS)
    return {"op": kind, "path": random.choice(places), "from": random.choice(places), "value": value}


async def patches(random: Random, api: Api) -> None:
    path, document = random.choice(STARTS)
    kind = random.choice(("json", "merge", "strategic-merge", "apply"))
    if kind == "json":
        places = (
            "",
            "/",
            "/spec",
            "/metadata/labels",
            "/metadata/labels/a",
            "/spec/-",
            "/spec/devices/requests/0",
            "/~2",
            "x",
        )
        data: Any = [mutated(random, operation(random, places)) for _ in range(random.randrange(5))]
    else:
        data = mutated(random, {**document, "$patch": "merge"} if random.random() < 0.2 else document)
    content = f"application/{kind}-patch+{'yaml' if kind == 'apply' else 'json'}"
    await answered(api, "PATCH", f"{path}/a", encoded(random, data), content, dryRun="All", fieldManager="fuzz")


async def protobuf(random: Random, api: Api) -> None:
    path, _ = random.choice(STARTS)
    response = await api.get(f"{path}/a", accept=PROTOBUF) if not _FRAMES.get(path) else None
    if response is not None:
        _FRAMES[path] = response.response.content.encode()
    await answered(api, "POST", path, damaged(random, _FRAMES[path]), PROTOBUF)


_FRAMES: dict[str, bytes] = {}


async def expressions(random: Random, api: Api) -> None:
    text = random.choice(("", " ")).join(random.choices(_EXPRESSION, k=random.randrange(1, 40)))
    try:
        compile_selector(text)
    except DrakitError:
        return


async def selectors(random: Random, api: Api) -> None:
    text = "".join(random.choices(_SELECTOR, k=random.randrange(12)))
    for parse in (labels.parse, fieldselectors.parse):
        try:
            parse(text)
        except DrakitError:
            continue
    await answered(
        api, "GET", CLAIMS, b"", "", labelSelector=text, fieldSelector=text, limit=str(random.choice(_SCALARS))
    )


def forged(random: Random) -> str:
    """A continue token of somebody's own making."""
    token = mutated(random, {"v": "meta.k8s.io/v1", "rv": random.choice((1, -1, 3, 10**30)), "start": "a\0"})
    return base64.urlsafe_b64encode(encoded(random, token)).decode().rstrip("=")


async def queries(random: Random, api: Api) -> None:
    """Reads with parameters and media types that nobody would ask for."""
    path, _ = random.choice(STARTS)
    texts = (str(each).encode(errors="replace").decode() for each in _SCALARS)  # no other text can stand in a URL
    values = (*texts, "9" * 5000, "true", "NotOlderThan", "Exact", "Background", forged(random))
    query = {name: random.choice(values) for name in random.sample(_PARAMETERS, random.randrange(1, 5))}
    accept = damaged(random, random.choice(_ACCEPTED).encode()).decode("latin-1")
    answer = await api.get(random.choice((path, f"{path}/a")), accept=accept, **query)
    if answer.code >= 500 and answer.code != 504:
        raise AssertionError(f"GET {path} {query} {accept!r}: {answer.code} {answer.body}")


_PARAMETERS = (
    "limit", "continue", "resourceVersion", "resourceVersionMatch", "timeoutSeconds", "sendInitialEvents",
    "allowWatchBookmarks", "pretty", "labelSelector", "fieldSelector", "includeObject",
)  # fmt: skip
_ACCEPTED = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "application/yaml", PROTOBUF, "*/*;q=0.5",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
)  # fmt: skip


async def kubeconfigs(random: Random, api: Api) -> None:
    whole: Mapping[str, Any] = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": "QQ=="}}],
        "users": [{"name": "u", "user": {"token": "t", "client-certificate-data": "QQ==", "client-key-data": "QQ=="}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "n"}}],
    }  # fmt: skip
    with tempfile.NamedTemporaryFile(suffix=".kubeconfig") as file:
        file.write(encoded(random, mutated(random, dict(whole))))
        file.flush()
        try:
            load_kubeconfig([Path(file.name)])
        except DrakitError:
            return


TARGETS: Mapping[str, Target] = {
    "bodies": bodies,
    "patches": patches,
    "protobuf": protobuf,
    "expressions": expressions,
    "selectors": selectors,
    "queries": queries,
    "kubeconfigs": kubeconfigs,
}
