"""Go's messages for bodies that are not JSON."""

from __future__ import annotations

from typing import Final

import msgspec

from navarch.api.strconv import go_quoted

_SPACE: Final = b" \t\r\n"
_DIGITS: Final = b"0123456789"
_HEX: Final = b"0123456789abcdefABCDEF"
_LITERALS: Final = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_MOST_DEPTH: Final = 10000
_LONGEST_SCANNED: Final = 64 * 1024
_END: Final = "unexpected end of JSON input"


class _JsonSyntaxError(Exception):
    """What is wrong."""


def json_fault(body: bytes) -> str:
    """The first thing that is wrong with the body; empty if it is JSON.

    Of a long body only the place is told: to say it as Go does takes a step for each byte.

    >>> json_fault(b'{"a":}'), json_fault(b"[1")
    ("invalid character '}' looking for beginning of value", 'unexpected end of JSON input')
    """
    if len(body) > _LONGEST_SCANNED:
        return _place_of_fault(body)
    try:
        _Scan(body).run()
    except _JsonSyntaxError as fault:
        return str(fault)
    return ""


def _place_of_fault(body: bytes) -> str:
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"invalid JSON: {error}"
    except RecursionError:
        return "exceeded max depth"
    return ""


class _Scan:
    """One pass over a body; a space at its end shows what is unfinished."""

    def __init__(self, body: bytes) -> None:
        self._body = body + b" "
        self._at = 0

    def run(self) -> None:
        self._value()
        self._skip()
        if self._at < len(self._body):
            raise self._unexpected("after top-level value")

    def _value(self) -> None:
        """One value; objects and lists that are open are kept on a stack, so that depth costs no frames."""
        opened: list[int] = []
        while True:
            if self._opens(opened):
                continue
            while opened and self._closes(opened):
                pass
            if not opened:
                return

    def _opens(self, opened: list[int]) -> bool:
        """Reads the beginning of a value; whether another value must follow at once."""
        byte = self._next("looking for beginning of value")
        if byte in b"{[":
            if len(opened) >= _MOST_DEPTH:
                raise _JsonSyntaxError("exceeded max depth")
            self._at += 1
            self._skip()
            if self._peek() == {ord("{"): ord("}"), ord("["): ord("]")}[byte]:
                self._at += 1
                return False
            opened.append(byte)
            if byte == ord("{"):
                self._key()
            return True
        self._scalar(byte)
        return False

    def _closes(self, opened: list[int]) -> bool:
        """Reads what follows a value; whether that was the end of what it is in."""
        is_object = opened[-1] == ord("{")
        byte = self._next("after object key:value pair" if is_object else "after array element")
        self._at += 1
        if byte == (ord("}") if is_object else ord("]")):
            opened.pop()
            return True
        if byte != ord(","):
            self._at -= 1
            raise self._unexpected("after object key:value pair" if is_object else "after array element")
        if is_object:
            self._key()
        return False

    def _key(self) -> None:
        if self._next("looking for beginning of object key string") != ord('"'):
            raise self._unexpected("looking for beginning of object key string")
        self._string()
        if self._next("after object key") != ord(":"):
            raise self._unexpected("after object key")
        self._at += 1

    def _scalar(self, byte: int) -> None:
        if byte == ord('"'):
            self._string()
        elif byte in _LITERALS:
            self._literal(_LITERALS[byte])
        elif byte == ord("-") or byte in _DIGITS:
            self._number(byte)
        else:
            raise self._unexpected("looking for beginning of value")

    def _string(self) -> None:
        self._at += 1
        while (byte := self._byte()) != ord('"'):
            if byte < 0x20:
                raise self._unexpected("in string literal")
            self._at += 1
            if byte == ord("\\"):
                self._escape()
        self._at += 1

    def _escape(self) -> None:
        byte = self._byte()
        if byte not in b'bfnrt\\/"u':
            raise self._unexpected("in string escape code")
        self._at += 1
        for _ in range(4 if byte == ord("u") else 0):
            if self._byte() not in _HEX:
                raise self._unexpected("in \\u hexadecimal character escape")
            self._at += 1

    def _literal(self, text: bytes) -> None:
        for expected in text:
            if self._body[self._at] != expected:
                raise self._unexpected(f"in literal {text.decode()} (expecting '{chr(expected)}')")
            self._at += 1

    def _number(self, byte: int) -> None:
        if byte == ord("-"):
            self._at += 1
            if self._body[self._at] not in _DIGITS:
                raise self._unexpected("in numeric literal")
        if self._body[self._at] == ord("0"):
            self._at += 1
        else:
            self._digits("in numeric literal")
        if self._body[self._at] == ord("."):
            self._at += 1
            self._digits("after decimal point in numeric literal")
        if self._body[self._at] in b"eE":
            self._at += 1
            if self._body[self._at] in b"+-":
                self._at += 1
            self._digits("in exponent of numeric literal")

    def _digits(self, where: str) -> None:
        if self._body[self._at] not in _DIGITS:
            raise self._unexpected(where)
        while self._body[self._at] in _DIGITS:
            self._at += 1

    def _skip(self) -> None:
        while self._at < len(self._body) and self._body[self._at] in _SPACE:
            self._at += 1

    def _peek(self) -> int:
        return self._body[self._at] if self._at < len(self._body) else -1

    def _next(self, where: str) -> int:
        """The next byte that is no space."""
        self._skip()
        if self._at >= len(self._body):
            raise _JsonSyntaxError(_END)
        byte = self._body[self._at]
        if byte == 0 and where:
            raise self._unexpected(where)
        return byte

    def _byte(self) -> int:
        if self._at >= len(self._body) - 1:
            raise _JsonSyntaxError(_END)
        return self._body[self._at]

    def _unexpected(self, where: str) -> _JsonSyntaxError:
        character = chr(self._body[self._at])
        shown = "'\\''" if character == "'" else ("'\"'" if character == '"' else f"'{go_quoted(character)[1:-1]}'")
        return _JsonSyntaxError(f"invalid character {shown} {where}")
