"""The messages between a cluster and its shims: marshalled values with their length in front, and file descriptors."""

from __future__ import annotations

import _socket
import array
import marshal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

_HEAD: Final = 4
_PIECE: Final = 262144
_MOST_DESCRIPTORS: Final = 64


def packed(message: dict[str, Any]) -> bytes:
    """Returns the message as bytes. Both ends run the same Python, so that `marshal` fits."""
    body = marshal.dumps(message)
    return len(body).to_bytes(_HEAD, "little") + body


class Inbox:
    """Assembles messages from received pieces."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._descriptors: list[int] = []

    def receive(self, link: _socket.socket) -> list[dict[str, Any]] | None:
        """Returns the messages that are complete; None after the other end was closed. Raises `BlockingIOError`.

        The field `descriptors` of a message, a number, is replaced by the received descriptors.
        """
        space = _socket.CMSG_LEN(_MOST_DESCRIPTORS * array.array("i").itemsize)
        try:
            data, ancillary, _, _ = link.recvmsg(_PIECE, space, _socket.MSG_CMSG_CLOEXEC)
        except ConnectionError:
            return None
        for level, kind, content in ancillary:
            self._descriptors += descriptors(level, kind, content)
        if not data:
            return None
        self._data += data
        return self._complete()

    def _complete(self) -> list[dict[str, Any]]:
        found = []
        while len(self._data) >= _HEAD:
            end = _HEAD + int.from_bytes(self._data[:_HEAD], "little")
            if len(self._data) < end:
                break
            message = marshal.loads(bytes(self._data[_HEAD:end]))  # noqa: S302 - from our own process
            del self._data[:end]
            count = message.get("descriptors", 0)
            message["descriptors"], self._descriptors = self._descriptors[:count], self._descriptors[count:]
            found.append(message)
        return found


def descriptors(level: int, kind: int, content: bytes) -> list[int]:
    """Returns the descriptors in one item of ancillary data."""
    if (level, kind) != (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
        return []
    found = array.array("i")
    found.frombytes(content[: len(content) - len(content) % found.itemsize])
    return list(found)


def send_with(link: _socket.socket, data: bytes, fds: list[int]) -> int:
    """Sends as many bytes as fit, and the descriptors with the first byte. Raises `BlockingIOError`."""
    ancillary = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", fds).tobytes())] if fds else []
    return link.sendmsg([data], ancillary)
