"""`drakit driver new`: a project that works as it is written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from drakit.api import Condition, parse_documents
from drakit.api.exchange import User
from drakit.apiserver import Settings
from drakit.base.errors import UsageError
from drakit.base.gates import FeatureGates
from drakit.cli.commands.driver import load_driver
from drakit.cli.main import application
from drakit.client import CLAIMS, SLICES, Client, Forbidden, InProcess, Invalid
from drakit.driverkit import AllocatedDevice
from drakit.driverkit.conditions import apply_status, device_status
from drakit.driverkit.project import Project, project_files, write_project
from tests.driverkit.node import LedNode, Leds, led_node, on_loop

PROJECT = Project(name="leds", driver="leds.example.com")
ACCOUNT = "system:serviceaccount:leds-driver:leds-driver"


def test_the_command_writes_a_project_whose_tests_pass(tmp_path: Path) -> None:
    made = CliRunner().invoke(
        application(["driver"], ["driver"]), ["driver", "new", "my-leds", "--directory", str(tmp_path / "x")]
    )
    assert made.exit_code == 0
    assert "drakit driver run my_leds_driver:MyLedsDriver" in made.output
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path / "x",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert "3 passed" in ran.stdout


def test_an_existing_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(UsageError, match="is not empty"):
        write_project(PROJECT, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    "project",
    [
        Project(name="Leds", driver="leds.example.com"),
        Project(name="leds", driver="leds"),
        Project(name="../x", driver="leds.example.com"),
    ],
)
def test_names_that_are_none_are_refused(tmp_path: Path, project: Project) -> None:
    with pytest.raises(UsageError, match="name"):
        write_project(project, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def manifests() -> list[dict[str, Any]]:
    return [
        document
        for name, content in project_files(PROJECT)
        if name.startswith("deploy/")
        for document in parse_documents(content, syntax="yaml")
    ]


def test_nothing_is_left_to_fill_in() -> None:
    assert [
        name for name, content in project_files(PROJECT) if "@" in content.replace("@asynccontextmanager", "")
    ] == []


@asynccontextmanager
async def installed() -> AsyncIterator[tuple[LedNode, Client]]:
    """A server with RBAC and every manifest applied, and the driver's own way to it: a token of its pod on node-1."""
    gates = FeatureGates.all_on()
    settings = Settings(random=Random(7), gates=gates, modes=("Node", "RBAC"))
    async with led_node(settings=settings) as node:
        order = {"Namespace": 0, "ServiceAccount": 1}
        for document in sorted(manifests(), key=lambda each: order.get(each["kind"], 2)):
            if document["kind"] != "DaemonSet":
                await node.client.create(document)
        extra = {"authentication.kubernetes.io/node-name": ("node-1",)}
        groups = ("system:serviceaccounts", "system:serviceaccounts:leds-driver", "system:authenticated")
        async with Client(InProcess(node.server, User(name=ACCOUNT, groups=groups, extra=extra))) as client:
            yield node, client


@on_loop
async def test_the_rights_suffice_for_everything_that_the_driver_does() -> None:
    async with installed() as (node, client):
        ref = await node.claim()
        async with node.plugin(Leds(), client=client).running(sockets=False) as plugin:
            await node.until(node.slices)
            assert (await plugin.prepare([ref]))[ref.uid].error == ""
            device = AllocatedDevice(request="led", pool="node-1", device="led-0")
            ready = Condition(type="Ready", status="True", reason="Lit", message="")
            entry = device_status("leds.example.com", device, conditions=[ready])
            assert await apply_status(client, "leds.example.com", ref, [entry])
            for found in await node.slices():
                await node.client.delete(SLICES, found.metadata.name)
            await node.until(node.slices)
            await plugin.publisher.remove()


@on_loop
async def test_the_rights_are_for_the_own_node_and_the_own_devices_only() -> None:
    async with installed() as (node, client):
        other = node.plugin(Leds(), client=client)
        await other.publish()
        (found,) = await node.slices()
        spec = msgspec.structs.replace(found.spec, node_name="node-2")
        elsewhere = msgspec.structs.replace(found, metadata=type(found.metadata)(name="x"), spec=spec)
        with pytest.raises(Invalid, match="may not write a slice of node 'node-2'"):
            await client.create(elsewhere)
        foreign = msgspec.structs.replace(elsewhere, spec=msgspec.structs.replace(found.spec, driver="gpu.example.com"))
        with pytest.raises(Invalid, match="may only write slices of"):
            await client.create(foreign)
        with pytest.raises(Forbidden):
            await client.list(CLAIMS, namespace="default")


# drakit driver run


@pytest.mark.parametrize(
    ("target", "settings", "error"),
    [
        ("leds", [], "expected MODULE:CLASS"),
        ("no_such_module:X", [], "cannot import no_such_module"),
        ("tests.driverkit.node:Missing", [], "has no Missing"),
        ("tests.driverkit.node:LedNode", [], "is no subclass"),
        ("drakit.driverkit:Driver", [], "does not define devices, prepare, unprepare"),
        ("tests.driverkit.node:Leds", ["color"], "expected NAME=VALUE"),
        ("tests.driverkit.node:Leds", ["color=red"], "unexpected keyword argument 'color'"),
    ],
)
def test_a_target_that_is_no_driver_is_told(target: str, settings: list[str], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        load_driver(target, settings)


def test_arguments_of_the_class_come_from_the_command_line() -> None:
    assert load_driver("tests.driverkit.node:Leds", ["count=2"]).name == "leds.example.com"
