"""Certificates that the server makes for itself: a CA, a server certificate, client certificates.

In:  a directory, and the names and addresses that the server is reached by.
Out: PEM files; only their owner can read private keys. Valid files are kept, so that clients trust a restarted server.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from drakit.base.inputfiles import read_settings

_CA_LIFE = timedelta(days=3650)
_LIFE = timedelta(days=365)
_RENEW = timedelta(days=30)
_SKEW = timedelta(minutes=5)  # valid from a little before now: clocks differ


class Pair(msgspec.Struct, frozen=True):
    """Files of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """A CA in a directory, created on first use."""

    def __init__(self, directory: Path, now: datetime) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.directory = directory
        self.files = Pair(directory / "ca.crt", directory / "ca.key")
        self._now = now
        if not _still_good(self.files, now):
            if _damaged(self.files):
                # Clients trust this CA. Whether to replace it is the owner's decision.
                raise ValueError(f"{self.files.certificate} and {self.files.key} are damaged, or not of one another")
            self._create()
        self._certificate = read_certificate(self.files.certificate)
        self._key = read_key(self.files.key)

    def server(self, hosts: Sequence[str]) -> Pair:
        """A certificate for these names and addresses. One on disk that covers them all is used again."""
        files = Pair(self.directory / "server.crt", self.directory / "server.key")
        if _still_good(files, self._now) and self._issued(files) and _covers(files, hosts):
            return files
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        self._issue(files, _name("drakit-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH, names)
        return files

    def node(self, name: str, hosts: Sequence[str]) -> Pair:
        """A certificate that the agent of a node serves with, under the name that nodes have."""
        files = Pair(self.directory / f"node-{name}.crt", self.directory / f"node-{name}.key")
        if not (_still_good(files, self._now) and self._issued(files) and _covers(files, hosts)):
            names = x509.SubjectAlternativeName([_general_name(host) for host in dict.fromkeys(hosts)])
            subject = _name(f"system:node:{name}", ("system:nodes",))
            self._issue(files, subject, ExtendedKeyUsageOID.SERVER_AUTH, names)
        return files

    def client(self, user: str, groups: Sequence[str], stem: str) -> Pair:
        """A certificate that authenticates `user` as a member of `groups`."""
        files = Pair(self.directory / f"{stem}.crt", self.directory / f"{stem}.key")
        if not (_still_good(files, self._now) and self._issued(files)):
            self._issue(files, _name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, None)
        return files

    def _create(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("drakit-ca")
        made = (
            self._builder(name, name, key, _CA_LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        _write(self.files, made, key)

    def _issue(
        self, files: Pair, subject: x509.Name, purpose: x509.ObjectIdentifier, names: x509.SubjectAlternativeName | None
    ) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(subject, self._certificate.subject, key, _LIFE)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(_authority_key(self._certificate), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        _write(files, builder.sign(self._key, hashes.SHA256()), key)

    def _builder(
        self, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, life: timedelta
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _SKEW)
            .not_valid_after(self._now + life)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )

    def _issued(self, files: Pair) -> bool:
        certificate = read_certificate(files.certificate)
        try:
            certificate.verify_directly_issued_by(self._certificate)
        except Exception:  # cryptography raises one of several errors for a foreign issuer: all mean no
            return False
        return True


def _name(common: str, groups: Sequence[str] = ()) -> x509.Name:
    """Kubernetes reads the user from the common name and the groups from the organizations."""
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _authority_key(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _still_good(files: Pair, now: datetime) -> bool:
    if not _there(files) or _damaged(files):
        return False
    certificate = read_certificate(files.certificate)
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc - _RENEW


def _there(files: Pair) -> bool:
    return files.certificate.exists() and files.key.exists()


def _damaged(files: Pair) -> bool:
    """Whether both files exist and do not belong together: a crash between writing them leaves that."""
    if not _there(files):
        return False
    try:
        return read_certificate(files.certificate).public_key() != read_key(files.key).public_key()
    except ValueError:
        return True


def _covers(files: Pair, hosts: Sequence[str]) -> bool:
    certificate = read_certificate(files.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {_general_name(host) for host in hosts} <= set(names)


def read_certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(read_settings(path))


def read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Raise ValueError for anything but an elliptic curve key."""
    key = serialization.load_pem_private_key(read_settings(path), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("expected an elliptic curve key")
    return key


def key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(files: Pair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    # The key first: a certificate without its key would count as damaged.
    write_private(files.key, key_text(key))
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, at no moment anybody else."""
    # A crash leaves the old file or the new one, never half of it.
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    temporary.replace(path)
