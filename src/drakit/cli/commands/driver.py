"""`drakit driver`: run a driver of a Python module, or begin a new one.

In:  `module:Class`, where the server is and who we are to it, the kubelet's directories.
Out: the driver on its sockets until told to stop, with metrics and health on a port; or the files of a new project.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from prometheus_client import CollectorRegistry

from drakit.apiserver.http.listener import Listener
from drakit.base.errors import Unavailable, UsageError
from drakit.cli.commands import profiles
from drakit.cli.flags import options
from drakit.cli.flags.access import access_of
from drakit.cli.flags.files import explained
from drakit.cli.flags.groups import ReachFlags, with_groups
from drakit.cli.processes.diagnostics import Diagnostics, bind_port, hide_creation_times, url_of
from drakit.cli.processes.logs import log_to_stderr, note_warning
from drakit.client import Access, Client
from drakit.client.transport.http import Http
from drakit.driverkit import Driver, KubeletPlugin, PluginSettings
from drakit.driverkit.entry import stop_signal
from drakit.driverkit.project import Project, write_project
from drakit.drivers import DRIVERS

driver = typer.Typer(help="Run a DRA driver, or begin a new one.", no_args_is_help=True, rich_markup_mode=None)
driver.command("profile", short_help="Show what the driver of a machine publishes.")(profiles.profile)

_PLUGIN_DIR = Path("/var/lib/kubelet/plugins")
_REGISTRY_DIR = Path("/var/lib/kubelet/plugins_registry")
_CDI_DIR = Path("/var/run/cdi")


@driver.command(short_help="Run a driver until SIGTERM.")
@with_groups
def run(
    target: Annotated[str, typer.Argument(metavar="MODULE:CLASS", help="The driver's class.")],
    reach: ReachFlags,
    node_name: Annotated[str, typer.Option(envvar="NODE_NAME", help="The node that this is.")] = "",
    plugin_dir: Annotated[Path, typer.Option(help="The kubelet's directory of plugins.")] = _PLUGIN_DIR,
    registry_dir: Annotated[Path, typer.Option(help="Where the kubelet looks for plugins.")] = _REGISTRY_DIR,
    cdi_dir: Annotated[Path, typer.Option(help="Where the container runtime looks for CDI files.")] = _CDI_DIR,
    pod_uid: Annotated[
        str, typer.Option(envvar="POD_UID", help="Lets an old and a new pod overlap in a rolling update.")
    ] = "",
    remove_slices_on_exit: Annotated[
        bool, typer.Option("--remove-slices-on-exit", help="Publish nothing any more after the end.")
    ] = False,
    profile: Annotated[str, typer.Option(help="The device profile of an example driver: --set profile=NAME.")] = "",
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="An argument of the class; repeatable.")
    ] = None,
    bind_address: options.ShownAddress = "127.0.0.1",
    port: options.ShownPort = 0,
    verbosity: options.Verbosity = 2,
) -> None:
    """Run a driver of a Python class, or an example driver by its short name, until SIGTERM."""
    log_to_stderr(verbosity)
    made = load_driver(target, [*(setting or []), *([f"profile={profile}"] if profile else [])])
    if not node_name:
        raise UsageError("--node-name is needed, or NODE_NAME in the environment")
    settings = PluginSettings(
        node_name=node_name,
        plugin_dir=plugin_dir.absolute(),
        registry_dir=registry_dir.absolute(),
        cdi_dir=cdi_dir.absolute(),
        instance=pod_uid,
        remove_slices_on_exit=remove_slices_on_exit,
    )
    access = access_of(reach)
    asyncio.run(_serve(made, access, settings, bind_port(bind_address, port)))


@driver.command(short_help="Write a new driver's project.")
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the project, such as leds.")],
    driver_name: Annotated[str, typer.Option(help="Of the driver; NAME.example.com by default.")] = "",
    directory: Annotated[Path | None, typer.Option(help="Where to put it; NAME by default.")] = None,
) -> None:
    """Write a new driver's project: a driver that runs, tests that pass, and what a cluster needs."""
    project = Project(name=name, driver=driver_name or f"{name}.example.com")
    place = directory or Path(name)
    with explained("--directory"):
        written = write_project(project, place)
    for path in written:
        typer.echo(path)
    typer.echo(f"\nNext: cd {place} && pytest && drakit driver run {project.module}:{project.class_name} --help")


async def _serve(made: Driver, access: Access, settings: PluginSettings, bound: socket.socket) -> None:
    registry = CollectorRegistry()
    async with Client(Http(access), user_agent=made.name, on_warning=note_warning) as client:
        plugin = KubeletPlugin(made, client, settings, registry=registry)
        hide_creation_times()
        async with Listener(_diagnostics(plugin), bound).running(), plugin.running():
            where = f"{plugin.paths.service}, metrics on {url_of(bound)}/metrics"
            typer.echo(f"drakit driver {made.name}: following {access.server}, listening on {where}")
            await stop_signal()


def _diagnostics(plugin: KubeletPlugin) -> Diagnostics:
    async def registered() -> None:
        if not plugin.registration.registered:
            raise Unavailable(plugin.registration.error or "no kubelet has registered the driver yet")

    async def published() -> None:
        if plugin.publisher.problem:
            raise Unavailable(plugin.publisher.problem)

    return Diagnostics(
        plugin.registry, health={"sockets": plugin.check}, ready={"registration": registered, "slices": published}
    )


def load_driver(target: str, settings: list[str]) -> Driver:
    """The driver that `module:Class` names, made with `NAME=VALUE` arguments. Raise UsageError."""
    module_name, _, class_name = DRIVERS.get(target, target).partition(":")
    if not (module_name and class_name):
        raise UsageError(f"expected MODULE:CLASS, got {target!r}")
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as `python -m` does: the module may stand where we are
    try:
        found = getattr(import_module(module_name), class_name)
    except ImportError as error:
        raise UsageError(f"cannot import {module_name}: {error}") from error
    except AttributeError:
        raise UsageError(f"module {module_name} has no {class_name}") from None
    if not (inspect.isclass(found) and issubclass(found, Driver)):
        raise UsageError(f"{target} is no subclass of drakit.driverkit.Driver")
    return _made(found, target, dict(_pair(each) for each in settings))


def _made(found: type[Driver], target: str, arguments: dict[str, str]) -> Driver:
    if inspect.isabstract(found):
        raise UsageError(f"{target} does not define {', '.join(sorted(found.__abstractmethods__))}")
    try:
        # Checked first: a TypeError from inside the constructor must not look like a wrong flag.
        inspect.signature(found).bind(**arguments)
    except TypeError as error:
        raise UsageError(f"{target}: {error}; use --set NAME=VALUE") from None
    return found(**arguments)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise UsageError(f"--set: expected NAME=VALUE, got {text!r}")
    return name.replace("-", "_"), value
