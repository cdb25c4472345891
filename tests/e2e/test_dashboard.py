"""The dashboard as its users start it: with `drakit up`, and alone before a server."""

from __future__ import annotations

import re
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from drakit.drivers import profile_names
from tests.e2e.commands import run
from tests.e2e.processes import ROOT, Running, apiserver, command

_SHOWS = re.compile(r"drakit dashboard: (\S+) shows (\S+)\n")
_TOKEN = re.compile(r"login token.*: (\S+)\n")


def ask(url: str, token: str = "", context: ssl.SSLContext | None = None) -> bytes:
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=30, context=context) as answer:
        found: bytes = answer.read()
        return found


def state(url: str, token: str, context: ssl.SSLContext | None = None) -> Any:
    return msgspec.json.decode(ask(f"{url}/api/state", token, context))


@contextmanager
def dashboard(kubeconfig: Path, *arguments: str) -> Iterator[tuple[str, str]]:
    """The address and the login token of a dashboard that ends in good order."""
    words = [sys.executable, "-m", "drakit", "dashboard", "--port", "0", "--kubeconfig", str(kubeconfig), *arguments]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            shown, token = _SHOWS.search(process.stdout.readline()), _TOKEN.search(process.stdout.readline())
            assert shown is not None
            assert token is not None
            yield shown[1], token[1]
        finally:
            process.terminate()
            assert process.wait(timeout=20) == 0


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    data = tmp_path_factory.mktemp("up")
    with apiserver("--data-dir", str(data), "--nodes", "0", name="up") as running:
        yield running


def test_drakit_up_serves_the_page_and_its_token_opens_it(up: Running) -> None:
    directory = up.kubeconfig.parent
    context = ssl.create_default_context(cafile=directory / "pki" / "ca.crt")
    token = (directory / "dashboard.token").read_text().strip()
    assert (directory / "dashboard.token").stat().st_mode & 0o077 == 0
    assert b"<title>drakit</title>" in ask(f"{up.url}/dashboard", context=context)
    assert state(f"{up.url}/dashboard", token, context) == {
        "user": "kubernetes-admin", "forbidden": [], "allowChanges": False, "templates": list(profile_names()),
    }  # fmt: skip
    with pytest.raises(urllib.error.HTTPError, match="401"):
        ask(f"{up.url}/dashboard/api/state", context=context)


def test_drakit_dashboard_shows_any_server_with_the_kubeconfig_or_a_token(up: Running) -> None:
    with dashboard(up.kubeconfig, "--allow-changes") as (url, token):
        assert state(url, token) == {
            "user": "kubernetes-admin", "forbidden": [], "allowChanges": True, "templates": list(profile_names()),
        }  # fmt: skip
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask(f"{url}/api/pods", "somebody-else")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ask(url.replace("/dashboard", "/api/v1/pods"), token)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--bind-address", "0.0.0.0"), 2, "loopback addresses only"),
        (("--kubeconfig", "nowhere"), 2, "nowhere"),
        (("--nope",), 2, "--nope"),
    ],
)
def test_what_cannot_be_served_is_told_in_a_line(arguments: tuple[str, ...], code: int, said: str) -> None:
    found, output = run(command(*arguments, name="dashboard"))
    assert (found, said in output, "Traceback" in output) == (code, True, False)


def test_the_page_comes_with_the_licences_of_what_it_uses_and_fetches_nothing() -> None:
    static = ROOT / "src" / "drakit" / "dashboard" / "static"
    vendor = static / "vendor"
    assert {each.name for each in vendor.glob("LICENSE.*")} == {"LICENSE.htm", "LICENSE.preact", "LICENSE.uplot"}
    assert all(each.stat().st_size < 60_000 for each in vendor.iterdir())
    # Nothing is fetched from elsewhere.
    for each in [*static.glob("*.*"), *(static / "views").glob("*.js")]:
        assert not re.search(r"(src|href|from|import|url)\W{1,4}(https?:)?//", each.read_text()), each
