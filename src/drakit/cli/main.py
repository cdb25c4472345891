"""`drakit COMMAND`: put the commands together, turn errors into messages and exit codes.

Exit codes: 0 done; 1 the answer is no (unsatisfiable, a finding, a case that differs); 2 the input or usage is wrong;
3 something that is needed is not there right now; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

import drakit
from drakit.base.errors import DrakitError, Retryable

COMMANDS = {
    "allocate": "drakit.cli.commands.allocate",
    "apiserver": "drakit.cli.commands.apiserver",
    "conformance": "drakit.cli.commands.conformance",
    "controllers": "drakit.cli.commands.controllers",
    "device-metadata": "drakit.cli.commands.device_metadata",
    "demo": "drakit.cli.commands.demo",
    "devices": "drakit.cli.commands.devices",
    "driver": "drakit.cli.commands.driver",
    "lint": "drakit.cli.commands.lint",
    "node": "drakit.cli.commands.node",
    "scheduler": "drakit.cli.commands.scheduler",
    "up": "drakit.cli.commands.up",
}
"""Name of each command and the module whose function, or group of commands, of that name it is."""

app = typer.Typer(
    name="drakit",
    help="Kubernetes Dynamic Resource Allocation, whole, in Python.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"drakit {drakit.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Kubernetes Dynamic Resource Allocation, whole, in Python."""


def load(arguments: Sequence[str]) -> None:
    """Import the command that is asked for; all of them only when none is, to list them. The version needs none."""
    if list(arguments) == ["--version"]:
        return
    wanted = [each for each in arguments if each in COMMANDS][:1] or list(COMMANDS)
    for name in wanted:
        found = getattr(import_module(COMMANDS[name]), name.replace("-", "_"))
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)


def run() -> None:
    """The entry point: a wrong input is a message and an exit code, never a traceback."""
    # Containers are started by fork and exec; gRPC's handlers for forks are of no use to them, and log each time.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    load(sys.argv[1:])
    try:
        app()
    except DrakitError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(3 if isinstance(error, Retryable) else 2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read our output has seen enough; nothing is left to say, and nowhere to say it.
        sys.stderr.close()
        sys.exit(0)


if __name__ == "__main__":
    run()
