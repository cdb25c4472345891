"""Certificates and kubeconfig: made once, kept, private."""

from __future__ import annotations

import stat
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from drakit.apiserver.auth.certificates import Authority, read_certificate, read_key
from drakit.apiserver.serving.kubeconfig import ServerAccess, write_kubeconfig
from drakit.base.clock import FakeClock

NOW = FakeClock().now()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_still_good_is_kept(tmp_path: Path) -> None:
    first = Authority(tmp_path, NOW)
    server = first.server(("localhost", "127.0.0.1")).certificate.read_bytes()
    again = Authority(tmp_path, NOW + timedelta(days=1))
    assert again.server(("localhost",)).certificate.read_bytes() == server
    assert again.server(("localhost", "other.example.com")).certificate.read_bytes() != server


def test_what_ends_soon_is_made_anew_by_the_same_authority(tmp_path: Path) -> None:
    first = Authority(tmp_path, NOW)
    old, ca = first.server(("localhost",)).certificate.read_bytes(), first.files.certificate.read_bytes()
    later = Authority(tmp_path, NOW + timedelta(days=350))
    new = later.server(("localhost",)).certificate.read_bytes()
    assert (later.files.certificate.read_bytes() == ca, new == old) == (True, False)
    x509.load_pem_x509_certificate(new).verify_directly_issued_by(x509.load_pem_x509_certificate(ca))


def test_a_pair_that_a_crash_tore_apart_is_made_anew(tmp_path: Path) -> None:
    authority = Authority(tmp_path, NOW)
    pair = authority.server(("localhost",))
    pair.key.write_bytes(authority.client("ann", (), "ann").key.read_bytes())
    again = Authority(tmp_path, NOW).server(("localhost",))
    assert read_certificate(again.certificate).public_key() == read_key(again.key).public_key()
    pair.certificate.write_bytes(b"")
    again = Authority(tmp_path, NOW).server(("localhost",))
    assert read_certificate(again.certificate).public_key() == read_key(again.key).public_key()


def test_a_torn_authority_is_refused_for_clients_trust_it(tmp_path: Path) -> None:
    authority = Authority(tmp_path, NOW)
    authority.files.key.write_bytes(authority.server(("localhost",)).key.read_bytes())
    with pytest.raises(ValueError, match="not of one another"):
        Authority(tmp_path, NOW)


def test_keys_and_kubeconfig_are_for_their_owner_alone(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "pki", NOW)
    client = authority.client("ann", ("dev",), "ann")
    target = tmp_path / "deep" / "kubeconfig"
    access = ServerAccess(url="https://127.0.0.1:6443", ca=authority.files.certificate, client=client)
    write_kubeconfig(target, access)
    write_kubeconfig(target, access)
    assert {mode(path) for path in (authority.files.key, client.key, target)} == {0o600}
    written = yaml.safe_load(target.read_text())
    assert written["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    assert "client-key-data" in written["users"][0]["user"]


def test_without_tls_a_kubeconfig_has_a_token_and_no_authority(tmp_path: Path) -> None:
    write_kubeconfig(tmp_path / "kubeconfig", ServerAccess(url="http://127.0.0.1:8080", token="t"))
    written = yaml.safe_load((tmp_path / "kubeconfig").read_text())
    assert written["users"][0]["user"] == {"token": "t"}
    assert written["clusters"][0]["cluster"] == {"server": "http://127.0.0.1:8080"}


def test_a_node_has_a_certificate_of_its_own_for_all_its_addresses(tmp_path: Path) -> None:
    authority = Authority(tmp_path, NOW)
    first = authority.node("node-a", ("127.0.0.1", "node-a"))
    made = read_certificate(first.certificate)
    assert made.subject.rfc4514_string() == "CN=system:node:node-a,O=system:nodes"
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["node-a"]
    assert authority.node("node-b", ("127.0.0.1",)).certificate != first.certificate
    again = read_certificate(authority.node("node-a", ("127.0.0.1", "node-a")).certificate)
    moved = read_certificate(authority.node("node-a", ("127.0.0.2",)).certificate)
    assert (again == made, moved == made) == (True, False)
