"""Owners that an object names twice: one of them is stored, and the client is told."""

from __future__ import annotations

from typing import Any

from tests.apiserver.calls import CLAIMS, on_loop, serving
from tests.builders.documents import claim_document

START = ".metadata.ownerReferences contains duplicate entries"
END = (
    "; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your "
    "requests; duplicate UID(s) observed: "
)
SENT, ADMITTED = START + END, START + " after mutating admission happens" + END


def owner(uid: str, **others: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, **others}


def owned(*owners: dict[str, Any]) -> dict[str, Any]:
    made = claim_document("c")
    return {**made, "metadata": {**made["metadata"], "ownerReferences": list(owners)}}


@on_loop
async def test_the_same_owner_twice_is_stored_once_with_a_warning() -> None:
    async with serving() as api:
        answer = await api.create(CLAIMS, owned(owner("b"), owner("a"), owner("b"), owner("a"), owner("c")))
        assert answer.code == 201
        assert [each["uid"] for each in answer.body["metadata"]["ownerReferences"]] == ["b", "a", "c"]
        assert answer.response.warnings == (f"{SENT}a, b",)
        stored = await api.get(f"{CLAIMS}/c")
        assert stored.body["metadata"]["ownerReferences"] == answer.body["metadata"]["ownerReferences"]


@on_loop
async def test_owners_that_differ_in_anything_are_not_the_same() -> None:
    async with serving() as api:
        answer = await api.create(CLAIMS, owned(owner("a"), owner("a", blockOwnerDeletion=True), owner("b")))
        assert (answer.code, answer.response.warnings) == (201, ())
        assert len(answer.body["metadata"]["ownerReferences"]) == 3


@on_loop
async def test_an_update_is_treated_as_a_create_and_a_patch_after_the_plugins() -> None:
    async with serving() as api:
        await api.create(CLAIMS, claim_document("c"))
        updated = await api.update(f"{CLAIMS}/c", owned(owner("a"), owner("a")))
        assert (len(updated.body["metadata"]["ownerReferences"]), updated.response.warnings) == (1, (f"{SENT}a",))
        twice = {"metadata": {"ownerReferences": [owner("b"), owner("b")]}}
        patched = await api.patch(f"{CLAIMS}/c", twice)
        assert (len(patched.body["metadata"]["ownerReferences"]), patched.response.warnings) == (1, (f"{ADMITTED}b",))


@on_loop
async def test_nobody_is_warned_of_owners_that_are_named_once() -> None:
    async with serving() as api:
        answer = await api.create(CLAIMS, owned(owner("a"), owner("b")))
        assert (answer.code, answer.response.warnings) == (201, ())
