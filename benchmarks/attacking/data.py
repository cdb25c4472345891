"""Damage: what is on the disk is not what was written, or cannot be written; and odd files for commands."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.attacking.scene import MAPS, Attack, Scene, started

_LOG = ("--audit-log-path", "/dev/full")


async def with_stopped(scene: Scene) -> Path:
    """The data directory of a server that has stopped after somebody has written to it."""
    directory = Path(tempfile.mkdtemp(dir=scene.directory))
    with started(directory, ("apiserver",)) as (process, url):
        token = (directory / "admin.token").read_text()
        async with Scene(url, token, process, directory).session(token) as admin:
            for number in range(200):
                await admin.send("POST", MAPS, json={"metadata": {"name": f"m{number}"}, "data": {"a": "x" * 1000}})
    return directory


async def drakit(*arguments: str) -> tuple[int, str]:
    """Exit code and the last line of what was said."""
    line = [sys.executable, "-m", "drakit.cli.main", *arguments]
    done = await asyncio.to_thread(
        lambda: subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
    )
    said = (done.stderr + done.stdout).strip().splitlines()
    return done.returncode, "a traceback" if "Traceback" in done.stderr else said[-1] if said else ""


async def changed_value(scene: Scene) -> str:
    """One byte of a value changes on the disk."""
    copy = await with_stopped(scene)
    database = sqlite3.connect(copy / "drakit.db")
    with database:
        database.execute("UPDATE log SET value = CAST(replace(value, 'xxx', 'xyx') AS BLOB) WHERE key LIKE '%/m7'")
    database.close()
    serving = await drakit("apiserver", "--insecure", "--port", "0", "--data-dir", str(copy))
    verified = await drakit("store", "verify", "--data-dir", str(copy))
    removed = await drakit("store", "remove", "--data-dir", str(copy), "/registry/core/configmaps/default/m7")
    again = await drakit("store", "verify", "--data-dir", str(copy))
    return f"server exits {serving[0]}, verify {verified[0]}, remove {removed[0]}, verify {again[0]}"


async def cut_to_nothing(scene: Scene) -> str:
    """The database has no bytes any more."""
    copy = await with_stopped(scene)
    (copy / "drakit.db").write_bytes(b"")
    code, said = await drakit("apiserver", "--insecure", "--port", "0", "--data-dir", str(copy))
    return f"exit code {code}: {said.replace(str(copy), '…')[:80]}"


async def full_disk(scene: Scene) -> str:
    """The files of the server may not grow beyond 4 MB; then they may."""
    async with scene.session() as mob, scene.session(scene.admin) as admin:

        async def write(name: str) -> int:
            data = {"metadata": {"name": name}, "data": {"a": "x" * 100_000}}
            return (await mob.send("POST", MAPS, json=data))[0]

        resource.prlimit(scene.process.pid, resource.RLIMIT_FSIZE, (4_000_000, resource.RLIM_INFINITY))
        codes = Counter([await write(f"m{number}") for number in range(100)])
        ready, _ = await admin.send("GET", "/readyz")
        resource.prlimit(scene.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        later = await write("later"), (await admin.send("GET", "/readyz"))[0]
    return f"{codes[201]} × 201, {codes[503]} × 503; /readyz {ready}; with room again {later[0]}, /readyz {later[1]}"


async def full_audit_disk(scene: Scene) -> str:
    """Every audit line is lost."""
    async with scene.session(scene.admin) as admin:
        for _ in range(500):
            await admin.send("GET", MAPS)
        _, page = await admin.send("GET", "/metrics")
    lines = [line for line in page.decode().splitlines() if line.startswith("apiserver_audit_error_total")]
    return lines[0] if lines else "nobody knows"


async def restarted(scene: Scene) -> str:
    """The server starts again with the same data."""
    copy = await with_stopped(scene)
    before = (copy / "admin.token").read_text()
    with started(copy, ("apiserver",)):
        same = (copy / "admin.token").read_text() == before
    return "the token is the same" if same else "another token"


async def odd_files(scene: Scene) -> str:
    """A pipe that nobody writes to, a device, a long name."""
    pipe = scene.directory / "pipe.yaml"
    os.mkfifo(pipe)
    found = [await drakit("lint", "-f", str(each)) for each in (pipe, "/dev/zero", "x" * 300)]
    return "exit codes " + ", ".join(str(code) for code, _ in found) + f"; {found[1][1][:60]}"


ATTACKS = (
    Attack("a value changes on the disk", "served as it is", changed_value),
    Attack("the database is cut to nothing", "an empty cluster", cut_to_nothing),
    Attack("the disk is full", "/readyz is ok, nothing is logged", full_disk),
    Attack(
        "the disk of the audit log is full", "lost, and nobody knows", full_audit_disk, command=("apiserver", *_LOG)
    ),
    Attack("a restart with --insecure", "another token", restarted),
    Attack("pipes, devices and names that no file has", "a hang, tracebacks", odd_files),
)
