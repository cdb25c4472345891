"""Every namespace has its service account and the server's certificates."""

from __future__ import annotations

import asyncio

import pytest

from drakit.client import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS, Forbidden
from drakit.controllers.garbage import NamespaceController
from drakit.controllers.serviceaccounts import ROOT_CA, ServiceAccountController
from tests.builders.cluster import cluster, on_loop
from tests.builders.manifests import pod
from tests.controllers.serviceaccounts import PEM, a_namespace_comes, with_authority
from tests.scenarios.crashes import check_every_crash


@on_loop
async def test_namespaces_old_and_new_get_both_objects() -> None:
    async with cluster() as it:
        await it.start((with_authority,))
        await it.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
        for namespace in ("default", "kube-system", "ns"):
            assert await it.find(SERVICE_ACCOUNTS, "default", namespace) is not None
            assert (await it.find(CONFIG_MAPS, ROOT_CA, namespace)).data == {"ca.crt": PEM}


@on_loop
async def test_what_is_deleted_or_changed_is_put_right() -> None:
    async with cluster() as it:
        await it.start((with_authority,))
        await it.delete(SERVICE_ACCOUNTS, "default", grace=None)
        await it.delete(CONFIG_MAPS, f"kube-system/{ROOT_CA}", grace=None)
        await it.client.patch_named(CONFIG_MAPS, ROOT_CA, {"data": {"ca.crt": "x", "y": "z"}}, namespace="default")
        await it.settle()
        assert await it.find(SERVICE_ACCOUNTS, "default") is not None
        for namespace in ("default", "kube-system"):
            assert (await it.find(CONFIG_MAPS, ROOT_CA, namespace)).data == {"ca.crt": PEM}


@on_loop
async def test_who_knows_no_certificates_leaves_those_alone_that_are_there() -> None:
    async with cluster() as it:
        about = {"name": ROOT_CA, "namespace": "default"}
        await it.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"ca.crt": PEM}})
        await it.start((ServiceAccountController,))
        assert (await it.find(CONFIG_MAPS, ROOT_CA)).data == {"ca.crt": PEM}
        assert await it.find(CONFIG_MAPS, ROOT_CA, "kube-system") is not None


@on_loop
async def test_a_namespace_that_is_deleted_stays_empty() -> None:
    async with cluster() as it:
        await it.start((with_authority, NamespaceController))
        await it.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
        await it.delete(NAMESPACES, "ns", grace=None)
        await it.run_for(20)
        assert await it.find(NAMESPACES, "ns") is None


def test_it_may_die_after_every_write() -> None:
    assert check_every_crash(a_namespace_comes, (with_authority,), (SERVICE_ACCOUNTS, CONFIG_MAPS)) >= 10


@on_loop
async def test_a_pod_waits_a_moment_for_the_account_of_its_namespace() -> None:
    async with cluster(accounts=True) as it:
        early = asyncio.create_task(it.client.create(pod("early")))
        await it.settle()
        assert not early.done()
        await it.start((with_authority,))
        await it.run_for(2)
        assert (await early).view.spec.service_account_name == "default"


@on_loop
async def test_a_pod_does_not_wait_for_ever() -> None:
    async with cluster(accounts=True) as it:
        early = asyncio.create_task(it.client.create(pod("early")))
        await it.run_for(2)
        with pytest.raises(Forbidden, match='serviceaccount "default" not found'):
            await early
