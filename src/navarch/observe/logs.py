"""Structured logs: an event in plain words, and fields that programs can search.

All records go through the standard library's `logging`, so records of other libraries have the same form, and existing
handlers receive ours: the event as `record.event`, the fields as `record.fields`, and both in the message, for handlers
that know neither, such as pytest's. The runtime binds the fields `controller`, `object`
("Memcached default/cache"), `reconcile_id`, `reason`.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Final, Literal

from navarch.errors import InvalidValueError
from navarch.observe.rendering import ConsoleFormatter, JsonFormatter, Words

__all__ = ["Log", "ReconcileFields", "current_fields", "install", "logger", "setup", "within"]

Format = Literal["auto", "json", "console"]

_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_RECONCILE_FIELDS: Final = ("controller", "object", "reconcile_id", "reason")
_CALLER: Final = 3  # frames from the record to the caller of `log.info(…)`


class Log:
    """Writes records with the fields that are bound to it.

    A value becomes text only when a record is written, so binding is cheap: an expensive name can be an object with a
    `__str__`. Bytes are never shown, and an object is shown as its `repr`, which masks secrets.
    """

    __slots__ = ("_fields", "_logger", "_parent")

    def __init__(self, to: logging.Logger, fields: Mapping[str, object], parent: Log | None = None) -> None:
        self._logger = to
        self._fields = fields
        self._parent = parent

    def bind(self, **fields: object) -> Log:
        """Returns a log with more fields; a field that is bound again has the newer value."""
        return Log(self._logger, fields, self)

    @property
    def fields(self) -> dict[str, object]:
        """Returns all bound fields with their values as given."""
        inherited = self._parent.fields if self._parent is not None else {}
        return {**inherited, **self._fields}

    def debug(self, event: str, /, **fields: object) -> None:
        """Writes a record for debugging; it is not shown by default."""
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        """Writes a record of something that happened."""
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, /, **fields: object) -> None:
        """Writes a record of something that needs attention, while the work continues."""
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, /, **fields: object) -> None:
        """Writes a record of a failure."""
        self._write(logging.ERROR, event, fields)

    def exception(self, event: str, /, **fields: object) -> None:
        """Writes a record of a failure with the exception that is being handled; its traceback is a field."""
        self._write(logging.ERROR, event, fields, failed=True)

    def _write(self, level: int, event: str, fields: Mapping[str, object], *, failed: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            bound, template = self.fields, event.replace("%", "%%") + "%s"
            extra, words = {"event": event, "fields": {**bound, **fields}}, Words({**fields, **bound, **fields})
            self._logger.log(level, template, words, exc_info=failed, extra=extra, stacklevel=_CALLER)


def logger(name: str) -> Log:
    """Returns a log without fields, which writes to `logging.getLogger(name)`."""
    return Log(logging.getLogger(name), {})


_surrounding: ContextVar[Log | None] = ContextVar("navarch_log", default=None)


class _Within:
    """The context manager of `within`; a class, since a generator is slower to enter."""

    __slots__ = ("_log", "_token")

    def __init__(self, log: Log) -> None:
        self._log = log
        self._token: Token[Log | None] | None = None

    def __enter__(self) -> Log:
        self._token = _surrounding.set(self._log)
        return self._log

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            _surrounding.reset(self._token)


def within(log: Log) -> AbstractContextManager[Log]:
    """Adds the log's fields to the records of every logger inside the block, in this task and in those that it starts.

    A record of the client thus names the object for which the request was made: `with within(log): …`.
    """
    return _Within(log)


def current_fields() -> Mapping[str, object]:
    """Returns the fields that the surrounding `within` adds; inside a reconcile its controller and object."""
    surrounding = _surrounding.get()
    return {} if surrounding is None else surrounding.fields


def setup(format: Format = "auto", level: str = "INFO") -> None:  # noqa: A002 - the common word
    """Writes all records of this process to stderr: coloured lines on a terminal, JSON lines elsewhere.

    A second call replaces the handler of the first. Raises `InvalidValueError` for an unknown level or format.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(format))
    install(handler, level)


def install(handler: logging.Handler, level: str = "INFO") -> None:
    """Gives all records of this process to the handler, with the fields of the block `within` that they are written in.

    It replaces the handler of an earlier call, or of `setup`. Raises `InvalidValueError` for an unknown level.
    """
    if level.upper() not in _LEVELS:
        raise InvalidValueError(f"expected a log level ({', '.join(_LEVELS)}), got {level!r}")
    root = logging.getLogger()
    for installed in [each for each in root.handlers if _add_surrounding_fields in each.filters]:
        root.removeHandler(installed)
    handler.addFilter(_add_surrounding_fields)
    root.addHandler(handler)
    root.setLevel(level.upper())


def _formatter(format: Format) -> logging.Formatter:  # noqa: A002 - as above
    on_terminal = sys.stderr.isatty()
    if format == "json" or (format == "auto" and not on_terminal):
        return JsonFormatter()
    if format in {"auto", "console"}:
        return ConsoleFormatter(coloured=on_terminal)
    raise InvalidValueError(f"expected a log format (auto, json, console), got {format!r}")


def _add_surrounding_fields(record: logging.LogRecord) -> bool:
    surrounding = _surrounding.get()
    if surrounding is not None:
        record.fields = {**surrounding.fields, **getattr(record, "fields", {})}
    return True


class ReconcileFields(Mapping[str, object]):
    """The fields of a reconcile, computed only when a record is written: most reconciles write none.

    The id is generated on first use.
    """

    __slots__ = ("_controller", "_id", "_key", "_kind", "_reasons")

    def __init__(self, controller: str, kind: str, key: object, reasons: tuple[str, ...], reconcile_id: str) -> None:
        self._controller = controller
        self._kind = kind
        self._key = key
        self._reasons = reasons
        self._id = reconcile_id

    @property
    def reconcile_id(self) -> str:
        """The unique id of the reconcile."""
        if not self._id:
            self._id = os.urandom(8).hex()
        return self._id

    def __getitem__(self, name: str) -> object:
        if name == "controller":
            return self._controller
        if name == "object":
            return f"{self._kind} {self._key}"
        if name == "reconcile_id":
            return self.reconcile_id
        if name == "reason":
            return ", ".join(self._reasons)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_RECONCILE_FIELDS)

    def __len__(self) -> int:
        return len(_RECONCILE_FIELDS)
