"""The example drivers keep every rule of `drakit conformance`, with the rights that their manifests give them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from drakit.conformance import (
    RULES,
    ClusterWishes,
    DriverHints,
    RuleResult,
    RuleVerdict,
    Timeouts,
    judge,
    open_testbed,
    select,
)
from drakit.driverkit import Driver
from drakit.drivers import DRIVERS, cpu, fabric, gpu, nic, profile_names
from tests.drivers.launcher import REMOVE, KitLauncher, Make
from tests.drivers.rights import rights_of

ROOT = Path(__file__).parents[2]
PATIENT = Timeouts(start=30.0, call=30.0, publish=30.0, repair=30.0, stop=30.0, slow=0.05, settle=0.05, health=30.0)
LABELS = {"fabric.example.com/zone": "zone-a"}
CONTROL = "{plugin_dir}/hardware/health"
MAKERS: dict[str, Make] = {
    "gpu": lambda directory: gpu.GpuDriver(directory=str(directory), poll="0.05"),
    "nic": lambda directory: nic.NicDriver(directory=str(directory)),
    "cpu": lambda directory: cpu.CpuDriver(directory=str(directory)),
    "fabric": lambda directory: fabric.FabricDriver(directory=str(directory)),
}
NOT_OFFERED = {
    "gpu": set(),
    "nic": {"health-stream"},
    "cpu": {"health-stream"},
    "fabric": {"health-stream", "slices-owned", "slices-stale-removed"},
}


async def judged(name: str) -> list[RuleResult]:
    wishes = ClusterWishes(
        node_labels=LABELS,
        manifests=list(yaml.safe_load_all(rights_of(name).read_text())),
        service_account=f"drakit-drivers/{name}",
    )
    hints = DriverHints(
        removal_arguments=(REMOVE,),
        break_command=("sh", "-c", f"echo gpu-0 overheated > {CONTROL}"),
        heal_command=("rm", CONTROL),
    )
    async with open_testbed(KitLauncher(MAKERS[name]), wishes=wishes, timeouts=PATIENT, hints=hints) as bed:
        return [each async for each in judge(RULES, bed)]


@pytest.mark.parametrize("name", sorted(DRIVERS))
def test_an_example_driver_keeps_every_rule_with_no_more_rights_than_it_needs(name: str) -> None:
    results = asyncio.run(judged(name))
    assert [(each.rule, each.reason) for each in results if each.verdict is RuleVerdict.FAIL] == []
    skipped = {each.rule for each in results if each.verdict is RuleVerdict.SKIP}
    assert skipped - {"health-change"} == NOT_OFFERED[name]


@pytest.mark.parametrize("profile", profile_names())
def test_devices_of_every_profile_can_be_published_and_prepared(profile: str) -> None:
    def make(directory: Path) -> Driver:
        return gpu.GpuDriver(profile=profile, directory=str(directory))

    async def run() -> list[RuleResult]:
        chosen = select(RULES, ["registration", "slices-valid", "slices-complete", "prepare", "unprepare", "cdi-files"])
        wishes = ClusterWishes(node_labels=LABELS)
        async with open_testbed(KitLauncher(make), wishes=wishes, timeouts=PATIENT) as bed:
            return [each async for each in judge(chosen, bed)]

    results = asyncio.run(run())
    assert [(each.rule, each.reason) for each in results if each.verdict is not RuleVerdict.PASS] == []


def test_a_driver_without_rights_is_told_apart_from_one_with(tmp_path: Path) -> None:
    manifest = tmp_path / "account.yaml"
    manifest.write_text("{apiVersion: v1, kind: ServiceAccount, metadata: {name: nobody, namespace: default}}")
    wishes = ClusterWishes(manifests=[yaml.safe_load(manifest.read_text())], service_account="default/nobody")

    async def run() -> RuleResult:
        hasty = Timeouts(publish=0.5)
        async with open_testbed(KitLauncher(MAKERS["gpu"]), wishes=wishes, timeouts=hasty) as bed:
            (found,) = [each async for each in judge(select(RULES, ["slices-valid"]), bed)]
            return found

    result = asyncio.run(run())
    assert (result.verdict, result.reason[:8]) == (RuleVerdict.FAIL, "no slice")


def test_a_driver_in_its_own_process_survives_what_the_suite_does_to_it(tmp_path: Path) -> None:
    """`kill -9` and a second instance: the rules for which a process of its own makes a difference."""
    drakit = [sys.executable, "-m", "drakit"]
    chosen = ["registration", "restart", "restart-during-prepare", "two-instances"]
    rules = [argument for each in chosen for argument in ("--rule", each)]
    where = "--kubeconfig {kubeconfig} --plugin-dir {plugin_dir} --registry-dir {registry_dir} --cdi-dir {cdi_dir}"
    settings = ["--set", "profile=a100-mig", "--set", f"directory={tmp_path}"]
    driver = [*drakit, "driver", "run", "gpu", *where.split(), *settings]
    done = subprocess.run(
        [*drakit, "conformance", "--settle", "0.1", *rules, "--", *driver],
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 pass, 0 fail, 0 skip" in done.stderr
