"""Certificates become a TLS context, or an error that names the file."""

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given, settings
from hypothesis import strategies as st

from faulty_server import ended
from navarch._base.tls import pem_file
from navarch.client.config import Config, diagnose_certificate
from navarch.client.config.tls import validity
from navarch.errors import ConfigError


def config(pki: Any, **fields: Any) -> Config:
    certificate = {"client_certificate_data": pki.client.pem, "client_key_data": pki.client.key}
    return Config(**{"server": "https://api.example", "ca_data": pki.ca.pem, **certificate, **fields})


def context(made: Config) -> ssl.SSLContext:
    found = made.ssl_context()
    assert found is not None
    return found


Shake = Callable[[ssl.SSLContext, str], Awaitable[str]]


@pytest.fixture
def shake(pki: Any, tmp_path: Path) -> Shake:
    """Connects to a server that demands a certificate of our CA; returns the client's name as the server saw it."""
    for name, content in (("ca", pki.ca.pem), ("pem", pki.server.pem), ("key", pki.server.key)):
        (tmp_path / name).write_bytes(content)
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "ca"))
    server_side.verify_mode = ssl.CERT_REQUIRED
    server_side.load_cert_chain(tmp_path / "pem", tmp_path / "key")

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        certificate: Any = writer.get_extra_info("peercert")
        writer.write(certificate["subject"][0][0][1].encode())
        writer.close()
        await writer.wait_closed()

    async def connect(client_side: ssl.SSLContext, name: str) -> str:
        server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=server_side)
        try:
            return await greeting(server.sockets[0].getsockname()[1], client_side, name)
        finally:
            await ended(server)

    async def greeting(port: int, client_side: ssl.SSLContext, name: str) -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_side, server_hostname=name)
        try:
            return (await asyncio.wait_for(reader.read(), 60)).decode()
        finally:
            writer.close()
            await writer.wait_closed()

    return connect


async def test_data_serves_for_a_mutual_handshake(pki: Any, shake: Shake) -> None:
    """Server and client know each other by certificates that were never on disk."""
    assert await shake(context(config(pki)), "api.example") == "client"


async def test_files_serve_for_a_mutual_handshake(pki: Any, shake: Shake, tmp_path: Path) -> None:
    """And by certificates that are."""
    (tmp_path / "c").write_bytes(pki.client.pem)
    (tmp_path / "k").write_bytes(pki.client.key)
    (tmp_path / "a").write_bytes("# Zertifikat für den Server\n".encode() + pki.ca.pem)
    made = Config(
        server="https://api.example",
        ca_file=tmp_path / "a",
        client_certificate_file=str(tmp_path / "c"),
        client_key_file=tmp_path / "k",
    )
    assert await shake(context(made), "api.example") == "client"


async def test_the_servers_own_certificate_may_be_the_ca(pki: Any, shake: Shake) -> None:
    """As in Go, what the bundle holds is trusted without a root above it."""
    assert await shake(context(config(pki, ca_data=pki.server.pem)), "api.example") == "client"


async def test_a_server_of_another_name_or_ca_is_not_trusted(pki: Any, shake: Shake, issue: Any) -> None:
    """Host name and chain are both verified."""
    with pytest.raises(ssl.SSLCertVerificationError):
        await shake(context(config(pki)), "other.example")
    stranger = issue("ca", begin=datetime(2020, 1, 1, tzinfo=UTC), days=36500)
    with pytest.raises(ssl.SSLCertVerificationError):
        await shake(context(config(pki, ca_data=stranger.pem)), "api.example")


async def test_insecure_trusts_whatever_answers(pki: Any, shake: Shake) -> None:
    """Only if it was asked for."""
    assert await shake(context(config(pki, ca_data=b"", insecure_skip_verify=True)), "other.example") == "client"


def test_without_a_ca_the_systems_certificates_are_trusted() -> None:
    """And verification stays on."""
    found = context(Config(server="https://api.example"))
    assert found.verify_mode is ssl.CERT_REQUIRED
    assert found.check_hostname


def test_a_server_without_tls_needs_no_context() -> None:
    """http has none."""
    assert Config(server="http://127.0.0.1:8080").ssl_context() is None


