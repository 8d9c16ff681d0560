"""The audit log: records who requested what, when, and the result. It never records bodies or credentials."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec.structs import replace

from navarch._base.clock import Clock
from navarch._base.supervisor import cause_of
from navarch.cluster.server.pipeline.audit_records import NO_ANNOTATIONS, AuditRecord, RotatingFile, line_of
from navarch.cluster.server.wire.request import ApiRequest, RequestInfo, User

_log = logging.getLogger("navarch.cluster.audit")

_NOTHING: Final[Mapping[str, Sequence[str]]] = {}
_SECRET_PARAMETERS: Final = ("token", "password", "secret", "authorization")
_LONGEST_USER_AGENT: Final = 1024
_LONGEST_URI: Final = 4096
_LONGEST_ID: Final = 512
_WRITE_SECONDS: Final = 0.2
_LONG_RUNNING: Final = frozenset({"watch", "proxy", "connect"})
_LONG_RUNNING_SUBRESOURCES: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})


class _AuditOutcome(NamedTuple):
    """What came of a request, for its record."""

    user: User | None
    impersonated: User | None
    code: int
    reason: str
    seconds: float
    audit_id: str
    annotations: Mapping[str, str] = NO_ANNOTATIONS


class AuditLog:
    """The last records in memory and, if there is a `file`, all of them as JSON lines in it.

    The file is written by `run`, in a thread, several times a second: what was recorded since is lost if the process is
    killed. While the disk is full, or does not keep up, records wait; beyond `capacity` the oldest are dropped. `dropped`
    counts them, and `fault` says what is wrong.
    """

    def __init__(self, clock: Clock, file: RotatingFile | None = None, *, capacity: int = 10_000) -> None:
        self._clock = clock
        self._file = file
        self._ring: deque[AuditRecord] = deque(maxlen=capacity)
        self._waiting: deque[AuditRecord] = deque(maxlen=capacity)
        self.dropped = 0
        self.fault: str | None = None
        self._writing = threading.Lock()

    def completed(
        self,
        request: ApiRequest,
        info: RequestInfo,
        user: User | None,
        code: int,
        seconds: float,
        *,
        impersonated: User | None = None,
        reason: str = "",
        audit_id: str = "",
        annotations: Mapping[str, str] = NO_ANNOTATIONS,
    ) -> None:
        """A request was answered, after so many seconds. `user` is who asked, even as somebody else."""
        outcome = _AuditOutcome(user, impersonated, code, reason, seconds, audit_id, annotations)
        self._keep("ResponseComplete", request, info, outcome)

    def started(
        self,
        request: ApiRequest,
        info: RequestInfo,
        user: User | None,
        code: int,
        seconds: float,
        *,
        impersonated: User | None = None,
        audit_id: str = "",
    ) -> None:
        """The answer to a long request began; `completed` must follow."""
        self._keep("ResponseStarted", request, info, _AuditOutcome(user, impersonated, code, "", seconds, audit_id))

    def records(
        self,
        *,
        verb: str = "",
        resource: str = "",
        subresource: str | None = None,
        namespace: str | None = None,
        name: str | None = None,
        user: str = "",
        code: int = 0,
        stage: str = "ResponseComplete",
    ) -> list[AuditRecord]:
        """Those in memory that fit, oldest first; what is not given does not count. `user` may be the impersonated one."""
        wanted = {"verb": verb or None, "resource": resource or None, "subresource": subresource}
        wanted |= {"namespace": namespace, "name": name}
        fields = {key: value for key, value in wanted.items() if value is not None}
        return [
            record
            for record in tuple(self._ring)  # a test may ask from another thread
            if (not stage or record.stage == stage)
            and (not code or record.code == code)
            and (not user or user in _names(record))
            and all(getattr(record.info, key) == value for key, value in fields.items())
        ]

    async def run(self) -> None:
        """Writes the file until cancelled, and what is left then; without one there is nothing to do."""
        try:
            while True:
                await self._clock.liveness.sleep(_WRITE_SECONDS)
                await self.flush()
        finally:
            self._write(self._taken())

    async def flush(self) -> None:
        """Writes what waits to be written; what cannot be written waits on."""
        if self._waiting:
            self._wait_again(await asyncio.to_thread(self._write, self._taken()))

    def _taken(self) -> list[AuditRecord]:
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def _wait_again(self, records: Sequence[AuditRecord]) -> None:
        """Puts records back before those that came since, as far as there is room for them."""
        assert self._waiting.maxlen is not None
        room = self._waiting.maxlen - len(self._waiting)
        self.dropped += max(len(records) - room, 0)
        self._waiting.extendleft(reversed(records[len(records) - room :] if len(records) > room else records))

    def _write(self, records: Sequence[AuditRecord]) -> Sequence[AuditRecord]:
        """Returns those that could not be written yet."""
        if self._file is None or not records:
            return ()
        try:
            with self._writing:  # a thread may still write when `run` is cancelled
                written = self._file.append([self._line(record) for record in records])
        except OSError as error:
            if self.fault is None:
                _log.warning("the audit log cannot be written: %s; records wait, and the oldest are dropped", error)
            self.fault = f"the audit log cannot be written: {error}"
            return records
        if written == len(records) and self.fault is not None:
            _log.warning("the audit log is written again; %d records were dropped", self.dropped)
            self.fault = None
        return records[written:]

    def _line(self, record: AuditRecord) -> bytes:
        """Empty for a record that cannot be shown: one request must not keep others out of the log."""
        try:
            return line_of(record)
        except Exception as error:  # noqa: BLE001 - whatever was overlooked, the others are written
            self.dropped += 1
            _log.error("a record of the audit log was dropped: %s", cause_of(error))
            return b""

    def _keep(self, stage: str, request: ApiRequest, info: RequestInfo, outcome: _AuditOutcome) -> None:
        if len(request.path) + len(request.raw_query) > _LONGEST_URI:
            request, info = _shortened(request, info)
        record = AuditRecord(
            stage=stage,
            when=self._clock.now() - timedelta(seconds=outcome.seconds),
            seconds=outcome.seconds,
            user=outcome.user,
            impersonated=outcome.impersonated,
            info=info,
            path=request.path,
            query=_without_secrets(request.query) if request.query else _NOTHING,
            code=outcome.code,
            reason=outcome.reason,
            user_agent=_user_agent(request.headers),
            dry_run="dryRun" in request.query,
            audit_id=outcome.audit_id[:_LONGEST_ID],
            source=request.source,
            annotations=outcome.annotations,
        )
        self._ring.append(record)
        if self._file is not None:
            self.dropped += len(self._waiting) == self._waiting.maxlen
            self._waiting.append(record)


def is_long_running(info: RequestInfo) -> bool:
    """Whether a request may go on for as long as the client likes: watches, and what reaches into pods."""
    return info.verb in _LONG_RUNNING or info.subresource.partition("/")[0] in _LONG_RUNNING_SUBRESOURCES


def _shortened(request: ApiRequest, info: RequestInfo) -> tuple[ApiRequest, RequestInfo]:
    """What a record keeps of a long URI: thousands of records are in memory, and anybody can ask for anything."""
    short = {name: _cut(getattr(info, name), _LONGEST_ID) for name in RequestInfo.__struct_fields__}
    query = request.query if len(request.raw_query) <= _LONGEST_URI else {"TRUNCATED": [str(len(request.raw_query))]}
    kept = ApiRequest(
        method=request.method,
        path=_cut(request.path, _LONGEST_URI),
        query=query,
        headers=request.headers,
        source=request.source,
    )
    return kept, replace(info, **short)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}...TRUNCATED"


def _without_secrets(query: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    if not any(map(_is_secret, query)):
        return query
    return {name: ["REDACTED"] if _is_secret(name) else values for name, values in query.items()}


@lru_cache(1024)
def _is_secret(parameter: str) -> bool:
    lower = parameter.lower()
    return any(word in lower for word in _SECRET_PARAMETERS)


def _user_agent(headers: Mapping[str, str]) -> str:
    agent = headers.get("user-agent", "")
    return _cut(agent, _LONGEST_USER_AGENT)


def _names(record: AuditRecord) -> list[str]:
    return [user.name for user in (record.user, record.impersonated) if user is not None]
