"""`drakit COMMAND` and `kubectl dra COMMAND`: put the commands together, turn errors into messages and exit codes.

Exit codes: 0 done; 1 the answer is no (unsatisfiable, a finding, a case that differs); 2 the input or usage is wrong;
3 something that is needed is not there right now; 130 interrupted.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import drakit
from drakit.base.errors import DrakitError, Retryable

COMMANDS = {
    "up": ("drakit.cli.commands.up", "Run a whole cluster in one process."),
    "demo": ("drakit.cli.commands.demo", "Show each capability of DRA on a cluster of its own."),
    "explain": ("drakit.cli.commands.explain", "Why a pod, claim or group waits, and what would help."),
    "devices": ("drakit.cli.commands.devices", "What devices there are, who uses them, what is left."),
    "top": ("drakit.cli.commands.top", "Watch devices, pending pods and events, full screen."),
    "dashboard": ("drakit.cli.commands.dashboard", "Serve the page of a cluster: devices, pending pods, what-if."),
    "whatif": ("drakit.cli.commands.whatif", "What would become of pods if the cluster were otherwise."),
    "selector": ("drakit.cli.commands.selector", "Try a CEL device selector on the devices of a cluster."),
    "allocate": ("drakit.cli.commands.allocate", "Which devices claims would get, or why none."),
    "snapshot": ("drakit.cli.commands.snapshot", "Save what decisions depend on, for a bug report."),
    "lint": ("drakit.cli.commands.lint", "Check manifests without a server."),
    "driver": ("drakit.cli.commands.driver", "Run a DRA driver, or begin a new one."),
    "conformance": ("drakit.cli.commands.conformance", "Judge a DRA driver over its real sockets."),
    "device-metadata": ("drakit.cli.commands.device_metadata", "Show the devices of this container."),
    "apiserver": ("drakit.cli.commands.apiserver", "Run the API server alone."),
    "controllers": ("drakit.cli.commands.controllers", "Run the controllers for any API server."),
    "scheduler": ("drakit.cli.commands.scheduler", "Run the scheduler for any API server."),
    "store": ("drakit.cli.commands.store", "Check and mend the database of a stopped server."),
    "node": ("drakit.cli.commands.node", "Run pods of any API server on this machine."),
}
"""Name of each command, the module whose function or group of commands of that name it is, and what it is for."""

PLUGIN = ("explain", "devices", "top", "dashboard", "selector", "whatif", "snapshot", "allocate", "lint")
"""What `kubectl dra` offers: all that one does with a cluster that is there."""

_TEXT = "Kubernetes Dynamic Resource Allocation, whole, in Python."
_MOST_INPUT = 256 * 1024 * 1024
_SETTINGS = {"help_option_names": ["-h", "--help"]}


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"drakit {drakit.__version__}")
        raise typer.Exit


def root(
    version: Annotated[  # noqa: ARG001 - its callback shows it
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    max_input_bytes: Annotated[int, typer.Option(min=1, help="How much a command reads from files.")] = _MOST_INPUT,
) -> None:
    """All commands together."""
    if max_input_bytes != _MOST_INPUT:
        from drakit.manifests.files import input_limit

        input_limit.set(max_input_bytes)


def application(arguments: Sequence[str], names: Sequence[str], *, title: str = "drakit") -> typer.Typer:
    """The command that is asked for, with its flags; all others by name and purpose, without importing them."""
    app = typer.Typer(
        name=title,
        help=_TEXT,
        no_args_is_help=True,
        # kubectl has a completion of its own for plugins.
        add_completion=title != "kubectl dra",
        pretty_exceptions_enable=False,
        # Plain text: a table would cut the names of flags in a terminal of 80 columns.
        rich_markup_mode=None,
        context_settings=_SETTINGS,
    )
    app.callback()(root)
    # Only the module of this command is imported, so that help and completion are quick.
    wanted = next((each for each in arguments if each in names), "")
    for name in names:
        module, purpose = COMMANDS[name]
        if name != wanted:
            app.command(name, short_help=purpose)(_unloaded)
            continue
        found = getattr(import_module(module), name.replace("-", "_"))
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name, short_help=purpose)
        else:
            app.command(name, short_help=purpose)(found)
    return app


def _unloaded() -> None:
    """Stands for a command that nobody has asked for."""


def words(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """What was typed; a shell that completes tells it in the environment."""
    typed = environment.get("COMP_WORDS") or environment.get("_TYPER_COMPLETE_ARGS")
    completing = any(name.endswith("_COMPLETE") for name in environment)
    return typed.split()[1:] if completing and typed else list(arguments)


def run() -> None:
    """The entry point of `drakit`."""
    _run(list(COMMANDS), "drakit")


def run_plugin() -> None:
    """The entry point of `kubectl-dra`, which kubectl finds on PATH and runs for `kubectl dra`."""
    _run(PLUGIN, "kubectl dra")


def complete_plugin() -> None:
    """The entry point of `kubectl_complete-dra`, which kubectl asks for completions: lines, and then a directive.

    The last argument is the word that is being typed. Directive 4 is: offer no files.
    """
    typed = shlex.join(["kubectl-dra", *sys.argv[1:-1]]) + f" {sys.argv[-1]}" if len(sys.argv) > 1 else "kubectl-dra "
    os.environ.update(COMP_WORDS=typed, COMP_CWORD=str(len(sys.argv) - 1), _KUBECTL_DRA_COMPLETE="complete_bash")
    try:
        _run(PLUGIN, "kubectl-dra")
    finally:
        sys.stdout.write("\n:4\n")


def _run(names: Sequence[str], title: str) -> None:
    """A wrong input is a message and an exit code, never a traceback."""
    # Containers are started by fork and exec; gRPC's handlers for forks are of no use to them, and log each time.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    try:
        try:
            application(words(sys.argv[1:], os.environ), names, title=title)(prog_name=title)
        finally:
            # Here, and not when the interpreter ends: a full disk is told in one line.
            sys.stdout.flush()
    except DrakitError as error:
        typer.echo(f"error: {error}", err=True)
        # Retryable means that the same input may succeed later: something was not there.
        sys.exit(3 if isinstance(error, Retryable) else 2)
    except KeyboardInterrupt:
        sys.exit(130)
    # `drakit devices | head` is no failure.
    except BrokenPipeError:
        sys.exit(0)
    except SystemExit as ended:
        # typer makes 1 of a closed pipe, before we see it: but nobody has said no.
        if isinstance(ended.__context__, BrokenPipeError):
            sys.exit(0)
        raise
    except OSError as error:
        # What was to be written has nowhere to go; the interpreter would try once more.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
        typer.echo(f"error: {error.strerror or error}", err=True)
        sys.exit(3)
    finally:
        _say_the_rest()


def _say_the_rest() -> None:
    """Flush stdout. When the reader has gone (`| head`), drop the rest without a message."""
    try:
        sys.stdout.flush()
    except (BrokenPipeError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    run()
