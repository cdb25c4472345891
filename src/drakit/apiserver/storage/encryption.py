"""Encryption at rest: values of chosen resources are sealed before they reach the store, and opened when they are read.

In:  an EncryptionConfiguration, in the form of Kubernetes; values of objects.
Out: sealed values, each with the provider and the name of its key; whoever has the key reads them.

The first provider of a resource seals. All of them open. So a key is replaced by putting a new one first,
rewriting every value, and taking the old one out.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from drakit.api.text.problems import Malformed
from drakit.api.text.yamltext import parse_yaml_documents
from drakit.apiserver.failures import internal
from drakit.base.errors import UsageError
from drakit.base.inputfiles import read_settings

_MARK = b"k8s:enc:"
_BLOCK = 16
_NONCE = 12
_KEY_SIZES = {"aescbc": (16, 24, 32), "aesgcm": (16, 24, 32), "secretbox": (32,)}
_SHORTEST_PASSPHRASE = 12
_SCRYPT = {"n": 1 << 15, "r": 8, "p": 1, "maxmem": 64 * 1024 * 1024, "dklen": 32}
"""32 MiB and a tenth of a second for each guess at a passphrase."""
_EVERYTHING = ("*", "*.*")


def is_sealed(value: bytes) -> bool:
    return value.startswith(_MARK)


class _Lock(Protocol):
    """One key of one provider."""

    def seal(self, place: str, value: bytes) -> bytes: ...

    def open(self, place: str, sealed: bytes) -> bytes:
        """Raise ValueError if it was not sealed with this key, for this place."""
        ...


class _Aescbc:
    """AES-CBC with a random vector, as Kubernetes has it. It does not tell whether a value was tampered with."""

    def __init__(self, key: bytes) -> None:
        self._algorithm = algorithms.AES(key)

    def seal(self, place: str, value: bytes) -> bytes:  # noqa: ARG002
        vector = os.urandom(_BLOCK)
        filler = padding.PKCS7(_BLOCK * 8).padder()
        encryptor = Cipher(self._algorithm, modes.CBC(vector)).encryptor()
        return vector + encryptor.update(filler.update(value) + filler.finalize()) + encryptor.finalize()

    def open(self, place: str, sealed: bytes) -> bytes:  # noqa: ARG002
        decryptor = Cipher(self._algorithm, modes.CBC(sealed[:_BLOCK])).decryptor()
        filler = padding.PKCS7(_BLOCK * 8).unpadder()
        return filler.update(decryptor.update(sealed[_BLOCK:]) + decryptor.finalize()) + filler.finalize()


class _Aesgcm:
    """AES-GCM with a random nonce. The key in the store is authenticated too: a value cannot be moved to another."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def seal(self, place: str, value: bytes) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + self._cipher.encrypt(nonce, value, place.encode())

    def open(self, place: str, sealed: bytes) -> bytes:
        try:
            return self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], place.encode())
        except InvalidTag:
            raise ValueError("it was not sealed with this key, or was changed") from None


class _Secretbox:
    """XSalsa20 and Poly1305 with a random nonce, as Kubernetes has it. It tells whether a value was changed."""

    def __init__(self, key: bytes) -> None:
        try:
            from nacl.exceptions import CryptoError
            from nacl.secret import SecretBox
        except ImportError:
            raise UsageError("secretbox needs the package pynacl: pip install 'drakit[secretbox]'") from None
        self._box = SecretBox(key)
        self._refused = CryptoError

    def seal(self, place: str, value: bytes) -> bytes:  # noqa: ARG002
        return bytes(self._box.encrypt(value))

    def open(self, place: str, sealed: bytes) -> bytes:  # noqa: ARG002
        try:
            return self._box.decrypt(sealed)
        except self._refused:
            raise ValueError("it was not sealed with this key, or was changed") from None


_PROVIDERS: Mapping[str, Callable[[bytes], _Lock]] = {
    "aescbc": _Aescbc, "aesgcm": _Aesgcm, "secretbox": _Secretbox,
}  # fmt: skip
_KNOWN = "aescbc, aesgcm, secretbox and identity"


class SealedResources(msgspec.Struct, frozen=True):
    """Resources and their locks, by the mark of a value. The first one seals; None: values are stored as they are."""

    resources: tuple[str, ...]
    locks: Mapping[bytes, _Lock]
    first: bytes | None

    def covers(self, resource: str) -> bool:
        group = resource.partition(".")[2]
        return any(each in (resource, *_EVERYTHING, f"*.{group}") for each in self.resources)


