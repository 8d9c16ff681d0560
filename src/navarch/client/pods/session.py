"""An interactive session with a command or container, and its exit status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import msgspec

from navarch.api import encode
from navarch.client.pods import sockets
from navarch.client.response_errors import StatusBody, error_from_status
from navarch.client.transport import WebSocket
from navarch.errors import BadAnswerError, ConnectionLostError, InvalidValueError

_LARGEST_STATUS = 2**20


class _ExitStatusBody(StatusBody, rename="camel"):
    status: str | None = None


class ExitStatus:
    """Reads the Status on the error channel, which may come in parts."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._text = b""

    def take(self, part: bytes) -> int | None:
        """Returns the exit code once the Status is complete; raises its error if the command never ran."""
        self._text += part
        try:
            status = msgspec.json.decode(self._text, type=_ExitStatusBody)
        except msgspec.ValidationError as error:
            raise self._not_a_status(error) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if len(self._text) > _LARGEST_STATUS:
                raise self._not_a_status(error) from error
            return None
        return self._exit_code(status)

    def broken_off(self) -> BadAnswerError | ConnectionLostError:
        """Returns the error for a connection that closed before the Status was complete."""
        if self._text:
            return self._not_a_status("it broke off")
        return ConnectionLostError(f"{self._what}: expected an exit code, got the end of the connection")

    def _exit_code(self, status: _ExitStatusBody) -> int:
        if status.status == "Success":
            return 0
        if status.status != "Failure":
            raise self._not_a_status(f"status {status.status!r}")
        if status.reason != "NonZeroExitCode":
            raise error_from_status(self._what, status)
        causes = status.details.causes if status.details else None
        codes = [cause.message or "" for cause in causes or () if cause.reason == "ExitCode"]
        if not codes or not codes[0].isascii() or not codes[0].isdigit():
            raise self._not_a_status(f"exit codes {codes}")
        return int(codes[0])

    def _not_a_status(self, fault: object) -> BadAnswerError:
        return BadAnswerError(
            f"{self._what}: expected a Status with an exit code on the error channel, got {len(self._text)} bytes ({fault})"
        )


_NAMES: dict[int, Literal["stdout", "stderr"]] = {sockets.STDOUT: "stdout", sockets.STDERR: "stderr"}


@dataclass(frozen=True, slots=True)
class Output:
    """Bytes as they arrived; their boundaries mean nothing."""

    stream: Literal["stdout", "stderr"]
    data: bytes


class Session:
    """A running command: `async for output in session` reads its output until it ends, `send` writes to it.

    Nothing is read ahead: the command blocks while its output is not read. If it answers during a long `send`, read at
    the same time. Leaving the session does not end the command. Raises `ConnectionLostError` when the connection
    breaks, an `ApiError` if the command could not be started.
    """

    def __init__(self, socket: WebSocket, what: str, *, stdin: bool, tty: bool) -> None:
        self._socket = socket
        self._what = what
        self._stdin_open = stdin
        self._tty = tty
        self._outcome = ExitStatus(what)
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
        """Writes to standard input; waits while the command reads no more."""
        self._check_stdin()
        for piece in sockets.pieces(sockets.STDIN, data):
            await self._socket.send(piece)

    async def close_stdin(self) -> None:
        """Ends standard input: the command reads the rest, then the end."""
        self._check_stdin()
        if self._socket.protocol != sockets.V5:
            raise BadAnswerError(
                f"{self._what}: expected a server that can end standard input ({sockets.V5}, Kubernetes 1.30), "
                f"got {self._socket.protocol}; let the command know the end by what it is sent"
            )
        self._stdin_open = False
        await self._socket.send(bytes([sockets.CLOSE, sockets.STDIN]))

    async def resize(self, *, columns: int, rows: int) -> None:
        """Sets the size of the terminal."""
        if not self._tty:
            raise InvalidValueError(f"{self._what}: only a terminal has a size; open the session with tty=True")
        size = encode({"Width": columns, "Height": rows})
        await self._socket.send(bytes([sockets.RESIZE]) + size)

    async def wait(self) -> int:
        """Returns the exit code and drops the remaining output. Attached containers always give 0."""
        async for _ in self:
            pass
        assert self.exit_code is not None
        return self.exit_code

    def _take(self, message: bytes) -> Output | None:
        channel, data = message[:1], message[1:]
        if not data or channel[0] == sockets.CLOSE:
            return None
        if stream := _NAMES.get(channel[0]):
            return Output(stream, data)
        if channel[0] != sockets.ERROR:
            raise BadAnswerError(f"{self._what}: expected output on channel 1, 2 or 3, got channel {channel[0]}")
        self.exit_code = self._outcome.take(data)
        return None

    def _check_stdin(self) -> None:
        if not self._stdin_open:
            raise InvalidValueError(f"{self._what}: standard input is closed; open the session with stdin=True")
