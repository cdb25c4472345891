"""No patch of any form breaks the server, on an object that it has accepted or on its status."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drakit.api import Kind
from tests.properties.server_objects import (
    Asking,
    Plain,
    collection,
    every_version,
    fairly,
    mutations,
    named,
    places,
    recorded,
    run,
    values,
)

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
DIRECTIVES = ("$patch", "$retainKeys", "$setElementOrder/finalizers", "$deleteFromPrimitiveList/finalizers")


def pointer(place: tuple[str | int, ...]) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in place)


@st.composite
def operations(draw: st.DrawFn, document: Plain) -> list[Plain]:
    """Operations of a JSON patch at places that are there, or nearly."""
    made = []
    for _ in range(draw(st.integers(1, 4))):
        path = pointer(draw(st.sampled_from(list(places(document)))))
        near = draw(st.sampled_from([path, path, f"{path}/-", f"{path}/0", f"{path}/x", f"{path}~2", "", "/"]))
        source = pointer(draw(st.sampled_from(list(places(document)))))
        op = draw(st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "zap"]))
        made.append({"op": op, "path": near, "from": source, "value": draw(values)})
    return made


@st.composite
def directed(draw: st.DrawFn, document: Plain) -> Plain:
    """A strategic patch with directives in it, some of which make sense."""
    patch = copy.deepcopy(draw(mutations(document)))
    for _ in range(draw(st.integers(0, 2))):
        found: Any = patch
        for part in draw(st.sampled_from([(), *places(patch)])):
            found = found[part]
        if isinstance(found, dict):
            content: Any = draw(st.sampled_from(["delete", "replace", "merge", ["a"], [{}], None, 5]))
            found[draw(st.sampled_from(DIRECTIVES))] = content
    return patch


@st.composite
def patches(draw: st.DrawFn, document: Plain) -> tuple[str, Any]:
    form = draw(st.sampled_from([MERGE, STRATEGIC, JSON, APPLY]))
    if form == JSON:
        return form, draw(operations(document) | values)
    if form == STRATEGIC:
        return form, draw(directed(document))
    if form == APPLY:
        wanted = draw(mutations(document))
        meta = wanted.get("metadata")
        if isinstance(meta, dict):
            wanted["metadata"] = {key: value for key, value in meta.items() if key != "managedFields"}
        return form, wanted
    return form, draw(mutations(document))


@every_version
@given(data=st.data())
@fairly
def test_no_patch_breaks_the_server(kind: Kind, version: str, data: st.DataObject) -> None:
    start = data.draw(recorded(kind, version))
    parts = ("", "", "/status") if any(each.name == "status" for each in kind.subresources) else ("",)

    async def test(api: Asking) -> None:
        if (await api.send("POST", collection(kind, version), named(start, 0))).code != 201:
            return
        place = f"{collection(kind, version)}/o0"
        for _ in range(4):
            now = (await api.send("GET", place)).body
            if now["kind"] != kind.kind:
                return
            form, patch = data.draw(patches(now))
            query = {"fieldManager": data.draw(st.sampled_from("ab")), "force": "true"} if form == APPLY else {}
            await api.send("PATCH", place + data.draw(st.sampled_from(parts)), patch, content=form, **query)

    run(test)
