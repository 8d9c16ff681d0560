"""Addresses are classified as a pod sees them."""

from __future__ import annotations

import socket
import struct

import pytest

from navarch.cluster.nodes.shim.program.socket_addresses import PodAddress, parsed

_POD = PodAddress("127.70.128.9")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("0.0.0.0", "any"),
        ("127.0.0.1", "localhost"),
        ("127.0.0.53", "localhost"),
        ("127.71.128.9", "localhost"),
        ("127.70.128.9", "own"),
        ("127.70.0.1", "cluster"),
        ("127.70.128.10", "cluster"),
        ("192.0.2.1", "outside"),
        ("0.0.0.1", "outside"),
        ("255.255.255.255", "outside"),
    ],
)
def test_place_of_an_address_is_the_same_in_both_families(text: str, place: str) -> None:
    """An IPv4 address has the same class when IPv6 maps it."""
    assert _POD.place(socket.inet_aton(text)) == place
    assert _POD.place(socket.inet_pton(socket.AF_INET6, f"::ffff:{text}")) == place


@pytest.mark.parametrize(
    ("text", "place"),
    [("::", "any"), ("::1", "localhost"), ("::2", "outside"), ("::127.0.0.1", "outside"), ("fe80::1", "outside")],
)
def test_place_of_an_address_of_ipv6(text: str, place: str) -> None:
    """IPv6 addresses are not taken for IPv4 ones."""
    assert _POD.place(socket.inet_pton(socket.AF_INET6, text)) == place


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_own_address_is_read_as_it_is_written(family: int) -> None:
    """Encoding and parsing return the same address and port."""
    packed, port = parsed(_POD.sockaddr(family, 9090))
    assert (_POD.place(packed), port) == ("own", 9090)


@pytest.mark.parametrize("data", [b"", b"\2", struct.pack("=H", socket.AF_INET) + bytes(13), bytes(16), b"\xff" * 28])
def test_nonsense_is_an_error_of_the_system(data: bytes) -> None:
    """An invalid address raises `OSError`, and no other error."""
    with pytest.raises(OSError, match=r"not supported|Invalid"):
        parsed(data)
