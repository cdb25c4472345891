"""Damage is found and named; secrets are sealed; what is kept is kept from others."""

from __future__ import annotations

import base64
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from nacl.bindings import crypto_secretbox
from typer.testing import CliRunner

from drakit.api.registry import find_kind
from drakit.apiserver import Settings, build_server
from drakit.apiserver.failures import ApiError
from drakit.apiserver.storage.encryption import Encryption
from drakit.apiserver.storage.objectstore import key_of
from drakit.base.clock import FakeClock
from drakit.base.errors import UsageError
from drakit.cli.commands.store import store as commands
from drakit.cli.flags.groups import ServingFlags
from drakit.cli.processes.host import directory_of, kept_token
from drakit.store import Corrupt, SQLiteStore
from tests.apiserver.calls import Api, on_loop, serving
from tests.store.engines import connection_of

SECRETS = "/api/v1/namespaces/default/secrets"
MAPS = "/api/v1/namespaces/default/configmaps"
KEY = "/registry/core/configmaps/default/a"


def secret(name: str = "s") -> dict[str, Any]:
    return {"kind": "Secret", "metadata": {"name": name}, "stringData": {"password": "open sesame"}}


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement)
    connection.close()


async def filled(path: Path) -> None:
    async with await SQLiteStore.open(path) as store:
        for name in ("a", "b"):
            await store.create(f"/registry/core/configmaps/default/{name}", b'{"kind":"ConfigMap"}')
        await store.update(KEY, b'{"kind":"ConfigMap","data":{}}', expected=2)


@on_loop
async def test_a_changed_value_is_found_named_and_can_be_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "drakit.db"
    await filled(path)
    run = CliRunner().invoke
    where = ["--data-dir", str(tmp_path)]
    assert "all as they were written" in run(commands, ["verify", *where]).stdout
    change(path, "UPDATE log SET value = CAST(replace(value, 'data', 'dada') AS BLOB) WHERE revision = 4")
    with pytest.raises(Corrupt, match=r"the value of /registry/core/configmaps/default/a \(revision 4\)"):
        await SQLiteStore.open(path)
    found = run(commands, ["verify", *where])
    assert (found.exit_code, KEY in found.stdout) == (1, True)
    assert run(commands, ["remove", *where, KEY]).exit_code == 0
    async with await SQLiteStore.open(path) as store:
        assert [record.key for record in (await store.list("/registry/")).records] == [
            "/registry/core/configmaps/default/b"
        ]
        assert await store.revision() == 4


@on_loop
async def test_a_database_cut_to_nothing_is_no_empty_cluster(tmp_path: Path) -> None:
    path = tmp_path / "drakit.db"
    await filled(path)
    path.write_bytes(b"")
    with pytest.raises(Corrupt, match="it is empty"):
        await SQLiteStore.open(path)
    assert path.read_bytes() == b""


@on_loop
async def test_a_database_without_checksums_gets_them(tmp_path: Path) -> None:
    path = tmp_path / "drakit.db"
    await filled(path)
    change(path, "ALTER TABLE log DROP COLUMN checksum")
    change(path, "PRAGMA user_version = 1")
    async with await SQLiteStore.open(path) as store:
        assert await store.revision() == 4
    change(path, "UPDATE log SET value = x'00' WHERE revision = 3")
    with pytest.raises(Corrupt, match="default/b"):
        await SQLiteStore.open(path)


