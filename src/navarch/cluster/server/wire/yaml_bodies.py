"""YAML as Kubernetes reads it.

A body is read in one pass over the events of the parser: nothing recurses, every value is charged to the budget of the
request, and what aliases and merge keys stand for may not be more than a body of that size could say itself.
"""

from __future__ import annotations

import base64
import math
import re
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from navarch.api.json_patch import copy_json
from navarch.cluster.server.wire.budget import DEEPEST, current_budget
from navarch.cluster.server.wire.duplicate_fields import MOST_FAULTS
from navarch.cluster.server.wire.go_text import go_kind, go_literal
from navarch.cluster.server.wire.status_errors import StatusError, bad_request

_FEWEST_EXPANDED: Final = 1000
"""So many values may come from aliases in any body; in a longer one as many as it has bytes."""
_MOST_TAG_DIRECTIVES: Final = 64
"""The parser compares each with all before it."""
_CHARGED_AT_ONCE: Final = 1024
_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = "<<"
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NO_KEY: Final = object()
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_NUMBERS_BEGIN_WITH: Final = frozenset("-+.0123456789")
_INTEGER: Final = re.compile("[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)").fullmatch
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
).fullmatch
_LONGEST_INTEGER: Final = 70
"""Of binary digits with sign and prefix; what has more is no integer of 64 bits."""
_LONGEST_FLOAT: Final = 400
_KINDS: Final[dict[str, Any]] = {
    f"{_TAG}int": int,
    f"{_TAG}float": int | float,
    f"{_TAG}bool": bool,
    f"{_TAG}null": type(None),
}


class _YamlError(ValueError):
    """A body that is YAML, but no JSON; the text is all that is said."""


class _YamlDocument(NamedTuple):
    value: Any
    repeated: list[str]


def read_yaml(body: bytes) -> Any:
    """The first document of a body; raises StatusError."""
    return _read(body).value


def repeated_keys(body: bytes) -> list[str]:
    """What a body says twice, each with its line, in the order in which Go finds it; raises StatusError."""
    return _read(body).repeated


def _read(body: bytes) -> _YamlDocument:
    try:
        return _Reader(body).document()
    except _YamlError as error:
        raise _refused(str(error)) from None
    except yaml.YAMLError as error:
        raise _refused(f"yaml: {_said(error)}") from None
    except (ValueError, ArithmeticError) as error:
        raise _refused(f"yaml: {error}") from None


def _refused(why: str) -> StatusError:
    return bad_request(f"error decoding YAML: error converting YAML to JSON: {why}")


def _said(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.reader.ReaderError):
        return str(error.reason)
    if not isinstance(error, yaml.MarkedYAMLError):
        return str(error)
    problem = (error.problem or "").replace("not allowed here", "not allowed in this context")
    row = error.problem_mark.line if error.problem_mark is not None else 0
    if row and isinstance(error, yaml.scanner.ScannerError):
        row += 1  # only there the real server counts from one
    return f"line {row}: {problem}" if row else problem


class _Anchor:
    """What a name stands for, and how many values that is; none while it is being read."""

    __slots__ = ("size", "value")

    def __init__(self) -> None:
        self.value: Any = None
        self.size = 0


class _YamlCollection:
    """A list or an object that is being read."""

    __slots__ = ("anchor", "begins_at", "key", "line", "merges", "value")

    def __init__(self, value: Any, anchor: _Anchor | None, begins_at: int) -> None:
        self.value = value
        self.anchor = anchor
        self.begins_at = begins_at
        """How many values had been read before it."""
        self.key: Any = _NO_KEY
        self.line = 0
        self.merges = False


