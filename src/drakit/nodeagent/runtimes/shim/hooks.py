"""OCI hooks of CDI devices: programs that get the container's state on their stdin."""

from __future__ import annotations

import json
from typing import Any


class HookError(Exception):
    """A hook could not be run, or ended badly; the text names it."""


def run_hooks(launch: dict[str, Any], stages: tuple[str, ...], *, status: str, pid: int = 0) -> None:
    """Stage by stage, each in the order of the document; the first that fails ends it."""
    state = json.dumps({**launch.get("state", {}), "status": status, "pid": pid}).encode()
    hooks = launch.get("hooks") or ()
    for hook in (hook for stage in stages for hook in hooks if hook["stage"] == stage):
        _run(hook, state)


def _run(hook: dict[str, Any], state: bytes) -> None:
    import subprocess  # few containers have hooks, and all pay for what is imported

    # By convention args[0] is the program's name.
    arguments = hook["args"] or [hook["path"]]
    environment = dict(entry.partition("=")[::2] for entry in hook["env"])
    try:
        done = subprocess.run(
            arguments,
            executable=hook["path"],
            env=environment,
            input=state,
            capture_output=True,
            timeout=hook["limit"] or None,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HookError(f"{hook['stage']} hook {hook['path']}: {error}") from None
    if done.returncode:
        text = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise HookError(f"{hook['stage']} hook {hook['path']} exited with {done.returncode}: {text}")