class Encryption:
    """Seals and opens the values of a server. Without a configuration it leaves all values as they are."""

    def __init__(self, entries: Sequence[SealedResources] = ()) -> None:
        self._entries = tuple(entries)

    @staticmethod
    def parse(text: str, *, source: str = "--encryption-provider-config") -> Encryption:
        """Raise UsageError for what is no EncryptionConfiguration."""
        try:
            documents = parse_yaml_documents(text, source=source)
        except Malformed as error:
            raise UsageError(f"{source}: {error}") from None
        if len(documents) != 1 or not isinstance(documents[0], dict):
            raise UsageError(f"{source}: expected one EncryptionConfiguration")
        if documents[0].get("kind") != "EncryptionConfiguration":
            raise UsageError(f"{source}: expected kind EncryptionConfiguration, got {documents[0].get('kind')!r}")
        entries = _listed(documents[0], "resources", source)
        return Encryption([_entry(each, f"{source}: resources[{at}]") for at, each in entries])

    def seal(self, resource: str, place: str, value: bytes) -> bytes:
        """`resource` is `secrets` or `resourceclaims.resource.k8s.io`; `place` is the key in the store."""
        for entry in self._entries:
            if entry.covers(resource):
                if entry.first is None:
                    return value
                return entry.first + entry.locks[entry.first].seal(place, value)
        return value

    def open(self, place: str, value: bytes) -> bytes:
        """Raise 500 for a value that no key opens."""
        if not value.startswith(_MARK):
            return value
        # k8s:enc:<provider>:v1:<key>:
        mark = b":".join(value.split(b":", 5)[:5]) + b":"
        for entry in self._entries:
            lock = entry.locks.get(mark)
            if lock is not None:
                try:
                    return lock.open(place, value[len(mark) :])
                except ValueError as error:
                    raise internal(f"the stored value of {place} cannot be decrypted: {error}") from None
        raise internal(f"the stored value of {place} is encrypted, and no key for it is configured")


def _listed(data: Mapping[str, Any], name: str, where: str) -> list[tuple[int, Any]]:
    found = data.get(name)
    if not isinstance(found, list) or not found:
        raise UsageError(f"{where}: expected a list of {name}")
    return list(enumerate(found))


def _entry(data: Any, where: str) -> SealedResources:
    if not isinstance(data, dict):
        raise UsageError(f"{where}: expected an object")
    resources = tuple(str(each) for _, each in _listed(data, "resources", where))
    locks: dict[bytes, _Lock] = {}
    order: list[bytes | None] = []
    for at, provider in _listed(data, "providers", where):
        place = f"{where}.providers[{at}]"
        if not isinstance(provider, dict) or len(provider) != 1:
            raise UsageError(f"{place}: expected one of {_KNOWN}")
        [(name, settings)] = provider.items()
        if name == "identity":
            order.append(None)
            continue
        if name not in _PROVIDERS:
            raise UsageError(f"{place}: {name!r} is not supported; {_KNOWN} are")
        for mark, lock in _keys(name, settings, place).items():
            locks[mark] = lock
            order.append(mark)
    return SealedResources(resources, locks, order[0])


def _keys(provider: str, settings: Any, where: str) -> dict[bytes, _Lock]:
    found: dict[bytes, _Lock] = {}
    for at, key in _listed(settings if isinstance(settings, dict) else {}, "keys", where):
        place = f"{where}.keys[{at}]"
        name = key.get("name") if isinstance(key, dict) else None
        if not name or not isinstance(name, str) or ":" in name:
            raise UsageError(f"{place}: expected a name without a colon")
        mark = b"k8s:enc:%b:v1:%b:" % (provider.encode(), name.encode())
        found[mark] = _PROVIDERS[provider](_secret(provider, key, mark, place))
    return found


def _secret(provider: str, key: Mapping[str, Any], mark: bytes, where: str) -> bytes:
    """The bytes of a key: given in base64, or made from a passphrase in a file."""
    if "passphraseFile" in key:
        if "secret" in key:
            raise UsageError(f"{where}: secret and passphraseFile do not go together")
        return hashlib.scrypt(_passphrase(key["passphraseFile"], where), salt=mark, **_SCRYPT)
    secret = key.get("secret")
    try:
        data = base64.b64decode(secret if isinstance(secret, str) else "", validate=True)
    except ValueError:  # binascii.Error is one; so is text that is not ASCII
        raise UsageError(f"{where}: secret is not base64") from None
    sizes = _KEY_SIZES[provider]
    if len(data) not in sizes:
        expected = " or ".join([", ".join(map(str, sizes[:-1])), str(sizes[-1])] if sizes[1:] else [str(sizes[0])])
        raise UsageError(f"{where}: secret has {len(data)} bytes, expected {expected}")
    return data


def _passphrase(path: Any, where: str) -> bytes:
    if not isinstance(path, str) or not path:
        raise UsageError(f"{where}: passphraseFile is not the name of a file")
    try:
        found = read_settings(Path(path)).strip()
    except OSError as error:
        raise UsageError(f"{where}: passphraseFile {path}: {error.strerror or error}") from None
    if len(found) < _SHORTEST_PASSPHRASE:
        raise UsageError(f"{where}: passphraseFile {path}: expected at least {_SHORTEST_PASSPHRASE} characters")
    return found


NO_ENCRYPTION = Encryption()