@on_loop
async def test_a_full_disk_is_logged_and_told_until_it_has_room_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    async with (
        await SQLiteStore.open(tmp_path / "drakit.db", clock=clock) as store,
        await build_server(store, clock=clock, settings=Settings()) as server,
    ):
        api = Api(server, clock)
        limit = connection_of(store).execute
        pages = limit("PRAGMA page_count").fetchone()[0]

        async def made(name: str) -> int:
            return (await api.create(MAPS, {"metadata": {"name": name}, "data": {"a": "x" * 100_000}})).code

        limit(f"PRAGMA max_page_count = {pages + 5}")
        assert [await made("a"), await made("b")] == [503, 503]
        refused = await api.get("/readyz")
        assert (refused.code, "[-]store-writes failed: the latest write failed" in refused.body) == (500, True)
        assert (await api.get("/livez")).body == "ok"  # to be started again would not help
        clock.advance(3600.0)
        assert (await api.get("/readyz")).body == "ok"  # somebody may try again
        assert await made("a") == 503
        assert (await api.get("/readyz")).code == 500
        limit("PRAGMA max_page_count = 100000")
        assert await made("a") == 201
        assert (await api.get("/readyz")).body == "ok"
    told = [record.getMessage() for record in caplog.records if record.name == "drakit.store"]
    assert ["cannot be written to" in told[0], *told[1:]] == [True, "the store can be written to again"]


@on_loop
async def test_one_bad_value_is_named_and_leaves_the_list_whole() -> None:
    async with serving() as api:
        for name in ("a", "c"):
            assert (await api.create(MAPS, {"metadata": {"name": name}})).code == 201
        kind = find_kind("v1", "ConfigMap")
        assert kind is not None
        await api.server.context.objects.store.create(key_of(kind, "default", "b"), b'{"kind": half')
        bad = await api.get(f"{MAPS}/b")
        assert bad.code == 500
        for query in ({}, {"labelSelector": "!x"}):
            assert (await api.get(MAPS, **query)).names == ["a", "c"]


def configuration(*keys: str, provider: str = "aescbc") -> str:
    listed = [f"{{name: {name}, secret: {base64.b64encode(name.encode().ljust(32, b'.')).decode()}}}" for name in keys]
    return (
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"
        f"- resources: [secrets]\n  providers:\n  - {provider}: {{keys: [{', '.join(listed)}]}}\n  - identity: {{}}\n"
    )


@pytest.mark.parametrize("provider", ["aescbc", "aesgcm", "secretbox"])
def test_secrets_are_sealed_at_rest_and_others_are_not(tmp_path: Path, provider: str) -> None:
    @on_loop
    async def run() -> None:
        sealed = Encryption.parse(configuration("one", provider=provider))
        async with (
            await SQLiteStore.open(tmp_path / "drakit.db") as store,
            await build_server(store, settings=Settings(encryption=sealed)) as server,
        ):
            api = Api(server, FakeClock())
            assert (await api.create(SECRETS, secret())).code == 201
            assert (await api.create(MAPS, {"metadata": {"name": "a"}})).code == 201
            assert (await api.patch(f"{SECRETS}/s", {"metadata": {"labels": {"a": "b"}}})).code == 200
            for key, mark in (
                ("secrets/default/s", b"k8s:enc:%b:v1:one:" % provider.encode()),
                ("configmaps/default/a", b"{"),
            ):
                assert (await store.get(f"/registry/core/{key}")).value.startswith(mark)
        async with (
            await SQLiteStore.open(tmp_path / "drakit.db") as store,
            await build_server(store, settings=Settings(encryption=sealed)) as server,
        ):
            found = (await Api(server, FakeClock()).get(f"{SECRETS}/s")).body
            assert base64.b64decode(found["data"]["password"]) == b"open sesame"

    run()


def test_a_key_is_replaced_by_rewriting(tmp_path: Path) -> None:
    old, both, new = (Encryption.parse(configuration(*keys)) for keys in (("one",), ("two", "one"), ("two",)))
    place = "/registry/core/secrets/default/s"
    value = old.seal("secrets", place, b"{}")
    assert both.open(place, value) == b"{}"
    rewritten = both.seal("secrets", place, both.open(place, value))
    assert new.open(place, rewritten) == b"{}"
    with pytest.raises(ApiError, match="no key for it is configured"):
        new.open(place, value)


