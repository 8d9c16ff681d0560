"""What the process of an operator reports to the supervisor, and the channel between them."""

from __future__ import annotations

import socket
from typing import Final

import msgspec

_LONGEST: Final = 60_000
"""Bytes of one message: far below the buffer of a socket, so that one message fits whenever another one was read."""
_LONGEST_TEXT: Final = 8_000


class OperatorLoaded(msgspec.Struct, frozen=True, tag_field="message", tag="loaded"):
    """The code was imported; the process waits for `start`."""

    operator: str


class OperatorPrepared(msgspec.Struct, frozen=True, tag_field="message", tag="prepared"):
    """CRDs and webhooks are in place, and the controllers start."""

    modules: list[str]
    """The modules of navarch and of its dependencies that were needed: the supervisor imports them before the next start."""


class LoadFailed(msgspec.Struct, frozen=True, tag_field="message", tag="failed"):
    """The code could not be imported, or declares something impossible."""

    place: str
    """File and line, relative to the project; empty if unknown."""
    cause: str
    trace: str = ""
    """The frames inside the project."""


class LogRecordLine(msgspec.Struct, frozen=True, tag_field="message", tag="log"):
    """A log record, as `JsonFormatter` writes it."""

    json: str


class EventReported(msgspec.Struct, frozen=True, tag_field="message", tag="event"):
    """A Kubernetes Event that the operator wrote."""

    type: str
    reason: str
    about: str
    note: str


class ControllerState(msgspec.Struct, frozen=True):
    """One controller; counters start with the process."""

    name: str
    waiting: int
    busy: int
    workers: int
    reconciles: int
    errors: int
    seconds: float
    """The sum of the durations of all reconciles."""


class WatchState(msgspec.Struct, frozen=True):
    """One watch, with the number of objects in the cache."""

    kind: str
    scope: str
    state: str
    staleness: float
    objects: int


class OperatorState(msgspec.Struct, frozen=True, tag_field="message", tag="state"):
    """The operator at one moment."""

    at: float
    """Seconds of the monotonic clock, which all processes of a machine share."""
    cluster: str
    """Host and port of the API server."""
    is_leading: bool | None
    """None without an election."""
    controllers: list[ControllerState]
    watches: list[WatchState]
    dropped: int = 0
    """How many reports, such as log records, the supervisor did not take in time so far."""


Message = OperatorLoaded | OperatorPrepared | LoadFailed | LogRecordLine | EventReported | OperatorState
_DECODER: Final[msgspec.json.Decoder[Message]] = msgspec.json.Decoder(Message)
_START: Final = b"start"


class ReportChannel:
    """The operator's end. A report never blocks: if the supervisor does not read, it is dropped and counted."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self.dropped = 0

    def send(self, message: Message) -> None:
        """Sends the message; may be called from any thread."""
        encoded = msgspec.json.encode(message)
        if len(encoded) > _LONGEST:
            self.dropped += 1
            return
        try:
            self._end.send(encoded, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError:  # the buffer is full, or the supervisor has ended
            self.dropped += 1

    def wait_for_start(self) -> bool:
        """Returns True once the supervisor says so; False if it has ended."""
        return self._end.recv(len(_START)) == _START


class SupervisorChannel:
    """The supervisor's end."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def fileno(self) -> int:
        """Returns the descriptor, for a selector."""
        return self._end.fileno()

    def start(self) -> None:
        """Lets a loaded operator run."""
        try:
            self._end.send(_START, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError:
            return  # it has ended, which its exit code will say

    def receive(self) -> Message | None:
        """Returns the next message without waiting; None if there is none."""
        try:
            found = self._end.recv(2 * _LONGEST, socket.MSG_DONTWAIT)
        except OSError:
            return None
        return _DECODER.decode(found) if found else None

    def close(self) -> None:
        """Closes the channel."""
        self._end.close()


def channel() -> tuple[SupervisorChannel, ReportChannel, socket.socket]:
    """Returns both ends, and the socket of the operator's, to be closed in the supervisor after the fork."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return SupervisorChannel(ours), ReportChannel(theirs), theirs


def shortened(text: str) -> str:
    """Returns the text, cut to what fits into a message together with other parts.

    >>> shortened("short")
    'short'
    """
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."
