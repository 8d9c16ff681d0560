"""Which proxy the environment asks for."""

from __future__ import annotations

import pytest

from navarch.client.config.environment import environment_proxy
from navarch.errors import ConfigError

PROXY = "http://proxy.example.com:3128"


@pytest.mark.parametrize(
    ("server", "exceptions"),
    [
        ("https://127.0.0.1:6443", ""),
        ("https://[::1]:6443", ""),
        ("https://localhost:6443", ""),
        ("https://api.example.com", "*"),
        ("https://api.example.com", "other.org, example.com"),
        ("https://api.example.com", ".example.com"),
        ("https://api.example.com", "*.example.com"),
        ("https://example.com", "example.com"),
        ("https://api.example.com:6443", "example.com:6443"),
        ("https://10.1.2.3", "10.0.0.0/8"),
        ("https://10.1.2.3", "10.1.2.3"),
        ("https://[fd00::1]", "fd00::/8"),
        ("https://[fd00::1]:6443", "[fd00::1]:6443"),
    ],
)
def test_exceptions_go_without_the_proxy(server: str, exceptions: str) -> None:
    """NO_PROXY is read as Go reads it, and loopback never goes through a proxy."""
    assert environment_proxy(server, {"HTTPS_PROXY": PROXY, "NO_PROXY": exceptions}) == ""


@pytest.mark.parametrize(
    ("server", "exceptions"),
    [
        ("https://api.example.com", ""),
        ("https://notexample.com", "example.com"),
        ("https://example.com", ".example.com"),
        ("https://api.example.com:6443", "example.com:443"),
        ("https://11.1.2.3", "10.0.0.0/8"),
        ("https://api.example.com", "10.0.0.0/8"),
        ("https://10.1.2.3", "nonsense/8"),
    ],
)
def test_others_go_through_the_proxy(server: str, exceptions: str) -> None:
    """What NO_PROXY does not name goes through the proxy."""
    assert environment_proxy(server, {"HTTPS_PROXY": PROXY, "NO_PROXY": exceptions}) == PROXY


def test_small_letters_and_a_bare_host_are_understood() -> None:
    """https_proxy=host:port is what many environments have."""
    assert environment_proxy("https://api.example.com", {"https_proxy": "proxy:1"}) == "http://proxy:1"


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("socks5://user:hunter2@proxy:1080", "a SOCKS proxy"),
        ("http://", "as http://HOST:PORT"),
        ("http://user:hunter2@proxy:99999", "malformed"),
        ("http://[::1", "malformed"),
    ],
)
def test_proxy_that_cannot_be_used_is_told_with_its_variable(proxy: str, words: str) -> None:
    """And without its password; aiohttp would take a SOCKS proxy for one of HTTP."""
    with pytest.raises(ConfigError, match=f"the environment: expected HTTPS_PROXY .*{words}") as caught:
        environment_proxy("https://api.example.com", {"HTTPS_PROXY": proxy})
    assert "hunter2" not in str(caught.value)


def test_the_scheme_of_the_server_chooses_the_variable() -> None:
    """HTTP_PROXY is not for https."""
    assert environment_proxy("https://api.example.com", {"HTTP_PROXY": PROXY}) == ""
    assert environment_proxy("http://api.example.com", {"HTTP_PROXY": PROXY}) == PROXY
