"""Translates error responses of etcd's gateway to `EtcdError`s."""

from __future__ import annotations

import msgspec

from navarch.errors import (
    EtcdAccessError,
    EtcdCompactedError,
    EtcdError,
    EtcdExhaustedError,
    EtcdNotFoundError,
    EtcdRefusedError,
    EtcdUnavailableError,
    EtcdUncertainError,
)

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""The exceptions of decoding an invalid response, however deeply nested."""
_LONGEST = 1000
_DEADLINE_EXCEEDED, _OUT_OF_RANGE, _UNAVAILABLE = 4, 11, 14
_KINDS: dict[int, type[EtcdError]] = {
    3: EtcdRefusedError,
    5: EtcdNotFoundError,
    6: EtcdRefusedError,
    7: EtcdAccessError,
    8: EtcdExhaustedError,
    9: EtcdRefusedError,
    _OUT_OF_RANGE: EtcdRefusedError,
    16: EtcdAccessError,
}
_NO_PAGE = 404
_ETCDS_OWN = b"etcdserver: "
"""The prefix of etcd's own messages: etcd also responds 404, for an unknown member."""
_COMPACTED = "required revision has been compacted"
# etcd says this before it proposes anything; another member, or a later attempt, may succeed.
_NOTHING_WAS_DONE = ("no leader", "unhealthy cluster", "not healthy for reconfigure", "not supported for learner")
_STALE_TOKEN = ("invalid auth token", "revision of auth store is old", "user name is empty")
_OPEN_TO_ALL = "authentication is not enabled"
_WRONG_PASSWORD = "authentication failed"  # noqa: S105 - etcd's message, with the code of a bad request


class NotThereError(EtcdError):
    """The endpoint serves nothing under that path; nothing was executed."""


class _ErrorBody(msgspec.Struct):
    code: int = 2
    message: str = ""
    error: str = ""


class StreamFault(msgspec.Struct):
    """An error inside a stream; older gateways call the code `grpc_code`."""

    code: int = 0
    grpc_code: int = 0
    message: str = ""


_decoder = msgspec.json.Decoder(_ErrorBody, strict=False)


def error_of_answer(endpoint: str, path: str, status: int, body: bytes) -> EtcdError:
    """Returns the error for a response with that HTTP status."""
    if status == _NO_PAGE and _ETCDS_OWN not in body:
        return NotThereError(
            f"expected etcd's gateway at {endpoint}{path}, got status 404: is it etcd, and its gateway on?"
        )
    try:
        answer = _decoder.decode(body)
    except UNREADABLE:
        return EtcdError(f"expected an answer of etcd's gateway from {endpoint}{path}, got status {status} and no JSON")
    return _error(f"{endpoint}{path}", answer.code, answer.message or answer.error)


def error_of_fault(endpoint: str, path: str, fault: StreamFault) -> EtcdError:
    """Returns the error for a fault inside a stream."""
    return _error(f"{endpoint}{path}", fault.code or fault.grpc_code, fault.message)


def is_stale_token(error: EtcdError) -> bool:
    """Reports whether a new token may help; nothing was executed."""
    return any(words in str(error) for words in _STALE_TOKEN)


def is_open_to_all(error: EtcdError) -> bool:
    """Reports whether authentication is disabled."""
    return _OPEN_TO_ALL in str(error)


def _error(where: str, code: int, message: str) -> EtcdError:
    message = message[:_LONGEST]
    text = f"{where}: {message or f'gRPC code {code}'}"
    if code == _OUT_OF_RANGE and _COMPACTED in message:
        return EtcdCompactedError(text)
    if _WRONG_PASSWORD in message or is_stale_token(EtcdError(message)):
        return EtcdAccessError(text)
    if any(words in message for words in _NOTHING_WAS_DONE):
        return EtcdUnavailableError(text)
    if code in {_UNAVAILABLE, _DEADLINE_EXCEEDED}:
        return EtcdUncertainError(text)
    return _KINDS.get(code, EtcdError)(text)
