"""Saved objects that a command works on: read, checked as a server would, or refused with every problem."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from drakit.base.gates import FeatureGates
from drakit.cli.flags.files import read_stdin
from drakit.cli.output.progress import tracked
from drakit.lint import problems_of
from drakit.manifests import Manifests, load_manifests


def read_saved(files: Sequence[str], gates: FeatureGates) -> Manifests:
    """Exit with 2 when anything is wrong with the files."""
    manifests = load_manifests(files, stdin=read_stdin, progress=tracked)
    problems = problems_of(manifests, gates)
    for problem in problems:
        typer.echo(f"error: {problem}", err=True)
    if problems:
        raise typer.Exit(2)
    return manifests
