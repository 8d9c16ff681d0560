"""Text to tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from navarch.schema.cel.errors import Faults, Said

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
class Token:
    """`kind` is string, bytes, float, uint, int, name, end, or the symbol or keyword itself."""

    kind: str
    text: str
    at: int


def tokens(source: str, faults: Faults) -> list[Token]:
    """The tokens of `source`, with an `end` token last; what is none goes to `faults`. Raises `CelError` if it is too long."""
    if len(source) > MAX_CODE_POINTS:
        said = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_CODE_POINTS}"
        problem, expected = f"the rule has {len(source)} characters", f"at most {MAX_CODE_POINTS}"
        faults.add(0, problem, Said(0, said), expected=expected)
        faults.check()
    found: list[Token] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            at = _strange(source, at, faults)
            continue
        if match.lastgroup != "skip":
            found.append(Token(_kind(match), match.group(), at))
        at = match.end()
    found.append(Token("end", "", len(source)))
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
