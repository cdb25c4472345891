"""kubectl, as its users run it: with a kubeconfig and a home of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

KUBECTL = shutil.which("kubectl")


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
