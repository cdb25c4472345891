"""Writes into namespaces that are not there, on their way out, or to stay."""

from __future__ import annotations

import pytest

from tests.apiserver.admission.objects import disabled
from tests.apiserver.calls import NAMESPACES, namespace, on_loop, serving
from tests.builders.documents import claim_document

GONE = "/apis/resource.k8s.io/v1/namespaces/gone/resourceclaims"


@on_loop
async def test_nothing_is_created_in_a_namespace_that_is_not_there() -> None:
    async with serving() as api:
        answer = await api.create(GONE, claim_document("a"))
        assert (answer.code, answer.message) == (404, 'namespaces "gone" not found')


@on_loop
async def test_nothing_new_comes_into_a_namespace_that_is_being_deleted() -> None:
    async with serving() as api:
        await api.create(NAMESPACES, namespace("gone"))
        await api.create(GONE, claim_document("old"))
        await api.delete(f"{NAMESPACES}/gone")
        answer = await api.create(GONE, claim_document("a"))
        assert answer.code == 403
        assert answer.message == (
            'resourceclaims.resource.k8s.io "a" is forbidden: unable to create new content in namespace gone because '
            "it is being terminated"
        )
        assert answer.body["details"]["causes"] == [
            {
                "reason": "NamespaceTerminating",
                "message": "namespace gone is being terminated",
                "field": "metadata.namespace",
            }
        ]


@on_loop
async def test_what_is_in_a_namespace_that_ends_can_still_be_changed_and_deleted() -> None:
    async with serving() as api:
        await api.create(NAMESPACES, namespace("gone"))
        await api.create(GONE, claim_document("old"))
        await api.delete(f"{NAMESPACES}/gone")
        assert (await api.patch(f"{GONE}/old", {"metadata": {"labels": {"a": "b"}}})).code == 200
        assert (await api.delete(f"{GONE}/old")).code == 200


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
@on_loop
async def test_some_namespaces_stay(name: str) -> None:
    async with serving() as api:
        answer = await api.delete(f"{NAMESPACES}/{name}")
        assert answer.code == 403
        assert answer.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


@on_loop
async def test_without_the_plugin_a_namespace_need_not_be_there() -> None:
    async with serving(disabled("NamespaceLifecycle")) as api:
        assert (await api.create(GONE, claim_document("a"))).code == 201
