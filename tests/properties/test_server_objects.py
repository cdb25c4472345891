"""Whatever is sent to the whole server, it answers about what was sent; and what it accepts, it gives back."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drakit.api import Kind
from tests.api.strategies import documents
from tests.properties.server_objects import (
    Asking,
    Plain,
    collection,
    every_version,
    fairly,
    mutations,
    named,
    recorded,
    run,
)


@st.composite
def sent(draw: st.DrawFn, kind: Kind, version: str) -> Plain:
    """Anything of a kind: good, nearly good, or of the right shape only."""
    match draw(st.sampled_from(["good", "changed", "changed", "shaped"])):
        case "good":
            return draw(recorded(kind, version))
        case "changed":
            return draw(mutations(draw(recorded(kind, version))))
    return draw(documents(kind, version))


@every_version
@given(data=st.data())
@fairly
def test_an_object_is_answered_and_what_is_accepted_comes_back(kind: Kind, version: str, data: st.DataObject) -> None:
    bodies = data.draw(st.lists(sent(kind, version), min_size=1, max_size=4))

    async def test(api: Asking) -> None:
        for number, body in enumerate(bodies):
            made = await api.send("POST", collection(kind, version), named(body, number))
            if made.code == 201:
                await comes_back(api, kind, version, made.body)

    run(test)


async def comes_back(api: Asking, kind: Kind, version: str, made: Plain) -> None:
    """It is read as it was answered, and to write it again, in any version, changes nothing."""
    name = made["metadata"]["name"]
    assert (await api.send("GET", f"{collection(kind, version)}/{name}")).body == made
    for each in kind.versions:
        place = f"{collection(kind, each)}/{name}"
        read = await api.send("GET", place)
        again = await api.send("PUT", place, read.body)
        assert (again.code, again.body) == (200, read.body)


@every_version
@given(data=st.data())
@fairly
def test_an_update_is_answered_whatever_it_brings(kind: Kind, version: str, data: st.DataObject) -> None:
    start = data.draw(recorded(kind, version))
    parts = ("", "/status") if any(each.name == "status" for each in kind.subresources) else ("",)

    async def test(api: Asking) -> None:
        made = await api.send("POST", collection(kind, version), named(start, 0))
        if made.code != 201:
            return
        place = f"{collection(kind, version)}/o0"
        for _ in range(3):
            now = (await api.send("GET", place)).body
            if now["kind"] != kind.kind:
                return
            part = data.draw(st.sampled_from(parts))
            await api.send("PUT", place + part, data.draw(mutations(now) | mutations({**now, "status": shaped(data)})))

    def shaped(data: st.DataObject) -> Any:
        return data.draw(documents(kind, version)).get("status", {})

    run(test)
