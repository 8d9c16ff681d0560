"""Endpoints that the operator does not talk to."""

from __future__ import annotations

import pytest

from etcd_operator.connector import endpoint_refusal


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254",
        "http://169.254.169.254:80/latest",
        "http://2852039166",
        "http://0xa9fea9fe",
        "http://0251.0376.0251.0376",
        "http://[::ffff:169.254.169.254]",
        "http://[::ffff:a9fe:a9fe]",
        "http://[64:ff9b::a9fe:a9fe]",
        "http://[fe80::1]",
        "http://[fd00:ec2::254]",
        "http://168.63.129.16",
        "http://0.0.0.0",
        "http://[::]",
    ],
)
async def test_the_machines_own_addresses_are_no_endpoints(url: str) -> None:
    """Every form of the address that the system resolves is refused."""
    assert "name another endpoint" in await endpoint_refusal(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "store",
        "file:///etc/passwd",
        "ftp://store",
        "http://",
        "http://u:secret@store",
        "http://a:b",
        "http://a?k=secret",
    ],
)
async def test_what_is_no_url_of_a_host_is_no_endpoint(url: str) -> None:
    """The error does not repeat user, query and fragment."""
    said = await endpoint_refusal(url)
    assert "such as https://store.example.com" in said
    assert "secret" not in said


@pytest.mark.parametrize("url", ["http://127.0.0.1:9000", "https://10.0.0.1", "https://[2001:db8::1]:9000/x"])
async def test_others_are(url: str) -> None:
    """Addresses of pods and Services are accepted, because stores of the cluster have them."""
    assert await endpoint_refusal(url) == ""
