"""Services over UDP: what comes to their address goes to a pod, and its answers back to whoever asked."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from navarch._base.clock import Clock
from navarch.cluster.nodes.network.proxies import Address

__all__ = ["Datagrams"]

_log = logging.getLogger("navarch.nodes")
_LARGEST: Final = 65536
_IDLE_SECONDS: Final = 60.0
"""A client that was silent for so long may get another pod."""


@dataclass(slots=True)
class _Flow:
    """The way between one client and one pod."""

    pod: Address
    link: socket.socket
    used_at: float


class _Listener:
    """One port of one service."""

    def __init__(self, address: Address, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._flows: dict[Address, _Flow] = {}
        self._loop = asyncio.get_running_loop()
        self.pods: list[Address] = []
        self._socket = _bound(address)
        self._loop.add_reader(self._socket, self._asked)

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for client in list(self._flows):
            self._end(client)

    def _asked(self) -> None:
        while True:
            try:
                data, client = self._socket.recvfrom(_LARGEST)
            except OSError:
                return
            self._send(client, data)

    def _send(self, client: Address, data: bytes) -> None:
        """To the pod of this client; what nobody is there for is lost, as datagrams are."""
        flow = self._flows.get(client)
        if flow is None or flow.pod not in self.pods:
            flow = self._begun(client)
        if flow is not None:
            flow.used_at = self._clock.monotonic()
            try:
                flow.link.send(data)
            except OSError:
                self._end(client)

    def _begun(self, client: Address) -> _Flow | None:
        self._forget_silent()
        self._end(client)
        if not self.pods:
            return None
        pod = self._rng.choice(self.pods)
        link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        link.setblocking(False)
        link.connect(pod)
        self._loop.add_reader(link, self._answered, client, link)
        flow = self._flows[client] = _Flow(pod, link, self._clock.monotonic())
        return flow

    def _answered(self, client: Address, link: socket.socket) -> None:
        while True:
            try:
                self._socket.sendto(link.recv(_LARGEST), client)
            except OSError:
                return

    def _forget_silent(self) -> None:
        now = self._clock.monotonic()
        for client in [client for client, flow in self._flows.items() if now - flow.used_at > _IDLE_SECONDS]:
            self._end(client)

    def _end(self, client: Address) -> None:
        flow = self._flows.pop(client, None)
        if flow is not None:
            self._loop.remove_reader(flow.link)
            flow.link.close()


def _bound(address: Address) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        found.setblocking(False)
        found.bind(address)
    except OSError:
        found.close()
        raise
    return found


class Datagrams:
    """Keeps a listener for each UDP port of each service."""

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._listeners: dict[Address, _Listener] = {}

    def follow(self, wanted: Mapping[Address, list[Address]]) -> None:
        """Services are as `wanted` says from now on."""
        for address in [known for known in self._listeners if known not in wanted]:
            self._listeners.pop(address).close()
        for address, pods in wanted.items():
            listener = self._listeners.get(address) or self._listening(address)
            if listener is not None:
                listener.pods = pods

    def _listening(self, address: Address) -> _Listener | None:
        try:
            listener = self._listeners[address] = _Listener(address, self._clock, self._rng)
        except OSError as error:
            _log.warning("service at %s:%d (UDP) cannot be reached: %s", *address, error)
            return None
        return listener

    def close(self) -> None:
        """No service is reached any more."""
        self.follow({})
