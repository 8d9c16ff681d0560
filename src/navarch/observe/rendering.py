"""A log record as a line: JSON for machines, colours for people."""

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

__all__ = ["ConsoleFormatter", "JsonFormatter", "Words"]

_OWN_NAMES: Final = ("time", "level", "logger", "event", "exception")
_YOURS: Final = "Traceback (most recent call last), the operator's own code first:\n"
_CALLED_BY: Final = "called by:\n"
_CONTAINERS: Final = (list, tuple, set, frozenset)
_GREY, _BOLD, _RESET = "\x1b[90m", "\x1b[1m", "\x1b[0m"
_COLOURS: Final = {"DEBUG": "\x1b[90m", "INFO": "\x1b[32m", "WARNING": "\x1b[33m", "ERROR": "\x1b[31m"}


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, event, why, the other fields, and the exception with its traceback."""

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
    """Time, level, event and fields on one line; a traceback below it."""

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
    """Text that no encoding has (halves of surrogate pairs) is escaped, as JSON would; a record must not be lost."""
    return line.encode(errors="backslashreplace").decode()


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _failure(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """The traceback. Where the runtime called the user's code, the user's frames come first."""
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    error = record.exc_info[1]
    ours, theirs = split_frames(error)
    if error.__cause__ is not None or error.__context__ is not None or not ours or not theirs:
        return formatter.formatException(record.exc_info)
    lines = [_YOURS, *traceback.format_list(theirs), *traceback.format_exception_only(error)]
    return "".join([*lines, _CALLED_BY, *traceback.format_list(ours)]).rstrip("\n")


class Words:
    """Fields as words behind a message, for formatters that know of no fields; they become text only there."""

    __slots__ = ("_given",)

    def __init__(self, given: Mapping[str, object]) -> None:
        self._given = given

    def __str__(self) -> str:
        return _writable("".join(f" {name}={_word(value)}" for name, value in _shown(self._given).items()))


def _event(record: logging.LogRecord) -> str:
    """What happened; of records that other libraries wrote, their message."""
    event: str | None = getattr(record, "event", None)
    return event if event is not None else record.getMessage()


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return _shown(getattr(record, "fields", {}))


def _shown(given: Mapping[str, object]) -> dict[str, Any]:
    """The fields as JSON values; one that has the name of a part of every line gets an underscore."""
    return {f"{name}_" if name in _OWN_NAMES else name: _plain(value) for name, value in given.items()}


def _plain(value: Any) -> Any:
    """The value as JSON. Objects are shown by their own text: looking into them would show what their `repr` masks."""
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
    """A record must never fail because of what it is about."""
    try:
        return f"{type(value).__name__}: {value}" if isinstance(value, BaseException) else str(value)
    except Exception as error:  # noqa: BLE001 - any code may run in a __str__
        return f"<{type(value).__name__} whose text raised {type(error).__name__}>"


def _word(value: Any) -> str:
    """A value on a line of words: quoted if it could be taken for more than one, or holds control characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    plain = text and text.isprintable() and not set(text) & set(' "=')
    return text if plain or not isinstance(value, str) else json.dumps(text, ensure_ascii=False)


def _printable(text: str) -> str:
    """Without control characters, which could rewrite what the terminal shows."""
    return text if text.isprintable() else json.dumps(text, ensure_ascii=False)[1:-1]
