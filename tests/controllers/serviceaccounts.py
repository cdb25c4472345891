"""Scenes and objects for the tests of serviceaccounts, here and elsewhere."""

from __future__ import annotations

from typing import Any

from drakit.controllers.context import ControllerContext
from drakit.controllers.serviceaccounts import ServiceAccountController

PEM = "-----BEGIN CERTIFICATE-----"


def with_authority(setting: ControllerContext) -> ServiceAccountController:
    setting.root_ca = PEM
    return ServiceAccountController(setting)


async def a_namespace_comes(it: Any) -> None:
    await it.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
