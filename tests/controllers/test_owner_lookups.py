"""That an owner is gone is believed of that owner alone, not of everything that has its uid in common."""

from __future__ import annotations

from drakit.client import CONFIG_MAPS, NAMESPACES
from drakit.controllers.garbage import GarbageCollector
from tests.builders.cluster import cluster, on_loop
from tests.builders.documents import Plain
from tests.controllers.garbage import config, owned_by


def elsewhere(name: str, owners: list[Plain]) -> Plain:
    about = {"name": name, "namespace": "other", "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about}


@on_loop
async def test_a_reference_from_another_namespace_does_not_make_an_owner_gone_for_its_own_dependents() -> None:
    async with cluster() as it:
        await it.start((GarbageCollector,))
        await it.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}, config("owner"))
        owner = await it.find(CONFIG_MAPS, "owner")
        await it.create(elsewhere("stray", owned_by(owner)))
        assert await it.find(CONFIG_MAPS, "stray", "other") is None
        await it.create(config("dependent", owner))
        assert await it.find(CONFIG_MAPS, "dependent") is not None
        assert await it.find(NAMESPACES, "other") is not None


@on_loop
async def test_a_reference_by_a_wrong_name_does_not_make_an_owner_gone_for_the_others() -> None:
    async with cluster() as it:
        await it.start((GarbageCollector,))
        await it.create(config("owner"))
        owner = await it.find(CONFIG_MAPS, "owner")
        [wrong] = owned_by(owner)
        await it.create(config("stray", ownerReferences=[{**wrong, "name": "nobody"}]))
        assert await it.find(CONFIG_MAPS, "stray") is None
        await it.create(config("dependent", owner))
        assert await it.find(CONFIG_MAPS, "dependent") is not None
