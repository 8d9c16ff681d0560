"""How a command ended: the Status on the error channel."""

from __future__ import annotations

import msgspec

from navarch.client.answers import StatusBody, error_from_status
from navarch.errors import BadAnswerError, ConnectionLostError

__all__ = ["Outcome"]

_LARGEST_STATUS = 2**20


class _Status(StatusBody, rename="camel"):
    status: str | None = None


class Outcome:
    """Reads the Status, which may come in parts."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._text = b""

    def take(self, part: bytes) -> int | None:
        """The exit code once the Status is complete; raises the error that it stands for if the command never ran."""
        self._text += part
        try:
            status = msgspec.json.decode(self._text, type=_Status)
        except msgspec.ValidationError as error:
            raise self._not_a_status(error) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if len(self._text) > _LARGEST_STATUS:
                raise self._not_a_status(error) from error
            return None
        return self._exit_code(status)

    def broken_off(self) -> BadAnswerError | ConnectionLostError:
        """The error for a connection that was closed before the Status was complete."""
        if self._text:
            return self._not_a_status("it broke off")
        return ConnectionLostError(f"{self._what}: expected an exit code, got the end of the connection")

    def _exit_code(self, status: _Status) -> int:
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
