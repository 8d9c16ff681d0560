"""The function that mutating policies have for JSON patches."""

from __future__ import annotations

from navarch.schema.cel.signatures import function


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


OVERLOADS = (function("jsonpatch.escapeKey", "string -> string", _escaped),)
