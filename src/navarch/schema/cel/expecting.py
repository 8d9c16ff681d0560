"""What may come next in a rule, in the words of the parser of cel-go."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from navarch.schema.cel.lexer import Token

__all__ = ["BEGINNINGS", "NAMES", "OPERATORS", "expecting", "input_of"]

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
"""What an expression begins with."""
OPERATORS: Final = frozenset({*_ORDER[: _ORDER.index("[") + 1], ".", "-", "?", "+", "*", "/", "%"})
"""What may follow an expression anywhere."""
NAMES: Final = frozenset({"name", "escaped"})


def expecting(kinds: AbstractSet[str]) -> str:
    """`expecting ']'`, or `expecting {']', ','}`."""
    named = [_NAMED.get(each, f"'{each}'") for each in _ORDER if each in kinds]
    return f"expecting {named[0]}" if len(named) == 1 else f"expecting {{{', '.join(named)}}}"


def input_of(token: Token) -> str:
    """A token as it was written."""
    return "'<EOF>'" if token.kind == "end" else f"'{token.text}'"
