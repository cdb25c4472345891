"""`drakit top` and the prompt of `drakit selector` on real terminals, of the kinds that people reach over ssh."""

from __future__ import annotations

import signal

import pytest

from tests.builders.terminals import on_terminal
from tests.docs.blocks import ROOT

SAVED = ("-f", str(ROOT / "examples" / "demo-cluster"), "-f", str(ROOT / "docs" / "guides" / "pending-pods.yaml"))
SSH = {"SSH_CONNECTION": "192.0.2.1 50000 192.0.2.2 22", "SSH_TTY": "/dev/pts/0", "LANG": "C.UTF-8", "COLORTERM": ""}
pytestmark = pytest.mark.timeout(600)
TERMS = ("xterm-256color", "screen", "linux", "vt100", "dumb")


@pytest.fixture(scope="module", autouse=True)
def _needs_textual() -> None:
    pytest.importorskip("textual", reason="drakit top needs the extra `top`")


@pytest.mark.parametrize("term", TERMS)
def test_top_is_drawn_hears_keys_and_gives_the_terminal_back(term: str) -> None:
    with on_terminal("top", *SAVED, env={**SSH, "TERM": term}) as terminal:
        shown = terminal.until("large")
        assert "node-a" in shown
        terminal.type("/node-b")
        terminal.until("showing /node-b")
        terminal.type("\x1b")
        terminal.until("showing everything")
        terminal.type("q")
        assert terminal.ended() == 0
    assert "Traceback" not in terminal.text
    # The alternate screen is left, and the cursor is shown again.
    assert terminal.shown.rindex("\x1b[?1049l") > terminal.shown.rindex("\x1b[?1049h")
    assert terminal.shown.rindex("\x1b[?25h") > terminal.shown.rindex("\x1b[?25l")


def test_top_follows_the_size_of_the_terminal() -> None:
    with on_terminal("top", *SAVED, env={**SSH, "TERM": "xterm"}, rows=24, columns=80) as terminal:
        terminal.until("large")
        terminal.resize(50, 160)
        terminal.until("large")
        terminal.type("q")
        assert terminal.ended() == 0


def test_top_without_colours_has_none() -> None:
    with on_terminal("top", *SAVED, env={**SSH, "TERM": "xterm-256color", "NO_COLOR": "1"}) as terminal:
        terminal.until("large")
        terminal.type("q")
        assert terminal.ended() == 0
    assert "large" in terminal.text


@pytest.mark.parametrize("words", [("top", *SAVED), ("selector", *SAVED)])
def test_a_connection_that_breaks_leaves_nothing_behind(words: tuple[str, ...]) -> None:
    with on_terminal(*words, env={**SSH, "TERM": "xterm"}) as terminal:
        terminal.until("large" if words[0] == "top" else "selector> ")
        terminal.hang_up()
        assert terminal.ended() != 0


def test_the_prompt_of_selector_completes_tells_faults_with_a_caret_and_ends() -> None:
    with on_terminal("selector", *SAVED, env={**SSH, "TERM": "xterm", "INPUTRC": "/dev/null"}) as terminal:
        assert "Tab completes names" in terminal.until("selector> ")
        terminal.type("device.dri\t")
        terminal.until("device.driver")
        terminal.type(' == "gpu.example.com"\r')
        assert "devices match" in terminal.until("selector> ")
        terminal.type("device.driver == 1\r")
        fault = terminal.until("selector> ")
        assert "error: line 1, column " in fault
        assert any(set(line.strip(" |.")) == {"^"} for line in fault.splitlines())
        terminal.type("\x1b[A")  # the arrow up: what was typed before
        terminal.until("device.driver == 1")
        terminal.type("\x15:attributes\r")
        assert "model" in terminal.until("selector> ")
        terminal.type("\x04")
        assert terminal.ended() == 0


def test_ctrl_c_at_the_prompt_ends_without_a_traceback() -> None:
    with on_terminal("selector", *SAVED, env={**SSH, "TERM": "xterm"}) as terminal:
        terminal.until("selector> ")
        assert terminal.interrupted() in (130, -signal.SIGINT)
    assert "Traceback" not in terminal.text
