"""A node's certificate is renewed while the node serves."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from drakit.base.clock import FakeClock
from drakit.base.errors import UsageError
from drakit.cli.processes.agent import issued_certificates
from drakit.nodeagent.server.renewal import LOOK_SECONDS, CertificateRenewal, NodeCertificates
from tests.builders.loop import on_loop

HOSTS = ["localhost", "127.0.0.1"]


def issued(directory: Path, clock: FakeClock) -> NodeCertificates:
    return issued_certificates(directory, "node-1", HOSTS, clock.now())


async def served(context: ssl.SSLContext) -> int:
    """The serial number of the certificate that a new connection sees."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=anybody)
    seen = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    server.close()
    await server.wait_closed()
    return x509.load_der_x509_certificate(seen).serial_number


@on_loop
async def test_a_certificate_of_our_own_ca_is_issued_anew_before_it_ends(tmp_path: Path) -> None:
    clock = FakeClock(datetime.now(UTC))
    certificates = issued(tmp_path, clock)
    context = certificates.context()
    renewal = CertificateRenewal(certificates, context, clock)
    first = await served(context)
    renewal.look()
    assert await served(context) == first
    clock.advance(timedelta(days=340).total_seconds())
    renewal.look()
    second = await served(context)
    assert second != first
    renewal.look()
    assert await served(context) == second


@on_loop
async def test_files_that_somebody_else_replaces_are_taken_and_half_of_a_pair_is_not(tmp_path: Path) -> None:
    clock = FakeClock(datetime.now(UTC))
    one, other = issued(tmp_path / "a", clock), issued(tmp_path / "b", clock)
    given = NodeCertificates(one.certificate, one.key)
    context = given.context()
    renewal = CertificateRenewal(given, context, clock)
    first = await served(context)
    one.key.write_bytes(other.key.read_bytes())
    with pytest.raises(UsageError, match="cannot use its certificates"):
        renewal.look()
    assert await served(context) == first
    one.certificate.write_bytes(other.certificate.read_bytes())
    renewal.look()
    assert await served(context) == await served(other.context()) != first


@on_loop
async def test_a_renewal_that_fails_is_tried_again_at_the_next_look(tmp_path: Path) -> None:
    clock = FakeClock(datetime.now(UTC))
    certificates = issued(tmp_path, clock)
    calls = 0
    called = asyncio.Event()
    loop = asyncio.get_running_loop()

    def fail(_: datetime) -> None:
        nonlocal calls
        calls += 1
        loop.call_soon_threadsafe(called.set)
        raise OSError("the disk is full")

    failing = NodeCertificates(certificates.certificate, certificates.key, renew=fail)
    task = asyncio.create_task(CertificateRenewal(failing, certificates.context(), clock).run())
    for _ in range(2):
        while clock.next_deadline() is None:
            await asyncio.sleep(0.001)
        clock.advance(LOOK_SECONDS)
        async with asyncio.timeout(120):
            await called.wait()
        called.clear()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert calls == 2
