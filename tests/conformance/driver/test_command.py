"""`drakit conformance`: processes of their own, reports, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import typer
import yaml
from typer.testing import CliRunner

from drakit.base.errors import Terminal
from drakit.cli.commands import conformance as command
from drakit.conformance import RULES
from tests.conformance.driver.plaindriver import NAME

ROOT = Path(__file__).parents[3]
DRIVER = (sys.executable, "-m", "tests.conformance.driver.plaindriver")
QUICK = ("--settle", "0.1", "--slow", "0.1", "--repair-timeout", "20")


APP = typer.Typer()
APP.command()(command.conformance)


def conformance(*arguments: str) -> subprocess.CompletedProcess[str]:
    started = [sys.executable, "-m", "drakit", "conformance", *arguments]
    return subprocess.run(started, capture_output=True, text=True, check=False, timeout=110, cwd=ROOT)


def rules(*names: str) -> list[str]:
    return [argument for name in names for argument in ("--rule", name)]


def test_a_process_that_keeps_the_rules_passes(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    chosen = rules("registration", "prepare", "restart", "stop", "slices-repaired", "slices-removed-on-request")
    done = conformance(
        *QUICK, *chosen, "--removal-arguments=--remove", "--junit", str(report), "-o", "json", "--", *DRIVER
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["driver"] == NAME
    assert found["counts"] == {"pass": 6, "fail": 0, "skip": 0}
    suite = ElementTree.parse(report).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("6", "0")
    assert suite[0].get("classname") == NAME


def test_a_process_that_breaks_a_rule_is_told_which_and_why(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    chosen = rules("registration", "prepare", "reboot")
    done = conformance(*QUICK, *chosen, "--junit", str(report), "-o", "yaml", "--", *DRIVER, "--flaw", "reboot")
    assert done.returncode == 1, done.stdout + done.stderr
    failed = [each for each in yaml.safe_load(done.stdout)["results"] if each["verdict"] == "fail"]
    assert [each["rule"] for each in failed] == ["reboot"]
    assert failed[0]["reason"].startswith(f"no file in the CDI directory has {NAME}/device=")
    failure = ElementTree.parse(report).find(".//testcase[@name='reboot']/failure")
    assert failure is not None
    assert failure.get("message") == failed[0]["reason"]


def test_a_driver_that_ends_at_once_is_quoted() -> None:
    done = conformance(*rules("registration"), "--", "sh", "-c", "echo no devices here; exit 3")
    assert done.returncode == 1
    assert "the driver ended" in done.stdout
    assert "no devices here" in done.stdout


def test_rules_are_listed_with_the_reason_for_each() -> None:
    done = conformance("--list-rules")
    assert done.returncode == 0
    assert all(each.id in done.stdout and each.why in done.stdout for each in RULES)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "say what starts the driver"),
        (("--rule", "no-such-rule", "--", "true"), "there is no rule 'no-such-rule'"),
        (("--", "no-such-program"), "cannot start no-such-program"),
        (("--kubeconfig", "nowhere.yaml", "--", "true"), "nowhere.yaml"),
        (("--manifest", "nowhere.yaml", "--", "true"), "nowhere.yaml"),
        (("--parameters", "README.md", "--", "true"), "README.md"),
        (("--driver-log", "README.md/x", "--", "true"), "--driver-log"),
    ],
)
def test_a_wrong_flag_is_named(arguments: tuple[str, ...], said: str) -> None:
    answer = CliRunner().invoke(APP, arguments)
    assert isinstance(answer.exception, Terminal)
    assert said in str(answer.exception)


def test_a_wrong_flag_is_a_message_and_no_traceback() -> None:
    done = conformance("--rule", "no-such-rule", "--", "true")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


def test_a_cluster_that_is_away_has_a_code_of_its_own(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "away.yaml"
    kubeconfig.write_text(
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n"
    )
    done = conformance("--kubeconfig", str(kubeconfig), "--", "true")
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)
