"""What a project must have for whoever comes next, and that it says what is true."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

import drakit

ROOT = Path(__file__).parents[2]


def load(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


def test_the_workflow_runs_the_checks_on_every_supported_python() -> None:
    job = load(".github/workflows/ci.yml")["jobs"]["check"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    supported = [each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert job["strategy"]["matrix"]["python"] == supported == ["3.11", "3.12", "3.13", "3.14"]
    checks, pictures = job["steps"][-2:]
    assert checks == {"run": ".ci/run", "env": {"DRAKIT_ARTEFACTS": "artefacts"}}
    # What the browser tests saw is kept, above all when they failed.
    assert (pictures["if"], pictures["with"]["path"]) == ("always()", "artefacts/screenshots")
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100


def test_the_forms_for_issues_can_be_filled_in() -> None:
    for name in ("bug", "feature"):
        form = load(f".github/ISSUE_TEMPLATE/{name}.yml")
        assert form["name"]
        assert form["description"]
        assert len({field["id"] for field in form["body"]}) == len(form["body"])


def test_the_changelog_has_a_place_for_what_comes_and_versions_as_they_were_released() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", each) for each in headings[1:])
    assert re.fullmatch(r"\d+\.\d+\.\d+", drakit.__version__)


def test_links_between_documents_lead_somewhere() -> None:
    documents = [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{document.relative_to(ROOT)}: {target}"
        for document in documents
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", document.read_text())
        if not (document.parent / target).exists()
    ]
    assert broken == []


def test_no_test_imports_from_another_test_module() -> None:
    wrong = [
        f"{source.relative_to(ROOT)}: {module}"
        for folder in ("tests", "benchmarks")
        for source in sorted((ROOT / folder).rglob("*.py"))
        for module in re.findall(
            r"^\s*(?:from|import) (tests\.[\w.]*\btest_\w+)", source.read_text(), flags=re.MULTILINE
        )
    ]
    assert wrong == []
