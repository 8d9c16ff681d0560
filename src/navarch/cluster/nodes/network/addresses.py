"""Address allocation: `LoopbackBlock` for pods that run, `AddressPool` for simulated ones."""

from __future__ import annotations

import ipaddress
import socket
from collections import deque
from contextlib import suppress
from ipaddress import IPv4Network
from typing import Final, Self

from navarch.errors import ConfigError

_FIRST: Final = 64
_LAST: Final = 254
_LOCK_PORT: Final = 47640
"""Held on the last address of a block for as long as the block is: the kernel gives it back even after kill -9."""


class AddressPool:
    """The addresses of one network. A released address is reused as late as possible."""

    def __init__(self, network: str) -> None:
        self._network = IPv4Network(network)
        self._fresh = self._network.hosts()
        self._taken: set[str] = set()
        self._returned: deque[str] = deque()

    def take(self) -> str:
        """Returns a free address; raises `ConfigError` if there is none."""
        for address in map(str, self._fresh):
            if address not in self._taken:
                self._taken.add(address)
                return address
        if not self._returned:
            raise ConfigError(f"expected a free address in {self._network}, got none")
        self._taken.add(address := self._returned.popleft())
        return address

    def keep(self, address: str) -> str:
        """Marks an address as taken, and returns it."""
        self._taken.add(address)
        return address

    def give_back(self, address: str) -> None:
        """Releases an address."""
        if address in self._taken:
            self._taken.remove(address)
            self._returned.append(address)


class LoopbackBlock:
    """127.n.0.0/16: the lower half for services, the upper half for pods and nodes. No two clusters of a machine share
    it.

    A released address is reused as late as possible.
    """

    def __init__(self, number: int, lock: socket.socket) -> None:
        self.number = number
        self._lock = lock
        self.services = ipaddress.IPv4Network(f"127.{number}.0.0/17")
        self._pods = ipaddress.IPv4Network(f"127.{number}.128.0/17")
        self._fresh = iter(self._pods.hosts())
        self._returned: deque[str] = deque()

    @classmethod
    def take(cls, preferred: int = _FIRST) -> Self:
        """Takes a free block: the preferred one or the next one after it; raises `ConfigError` if all are taken."""
        for number in (*range(preferred, _LAST + 1), *range(_FIRST, preferred)):
            lock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            with suppress(OSError):
                lock.bind((f"127.{number}.255.254", _LOCK_PORT))
                return cls(number, lock)
            lock.close()
        raise ConfigError(
            f"expected a free block of loopback addresses, got none: {_LAST - _FIRST + 1} clusters run on this machine"
        )

    def address(self) -> str:
        """Returns a free address for a pod or a node."""
        fresh = next(self._fresh, None)
        if fresh is not None:
            return str(fresh)
        if not self._returned:
            raise ConfigError(f"expected a free address in {self._pods}, got none: all belong to pods")
        return self._returned.popleft()

    def has(self, address: str) -> bool:
        """Returns whether the address is in this block."""
        return ipaddress.ip_address(address) in self._pods

    def give_back(self, address: str) -> None:
        """Releases an address."""
        self._returned.append(address)

    def close(self) -> None:
        """Releases the block."""
        self._lock.close()
