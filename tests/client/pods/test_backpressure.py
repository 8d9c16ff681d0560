"""Nothing is read before somebody wants it."""

from __future__ import annotations

from collections import deque

import pytest

from navarch.client.pods import PodStream, Session


class CountingSocket:
    """Has these messages and counts how many were taken."""

    protocol = "v5.channel.k8s.io"

    def __init__(self, *messages: bytes) -> None:
        self._messages = deque(messages)
        self.taken = 0

    async def send(self, data: bytes) -> None: ...

    async def receive(self) -> bytes | None:
        self.taken += 1
        return self._messages.popleft() if self._messages else None

    async def close(self) -> None: ...


async def test_session_takes_one_message_for_each_output() -> None:
    """A slow reader holds up the command, not the memory."""
    socket = CountingSocket(b"\x01a", b"\x02b", b"\x01c")
    session = Session(socket, "exec", stdin=False, tty=False)
    assert socket.taken == 0
    for taken in (1, 2, 3):
        await anext(session)
        assert socket.taken == taken


async def test_stream_takes_no_message_while_there_are_bytes_left() -> None:
    """Nor does writing read."""
    socket = CountingSocket(b"\x00\x50\x00abcd", b"\x00e")
    stream = PodStream(socket, 80, "port-forward", lambda _: None)
    await stream.write(b"x")
    assert socket.taken == 0
    assert [await stream.read(2), await stream.read(2)] == [b"ab", b"cd"]
    assert socket.taken == 1
    assert await stream.read() == b"e"


@pytest.mark.parametrize("size", [0, 1, 32 * 1024, 32 * 1024 + 1, 10**6])
async def test_large_input_is_sent_in_small_messages(size: int) -> None:
    """So that no message is a burden to anybody."""
    sent: list[bytes] = []

    class Socket(CountingSocket):
        async def send(self, data: bytes) -> None:
            sent.append(data)

    await Session(Socket(), "exec", stdin=True, tty=False).send(b"x" * size)
    assert sum(map(len, sent)) == size + len(sent)
    assert all(len(message) <= 32 * 1024 + 1 for message in sent)
