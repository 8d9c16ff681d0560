"""What the transport asks, over time."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from navarch._base.clock import ManualClock
from navarch.client.config import Authenticator, Config, Credential, ExecPlugin


async def test_replaced_certificate_files_raise_the_tls_version(pki: Any, tmp_path: Path) -> None:
    """Within a minute, so that new connections use the new ones; a file that is missing for a moment does not."""
    clock, path = ManualClock(), tmp_path / "ca.crt"
    path.write_bytes(pki.ca.pem)
    authenticator = Authenticator(Config(server="https://a", ca_file=path, token="t"), clock)
    await authenticator.headers()
    before = authenticator.tls_version
    path.unlink()
    await clock.advance(60)
    await authenticator.headers()
    assert authenticator.tls_version == before
    path.write_bytes(pki.ca.pem + pki.server.pem)
    await clock.advance(60)
    await authenticator.headers()
    assert authenticator.tls_version == before + 1
    await clock.advance(60)
    await authenticator.headers()
    assert authenticator.tls_version == before + 1


async def test_whatever_is_fixed_goes_before_the_plugin(pki: Any) -> None:
    """client-go's rule: a plugin is not run if a token, a user name or a certificate is there."""
    plugin = ExecPlugin(command="/no/such/plugin", interactive_mode="Never")
    for fields in (
        {"token": "t"},
        {"username": "n"},
        {"client_certificate_data": pki.client.pem, "client_key_data": pki.client.key},
    ):
        config = Config(server="https://a", exec_plugin=plugin, **fields)
        await Authenticator(config, ManualClock()).headers()


async def test_a_credential_of_the_users_own_is_asked() -> None:
    """Anything with these two methods will do."""

    class Countdown:
        def __init__(self) -> None:
            self.left = 3

        async def headers(self) -> Mapping[str, str]:
            return {"Authorization": f"Bearer {self.left}"}

        async def refresh(self) -> bool:
            self.left -= 1
            return True

    credential: Credential = Countdown()
    authenticator = Authenticator(Config(server="https://a", credential=credential), ManualClock())
    assert await authenticator.headers() == {"Authorization": "Bearer 3"}
    refused = authenticator.version
    assert await authenticator.refresh(refused)
    assert await authenticator.refresh(refused)
    assert await authenticator.headers() == {"Authorization": "Bearer 2"}


async def test_an_expired_certificate_is_blamed(pki: Any, issue: Any) -> None:
    """By the clock that was handed over."""
    clock = ManualClock()
    client = issue("client", pki.ca, clock.now(), 1)
    config = Config(
        server="https://a", ca_data=pki.ca.pem, client_certificate_data=client.pem, client_key_data=client.key
    )
    authenticator = Authenticator(config, clock)
    assert authenticator.diagnose() is None
    await clock.advance(2 * 86400)
    assert "expired at 2030-01-02" in str(authenticator.diagnose())
    assert Authenticator(Config(server="https://a"), clock).diagnose() is None
