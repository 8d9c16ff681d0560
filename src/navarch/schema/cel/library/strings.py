"""Methods of strings. Positions count characters, not bytes."""

from __future__ import annotations

from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.library.formatting import format_string
from navarch.schema.cel.signatures import function, method

_SPACES = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f"
    "\u205f\u3000"
)
_QUOTED = {
    "\\": "\\\\",
    '"': '\\"',
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def _out_of_range(index: int) -> CelEvaluationError:
    return CelEvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start)


def _last_index_of(text: str, part: str) -> int:
    """Searched backwards: `str.find` takes time by the length of the text, `str.rfind` by that of both multiplied."""
    found = text[::-1].find(part[::-1])
    return found if found < 0 else len(text) - len(part) - found


def _last_index_before(text: str, part: str, start: int) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return _last_index_of(text[: start + len(part)], part) if start < len(text) else -1


def _substring(text: str, start: int) -> str:
    return _substring_to(text, start, max(start, len(text)))


def _substring_to(text: str, start: int, end: int) -> str:
    if start > end:
        raise CelEvaluationError(f"invalid substring range: it starts at {start} and ends at {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    """At most `limit` parts; all of them if it is negative."""
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit > len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, max(limit, -1))


def _join(items: list[object], separator: str = "") -> str:
    if not all(isinstance(item, str) for item in items):
        raise CelEvaluationError("join() takes strings only")
    return separator.join(map(str, items))


def _quote(text: str) -> str:
    for character, written in _QUOTED.items():  # the backslash first, since it is what the others are written with
        text = text.replace(character, written)
    return f'"{text}"'


OVERLOADS = [
    method("contains", "string, string -> bool", str.__contains__),
    method("startsWith", "string, string -> bool", str.startswith),
    method("endsWith", "string, string -> bool", str.endswith),
    method("charAt", "string, int -> string", _char_at),
    method("indexOf", "string, string -> int", _index_of),
    method("indexOf", "string, string, int -> int", _index_of),
    method("lastIndexOf", "string, string -> int", _last_index_of),
    method("lastIndexOf", "string, string, int -> int", _last_index_before),
    method("lowerAscii", "string -> string", lambda text: text.encode().lower().decode()),
    method("upperAscii", "string -> string", lambda text: text.encode().upper().decode()),
    method("replace", "string, string, string -> string", _replace),
    method("replace", "string, string, string, int -> string", _replace),
    method("split", "string, string -> list(string)", _split),
    method("split", "string, string, int -> list(string)", _split),
    method("substring", "string, int -> string", _substring),
    method("substring", "string, int, int -> string", _substring_to),
    method("trim", "string -> string", lambda text: text.strip(_SPACES)),
    method("format", "string, list(dyn) -> string", format_string),
    method("join", "list(string) -> string", _join),
    method("join", "list(string), string -> string", _join),
    function("strings.quote", "string -> string", _quote),
]
