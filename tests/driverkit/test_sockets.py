"""The driver on its sockets, as a kubelet meets it."""

from __future__ import annotations

import grpc.aio

from drakit.pluginapi import dra_v1_pb2, registration_pb2
from drakit.pluginapi.dra_v1_pb2_grpc import DRAPluginStub
from drakit.pluginapi.registration_pb2_grpc import RegistrationStub
from tests.driverkit.node import Leds, led_node, on_loop


@on_loop
async def test_a_kubelet_finds_the_driver_and_has_a_claim_prepared() -> None:
    async with led_node() as node, node.plugin(Leds()).running() as plugin:
        registry = node.root / "registry" / "leds.example.com-reg.sock"
        async with grpc.aio.insecure_channel(f"unix://{registry}") as channel:
            info = await RegistrationStub(channel).GetInfo(registration_pb2.InfoRequest())
        assert (info.type, info.name) == ("DRAPlugin", "leds.example.com")
        assert list(info.supported_versions) == ["v1.DRAPlugin", "v1beta1.DRAPlugin"]
        ref = await node.claim()
        async with grpc.aio.insecure_channel(f"unix://{info.endpoint}") as channel:
            claim = dra_v1_pb2.Claim(namespace=ref.namespace, name=ref.name, uid=ref.uid)
            request = dra_v1_pb2.NodePrepareResourcesRequest(claims=[claim])
            answer = await DRAPluginStub(channel).NodePrepareResources(request)
        assert [device.device_name for device in answer.claims[ref.uid].devices] == ["led-0"]
        await plugin.check()
        await node.until(node.slices)
    assert list((node.root / "registry").glob("*")) == []
