"""Scenes and objects for the tests of server objects, here and elsewhere."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from drakit.api import KINDS, Kind, decode_plain, to_wire
from drakit.apiserver import Settings
from drakit.base.gates import FeatureGates
from tests.apiserver.calls import Answer, Api, serving
from tests.validation.mutations import GOOD

Plain = dict[str, Any]
Place = tuple[str | int, ...]
SECONDS = 20.0
"""More than any answer takes on a busy machine."""
SERVED = [(kind, version) for kind in KINDS if kind.kind in GOOD for version in kind.versions]
every_version = pytest.mark.parametrize(
    ("kind", "version"), SERVED, ids=[f"{kind.kind}-{version}" for kind, version in SERVED]
)
fairly = settings(
    deadline=None, max_examples=10, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ["", "a", "A_b", "a/b/c", "x" * 300, "1Gi", "-1", "1e400", "9" * 400, "All", "In", "\x00", "é" * 70]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
values = scalars | st.lists(scalars, max_size=3) | st.dictionaries(st.sampled_from(["name", "cel", "a", ""]), scalars)


def places(value: Any, here: Place = ()) -> Iterator[Place]:
    """Where something is that can be changed: not in what says which kind of object it is."""
    if here and here[0] not in ("apiVersion", "kind"):
        yield here
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in children:
        yield from places(inner, (*here, key))


def change(document: Any, place: Place, how: str, value: Any) -> None:
    """Drop, retype, repeat, enlarge or wrap what is at a place."""
    parent = document
    for key in place[:-1]:
        parent = parent[key]
    last = place[-1]
    match how:
        case "drop":
            del parent[last]
        case "repeat" if isinstance(parent, list):
            parent.extend(copy.deepcopy(parent[int(last)]) for _ in range(40))
        case "enlarge" if isinstance(parent[last], str):
            parent[last] *= 30
        case "wrap":
            parent[last] = [parent[last]]
        case _:
            parent[last] = value


@st.composite
def mutations(draw: st.DrawFn, document: Plain) -> Plain:
    changed = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(changed))
        if found:
            how = draw(st.sampled_from(["drop", "repeat", "enlarge", "wrap", "set", "set"]))
            change(changed, draw(st.sampled_from(found)), how, draw(values))
    return changed


@st.composite
def recorded(draw: st.DrawFn, kind: Kind, version: str) -> Plain:
    """An object that a server has accepted, in this version."""
    body = draw(st.sampled_from(GOOD[kind.kind]))
    return dict(to_wire(decode_plain(body).object, version))


def collection(kind: Kind, version: str) -> str:
    root = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
    return f"{root}/namespaces/default/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"


def named(document: Plain, number: int) -> Plain:
    """The same under a name of its own, where it can have one."""
    if not isinstance(document.get("metadata", {}), dict):
        return document
    meta = {key: value for key, value in document.get("metadata", {}).items() if key not in ("namespace", "uid")}
    return {**document, "metadata": {**meta, "name": f"o{number}", "resourceVersion": ""}}


class Asking:
    """An Api whose answers are never errors of the server, and never late."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def send(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        answer = await asyncio.wait_for(self._api.send(method, path, body, **options), SECONDS)
        assert answer.code < 500, (method, path, body, answer.body)
        return answer


def run(test: Any) -> None:
    async def inside() -> None:
        gates = FeatureGates.all_on()
        async with serving(Settings(random=Random(7), gates=gates)) as api:
            await test(Asking(api))

    asyncio.run(inside())
