"""The guide for driver authors: its commands are run in their order, its code is put where it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree as ET

import pytest

from drakit.driverkit import pools_from_yaml

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "writing-a-driver.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", GUIDE, re.DOTALL)


def script(commands: str = "sh") -> str:
    """Every file of the guide, and its commands of one sort, as one script: `bash` ones need a kubectl."""
    parts = ["set -e"]
    if commands == "bash":
        parts += ["trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT", "drakit driver new leds; cd leds"]
    for kind, text in BLOCKS:
        if kind == commands:
            # What waits for nothing in particular need not wait long in a test.
            parts.append(text.replace("drakit conformance", "drakit conformance --settle 0.1 --slow 0.1"))
        elif kind == "python" and text.startswith("# leds_driver/"):
            name = text.splitlines()[0].removeprefix("# ")
            parts.append(f"cat > {name} <<'END'\n{text}END")
    return "\n".join(parts)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_commands_of_the_guide_lead_to_a_driver_that_conforms(tmp_path: Path) -> None:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", script()],
        cwd=tmp_path,
        env={**os.environ, "PATH": programs, "PYTEST_ADDOPTS": "-p no:cacheprovider"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("3 passed") == 2
    suite = ET.parse(tmp_path / "leds" / "conformance.xml").getroot()
    skipped = [case.get("name") for case in suite.iter("testcase") if case.find("skipped") is not None]
    assert skipped == []


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl on PATH")
def test_the_pod_of_the_guide_gets_a_device_of_the_new_driver(tmp_path: Path) -> None:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # Sockets have short paths, and those of pytest are long.
    with TemporaryDirectory(prefix="leds-") as directory, (tmp_path / "said").open("w+") as said:
        ran = subprocess.run(
            ["bash", "-c", script("bash")],
            cwd=directory,
            env={**os.environ, "PATH": programs},
            stdout=said,
            stderr=subprocess.STDOUT,
            check=False,
        )
        said.seek(0)
        text = said.read()
    assert ran.returncode in (0, 143), text  # what was killed says so
    assert re.search(r"^DEVICE_0=device-\d$", text, re.MULTILINE), text


def test_the_yaml_of_the_guide_is_a_device() -> None:
    (text,) = [text for kind, text in BLOCKS if kind == "yaml"]
    (pool,) = pools_from_yaml(text)
    assert [device.name for device in pool.devices] == ["led-0"]


def test_the_methods_of_the_guide_are_those_of_the_class() -> None:
    from drakit.driverkit import Driver

    told = set(re.findall(r"^\| `(\w+)\(", GUIDE, re.MULTILINE))
    assert told == {"devices", "prepare", "unprepare", "health", "bind"}
    assert all(hasattr(Driver, name) for name in told)
