"""Odd files and full disks: one line and an exit code, no traceback, and no waiting for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from drakit.apiserver.auth.certificates import Pair
from drakit.apiserver.http.listener import Security
from drakit.base import inputfiles
from drakit.base.errors import UsageError
from drakit.cli.processes.host import encryption_of, static_tokens
from drakit.client.access.kubeconfig import load_kubeconfig
from drakit.manifests.files import input_limit, read_files


def problem_of(path: Path | str) -> str:
    found = read_files([path])
    assert found.contents == {}
    return str(found.problems[0])


def test_devices_and_names_that_no_file_has_are_refused() -> None:
    assert "it is a device" in problem_of("/dev/zero")
    assert "File name too long" in problem_of("x" * 300)


def test_a_pipe_that_nobody_writes_to_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputfiles, "_PATIENCE", 10)
    os.mkfifo(tmp_path / "pipe.yaml")
    assert "nothing came through the pipe" in problem_of(tmp_path / "pipe.yaml")


def test_what_comes_through_a_pipe_is_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"kind: List\n")
    os.close(writing)
    assert list(read_files([f"/dev/fd/{reading}"]).contents.values()) == [b"kind: List\n"]
    os.close(reading)


def test_input_has_a_limit_that_can_be_raised(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"x" * 60)
    (tmp_path / "b.yaml").write_bytes(b"x" * 60)
    token = input_limit.set(100)
    try:
        found = read_files([tmp_path])
        assert [Path(name).name for name in found.contents] == ["a.yaml"]
        assert "more than 100 bytes" in str(found.problems[0])
    finally:
        input_limit.reset(token)
    assert len(read_files([tmp_path]).contents) == 2


def drakit(*arguments: str, stdout: int) -> tuple[int, str]:
    command = [sys.executable, "-m", "drakit.cli.main", *arguments]
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    return done.returncode, done.stderr


def test_a_full_disk_is_one_line_and_a_closed_pipe_none() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert drakit("lint", "--help", stdout=full) == (3, "error: No space left on device\n")
        code, said = drakit("lint", "--help", stdout=writing)
        assert (code in (0, 1), said) == (True, "")
    finally:
        os.close(full)
        os.close(writing)


def test_files_with_settings_have_a_limit_and_are_no_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputfiles, "SETTINGS_BYTES", 100)
    large = tmp_path / "large"
    large.write_text("#" * 101)
    for path, reason in ((large, "more than 100 bytes"), (Path("/dev/zero"), "it is a device")):
        with pytest.raises(UsageError, match=reason):
            load_kubeconfig([path])
        with pytest.raises(UsageError, match=reason):
            Security(Pair(path, path)).context()
        with pytest.raises(UsageError, match=reason):
            encryption_of(path)
        with pytest.raises(UsageError, match=reason):
            static_tokens(path, "")
