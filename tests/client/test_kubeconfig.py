"""Kubeconfig files: what they mean, and what is wrong with them, by file and field."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from drakit.base.clock import FakeClock
from drakit.base.errors import UsageError
from drakit.client import Certificate, Kubeconfig, in_cluster, load_kubeconfig
from tests.client.servers import on_loop

Plain = dict[str, Any]


def config(*, cluster: Plain | None = None, user: Plain | None = None, context: Plain | None = None) -> Plain:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": cluster or {"server": "https://127.0.0.1:6443"}}],
        "users": [{"name": "me", "user": user or {}}],
        "contexts": [{"name": "work", "context": {"cluster": "here", "user": "me", **(context or {})}}],
        "current-context": "work",
    }


def write(path: Path, document: Any) -> Path:
    path.write_text(yaml.safe_dump(document))
    return path


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@on_loop
async def test_a_context_names_server_user_and_namespace(tmp_path: Path) -> None:
    document = config(user={"token": "secret"}, context={"namespace": "ml"})
    access = load_kubeconfig([write(tmp_path / "config", document)])
    assert access.server == "https://127.0.0.1:6443"
    assert access.namespace == "ml"
    assert await access.credentials.headers() == {"authorization": "Bearer secret"}
    assert await access.credentials.certificate() is None


@on_loop
async def test_names_and_passwords_go_as_basic_authentication(tmp_path: Path) -> None:
    path = write(tmp_path / "config", config(user={"username": "me", "password": "pw"}))
    headers = await load_kubeconfig([path]).credentials.headers()
    assert headers == {"authorization": "Basic " + encoded("me:pw")}


@on_loop
async def test_certificates_are_read_from_data_or_from_files_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "me.crt").write_text("CERTIFICATE")
    (tmp_path / "me.key").write_text("KEY")
    files = {"client-certificate": "me.crt", "client-key": "me.key"}
    inline = {"client-certificate-data": encoded("CERTIFICATE"), "client-key-data": encoded("KEY")}
    for user in (files, inline):
        access = load_kubeconfig([write(tmp_path / "config", config(user=user))])
        assert await access.credentials.certificate() == Certificate(b"CERTIFICATE", b"KEY")


def test_trust_is_a_ca_or_none_at_all(tmp_path: Path) -> None:
    server: Plain = {"server": "https://example.com", "tls-server-name": "kubernetes"}
    cluster = {**server, "certificate-authority-data": encoded("CA")}
    trust = load_kubeconfig([write(tmp_path / "config", config(cluster=cluster))]).trust
    assert (trust.ca, trust.insecure, trust.server_name) == (b"CA", False, "kubernetes")
    cluster = {**server, "insecure-skip-tls-verify": True}
    assert load_kubeconfig([write(tmp_path / "config", config(cluster=cluster))]).trust.insecure


def test_base64_may_have_line_breaks(tmp_path: Path) -> None:
    whole = encoded("-----BEGIN CERTIFICATE-----")
    data = f"{whole[:8]}\n  {whole[8:]}\r\n"
    path = write(tmp_path / "config", config(cluster={"server": "https://a", "certificate-authority-data": data}))
    assert load_kubeconfig([path]).trust.ca == b"-----BEGIN CERTIFICATE-----"


@on_loop
async def test_certificate_files_that_are_being_replaced_are_bridged(tmp_path: Path) -> None:
    clock = FakeClock()
    for name in ("a.crt", "a.key"):
        (tmp_path / name).write_text(name)
    path = write(tmp_path / "config", config(user={"client-certificate": "a.crt", "client-key": "a.key"}))
    credentials = load_kubeconfig([path], clock=clock).credentials
    first = await credentials.certificate()
    (tmp_path / "a.key").unlink()
    clock.advance(61)
    assert await credentials.certificate() is first
    (tmp_path / "a.key").write_text("new")
    clock.advance(61)
    assert await credentials.certificate() == Certificate(b"a.crt", b"new")


def test_another_context_may_be_named(tmp_path: Path) -> None:
    document = config()
    document["clusters"].append({"name": "there", "cluster": {"server": "http://example.com"}})
    document["contexts"].append({"name": "play", "context": {"cluster": "there"}})
    path = write(tmp_path / "config", document)
    assert load_kubeconfig([path], "play").server == "http://example.com"
    assert Kubeconfig([path]).contexts() == ["work", "play"]


def test_of_several_files_the_first_that_says_something_counts(tmp_path: Path) -> None:
    first = {"kind": "Config", "clusters": [{"name": "here", "cluster": {"server": "https://first"}}]}
    paths = [
        tmp_path / "missing",
        write(tmp_path / "a", first),
        write(tmp_path / "b", config(user={"token": "b"})),
    ]
    access = load_kubeconfig(paths)
    assert access.server == "https://first"


def test_acting_as_somebody_else_becomes_headers(tmp_path: Path) -> None:
    user = {"as": "robot", "as-groups": ["a", "b"], "as-uid": "7", "as-user-extra": {"Example.com/Node": ["n1"]}}
    access = load_kubeconfig([write(tmp_path / "config", config(user=user))])
    assert access.headers == {
        "impersonate-user": "robot",
        "impersonate-uid": "7",
        "impersonate-group": "a\nb",
        "impersonate-extra-example.com%2Fnode": "n1",
    }


WRONG: dict[str, tuple[Any, str]] = {
    "no map": (["x"], "expected a kubeconfig, found a list"),
    "another kind": ({**config(), "kind": "Pod"}, "kind: expected Config, found 'Pod'"),
    "a section that is no list": ({**config(), "clusters": {"a": 1}}, "clusters: expected a list, found a dict"),
    "an entry that is no map": ({**config(), "users": ["me"]}, r"users\[0\]: expected a map, found 'me'"),
    "an entry without a name": ({**config(), "users": [{"user": {}}]}, r"users\[0\]\.name: expected a name"),
    "no context": ({**config(), "current-context": ""}, "current-context: it is not set"),
    "an unknown context": ({**config(), "current-context": "x"}, "there is no context 'x'; there are work"),
    "an unknown user": (
        config(context={"user": "nobody"}), r"contexts\[0\]\.context\.user: there is no entry 'nobody' under users"
    ),
    "no server": (config(cluster={"server": ""}), r"clusters\[0\]\.cluster\.server: expected https://host:port"),
    "a server without a scheme": (config(cluster={"server": "host:6443"}), r"server: expected .* found 'host:6443'"),
    "a token that is no text": (config(user={"token": 7}), r"users\[0\]\.user\.token: expected a string, found 7"),
    "data that is no base64": (
        config(cluster={"server": "https://a", "certificate-authority-data": "?"}),
        r"certificate-authority-data: no base64",
    ),
    "a file that is not there": (
        config(user={"client-certificate": "nowhere.crt", "client-key": "nowhere.key"}),
        r"users\[0\]\.user\.client-certificate: .*nowhere\.crt: No such file",
    ),
    "a certificate without a key": (
        config(user={"client-certificate-data": encoded("x")}), "client-key: a client certificate and its key"
    ),
    "trust and no trust": (
        config(cluster={
            "server": "https://a", "insecure-skip-tls-verify": True, "certificate-authority-data": encoded("x")
        }),
        "it is one or the other",
    ),
    "a flag that is text": (
        config(cluster={"server": "https://a", "insecure-skip-tls-verify": "yes"}), "expected true or false, found 'y"
    ),
    "an old provider": (config(user={"auth-provider": {"name": "gcp"}}), "auth-provider: not supported"),
    "a program without a name": (config(user={"exec": {"apiVersion": "v1"}}), r"user\.exec\.command: expected the"),
    "a program of another version": (
        config(user={"exec": {"apiVersion": "v1", "command": "x"}}),
        r"exec\.apiVersion: expected client\.authentication\.k8s\.io/v1 or .* found 'v1'",
    ),
    "a program that asks": (
        config(user={"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "x", "interactiveMode": "Always"
        }}),
        "interactiveMode: the program wants to ask somebody",
    ),
    "a port that is no number": (config(cluster={"server": "https://a:b"}), r"server: expected .* found 'https://a:b'"),
    "a port that is too large": (config(cluster={"server": "https://a:65536"}), "server: expected https://host:port"),
    "an address that does not end": (config(cluster={"server": "https://[::1"}), "server: expected https://host:port"),
    "a proxy of another sort": (
        config(cluster={"server": "https://a", "proxy-url": "socks5://a:1"}),
        r"clusters\[0\]\.cluster\.proxy-url: expected http://host:port, found 'socks5://a:1'",
    ),
    "a token in two lines": (config(user={"token": "a\nb"}), r"user\.token: it has characters that no header"),
    "a name in two lines": (config(user={"as": "a\nb"}), r"user\.as: it has characters that no header"),
    "an extra field that is no text": (
        config(user={"as": "a", "as-user-extra": {1: ["x"]}}), "as-user-extra: expected names, found 1"
    ),
    "a variable that cannot be set": (
        config(user={"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "x", "env": [{"name": "A=B", "value": "c"}]
        }}),
        r"exec\.env\[0\]: expected name and value",
    ),
    "extensions that are no list": (
        config(
            cluster={"server": "https://a", "extensions": 3},
            user={"exec": {
                "apiVersion": "client.authentication.k8s.io/v1", "command": "x", "provideClusterInfo": True
            }},
        ),
        r"cluster\.extensions: expected a list, found 3",
    ),
    "groups without a user": (config(user={"as-groups": ["a"]}), r"user\.as: uid, groups and extra"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_names_file_and_field(tmp_path: Path, case: str) -> None:
    document, words = WRONG[case]
    path = write(tmp_path / "broken.kubeconfig", document)
    with pytest.raises(UsageError, match=words) as caught:
        load_kubeconfig([path])
    assert str(path) in str(caught.value)


def test_text_that_is_no_yaml_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("a: [")
    with pytest.raises(UsageError, match="line 1"):
        load_kubeconfig([path])
    with pytest.raises(UsageError, match=r"there is no kubeconfig: .*missing"):
        load_kubeconfig([tmp_path / "missing"])


@on_loop
async def test_a_pod_finds_its_server_and_its_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("mounted\n")
    (tmp_path / "ca.crt").write_text("CA")
    (tmp_path / "namespace").write_text("ml")
    environment = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    access = in_cluster(environment, mounted=tmp_path)
    assert (access.server, access.namespace, access.trust.ca) == ("https://10.96.0.1:443", "ml", b"CA")
    assert await access.credentials.headers() == {"authorization": "Bearer mounted"}
    six = in_cluster({**environment, "KUBERNETES_SERVICE_HOST": "fd00::1"}, mounted=tmp_path)
    assert six.server == "https://[fd00::1]:443"
    with pytest.raises(UsageError, match="not in a pod"):
        in_cluster({}, mounted=tmp_path)
    (tmp_path / "token").unlink()
    with pytest.raises(UsageError, match="no service account token"):
        in_cluster(environment, mounted=tmp_path)


def test_a_cluster_may_have_further_servers(tmp_path: Path) -> None:
    further = ["https://127.0.0.1:6443", "https://127.0.0.2:6443"]
    cluster: Plain = {"server": further[0], "extensions": [{"name": "drakit.io/servers", "extension": further}]}
    access = load_kubeconfig([write(tmp_path / "config", config(cluster=cluster))])
    assert (access.server, access.others) == (further[0], (further[1],))
    cluster["extensions"][0]["extension"] = ["unix:///tmp/x"]
    with pytest.raises(UsageError, match=r"extensions\.drakit\.io/servers: expected https://host:port"):
        load_kubeconfig([write(tmp_path / "config", config(cluster=cluster))])
