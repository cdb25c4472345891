"""A client for a server that runs in another process, and how to wait for what it will show."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from drakit.client import Client, Resource, load_kubeconfig
from drakit.client.transport.http import Http

PATIENCE = 120.0


@asynccontextmanager
async def reached(kubeconfig: Path, *, acting_as: str = "") -> AsyncIterator[Client]:
    """The kubeconfig's user, or whomever it may act as."""
    access = load_kubeconfig([kubeconfig])
    if acting_as:
        access = msgspec.structs.replace(access, headers={"Impersonate-User": acting_as})
    async with Client(Http(access)) as client:
        yield client


async def until(client: Client, resource: Resource[Any], wanted: Callable[[Any], object], *, namespace: str) -> Any:
    """The first object that is, or becomes, what is wanted."""
    async with (
        asyncio.timeout(PATIENCE),
        client.watch(resource, namespace=namespace, initial=True) as changes,
    ):
        async for change in changes:
            if change.object is not None and wanted(change.object):
                return change.object
    raise AssertionError("the watch ended before that came")
