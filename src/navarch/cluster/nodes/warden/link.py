"""The cluster's end of the socket to a warden."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from typing import Any

from navarch.cluster.nodes.warden.program.wire import Inbox, packed

__all__ = ["Link"]


class Link:
    """Sends messages, and hands on those that come; `closed` is done when the other end is gone."""

    def __init__(self, end: socket.socket, heard: Callable[[dict[str, Any]], None]) -> None:
        self._end = end
        self._heard = heard
        self._inbox = Inbox()
        self._outbox = bytearray()
        self._loop = asyncio.get_running_loop()
        self.closed = asyncio.Event()
        end.setblocking(False)
        self._loop.add_reader(end.fileno(), self._receive)

    def send(self, message: dict[str, Any]) -> None:
        """Sends it as soon as there is room; nothing happens once the other end is gone."""
        if self.closed.is_set():
            return
        self._outbox += packed(message)
        self._flush()

    def close(self) -> None:
        """The other end sees that this one is gone. May be called twice."""
        if not self.closed.is_set():
            self._loop.remove_reader(self._end.fileno())
            self._loop.remove_writer(self._end.fileno())
            self._end.close()
            self.closed.set()

    def _flush(self) -> None:
        try:
            while self._outbox:
                del self._outbox[: self._end.send(self._outbox)]
        except BlockingIOError:
            self._loop.add_writer(self._end.fileno(), self._flush)
            return
        except OSError:
            self.close()
            return
        self._loop.remove_writer(self._end.fileno())

    def _receive(self) -> None:
        with contextlib.suppress(BlockingIOError):
            messages = self._inbox.receive(self._end)
            if messages is None:
                self.close()
            for message in messages or ():
                self._heard(message)


def close_all(descriptors: list[int]) -> None:
    """Closes what nobody wants."""
    for fd in descriptors:
        os.close(fd)
