"""kubectl, as its users run it: with a kubeconfig and a home of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

KUBECTL = shutil.which("kubectl")


def _client_version() -> tuple[int, int]:
    if KUBECTL is None:
        return (0, 0)
    told = subprocess.run([KUBECTL, "version", "--client", "-o", "json"], capture_output=True, text=True, check=True)
    version = json.loads(told.stdout)["clientVersion"]
    return int(version["major"]), int(re.sub(r"\D.*", "", version["minor"]))


OLD = _client_version() < (1, 27)
"""Too old for the commands and flags that came later. It validates by OpenAPI v2, as newer ones by the server."""
modern = pytest.mark.skipif(OLD, reason="needs kubectl 1.27 or newer")


class Kubectl:
    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._environment = {
            "KUBECONFIG": str(kubeconfig), "HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"
        }  # fmt: skip

    def run(self, *arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [KUBECTL or "kubectl", *arguments],
            input=stdin,
            env={**self._environment, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> str:
        """What it prints; it must succeed."""
        done = self.run(*arguments, stdin=stdin, **environment)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def refused(self, *arguments: str, stdin: str = "") -> str:
        """What it complains; it must fail."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)} succeeded: {done.stdout}"
        return done.stderr

    def object(self, *arguments: str) -> Any:
        return json.loads(self("get", *arguments, "-o", "json"))

    def until(self, line: str, *arguments: str) -> list[str]:
        """Start it, read its output until a line that contains `line`, stop it."""
        with subprocess.Popen(
            [KUBECTL or "kubectl", *arguments],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            lines: list[str] = []
            for text in process.stdout or ():
                lines.append(text.rstrip("\n"))
                if line in text:
                    break
            process.terminate()
            return lines
