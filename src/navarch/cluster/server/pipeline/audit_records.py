"""`AuditRecord` and `RotatingFile`: the records of the audit log as lines, and the file that holds them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from navarch.cluster.server.pipeline.authentication.users import user_info
from navarch.cluster.server.wire.request import Json, RequestInfo, User

_MOST_BYTES: Final = 20 * 2**20
_BACKUPS: Final = 3
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO must not hold it up
NO_ANNOTATIONS: Final[Mapping[str, str]] = {}
_LINES: Final = msgspec.json.Encoder()
_IN_PATHS: Final = "/:@!$&'()*+,;=~-._%"


class RotatingFile:
    """Lines at the end of `path`. Before the file grows beyond `size` bytes it becomes `<path>.1`, that one `<path>.2`,
    and so on; of these `backups` are kept.

    It is opened for each call, so that one that was moved or removed comes anew.
    """

    def __init__(self, path: Path, *, size: int = _MOST_BYTES, backups: int = _BACKUPS) -> None:
        self.path = path
        self._size = size
        self._backups = backups

    def append(self, lines: Sequence[bytes]) -> int:
        """Writes the lines, each with its newline, and returns how many: all of them, or those before the disk was full.

        Raises `OSError` if none could be written. Nothing is left of a line that could not be written as a whole.
        """
        written = 0
        while written < len(lines):
            try:
                written += self._append_some(lines[written:])
            except OSError:
                if not written:
                    raise
                return written
        return written

    def _append_some(self, lines: Sequence[bytes]) -> int:
        """Writes as many lines as the file takes before it is rotated; at least one."""
        file, size = self._opened()
        try:
            if size and size + len(lines[0]) > self._size:
                os.close(file)
                file = -1
                self._rotate()
                file, size = self._opened()
            count, total = 1, len(lines[0])
            while count < len(lines) and size + total + len(lines[count]) <= self._size:
                total += len(lines[count])
                count += 1
            _write(file, size, b"".join(lines[:count]))
            return count
        finally:
            if file >= 0:
                os.close(file)

    def _opened(self) -> tuple[int, int]:
        """The file, and its size."""
        file = os.open(self.path, _FLAGS, 0o600)
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            os.close(file)
            raise OSError(f"expected a file at {self.path}, got something else; remove it")
        return file, found.st_size

    def _rotate(self) -> None:
        for number in range(self._backups - 1, 0, -1):
            if self._backup(number).exists():
                self._backup(number).replace(self._backup(number + 1))
        if self._backups:
            self.path.replace(self._backup(1))
        else:
            self.path.unlink()

    def _backup(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")


def _write(file: int, size: int, data: bytes) -> None:
    """All of the data or, with an `OSError`, none of it."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(file, rest) :]
    except OSError:
        os.ftruncate(file, size)
        raise


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request that was answered, or, with the stage `ResponseStarted`, a long one whose answer began."""

    stage: str
    when: datetime
    """When the request came."""
    seconds: float
    user: User | None
    impersonated: User | None
    info: RequestInfo
    path: str
    query: Mapping[str, Sequence[str]]
    """Without secrets."""
    code: int
    reason: str
    user_agent: str
    dry_run: bool
    audit_id: str
    """The same for both stages of a request, and in its answer's header `Audit-Id`."""
    source: str
    """The address that the request came from; empty without a network."""
    annotations: Mapping[str, str] = NO_ANNOTATIONS
    """What admission has found out about the request."""

    @property
    def uri(self) -> str:
        """Path and query."""
        path = quote(_as_bytes(self.path), safe=_IN_PATHS)
        query = [(_as_bytes(name), _as_bytes(value)) for name, values in self.query.items() for value in values]
        return f"{path}?{urlencode(query)}" if query else path

    @property
    def verb(self) -> str:
        return self.info.verb

    @property
    def resource(self) -> str:
        return self.info.resource

    @property
    def namespace(self) -> str:
        return self.info.namespace

    @property
    def name(self) -> str:
        return self.info.name

    def to_json(self) -> Json:
        """As an Event of audit.k8s.io/v1 at the level Metadata; what is empty is left out."""
        event: Json = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": self.audit_id,
            "stage": self.stage,
            "requestURI": self.uri,
            "verb": self.info.verb,
            "user": {} if self.user is None else user_info(self.user),
            "impersonatedUser": self.impersonated and user_info(self.impersonated),
            "sourceIPs": [self.source] if self.source else [],
            "userAgent": self.user_agent,
            "objectRef": _reference(self.info),
            "responseStatus": _status(self.code, self.reason),
            "requestReceivedTimestamp": _micro_time(self.when),
            "stageTimestamp": _micro_time(self.when + timedelta(seconds=self.seconds)),
            "annotations": self.annotations,
        }
        return {key: value for key, value in event.items() if value or key == "user"}


def line_of(record: AuditRecord) -> bytes:
    """The record as a line of JSON; bytes of a client that are no text are shown as U+FFFD, as Go shows them."""
    event = record.to_json()
    try:
        return _LINES.encode(event) + b"\n"
    except UnicodeEncodeError:
        return _LINES.encode(_as_text(event)) + b"\n"


def _as_bytes(text: str) -> bytes:
    """What a client sent, byte by byte; aiohttp hands over what is no UTF-8 as lone surrogates."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _as_text(value: Any) -> Any:
    match value:
        case str():
            return _as_bytes(value).decode("utf-8", "replace")
        case dict():
            return {_as_text(key): _as_text(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_as_text(inner) for inner in value]
        case _:
            return value


def _micro_time(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _reference(info: RequestInfo) -> Json | None:
    if not info.is_resource:
        return None
    fields = {
        "resource": info.resource,
        "namespace": info.namespace,
        "name": info.name,
        "apiGroup": info.group,
        "apiVersion": info.version,
        "subresource": info.subresource,
    }
    return {key: value for key, value in fields.items() if value}


def _status(code: int, reason: str) -> Json:
    return {"metadata": {}, "code": code} | ({"status": "Failure", "reason": reason} if reason else {})