class _Reader:
    """Reads the first document of a body."""

    def __init__(self, body: bytes) -> None:
        if body.count(b"\n%TAG") > _MOST_TAG_DIRECTIVES:
            raise _YamlError("yaml: found too many %TAG directives")
        self._loader = _Base(body)
        self._budget = current_budget()
        self._opened: list[_YamlCollection] = []
        self._anchors: dict[str, _Anchor] = {}
        self._count = self._charged = 0
        self._expandable = max(_FEWEST_EXPANDED, len(body))
        self._root: Any = None
        self._repeated: list[str] = []

    def document(self) -> _YamlDocument:
        next_event = self._loader.get_event
        while True:
            event = next_event()
            kind = event.__class__
            if kind is yaml.ScalarEvent:
                self._scalar(event)
            elif kind is yaml.MappingStartEvent:
                self._open({}, event)
            elif kind is yaml.SequenceStartEvent:
                self._open([], event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._close()
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentEndEvent or kind is yaml.StreamEndEvent:
                self._charge()
                return _YamlDocument(self._root, self._repeated)

    def _charge(self) -> None:
        self._budget.charge_nodes(self._count - self._charged)
        self._charged = self._count

    def _counted(self, count: int) -> None:
        self._count += count
        if self._count - self._charged >= _CHARGED_AT_ONCE:
            self._charge()

    def _scalar(self, event: Any) -> None:
        self._counted(1)
        text, tag = event.value, event.tag
        is_plain = tag is None and event.implicit[0]
        value = _resolved(text) if is_plain else text if tag is None else _tagged(text, tag)
        if event.anchor is not None:
            anchor = self._anchors[event.anchor] = _Anchor()
            anchor.value, anchor.size = value, 1
        if self._opened:
            into = self._opened[-1]
            if text == _MERGE and into.key is _NO_KEY and into.value.__class__ is dict and _is_merge(event):
                into.key, into.merges = value, True
                return
        self._put(value, event)

    def _open(self, value: Any, event: Any) -> None:
        anchor = None
        if event.anchor is not None:
            anchor = self._anchors[event.anchor] = _Anchor()
        if self._opened and self._opened[-1].key is _NO_KEY:
            self._opened[-1].line = event.start_mark.line
        self._opened.append(_YamlCollection(value, anchor, self._count))
        if len(self._opened) > DEEPEST:
            raise _YamlError("yaml: exceeded max depth")
        self._counted(1)

    def _close(self) -> None:
        ended = self._opened.pop()
        if ended.anchor is not None:
            ended.anchor.value, ended.anchor.size = ended.value, self._count - ended.begins_at
        self._put(ended.value, None)

    def _alias(self, event: Any) -> None:
        anchor = self._anchors.get(event.anchor)
        if anchor is None:
            raise _YamlError(f"yaml: unknown anchor '{event.anchor}' referenced")
        if not anchor.size:
            raise _YamlError(f"yaml: anchor '{event.anchor}' value contains itself")
        self._expandable -= anchor.size
        if self._expandable < 0:
            raise _YamlError("yaml: document contains excessive aliasing")
        self._counted(anchor.size)
        self._put(copy_json(anchor.value), event, is_alias=True)

    def _put(self, value: Any, event: Any, *, is_alias: bool = False) -> None:
        """Puts a value that was read where it belongs."""
        if not self._opened:
            self._root = value
            return
        into = self._opened[-1]
        if into.value.__class__ is list:
            into.value.append(value)
        elif into.key is _NO_KEY:
            into.key = value
            if event is not None:
                into.line = event.start_mark.line
        elif into.merges:
            self._merge(into, value, is_alias=is_alias)
        else:
            self._set(into, into.key, value)
        # A key waits for its value.

    def _set(self, into: _YamlCollection, key: Any, value: Any) -> None:
        name = key if key.__class__ is str else _name(key)
        if name in into.value and len(self._repeated) < MOST_FAULTS:
            self._repeated.append(f"line {into.line + 1}: key {go_literal(key)} already set in map")
        into.value[name] = value
        into.key = _NO_KEY

    def _merge(self, into: _YamlCollection, value: Any, *, is_alias: bool) -> None:
        """Of several objects the first counts; what the object itself says before them does not."""
        several = [value] if isinstance(value, dict) else value
        if not isinstance(several, list) or (is_alias and several is value):
            raise _YamlError("yaml: map merge requires map or sequence of maps as the value")
        into.key, into.merges = _NO_KEY, False
        for each in reversed(several):
            if not isinstance(each, dict):
                raise _YamlError("yaml: map merge requires map or sequence of maps as the value")
            into.value.update(each)


def _is_merge(event: Any) -> bool:
    return bool(event.implicit[0]) or event.tag == f"{_TAG}merge"


def _name(key: Any) -> str:
    """A key as JSON has it."""
    if isinstance(key, dict | list):
        raise _YamlError(f"yaml: invalid map key: {go_literal(key)}")
    return msgspec.json.encode(key).decode()


def _resolved(text: str) -> Any:
    """What a text without quotes and tag is. Times stay texts, and `y`, `1e3` and `0o17` are what they look like."""
    if text[:1] in _NUMBERS_BEGIN_WITH and len(text) <= _LONGEST_FLOAT:
        return _number(text)
    return _WORDS.get(text, text)


def _number(text: str) -> Any:
    if len(text) <= _LONGEST_INTEGER and _INTEGER(text) and (found := _integer(text)) is not None:
        return found
    if not _FLOAT(text):
        return text
    value = float(text.lower().replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))
    if not math.isfinite(value):
        if text[-1].isdigit():
            return text
        shown = "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
        raise _YamlError(f"json: unsupported value: {shown}")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _integer(text: str) -> int | None:
    """None for what is larger than Go's integers, or has no digits."""
    plain = text.replace("_", "").lower()
    sign, digits = (-1, plain[1:]) if plain[0] == "-" else (1, plain.removeprefix("+"))
    if digits in {"0b", "0o", "0x"}:
        return None
    is_octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    value = sign * int(digits, 8 if is_octal else 0)
    return value if -(2**63) <= value < 2**64 else None


def _tagged(text: str, tag: str) -> Any:
    """What a text with a tag is; with a tag that nobody knows it is a text."""
    if tag == f"{_TAG}binary":
        try:
            return base64.b64decode("".join(text.split()), validate=True).decode(errors="replace")
        except ValueError:
            raise _YamlError("yaml: !!binary value contains invalid base64 data") from None
    kind = _KINDS.get(tag)
    if kind is None:
        return text
    value = _resolved(text)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        found = "null" if value is None else go_kind(value)
        raise _YamlError(f"yaml: cannot decode {found} `{text}` as a !!{tag.removeprefix(_TAG)}")
    return value
