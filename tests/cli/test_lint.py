"""`drakit lint` as it is called: output and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from drakit.cli.commands.lint import lint

ROOT = Path(__file__).parents[2]
GOOD = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {}\n"
WARNING = GOOD.replace("/v1", "/v1beta2")
ERROR = GOOD.replace("gpu", "G_")


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    made.command()(lint)
    return made


def run(app: typer.Typer, tmp_path: Path, text: str, *options: str) -> tuple[int, str, str]:
    file = tmp_path / "it.yaml"
    file.write_text(text)
    result = CliRunner().invoke(app, ["-f", str(file), *options])
    return result.exit_code, result.stdout.replace(str(tmp_path), ""), result.stderr


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (GOOD, (), 0),
        (GOOD, ("--strict",), 0),
        (WARNING, (), 0),
        (WARNING, ("--strict",), 1),
        (ERROR, (), 1),
        ("a: [", (), 2),
        (GOOD, ("-f", "no-such-file.yaml"), 2),
    ],
)
def test_exit_codes(app: typer.Typer, tmp_path: Path, text: str, options: tuple[str, ...], code: int) -> None:
    assert run(app, tmp_path, text, *options)[0] == code


def test_text_has_one_line_per_finding_and_a_summary_beside(app: typer.Typer, tmp_path: Path) -> None:
    _, out, err = run(app, tmp_path, ERROR)
    assert out.startswith("/it.yaml:3:12: error: DeviceClass G_: metadata.name: Invalid value: ")
    assert out.count("\n") == 1
    assert err == "1 object checked: 1 error, 0 warnings\n"


def test_json_has_all_findings_and_counts(app: typer.Typer, tmp_path: Path) -> None:
    _, out, _ = run(app, tmp_path, WARNING, "-o", "json")
    document = json.loads(out)
    assert (document["errors"], document["warnings"], document["checked"]) == (0, 1, 1)
    assert document["findings"] == [
        {
            "severity": "warning",
            "rule": "deprecated-version",
            "source": "/it.yaml",
            "object": "DeviceClass gpu",
            "path": "apiVersion",
            "message": (
                "resource.k8s.io/v1beta2 DeviceClass is deprecated in v1.36+, unavailable in v1.39+; "
                "use resource.k8s.io/v1"
            ),
            "line": 1,
            "column": 1,
        }
    ]


def test_gates_that_are_off_change_the_verdict(app: typer.Typer, tmp_path: Path) -> None:
    text = GOOD.replace("spec: {}", "spec: {extendedResourceName: a.b/c}")
    assert run(app, tmp_path, text)[1] == ""
    assert "[dropped-field]" in run(app, tmp_path, text, "--feature-gates", "DRAExtendedResource=false")[1]


def test_standard_input_is_a_file_too(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["-f", "-"], input=ERROR)
    assert result.exit_code == 1
    assert result.stdout.startswith("standard input:3:12: error: ")


def test_a_folder_without_manifests_is_a_mistake(app: typer.Typer, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["-f", str(tmp_path)])
    assert result.exit_code == 2
    assert "no .yaml, .yml, .json file" in result.stderr


def test_no_example_has_an_error(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["-f", str(ROOT / "examples")])
    assert (result.exit_code, result.stdout.count(" error: ")) == (0, 0)
