"""Formatters of log records: JSON lines for programs, coloured lines for people."""

from __future__ import annotations

import json
import logging
import math
import os
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from navarch.observe.source_lines import split_frames

_OWN_NAMES: Final = ("time", "level", "logger", "event", "exception")
_YOURS: Final = "Traceback (most recent call last), the operator's own code first:\n"
CALLED_BY: Final = "called by:\n"
"""Separates the frames of the operator's code from those of the runtime."""
_CONTAINERS: Final = (list, tuple, set, frozenset)
_GREY, _BOLD, _RESET = "\x1b[90m", "\x1b[1m", "\x1b[0m"
_COLOURS: Final = {"DEBUG": "\x1b[90m", "INFO": "\x1b[32m", "WARNING": "\x1b[33m", "ERROR": "\x1b[31m"}


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object: time, level, logger, event, why, other fields, exception with traceback."""

    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        why = {"why": fields.pop("why")} if "why" in fields else {}
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": _event(record),
            **why,
            **fields,
        }
        if failure := _failure(self, record):
            line["exception"] = failure
        return _writable(json.dumps(line, ensure_ascii=False))


class ConsoleFormatter(logging.Formatter):
    """Formats a record as one line of time, level, event and fields; a traceback follows."""

    def __init__(self, *, coloured: bool) -> None:
        super().__init__()
        self._coloured = coloured and not os.environ.get("NO_COLOR")

    def format(self, record: logging.LogRecord) -> str:
        level = self._in(_COLOURS.get(record.levelname, _COLOURS["ERROR"]), f"{record.levelname:<7}")
        fields = (self._in(_GREY, f"{name}=") + _word(value) for name, value in _fields(record).items())
        event = self._in(_BOLD, _printable(_event(record)))
        line = " ".join((self._in(_GREY, _time(record)), level, event, *fields, self._in(_GREY, f"({record.name})")))
        failure = _failure(self, record)
        return _writable(f"{line}\n{failure}" if failure else line)

    def _in(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_RESET}" if self._coloured else text


def _writable(line: str) -> str:
    """Escapes text that no encoding has (lone surrogates), so that no record is lost."""
    return line.encode(errors="backslashreplace").decode()


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _failure(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """Returns the traceback; the user's frames come before those of the runtime that called them."""
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    error = record.exc_info[1]
    ours, theirs = split_frames(error)
    if error.__cause__ is not None or error.__context__ is not None or not ours or not theirs:
        return formatter.formatException(record.exc_info)
    lines = [_YOURS, *traceback.format_list(theirs), *traceback.format_exception_only(error)]
    return "".join([*lines, CALLED_BY, *traceback.format_list(ours)]).rstrip("\n")


class Words:
    """Fields as words after a message, for formatters that know no fields; they become text only when formatted."""

    __slots__ = ("_given",)

    def __init__(self, given: Mapping[str, object]) -> None:
        self._given = given

    def __str__(self) -> str:
        return _writable("".join(f" {name}={_word(value)}" for name, value in _shown(self._given).items()))


def _event(record: logging.LogRecord) -> str:
    """Returns the event of a record; the message of a record from another library."""
    event: str | None = getattr(record, "event", None)
    return event if event is not None else record.getMessage()


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return _shown(getattr(record, "fields", {}))


def _shown(given: Mapping[str, object]) -> dict[str, Any]:
    """Returns the fields as JSON values; a name that every line has gets an underscore."""
    return {f"{name}_" if name in _OWN_NAMES else name: _plain(value) for name, value in given.items()}


def _plain(value: Any) -> Any:
    """Returns the value as JSON. Objects are shown by their text: their fields would show what their `repr` masks."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"<{len(value)} bytes>"
    if type(value) is dict:
        return {str(name): _plain(part) for name, part in value.items()}
    if type(value) in _CONTAINERS:
        return [_plain(part) for part in value]
    return _text(value)


def _text(value: object) -> str:
    """Returns the text of the value; a failing `__str__` must not lose the record."""
    try:
        return f"{type(value).__name__}: {value}" if isinstance(value, BaseException) else str(value)
    except Exception as error:  # noqa: BLE001 - any code may run in a __str__
        return f"<{type(value).__name__} whose text raised {type(error).__name__}>"


def _word(value: Any) -> str:
    """Returns the value as one word; quoted if it has spaces, quotes or control characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    plain = text and text.isprintable() and not set(text) & set(' "=')
    return text if plain or not isinstance(value, str) else json.dumps(text, ensure_ascii=False)


def _printable(text: str) -> str:
    """Escapes control characters, which could rewrite the terminal."""
    return text if text.isprintable() else json.dumps(text, ensure_ascii=False)[1:-1]
