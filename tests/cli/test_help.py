"""Help of every command: it reads well at 80 columns, and flags mean the same everywhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from drakit.cli.main import COMMANDS, application, words

EVERYTHING = list(COMMANDS)
SHARED = {
    "kubeconfig": ("--kubeconfig",),
    "context": ("--context",),
    "namespace": ("-n", "--namespace"),
    "all_namespaces": ("-A", "--all-namespaces"),
    "output": ("-o", "--output"),
    "files": ("-f", "--filename"),
}
"""What kubectl calls it."""


def commands() -> Iterator[tuple[str, Any]]:
    for name in EVERYTHING:
        found: Any = get_command(application([name], EVERYTHING)).commands[name]  # type: ignore[attr-defined]
        yield name, found
        for inner, each in getattr(found, "commands", {}).items():
            yield f"{name} {inner}", each


ALL = dict(commands())


def help_of(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    from typer.testing import CliRunner

    monkeypatch.setenv("COLUMNS", "80")
    parts = name.split()
    shown = CliRunner().invoke(application(parts, EVERYTHING), [*parts, "--help"])
    assert shown.exit_code == 0, shown.output
    return shown.output


@pytest.mark.parametrize("name", ALL)
def test_no_line_is_too_long_and_no_flag_is_cut(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = help_of(name, monkeypatch)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    shown = set(text.replace(",", " ").split())
    for parameter in ALL[name].params:
        assert {each for each in parameter.opts if each.startswith("-")} <= shown
    assert not re.search(r"--[a-z-]+-$", text, re.MULTILINE), "a flag is broken at its hyphen"
    assert not re.search(r"\.\.\.$", text.partition("\n")[2], re.MULTILINE)


@pytest.mark.parametrize("name", ALL)
def test_every_flag_says_what_it_is_for_and_is_called_as_kubectl_calls_it(name: str) -> None:
    for parameter in ALL[name].params:
        assert parameter.help, f"{name} {parameter.opts}"
        assert set(SHARED.get(parameter.name, parameter.opts)) <= set(parameter.opts)


def test_the_list_of_commands_fits_and_imports_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    script = (
        "import sys; from drakit.cli.main import run\ntry: run()\n"
        "finally: print([each for each in sys.modules if each.startswith('drakit.cli.commands')])"
    )
    done = subprocess.run([sys.executable, "-c", script, "--help"], capture_output=True, text=True, check=True)
    listed = re.findall(r"^  ([a-z-]+) {2,}\S", done.stdout.partition("Commands:")[2], re.MULTILINE)
    assert listed == EVERYTHING
    assert "..." not in done.stdout.partition("Options:")[2]
    assert done.stdout.endswith("[]\n")


def test_a_shell_that_completes_gets_flags_and_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def complete(typed: str) -> list[str]:
        environment = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_DRAKIT_COMPLETE": "complete_bash"}
        done = subprocess.run(
            [sys.executable, "-c", "from drakit.cli.main import run; run()"],
            env={**os.environ, **environment}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout.split()

    assert complete("drakit all") == ["allocate"]
    assert complete("drakit up --profile h100") == ["h100-8", "h100-mig"]
    assert words([], {"_X_COMPLETE": "1", "COMP_WORDS": "drakit up --n"}) == ["up", "--n"]
    assert words(["lint"], {"COMP_WORDS": "other"}) == ["lint"]


def test_no_color_is_honoured_on_a_terminal() -> None:
    """Bold is no colour."""

    def shown(**environment: str) -> bytes:
        ours, theirs = pty.openpty()
        command = [sys.executable, "-m", "drakit", "devices", "-f", "examples/demo-cluster"]
        known = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "CI")}
        with subprocess.Popen(command, stdout=theirs, env={**known, "TERM": "xterm-256color", **environment}):
            os.close(theirs)
            data = b""
            try:
                while piece := os.read(ours, 4096):
                    data += piece
            except OSError:
                os.close(ours)
        return data

    assert not re.search(rb"\x1b\[[0-9;]*[34][0-9]m", shown(NO_COLOR="1"))


def test_a_reader_who_has_seen_enough_ends_it_without_a_word() -> None:
    """The pipe is closed before the first byte; the output comes when the program ends, or before."""
    script = 'drakit() { %s -m drakit "$@"; }; drakit devices -f examples/demo-cluster | true; echo ${PIPESTATUS[0]}'
    done = subprocess.run(["bash", "-c", script % sys.executable], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_exit_codes_and_messages_are_those_of_the_conventions() -> None:
    def run(*arguments: str) -> tuple[int, str]:
        done = subprocess.run([sys.executable, "-m", "drakit", *arguments], capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stderr

    assert run("nope")[0] == 2
    assert run("devices", "--nope")[0] == 2
    assert run("devices", "-f", "nowhere.yaml")[0] == 2
    code, said = run("devices", "--master", "http://127.0.0.1:9")
    assert (code, said.startswith("error: ")) == (3, True)
