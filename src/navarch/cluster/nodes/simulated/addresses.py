"""Addresses of pods and nodes that nobody can reach, since there is nothing."""

from __future__ import annotations

from collections import deque
from ipaddress import IPv4Network

from navarch.errors import ConfigError

__all__ = ["Addresses"]


class Addresses:
    """The addresses of one network. What was given back is given out again as late as possible."""

    def __init__(self, network: str) -> None:
        self._network = IPv4Network(network)
        self._fresh = self._network.hosts()
        self._taken: set[str] = set()
        self._returned: deque[str] = deque()

    def take(self) -> str:
        """One that is free; raises `ConfigError` if there is none."""
        for address in map(str, self._fresh):
            if address not in self._taken:
                self._taken.add(address)
                return address
        if not self._returned:
            raise ConfigError(f"expected a free address in {self._network}, got none")
        self._taken.add(address := self._returned.popleft())
        return address

    def keep(self, address: str) -> str:
        """That one, which somebody already has."""
        self._taken.add(address)
        return address

    def give_back(self, address: str) -> None:
        """Nobody has it any more."""
        if address in self._taken:
            self._taken.remove(address)
            self._returned.append(address)
