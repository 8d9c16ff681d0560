"""A command or container that is talked to while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

from navarch.api import encode
from navarch.client.pods import channels
from navarch.client.pods.outcome import Outcome
from navarch.client.transport import WebSocket
from navarch.errors import BadAnswerError, InvalidValueError

__all__ = ["Output", "Session"]

_NAMES: dict[int, Literal["stdout", "stderr"]] = {channels.STDOUT: "stdout", channels.STDERR: "stderr"}


@dataclass(frozen=True, slots=True)
class Output:
    """Bytes as they came; where one ends means nothing."""

    stream: Literal["stdout", "stderr"]
    data: bytes


class Session:
    """A running command: `async for output in session` reads what it writes until it ends, `send` writes to it.

    Nothing is read ahead: while nobody reads, the command is held up. If it answers while it is still being sent to,
    both must go on at the same time. Leaving the session does not end the command.
    Raises `ConnectionLostError` when the connection breaks, an `ApiError` if the command could not be started.
    """

    def __init__(self, socket: WebSocket, what: str, *, stdin: bool, tty: bool) -> None:
        self._socket = socket
        self._what = what
        self._stdin_open = stdin
        self._tty = tty
        self._outcome = Outcome(what)
        self.exit_code: int | None = None
        """The exit code once everything has been read; None before that."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Output:
        while self.exit_code is None:
            message = await self._socket.receive()
            if message is None:
                raise self._outcome.broken_off()
            if output := self._take(message):
                return output
        raise StopAsyncIteration

    async def send(self, data: bytes) -> None:
        """Writes to standard input; waits while the command takes no more."""
        self._check_stdin()
        for piece in channels.pieces(channels.STDIN, data):
            await self._socket.send(piece)

    async def close_stdin(self) -> None:
        """Ends standard input: the command reads what was sent, then the end."""
        self._check_stdin()
        if self._socket.protocol != channels.V5:
            raise BadAnswerError(
                f"{self._what}: expected a server that can end standard input ({channels.V5}, Kubernetes 1.30), "
                f"got {self._socket.protocol}; let the command know the end by what it is sent"
            )
        self._stdin_open = False
        await self._socket.send(bytes([channels.CLOSE, channels.STDIN]))

    async def resize(self, *, columns: int, rows: int) -> None:
        """Tells the terminal its size."""
        if not self._tty:
            raise InvalidValueError(f"{self._what}: only a terminal has a size; open the session with tty=True")
        size = encode({"Width": columns, "Height": rows})
        await self._socket.send(bytes([channels.RESIZE]) + size)

    async def wait(self) -> int:
        """The exit code; what the command still writes is dropped. Attached containers always give 0."""
        async for _ in self:
            pass
        assert self.exit_code is not None
        return self.exit_code

    def _take(self, message: bytes) -> Output | None:
        channel, data = message[:1], message[1:]
        if not data or channel[0] == channels.CLOSE:
            return None
        if stream := _NAMES.get(channel[0]):
            return Output(stream, data)
        if channel[0] != channels.ERROR:
            raise BadAnswerError(f"{self._what}: expected output on channel 1, 2 or 3, got channel {channel[0]}")
        self.exit_code = self._outcome.take(data)
        return None

    def _check_stdin(self) -> None:
        if not self._stdin_open:
            raise InvalidValueError(f"{self._what}: standard input is closed; open the session with stdin=True")
