"""Parses integers and quotes strings as Go's package strconv does; Kubernetes' API and messages follow it."""

from __future__ import annotations

from typing import Final

_MOST_DIGITS: Final = 19
_LARGEST: Final = 2**63 - 1


def parse_int64(text: str) -> int | None:
    """Returns the signed 64-bit integer that `text` spells; None if it spells none.

    Takes time that grows with the length of the text. Python's `int` takes time that grows with its square, and raises
    an error of its own beyond 4,300 digits: text from the network goes through this function instead.

    >>> parse_int64("-007"), parse_int64("9" * 20), parse_int64("1_000"), parse_int64("")
    (-7, None, None, None)
    """
    is_negative = text[:1] == "-"
    digits = text[1:] if text[:1] in {"-", "+"} else text
    if not (digits.isascii() and digits.isdecimal()):
        return None
    significant = digits.lstrip("0")
    if len(significant) > _MOST_DIGITS:
        return None
    number = int(significant or "0")
    if number > _LARGEST + is_negative:
        return None
    return -number if is_negative else number


_ESCAPES = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    '"': r"\"",
    "\\": r"\\",
}


def go_quoted(text: str) -> str:
    r"""Quotes a string as Go's `%q` does.

    >>> print(go_quoted('say "ja"\n'))
    "say \"ja\"\n"
    """
    if text.isprintable():  # as nearly all are, some of them long
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
