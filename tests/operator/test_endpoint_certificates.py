"""Endpoints over TLS: certificates that are read again, and those that cannot be used."""

from __future__ import annotations

import ssl
from pathlib import Path

import aiohttp
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from certificates import Signed, sign
from navarch._base import tls
from navarch._base.clock import ManualClock
from navarch.errors import ConfigError
from navarch.observe.metrics import Metrics
from navarch.operator.endpoint_server import EndpointServer
from navarch.operator.endpoints import Endpoints
from scripted import scripted
from served_endpoints import get, served


def written(folder: Path, signed: Signed) -> Endpoints:
    """Options that serve metrics with this certificate, from files."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    certificate.write_bytes(signed.pem)
    key.write_bytes(signed.key)
    return Endpoints(health=None, metrics="127.0.0.1:0", certificate=certificate, key=key)


def trusting(authority: Signed) -> ssl.SSLContext:
    return tls.client_ssl_context(authority.pem.decode())


async def test_certificate_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """Connections that begin afterwards get the new one; nothing is restarted."""
    old, new = sign("old authority"), sign("new authority")
    clock = ManualClock()
    async with served(written(tmp_path, sign("one", old)), clock=clock) as at:
        assert (await get(at.metrics, "/metrics", trusted=trusting(old)))[0] == 200
        written(tmp_path, sign("two", new))
        await clock.advance(10)
        assert (await get(at.metrics, "/metrics", trusted=trusting(new)))[0] == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await get(at.metrics, "/metrics", trusted=trusting(old))


@pytest.mark.parametrize("fault", ["other key", "no file", "no certificate"])
async def test_bad_new_certificate_leaves_the_old_one(tmp_path: Path, fault: str) -> None:
    """Half-written files are common while a Secret is renewed; a good pair later is taken."""
    authority, clock = sign("authority"), ManualClock()
    async with served(written(tmp_path, sign("one", authority)), clock=clock) as at:
        match fault:
            case "other key":
                (tmp_path / "tls.key").write_bytes(sign("two", authority).key)
            case "no file":
                (tmp_path / "tls.key").unlink()
            case _:
                (tmp_path / "tls.crt").write_text("-----BEGIN")
        await clock.advance(10)
        assert (await get(at.metrics, "/metrics", trusted=trusting(authority)))[0] == 200
        newer = sign("newer authority")
        written(tmp_path, sign("three", newer))
        await clock.advance(10)
        assert (await get(at.metrics, "/metrics", trusted=trusting(newer)))[0] == 200


LOCKED = ec.generate_private_key(ec.SECP256R1()).private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"hunter2")
)


@pytest.mark.parametrize("key", [b"hunter2", LOCKED])
async def test_unusable_certificate_is_said_at_the_start(tmp_path: Path, key: bytes) -> None:
    """With both files, and without the key's content; nobody is asked for a password."""
    options = written(tmp_path, sign("one"))
    (tmp_path / "tls.key").write_bytes(key)
    server = EndpointServer(options, alive={}, ready={}, metrics=Metrics(), client=scripted()[0], clock=ManualClock())
    with pytest.raises(ConfigError, match=r"tls\.crt and its key in .*tls\.key") as caught:
        await server.run()
    assert "hunter2" not in str(caught.value)
