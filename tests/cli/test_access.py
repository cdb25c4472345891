"""How a command finds its server: flags first, then the pod's account, then the kubeconfig that kubectl would use."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from drakit.base.errors import UsageError
from drakit.cli.flags.access import access_of
from drakit.cli.flags.groups import ReachFlags
from tests.builders.loop import on_loop


def kubeconfig(path: Path, server: str) -> Path:
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "contexts": [{"name": "one", "context": {"cluster": "c"}}],
                "current-context": "one",
            }
        )
    )
    return path


POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_a_named_kubeconfig_counts_before_everything_else(tmp_path: Path) -> None:
    named = kubeconfig(tmp_path / "named", "https://named:1")
    other = kubeconfig(tmp_path / "other", "https://other:1")
    assert access_of(ReachFlags(kubeconfig=named), {"KUBECONFIG": str(other), **POD}).server == "https://named:1"


def test_a_named_context_is_looked_for_in_the_usual_kubeconfig_also_in_a_pod(tmp_path: Path) -> None:
    usual = kubeconfig(tmp_path / "usual", "https://usual:1")
    assert access_of(ReachFlags(context="one"), {"KUBECONFIG": str(usual), **POD}).server == "https://usual:1"
    with pytest.raises(UsageError, match="there is no context 'two'"):
        access_of(ReachFlags(context="two"), {"KUBECONFIG": str(usual)})


def test_in_a_pod_its_account_is_used() -> None:
    with pytest.raises(UsageError, match="the pod has no service account token"):
        access_of(ReachFlags(), POD)


def test_without_anything_it_is_the_file_in_the_home(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    kubeconfig(tmp_path / ".kube" / "config", "https://home:1")
    assert access_of(ReachFlags(), {"HOME": str(tmp_path)}).server == "https://home:1"


@on_loop
async def test_flags_say_where_the_server_is_and_who_we_are(tmp_path: Path) -> None:
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("secret\n")
    authority.write_text("a certificate")
    found = access_of(ReachFlags(master="https://there:1", token_file=token, certificate_authority=authority), {})
    assert found.server == "https://there:1"
    assert found.trust.ca == b"a certificate"
    assert await found.credentials.headers() == {"authorization": "Bearer secret"}


@on_loop
async def test_a_certificate_and_a_token_may_both_be_given(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("token", "crt", "key")}
    for name, path in files.items():
        path.write_text(name)
    found = access_of(
        ReachFlags(
            master="https://there:1",
            token_file=files["token"],
            client_certificate=files["crt"],
            client_key=files["key"],
        ),
        {},
    )
    certificate = await found.credentials.certificate()
    assert certificate is not None
    assert (certificate.certificate, certificate.key) == (b"crt", b"key")
    assert await found.credentials.headers()
