"""The head of an object: its metadata, without the rest and without a model."""

from __future__ import annotations

import msgspec

__all__ = ["Head", "Headed", "head_of"]


class Head(msgspec.Struct, rename="camel", gc=False):
    """As much of an object's metadata as is needed to know which object it is, and which version of it."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    deletion_timestamp: str | None = None
    managed_fields: msgspec.Raw = msgspec.Raw()


class Headed(msgspec.Struct, gc=False):
    """An object of which only the head is looked at."""

    metadata: Head = msgspec.field(default_factory=Head)


_decoder = msgspec.json.Decoder(Headed)


def head_of(data: bytes) -> Head:
    """The head of an object's JSON; raises `msgspec.DecodeError`."""
    return _decoder.decode(data).metadata
