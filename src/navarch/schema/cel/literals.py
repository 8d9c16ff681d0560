"""The values of string, bytes and number tokens."""

from __future__ import annotations

import math
import re

from navarch.schema.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint

_ESCAPE = re.compile(r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def string_value(text: str) -> str:
    """Raises `ValueError` for an escape that is no Unicode character."""
    body, raw = _body(text)
    return body if raw else _ESCAPE.sub(_character, body)


def bytes_value(text: str) -> bytes:
    """The text is without its leading b. Raises `ValueError` for a Unicode escape, which bytes do not know."""
    body, raw = _body(text)
    if raw:
        return body.encode()
    value = bytearray()
    end = 0
    for match in _ESCAPE.finditer(body):
        value += body[end : match.start()].encode() + _byte(match)
        end = match.end()
    return bytes(value + body[end:].encode())


def int_value(text: str) -> int:
    """Raises `ValueError` if it is outside 64 bits."""
    value = int(text, 16) if "0x" in text else int(text)
    if not INT_MIN <= value <= INT_MAX:
        raise ValueError(text)
    return value


def uint_value(text: str) -> Uint:
    """Raises `ValueError` if it is outside 64 bits."""
    value = int(text[:-1], 16) if text.startswith("0x") else int(text[:-1])
    if value > UINT_MAX:
        raise ValueError(text)
    return Uint(value)


def float_value(text: str) -> float:
    """Raises `ValueError` if it is beyond the largest double."""
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    return value


def _body(text: str) -> tuple[str, bool]:
    raw = text[0] in "rR"
    quoted = (text[1:] if raw else text).replace("\r\n", "\n").replace("\r", "\n")
    width = 3 if quoted[:3] in {'"""', "'''"} else 1
    return quoted[width:-width], raw


def _character(match: re.Match[str]) -> str:
    hexadecimal = match[1] or match[2] or match[3]
    if hexadecimal or match[4]:
        point = int(hexadecimal, 16) if hexadecimal else int(match[4], 8)
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            raise ValueError(match.group())
        return chr(point)
    return _SIMPLE.get(match[5], match[5])


def _byte(match: re.Match[str]) -> bytes:
    if match[2] or match[3]:
        raise ValueError(match.group())
    if match[1] or match[4]:
        return bytes([int(match[1], 16) if match[1] else int(match[4], 8)])
    return _SIMPLE.get(match[5], match[5]).encode()
