"""The lexer: splits text into tokens, reads literals, escapes property names, and words syntax errors as
cel-go does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from navarch.schema.cel.errors import Faults, Said
from navarch.schema.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint

_ACCESSIBLE = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*\Z")
_ESCAPED = re.compile(r"__|[./-]")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def escape(name: str) -> str | None:
    """Returns the identifier for a property; None if rules cannot reach it.

    >>> escape("foo-bar"), escape("namespace"), escape("1st")
    ('foo__dash__bar', '__namespace__', None)
    """
    if name in RESERVED:
        return f"__{name}__"
    if _ACCESSIBLE.match(name) is None:
        return None
    return _ESCAPED.sub(lambda match: _ESCAPES[match.group()], name)


_ESCAPE_SEQUENCE = re.compile(
    r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def string_value(text: str) -> str:
    """Raises `ValueError` for an escape that is no Unicode character."""
    body, raw = _body(text)
    return body if raw else _ESCAPE_SEQUENCE.sub(_character, body)


def bytes_value(text: str) -> bytes:
    """Returns the bytes of a literal without its leading b. Raises `ValueError` for a Unicode escape, which
    bytes lack.
    """
    body, raw = _body(text)
    if raw:
        return body.encode()
    value = bytearray()
    end = 0
    for match in _ESCAPE_SEQUENCE.finditer(body):
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


RESERVED = frozenset(
    {
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    }
)
MAX_CODE_POINTS = 100_000

_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
_STRING = rf"""
    [rR]\"\"\"[\s\S]*?\"\"\" | [rR]'''[\s\S]*?''' | [rR]"[^"\n\r]*" | [rR]'[^'\n\r]*'
    | \"\"\"(?:{_ESCAPE}|[^\\])*?\"\"\" | '''(?:{_ESCAPE}|[^\\])*?'''
    | "(?:{_ESCAPE}|[^\\"\n\r])*" | '(?:{_ESCAPE}|[^\\'\n\r])*'
"""
_TOKEN = re.compile(
    rf"""
    (?P<skip>[\t\ \r\n\f]+|//[^\n]*)
    | (?P<bytes>[bB](?:{_STRING}))
    | (?P<string>{_STRING})
    | (?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    | (?P<uint>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
    | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<symbol>==|!=|<=|>=|&&|\|\||[\[\]{{}}().,\-!?:+*/%<>])
    """,
    re.VERBOSE,
)
_BEGUN = re.compile(rf"""[=&|]|"(?:{_ESCAPE}|[^\\"\n\r])*\\?|'(?:{_ESCAPE}|[^\\'\n\r])*\\?""")
"""What could have become a token: an operator of two characters, or a string."""
_REMEDIES = {
    "=": "compare with `==`",
    "&": "write `&&`",
    "|": "write `||`",
    '"': "close the string with the quote it began with, and double each backslash or use r'…'",
    "'": "close the string with the quote it began with, and double each backslash or use r'…'",
    "`": "name such a field in its escaped form, for instance `self.foo__dash__bar`",
}


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A token. `kind` is string, bytes, float, uint, int, name, end, or the symbol or keyword itself."""

    kind: str
    text: str
    at: int


def tokens(source: str, faults: Faults) -> list[Lexeme]:
    """Returns the tokens of `source`, with an `end` token last; adds unknown characters to `faults`. Raises `CelError`
    if the source is too long.
    """
    if len(source) > MAX_CODE_POINTS:
        said = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_CODE_POINTS}"
        problem, expected = f"the rule has {len(source)} characters", f"at most {MAX_CODE_POINTS}"
        faults.add(0, problem, Said(0, said), expected=expected)
        faults.check()
    found: list[Lexeme] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            at = _strange(source, at, faults)
            continue
        if match.lastgroup != "skip":
            found.append(Lexeme(_kind(match), match.group(), at))
        at = match.end()
    found.append(Lexeme("end", "", len(source)))
    return found


def _strange(source: str, at: int, faults: Faults) -> int:
    """Notes that no token begins here; the next one does after what this could have become one with."""
    begun = _BEGUN.match(source, at)
    end = min(len(source), 1 + (begun.end() if begun else at))
    said = Said(at, f"Syntax error: token recognition error at: '{source[at:end]}'")
    faults.add(at, f"unexpected {source[at]!r}", said, remedy=_REMEDIES.get(source[at], ""))
    return end


def _kind(match: re.Match[str]) -> str:
    group, text = match.lastgroup or "", match.group()
    if group == "symbol" or text in {"in", "true", "false", "null"}:
        return text
    return group


_NAMED: Final = {
    "end": "<EOF>",
    "float": "NUM_FLOAT",
    "int": "NUM_INT",
    "uint": "NUM_UINT",
    "string": "STRING",
    "bytes": "BYTES",
    "name": "IDENTIFIER",
    "escaped": "ESC_IDENTIFIER",
}
_ORDER: Final = (
    *("==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":"),
    *("+", "*", "/", "%", "true", "false", "null", *_NAMED),
)
"""All tokens, as the grammar numbers them."""
BEGINNINGS: Final = frozenset({"[", "{", "(", ".", "-", "!", "true", "false", "null", *_NAMED}) - {"end", "escaped"}
"""The tokens that an expression begins with."""
OPERATORS: Final = frozenset({*_ORDER[: _ORDER.index("[") + 1], ".", "-", "?", "+", "*", "/", "%"})
"""The tokens that may follow an expression anywhere."""
NAMES: Final = frozenset({"name", "escaped"})


def expecting(kinds: AbstractSet[str]) -> str:
    """Returns `expecting ']'`, or `expecting {']', ','}`."""
    named = [_NAMED.get(each, f"'{each}'") for each in _ORDER if each in kinds]
    return f"expecting {named[0]}" if len(named) == 1 else f"expecting {{{', '.join(named)}}}"


def input_of(token: Lexeme) -> str:
    """Returns a token as it was written."""
    return "'<EOF>'" if token.kind == "end" else f"'{token.text}'"
