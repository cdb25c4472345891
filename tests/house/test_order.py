"""The inner order of the large rooms: a part imports only parts to its right.

A part is a folder or a module of the room. `→` separates layers; parts of one layer, separated by commas, do not import
each other. The front (`__init__.py`) stands before all, unless the line places it. `docs/architecture.md` has the
same lines.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "drakit"
FRONT = "front"

ORDER = {
    "apiserver": "serving → http, openapi, verbs → admission, nodes → auth, tables → requests, strategies → storage → patching → kinds, metrics → failures",  # noqa: E501
    "apiserver/admission": "standard, registration_rules, claimstatus → plugins, policies, webhooks, compilation → rules → criteria → chain",  # noqa: E501
    "apiserver/auth": "tokens, roles, impersonation → identities → nodes → rbac → authentication, audit, certificates → auditpolicy, authorization, users",  # noqa: E501
    "api": "podclaims, codec, exchange, podstreams, templateclaims → requests, versions, registry, schemas → neighbours → kind → footprint, release → objects → text",  # noqa: E501
    "cel": "trace → program → generation, stack → evaluation → cost → library → checking, operators → syntax → values → errors",  # noqa: E501
    "cli": "main → commands → processes → flags → output",
    "client": "accounts, events → correlation, front → subresources → client → transport, watch, discovery, queries → access, decoder, failures, keys, patches, resources, verbosity",  # noqa: E501
    "controllers": "composition → budgets, certificates, cronjobs, daemonsets, deployments → jobs, nodes, podgroups, poolstatus, quotas, replicasets, serviceaccounts → claims, eviction, garbage → context → authority, disruption, intorpercent, templatehash, tolerations",  # noqa: E501
    "allocator": "allocation → results → search → inventory",
    "allocator/inventory": "counts, devicetaints → inventory → ledger, nodes, taintrules, wideviews → pools → contents, tables → selectors, usage → shapes, attributes, capacity, deadlines",  # noqa: E501
    "allocator/results": "messages → explanation, outcomes → remedies, builder → reasons",
    "allocator/search": "cache → solver → search → bounds, checks → state, symmetry → occupancy, options, spare, reader → answer, layouts → traits → plans → constraints",  # noqa: E501
    "scheduler": "scheduler, rehearsal, trials → eventhandlers, gangs, preemption, state → cycles, plugins → dynamicresources, queue → cache, metrics, podgroups, writers → framework → config",  # noqa: E501
    "scheduler/dynamicresources": "plugin, sentences → hints, explanation → extended → points → nodeallocatable → state",  # noqa: E501
    "nodeagent": "agent → server, settings → node, podresources → pods → claims, devices → plugins → containers → metrics, runtimes → files",  # noqa: E501
    "nodeagent/containers": "config, hooks, logrotation, probes, volumes → environment, handlers, hostpaths, limits, mounts, projections → backoff, deadlines, expansion, fieldrefs, grpchealth, payloads, sources → documents, failures",  # noqa: E501
    "nodeagent/runtimes": "cri, crun, process, simulated → supervised → behaviours, bytepipes, cdi, cgroups, changes, forwards, lastwords → contract, shim",  # noqa: E501
    "driverkit": "entry, project → plugin → serving, slices → calls → conditions, driver, state → claims, health, pools → cdi, config, metadata, sysfs",  # noqa: E501
    "driverkit/calls": "binder, sweep → lifecycle → answers, artifacts, meter, reader, statuses → inventory",
    "simulate": "__main__ → runlog, shrink, transcripts, workers → runs → faults, users → world → cluster, network, rules → machines, processes, registries, troubles → disks, hardware, links, workload → loops",  # noqa: E501
    "validation": "rules, warnings → disabled → cluster, resource → pods → context, fields",
}

PURE = ("cel", "selectors", "validation", "allocator")
EFFECTS = {
    *("asyncio", "concurrent", "http", "io", "logging", "multiprocessing", "os", "pathlib", "random", "secrets"),
    *("select", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "time", "uuid"),
    *("aiohttp", "httpx", "prometheus_client", "drakit.base.clock", "urllib.request"),
}
"""Modules that read a clock, do I/O or make random values. `threading` is none: it gives an expression its stack."""
EFFECTFUL_CALLS = {"open", "input", "print", "now", "utcnow", "today"}


def layers(room: str) -> dict[str, int]:
    """Each part of a room with the number of its layer."""
    places = {part: at for at, layer in enumerate(ORDER[room].split(" → ")) for part in layer.split(", ")}
    return {FRONT: -1, **places}


def parts(room: str) -> set[str]:
    found = (SOURCE / room).iterdir()
    return {each.stem for each in found if each.suffix == ".py" or any(each.glob("*.py"))} - {"__init__"}


def imported(tree: ast.Module) -> Iterator[str]:
    """Every module or name that a file imports, with its full path; inside functions and type-checking blocks too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def edges(room: str) -> Iterator[tuple[str, str, str]]:
    """File, its part, and a part of the same room that it imports."""
    known, prefix = parts(room), ("drakit", *room.split("/"))
    for source in sorted((SOURCE / room).rglob("*.py")):
        inside = source.relative_to(SOURCE / room).parts[0].removesuffix(".py")
        part = FRONT if inside == "__init__" else inside
        for name in imported(ast.parse(source.read_text())):
            path = tuple(name.split("."))
            if path[: len(prefix)] == prefix and len(path) > len(prefix):
                target = path[len(prefix)]
                yield str(source.relative_to(ROOT)), part, target if target in known else FRONT


@pytest.mark.parametrize("room", ORDER)
def test_each_part_imports_only_what_stands_to_its_right(room: str) -> None:
    place = layers(room)
    wrong = [
        f"{source}: {part} -> {target}"
        for source, part, target in edges(room)
        if part != target and {part, target} <= place.keys() and place[part] >= place[target]
    ]
    assert wrong == []


@pytest.mark.parametrize("room", ORDER)
def test_each_part_has_a_place(room: str) -> None:
    assert parts(room) | {FRONT} == set(layers(room))


@pytest.mark.parametrize("room", [each for each in ORDER if "/" not in each])
def test_a_list_of_more_than_twenty_modules_has_folders(room: str) -> None:
    for folder in (SOURCE / room, *(SOURCE / room).rglob("*/")):
        assert len(list(folder.glob("*.py"))) <= 21, folder


def test_the_document_has_the_same_lines() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text.partition("## Inner order\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    assert {room.strip("`"): order for room, order in rows} == ORDER


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_use_no_clock_no_input_or_output_and_no_randomness(room: str) -> None:
    found = [
        f"{source.relative_to(ROOT)}: {what}"
        for source in sorted((SOURCE / room).rglob("*.py"))
        for what in effects(ast.parse(source.read_text()))
    ]
    assert found == []


def effects(tree: ast.Module) -> Iterator[str]:
    for name in imported(tree):
        steps = name.split(".")
        yield from (name for length in range(1, len(steps) + 1) if ".".join(steps[:length]) in EFFECTS)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            name = (
                called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
            )
            if name in EFFECTFUL_CALLS:
                yield f"{name}()"


def test_an_effect_would_be_seen() -> None:
    text = "import time\nfrom drakit.base.clock import Clock\ndef f():\n    import random\n    return datetime.now()\n"
    assert list(effects(ast.parse(text))) == ["time", "drakit.base.clock.Clock", "random", "now()"]
