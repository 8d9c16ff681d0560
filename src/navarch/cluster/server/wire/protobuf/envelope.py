"""What Kubernetes puts around each protobuf message: a mark, and of which kind it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from navarch.cluster.server.wire.protobuf.messages import message_of
from navarch.cluster.server.wire.protobuf.wire import MalformedError, parts
from navarch.cluster.server.wire.request import Json

__all__ = ["Envelope", "opened"]

_MARK: Final = b"k8s\0"
_SCHEME: Final = "pkg/runtime/scheme.go:111"
_UNKNOWN: Final = {1: "TypeMeta", 2: "Raw", 3: "ContentEncoding", 4: "ContentType"}
_TYPE_META: Final = {1: "APIVersion", 2: "Kind"}


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message that is not read yet; the kind may be left out."""

    api_version: str
    kind: str
    raw: bytes

    def read(self, api_version: str, kind: str) -> Json:
        """The message as an object of that kind; raises MalformedError if it is none, or nobody knows the kind."""
        message = message_of(api_version, kind)
        if message is None:
            raise MalformedError(f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"')
        return {"apiVersion": api_version, "kind": kind, **message.read(self.raw)}


def opened(body: bytes) -> Envelope:
    """The envelope that a body is; raises MalformedError, with the words of Kubernetes."""
    if not body:
        raise MalformedError("empty data")
    if not body.startswith(_MARK):
        mark = " ".join(str(byte) for byte in _MARK)
        raise MalformedError(f"provided data does not appear to be a protobuf message, expected prefix [{mark}]")
    if len(body) == len(_MARK):
        raise MalformedError("empty body")
    found = _contents(body[len(_MARK) :], "Unknown", _UNKNOWN)
    meta = _contents(found.get(1, b""), "TypeMeta", _TYPE_META)
    api_version, kind = (meta.get(number, b"").decode(errors="replace") for number in (1, 2))
    return Envelope(api_version, kind, found.get(2, b""))


def _contents(data: bytes, message: str, fields: dict[int, str]) -> dict[int, bytes]:
    """The fields of a message that has nothing but bytes."""
    found = {}
    for number, wire, content in parts(data, message):
        if number in fields:
            if not isinstance(content, bytes):
                raise MalformedError(f"proto: wrong wireType = {wire} for field {fields[number]}")
            found[number] = content
    return found
