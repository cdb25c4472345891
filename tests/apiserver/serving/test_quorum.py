"""A server whose etcd has no quorum: reads come from memory and say so, writes are refused, and it recovers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from drakit.apiserver import build_server
from drakit.base.clock import FakeClock
from drakit.store.etcd import EtcdAccess, EtcdStore
from tests.apiserver.calls import Answer, Api, on_loop
from tests.builders.etcd import etcd_cluster

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def is_marked(answer: Answer) -> bool:
    """By a warning, which kubectl shows, and by the header of caches."""
    return "age" in dict(answer.response.headers) and any("may be" in each for each in answer.response.warnings)


@on_loop
async def test_without_a_quorum_reads_are_marked_and_writes_refused_until_it_is_back(tmp_path: Path) -> None:
    with etcd_cluster(tmp_path) as (member,):
        async with (
            await EtcdStore.open(EtcdAccess(endpoints=(member.client,))) as store,
            await build_server(store) as server,
        ):
            api = Api(server, FakeClock())
            assert (await api.create(MAPS, config_map("a"))).code == 201
            assert not is_marked(await api.get(f"{MAPS}/a"))
            member.pause()
            for read in (await api.get(f"{MAPS}/a"), await api.get(MAPS), await api.get(MAPS, resourceVersion="0")):
                assert read.code == 200
                assert is_marked(read)
            assert "a" in (await api.get(MAPS)).names
            # Nobody can know that something is not there.
            refused = await api.get(f"{MAPS}/b")
            assert refused.code == 503
            for write in (
                await api.create(MAPS, config_map("b")),
                await api.patch(f"{MAPS}/a", {"data": {"k": "v"}}),
                await api.delete(f"{MAPS}/a"),
            ):
                assert (write.code, write.body["reason"]) == (503, "ServiceUnavailable")
                assert dict(write.response.headers)["retry-after"] == "1"
            assert (await api.get("/readyz")).code == 500
            member.resume()
            # 409: an attempt that was told that nobody knows had been applied.
            while (await api.create(MAPS, config_map("c"))).code not in (201, 409):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
            found = await api.get(MAPS)
            assert not is_marked(found)
            assert {"a", "c"} <= set(found.names)
            assert (await api.get("/readyz")).code == 200
