"""docs/security.md says what limits there are: each stands in the code with that figure, each flag exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from drakit.api.codec import documents
from drakit.api.codec.protobuf import readers
from drakit.api.text.yamltext import MAX_EXPANDED
from drakit.apiserver import Limits, Settings
from drakit.apiserver.admission.criteria.worker import LARGE
from drakit.apiserver.http import asgi, connections, handshakes, protocol, turns
from drakit.apiserver.http.connections import ConnectionLimits
from drakit.apiserver.requests import bodies
from drakit.apiserver.serving.shares import BodyBudget, Lane
from drakit.apiserver.storage import objectstore
from drakit.apiserver.verbs import context, representation
from drakit.base import inputfiles, status
from drakit.cel.library import patterns
from drakit.cli import main
from drakit.cli.main import COMMANDS, application
from drakit.scheduler.config.args import DynamicResourcesArgs
from drakit.scheduler.dynamicresources.state import budgets
from drakit.store import watches

DOCUMENT = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
KIB, MIB = 1024, 1024 * 1024
WORDS = {1: "a", 2: "two", 3: "three", 4: "four"}


def kib(size: float) -> str:
    return f"{size / KIB:g} KiB"


def mib(size: float) -> str:
    return f"{size / MIB:g} MiB"


LIMITS = Limits()
FACTS: dict[str, tuple[str, ...]] = {
    "connections": (
        f"{ConnectionLimits().total:,} in all, {ConnectionLimits().per_address:,} per address",
        "once a minute" if connections._TELL_SECONDS == 60 else "-",
    ),
    "TLS handshakes": (
        f"of one address {handshakes.PER_ADDRESS} under way",
        f"{WORDS[handshakes._PER_TURN]} begin per turn",
    ),
    "TLS handshake, head, body, reader that stalls": (
        f"{connections.HANDSHAKE_SECONDS:g} s, {protocol.HEADER_SECONDS:g} s",
        f"{asgi.BODY_SECONDS:g} s, {protocol.STALL_SECONDS:g} s",
    ),
    "head of a request": (
        f"{protocol.HEADERS:,} fields, {kib(protocol.HEADER_BYTES)}; URL {kib(protocol.URL_BYTES + 1)}",
    ),
    "chunk sizes, chunk extensions and trailers of a body": (mib(protocol.BODY_FRAMING),),
    "body": (
        f"{mib(bodies.MAX_BODY)}; expanded YAML the same" if bodies.MAX_BODY == MAX_EXPANDED else "-",
        f"{bodies.MAX_ELEMENTS:,} elements",
        f"{readers._MOST_PIECES:,} pieces",
    ),
    "what is sent": (f"{kib(protocol.PIECE)} of a connection", f"{WORDS[turns.PER_TURN]} pieces per turn"),
    "readers of one event": (f"{watches._WOKEN_TOGETHER} per turn",),
    "a body that is refused": (
        f"{kib(asgi._REST)} are read",
        f"closed {WORDS[int(protocol.LINGER_SECONDS)]} second after",
    ),
    "selectors": (f"from {kib(LARGE / context._SELECTOR_WEIGHT)} on",),
    "bodies in flight": (f"{mib(LIMITS.bodies)}, one user {mib(BodyBudget(LIMITS.bodies)._per_user)}",),
    "requests in flight": (
        f"{LIMITS.reading} reads, {LIMITS.writing} writes; one user {LIMITS.per_user} at a time",
        "half of all" if Lane(LIMITS.reading, LIMITS.per_user)._per_flow == LIMITS.reading / 2 else "-",
    ),
    "watches": (f"{LIMITS.watches_per_user:,} per user",),
    "stored object": (mib(Settings().largest_object), mib(objectstore.LARGEST)),
    "objects of 128 KiB and more; YAML of 8 KiB and more; tables of more than 512 objects": (
        f"objects of {kib(LARGE)} and more",
        f"YAML of {kib(LARGE / representation._YAML_WEIGHT)} and more",
        f"tables of more than {LARGE // representation._ROW_WEIGHT} objects",
    ),
    "patterns of CEL expressions": (
        f"add up to {patterns._REPETITIONS:,}",
        "a million remembered" if patterns._KEPT == 1_000_000 else "-",
    ),
    "replaced versions, long objects that stay decoded": (
        f"{mib(objectstore.SUPERSEDED_BYTES)}, {mib(objectstore.LONG_BYTES)}",
    ),
    "warnings, unknown fields, errors of an answer": (
        f"{asgi._WARNINGS:,} characters, {documents._MOST_PROBLEMS}, {status.MOST_ERRORS:,}",
    ),
    "one node in a scheduling attempt": (
        f"`filterTimeout`, {DynamicResourcesArgs().filter_timeout:g} s",
        f"{budgets.ON_LOOP * 1000:g} ms of an attempt",
        f"{WORDS[budgets._ROUNDS]} timeouts",
    ),
    "`drakit allocate`": ("60 s",),
    "files that a command reads": (f"{mib(main._MOST_INPUT)}; {inputfiles._PATIENCE / 1000:g} s for a pipe",),
    "kubeconfigs, certificates, keys, tokens, policies, configurations": (
        f"{mib(inputfiles.SETTINGS_BYTES)}; {inputfiles._PATIENCE / 1000:g} s for a pipe",
    ),
}


def rows() -> dict[str, str]:
    """The table of limits: what is limited, and the whole row."""
    table = DOCUMENT.partition("## Limits")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][2:]
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines}


def test_every_row_is_compared_with_the_code() -> None:
    assert set(rows()) == set(FACTS)


@pytest.mark.parametrize("limited", FACTS)
def test_a_limit_has_the_figure_that_the_document_says(limited: str) -> None:
    for fact in FACTS[limited]:
        assert fact in rows()[limited]


def options(*names: str) -> dict[str, Any]:
    """Every flag of some commands, and of those below them, with its default."""
    waiting: list[Any] = [get_command(application([name], list(COMMANDS))) for name in names]
    found: dict[str, Any] = {}
    while waiting:
        command = waiting.pop()
        found |= {flag: each.default for each in command.params for flag in each.opts}
        waiting.extend(getattr(command, "commands", {}).values())
    return found


def test_flags_that_the_document_names_exist_with_its_defaults() -> None:
    there = options(*COMMANDS)
    assert set(re.findall(r"--[a-z][a-z-]+", DOCUMENT)) - set(there) == set()
    assert there["--max-object-bytes"] == objectstore.LARGEST
    assert there["--max-input-bytes"] == main._MOST_INPUT
    assert options("allocate")["--timeout"] == 60