def test_data_leaves_nothing_behind(pki: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a file nor an open descriptor; also where the system has no anonymous files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(Path("/proc/self/fd").iterdir())
    context(config(pki))
    monkeypatch.delattr(os, "memfd_create")
    context(config(pki))
    assert set(Path("/proc/self/fd").iterdir()) <= before
    assert not list(tmp_path.iterdir())


def test_the_temporary_file_is_its_owners_alone(pki: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where one is needed at all."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delattr(os, "memfd_create")
    with pem_file(pki.client.key) as name:
        assert Path(name).stat().st_mode & 0o777 == 0o600
    assert not Path(name).exists()


MALFORMED = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def faults(pki: Any, other: Any) -> dict[str, tuple[dict[str, Any], str]]:
    der = pki.client.certificate.public_bytes(serialization.Encoding.DER)
    return {
        "CA empty": ({"ca_data": b"\n"}, "here: ca_data: expected a CA certificate in PEM form, got nothing"),
        "CA key": ({"ca_data": pki.ca.key}, "ca_data: .*got a private key"),
        "CA malformed": ({"ca_data": MALFORMED}, "ca_data: .*got a malformed one"),
        "CA not ASCII": ({"ca_data": MALFORMED.replace(b"AAAA", b"\xff")}, "got a malformed one"),
        "CA missing": ({"ca_data": b"", "ca_file": "/nowhere"}, "ca_file /nowhere: .*got no such file"),
        "certificate DER": ({"client_certificate_data": der}, "client_certificate_data: .*looks like DER"),
        "certificate text": ({"client_certificate_data": b"hello"}, "client_certificate_data: .*got something else"),
        "certificate malformed": ({"client_certificate_data": MALFORMED}, "client_certificate_data and .*malformed"),
        "key text": ({"client_key_data": b"hello"}, "client_key_data: expected a private key.*got something else"),
        "key is a certificate": ({"client_key_data": pki.client.pem}, "client_key_data: .*got a certificate"),
        "key encrypted": ({"client_key_data": pki.client.encrypted_key}, "got an encrypted one. Decrypt it"),
        "key of another": ({"client_key_data": other.key}, "client_key_data: .*the key of another certificate"),
        "key missing": ({"client_key_data": b"", "client_key_file": "/"}, "client_key_file /: .*is a directory"),
        "key cut": ({"client_key_data": pki.client.key[:80]}, "a certificate and its key in PEM form, got a malformed"),
    }


def test_certificates_that_cannot_be_used_are_told(pki: Any, issue: Any, subtests: pytest.Subtests) -> None:
    """The field or the file, what was expected, what it is."""
    for name, (fields, message) in faults(pki, issue("other")).items():
        with subtests.test(name), pytest.raises(ConfigError, match=message):
            config(pki, origin="here", **fields).ssl_context()


class TestValidity:
    """From when until when."""

    def test_an_expired_and_a_future_certificate_are_told(self, pki: Any, issue: Any) -> None:
        """With the date, and the remedy."""
        begin = datetime(2030, 1, 1, tzinfo=UTC)
        client = issue("client", pki.ca, begin, 10)
        made = config(pki, client_certificate_data=client.pem, client_key_data=client.key, origin="here")
        late, early = begin + timedelta(days=11), begin - timedelta(days=1)
        assert diagnose_certificate(made, begin + timedelta(days=5)) is None
        assert "here: client_certificate_data: the client certificate expired at 2030-01-11 00:00:00 UTC" in str(
            diagnose_certificate(made, late)
        )
        assert "not valid before 2030-01-01 00:00:00 UTC. Is this machine's clock right?" in str(
            diagnose_certificate(made, early)
        )

    def test_nothing_is_said_without_a_certificate_or_about_an_unreadable_one(self, pki: Any) -> None:
        """It is not to blame."""
        now = datetime(2030, 1, 1, tzinfo=UTC)
        assert diagnose_certificate(Config(server="https://a"), now) is None
        assert diagnose_certificate(config(pki, client_certificate_data=MALFORMED), now) is None

    @settings(max_examples=25, deadline=None)
    @given(
        begin=st.datetimes(datetime(1950, 1, 2), datetime(2300, 1, 1)),  # noqa: DTZ001 - made aware below
        days=st.integers(1, 40000),
    )
    def test_the_period_is_the_one_that_cryptography_reads(self, issue: Any, begin: datetime, days: int) -> None:
        """Both of X.509's forms of time, at all sizes of certificate."""
        pair = issue("x" * (days % 60 + 1), begin=begin.replace(tzinfo=UTC, microsecond=0), days=days)
        found = validity(pair.pem)
        assert found == (pair.certificate.not_valid_before_utc, pair.certificate.not_valid_after_utc)