def test_drakit_store_rewrite_seals_what_was_open(tmp_path: Path) -> None:
    @on_loop
    async def fill() -> None:
        async with await SQLiteStore.open(tmp_path / "drakit.db") as store:
            await store.create("/registry/core/secrets/default/s", b"{}")

    @on_loop
    async def check() -> None:
        async with await SQLiteStore.open(tmp_path / "drakit.db") as store:
            assert (await store.get("/registry/core/secrets/default/s")).value.startswith(b"k8s:enc:aescbc:v1:one:")

    fill()
    file = tmp_path / "keys.yaml"
    file.write_text(configuration("one"))
    given = ["rewrite", "--data-dir", str(tmp_path), "--encryption-provider-config", str(file)]
    assert CliRunner().invoke(commands, given).exit_code == 0
    check()


def test_a_value_sealed_elsewhere_with_secretbox_is_opened() -> None:
    """The nonce, then the box, as NaCl makes it: any other implementation reads and writes the same."""
    key, nonce = b"one".ljust(32, b"."), bytes(range(24))
    sealed = b"k8s:enc:secretbox:v1:one:" + nonce + crypto_secretbox(b"{}", nonce, key)
    assert Encryption.parse(configuration("one", provider="secretbox")).open("/a", sealed) == b"{}"


@pytest.mark.parametrize("provider", ["aesgcm", "secretbox"])
def test_a_changed_value_is_not_opened(provider: str) -> None:
    keys = Encryption.parse(configuration("one", provider=provider))
    sealed = keys.seal("secrets", "/a", b"{}")
    with pytest.raises(ApiError, match="cannot be decrypted"):
        keys.open("/a", sealed[:-1] + bytes([sealed[-1] ^ 1]))


@pytest.mark.parametrize("provider", ["aescbc", "aesgcm", "secretbox"])
def test_a_passphrase_in_a_file_is_a_key(tmp_path: Path, provider: str) -> None:
    file = tmp_path / "passphrase"

    def keys(text: str) -> Encryption:
        file.write_text(text)
        listed = f"keys: [{{name: one, passphraseFile: {file}}}]"
        return Encryption.parse(re.sub(r"keys: \[.*?\]", listed, configuration("one", provider=provider)))

    sealed = keys("correct horse battery staple\n").seal("secrets", "/a", b'{"a":1}')
    assert keys("correct horse battery staple").open("/a", sealed) == b'{"a":1}'
    if provider != "aescbc":  # which does not always notice
        with pytest.raises(ApiError, match="cannot be decrypted"):
            keys("correct horse battery stable").open("/a", sealed)
    with pytest.raises(UsageError, match="at least 12 characters"):
        keys("too short")
    with pytest.raises(UsageError, match="No such file"):
        Encryption.parse(configuration("one").replace("secret: ", "passphraseFile: /missing"))


def test_a_key_of_secretbox_has_32_bytes() -> None:
    short = base64.b64encode(b"x" * 16).decode()
    with pytest.raises(UsageError, match="secret has 16 bytes, expected 32"):
        Encryption.parse(re.sub(r"secret: [^}]+", f"secret: {short}", configuration("one", provider="secretbox")))


def test_a_sealed_value_cannot_be_moved_nor_changed() -> None:
    keys = Encryption.parse(configuration("one", provider="aesgcm"))
    value = keys.seal("secrets", "/a", b"{}")
    for place, moved in (("/b", value), ("/a", value[:-1] + bytes([value[-1] ^ 1]))):
        with pytest.raises(ApiError, match="cannot be decrypted"):
            keys.open(place, moved)


@pytest.mark.parametrize(
    "text", ["", "[]", "kind: Pod", "kind: EncryptionConfiguration", configuration("a").replace("aescbc", "rot13"),
             configuration("a").replace("secret: ", "secret: x"), "a: &a [*a]"],
)  # fmt: skip
def test_a_wrong_configuration_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Encryption.parse(text)


def test_a_data_directory_that_others_could_read_is_tightened(tmp_path: Path) -> None:
    place = tmp_path / "data"
    place.mkdir(mode=0o755)
    with directory_of(ServingFlags(data_dir=place)):
        assert place.stat().st_mode & 0o777 == 0o700


def test_the_token_without_tls_outlives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "admin.token"
    assert kept_token(path) == kept_token(path)
    assert path.stat().st_mode & 0o777 == 0o600
