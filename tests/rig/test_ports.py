"""Ports for servers that bind them later."""

import socket

import pytest

from rig import ports


def test_reserved_port_is_given_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even before its server listens; it is free again when it is given back."""
    with ports.reserved(2) as held:
        monkeypatch.setattr(ports, "RANGE", held)
        with pytest.raises(OSError, match="no free port"), ports.reserved(1):
            pass
    with ports.reserved(2) as again:
        assert sorted(again) == sorted(held)


def test_server_can_have_its_reserved_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one on which something listens is not given to anybody."""
    with ports.reserved(1) as [port], socket.create_server(("127.0.0.1", port)) as server:
        assert server.getsockname()[1] == port
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(ports, "RANGE", [server.getsockname()[1]])
        with pytest.raises(OSError, match="no free port"), ports.reserved(1):
            pass
