"""Credentials renew themselves: files are read again, programs run again."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from drakit.base.clock import FakeClock
from drakit.base.errors import Unavailable
from drakit.client import Certificate, Files
from drakit.client.access.execplugin import ExecCommand, ExecPlugin
from tests.client.servers import on_loop

PLUGIN = """
import json, os, pathlib, sys
runs = pathlib.Path(sys.argv[1])
count = int(runs.read_text()) + 1 if runs.exists() else 1
runs.write_text(str(count))
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
answer = json.loads(os.environ["ANSWER"])
answer.setdefault("status", {})["token"] = f"token-{count}-{info['spec']['interactive']}"
print(json.dumps(answer))
"""
VERSION = "client.authentication.k8s.io/v1"


def plugin(tmp_path: Path, clock: FakeClock, **status: Any) -> ExecPlugin:
    script = tmp_path / "plugin.py"
    script.write_text(PLUGIN)
    answer = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status}
    return ExecPlugin(
        ExecCommand(
            command=sys.executable,
            arguments=(str(script), str(tmp_path / "runs")),
            environment={"ANSWER": json.dumps(answer)},
            source="config: users[0].user.exec",
        ),
        clock,
    )


@on_loop
async def test_a_token_file_is_read_again_after_a_minute_or_a_refusal(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "token"
    path.write_text("one")
    credentials = Files(clock, token=path)
    assert await credentials.headers() == {"authorization": "Bearer one"}
    path.write_text("two")
    clock.advance(59)
    assert await credentials.headers() == {"authorization": "Bearer one"}
    clock.advance(1)
    assert await credentials.headers() == {"authorization": "Bearer two"}
    path.write_text("three")
    assert credentials.refused()
    assert await credentials.headers() == {"authorization": "Bearer three"}


@on_loop
async def test_a_token_file_that_is_gone_for_a_moment_is_bridged(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "token"
    credentials = Files(clock, token=path)
    with pytest.raises(Unavailable, match="cannot be read"):
        await credentials.headers()
    path.write_text("one")
    assert await credentials.headers() == {"authorization": "Bearer one"}
    path.unlink()
    clock.advance(120)
    assert await credentials.headers() == {"authorization": "Bearer one"}


@on_loop
async def test_a_token_file_that_is_empty_for_a_moment_is_bridged(tmp_path: Path) -> None:
    clock, path = FakeClock(), tmp_path / "token"
    path.write_text("\n")
    credentials = Files(clock, token=path)
    with pytest.raises(Unavailable, match="there is no token in it"):
        await credentials.headers()
    path.write_text("one")
    assert await credentials.headers() == {"authorization": "Bearer one"}
    path.write_text("")
    clock.advance(120)
    assert await credentials.headers() == {"authorization": "Bearer one"}


@on_loop
async def test_a_certificate_stays_the_same_object_until_its_file_changes() -> None:
    clock = FakeClock()
    content = [b"A"]
    credentials = Files(clock, certificate=lambda: Certificate(content[0], b"K"))
    first = await credentials.certificate()
    clock.advance(61)
    assert await credentials.certificate() is first
    content[0] = b"B"
    clock.advance(61)
    assert await credentials.certificate() == Certificate(b"B", b"K")


@on_loop
async def test_a_program_runs_once_until_its_credential_expires(tmp_path: Path) -> None:
    clock = FakeClock()
    credentials = plugin(tmp_path, clock, expirationTimestamp="2026-01-01T01:00:00Z")
    for _ in range(3):
        assert await credentials.headers() == {"authorization": "Bearer token-1-False"}
    clock.advance(3599)
    assert await credentials.headers() == {"authorization": "Bearer token-1-False"}
    clock.advance(1)
    assert await credentials.headers() == {"authorization": "Bearer token-2-False"}
    assert credentials.refused()


@on_loop
async def test_a_program_runs_again_when_the_server_does_not_believe_it(tmp_path: Path) -> None:
    credentials = plugin(tmp_path, FakeClock(), clientCertificateData="C", clientKeyData="K")
    assert await credentials.certificate() == Certificate(b"C", b"K")
    assert credentials.refused()
    assert await credentials.headers() == {"authorization": "Bearer token-2-False"}


def says(version: str = VERSION, **status: str) -> str:
    """A program that answers so."""
    return f"print({json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': status})!r})"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("print('hello')", "its answer is no ExecCredential"),
        ("import sys; sys.exit('log in first')", "exit code 1: log in first"),
        (says(), "neither a token nor"),
        (says(clientKeyData="k"), "a key without a certificate"),
        (says("v0", token="t"), "its answer is v0"),
    ],
)
@on_loop
async def test_a_program_that_fails_is_named_with_its_place(script: str, words: str) -> None:
    program = ExecCommand(command=sys.executable, arguments=("-c", script), source="config: users[0].user.exec")
    with pytest.raises(Unavailable, match=words) as caught:
        await ExecPlugin(program, FakeClock()).headers()
    assert "config: users[0].user.exec" in str(caught.value)


@pytest.mark.parametrize("script", ["sleep 600", "sleep 600 & sleep 600", "sleep 600 & echo done", "yes"])
@on_loop
async def test_a_program_that_hangs_is_ended_with_all_that_it_has_started(script: str) -> None:
    program = ExecCommand(command="sh", arguments=("-c", script), environment=dict(os.environ))
    with pytest.raises(Unavailable, match=r"sh: no answer within 0\.2 s"):
        async with asyncio.timeout(30):
            await ExecPlugin(program, FakeClock(), seconds=0.2).headers()


@on_loop
async def test_a_program_with_a_name_that_no_file_can_have_is_named() -> None:
    with pytest.raises(Unavailable, match="embedded null byte"):
        await ExecPlugin(ExecCommand(command="a\0b"), FakeClock()).headers()


@on_loop
async def test_a_program_that_is_not_there_comes_with_its_hint() -> None:
    program = ExecCommand(command="no-such-program-here", install_hint="install it from somewhere")
    with pytest.raises(Unavailable, match=r"(?s)No such file.*install it from somewhere"):
        await ExecPlugin(program, FakeClock()).headers()
