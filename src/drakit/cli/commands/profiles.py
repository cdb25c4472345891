"""`drakit driver profile`: what drivers of real hardware publish, without the hardware.

In:  the name of a device profile, or a file with one; names of nodes.
Out: a table of profiles; or one of them as manifests: a Node and its slices for each name, the classes, and claims that
     make sense with them. `drakit driver profile a100-mig | drakit allocate -f -` tries them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from drakit.api import Node, ObjectMeta, to_wire
from drakit.api.text.yamldump import dump_yaml
from drakit.base.structs import Model
from drakit.cli.flags.completion import complete_profiles
from drakit.cli.output.tables import print_table
from drakit.drivers import DeviceProfile, load_profile, profile_names, profile_slices


def profile(
    name: Annotated[
        str,
        typer.Argument(
            help="A profile, or a file with one; all are listed without it.", autocompletion=complete_profiles
        ),
    ] = "",
    node_name: Annotated[list[str] | None, typer.Option(help="A node of this kind; may be repeated.")] = None,
    claims: Annotated[bool, typer.Option("--claims/--no-claims", help="Whether to show example claims.")] = True,
) -> None:
    """Show what the driver of a kind of machine publishes, with classes and claims to try."""
    if not name:
        rows = [(each, load_profile(each).driver, load_profile(each).description) for each in profile_names()]
        print_table(("profile", "driver", "description"), rows)
        return
    found = load_profile(name)
    documents = [dump_yaml(to_wire(each)) for each in _objects(found, node_name or ["node-1"], claims=claims)]
    sys.stdout.write("---\n".join(documents))


def _objects(found: DeviceProfile, nodes: list[str], *, claims: bool) -> Iterator[Model]:
    for name in nodes:
        yield Node(metadata=ObjectMeta(name=name, labels=found.node_labels))
        yield from profile_slices(found, name)
    yield from found.device_classes()
    yield from found.example_claims() if claims else ()
