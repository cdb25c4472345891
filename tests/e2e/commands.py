"""Run a command that ends by itself: its exit code and everything that it said."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from tests.e2e.processes import ROOT


def run(arguments: Sequence[str]) -> tuple[int, str]:
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr
