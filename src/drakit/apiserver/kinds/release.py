"""Which Kubernetes this server behaves like: `/version`."""

from __future__ import annotations

import platform

from drakit import __version__
from drakit.api.exchange import Document, Response
from drakit.api.release import KUBERNETES


def version_document() -> Response:
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    return Response(
        content=Document(
            {
                "major": major,
                "minor": minor,
                "emulationMajor": major,
                "emulationMinor": minor,
                "minCompatibilityMajor": major,
                "minCompatibilityMinor": str(int(minor) - 1),
                "gitVersion": f"{KUBERNETES}+drakit.{__version__}",
                "gitCommit": "",
                "gitTreeState": "clean",
                "buildDate": "1970-01-01T00:00:00Z",
                "goVersion": "",
                "compiler": platform.python_implementation(),
                "platform": f"{platform.system().lower()}/{platform.machine()}",
            }
        )
    )
