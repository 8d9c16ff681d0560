"""The audit log: who did what, when, and what came of it. Never what was in a body, and no credential."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from navarch._base.clock import Clock
from navarch.cluster.server.access.users import user_info
from navarch.cluster.server.request import ApiRequest, Json, RequestInfo, User

__all__ = ["AuditLog", "AuditRecord", "is_long_running"]

_log = logging.getLogger("navarch.cluster.audit")

_NOTHING: Final[Mapping[str, Sequence[str]]] = {}
_SECRET_PARAMETERS: Final = ("token", "password", "secret", "authorization")
_LONGEST_USER_AGENT: Final = 1024
_WRITE_SECONDS: Final = 0.2
_LINES: Final = msgspec.json.Encoder()
_IN_PATHS: Final = "/:@!$&'()*+,;=~-._%"
_LONG_RUNNING: Final = frozenset({"watch", "proxy", "connect"})
_LONG_RUNNING_SUBRESOURCES: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})


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

    @property
    def uri(self) -> str:
        """Path and query."""
        path = quote(self.path, safe=_IN_PATHS)
        return f"{path}?{urlencode(self.query, doseq=True)}" if self.query else path

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
        }
        return {key: value for key, value in event.items() if value or key == "user"}


class _Outcome(NamedTuple):
    """What came of a request, for its record."""

    user: User | None
    impersonated: User | None
    code: int
    reason: str
    seconds: float
    audit_id: str


class AuditLog:
    """The last records in memory and, if there is a `path`, all of them as JSON lines in a file.

    The file is written by `run`, in a thread, several times a second: what was recorded since is lost if the process is
    killed. If the disk does not keep up, the oldest lines that wait are given up; `dropped` counts them.
    """

    def __init__(self, clock: Clock, path: Path | None = None, *, capacity: int = 10_000) -> None:
        self._clock = clock
        self._path = path
        self._ring: deque[AuditRecord] = deque(maxlen=capacity)
        self._waiting: deque[AuditRecord] = deque(maxlen=capacity)
        self.dropped = 0

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
    ) -> None:
        """A request was answered, after so many seconds. `user` is who asked, even as somebody else."""
        self._keep("ResponseComplete", request, info, _Outcome(user, impersonated, code, reason, seconds, audit_id))

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
        self._keep("ResponseStarted", request, info, _Outcome(user, impersonated, code, "", seconds, audit_id))

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
        """Writes the file until cancelled, and what is left then; without a path it returns at once."""
        if self._path is None:
            return
        try:
            while True:
                await self._clock.sleep(_WRITE_SECONDS)
                await self.flush()
        finally:
            self._write(self._taken())

    async def flush(self) -> None:
        """Writes what waits to be written."""
        if self._waiting:
            await asyncio.to_thread(self._write, self._taken())

    def _taken(self) -> list[AuditRecord]:
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def _write(self, records: Sequence[AuditRecord]) -> None:
        if self._path is None or not records:
            return
        try:
            with self._path.open("ab") as file:
                file.write(_LINES.encode_lines([record.to_json() for record in records]))
        except OSError as error:
            self.dropped += len(records)
            _log.warning("%d records of the audit log could not be written to %s: %s", len(records), self._path, error)

    def _keep(self, stage: str, request: ApiRequest, info: RequestInfo, outcome: _Outcome) -> None:
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
            audit_id=outcome.audit_id,
            source=request.source,
        )
        self._ring.append(record)
        if self._path is not None:
            self.dropped += len(self._waiting) == self._waiting.maxlen
            self._waiting.append(record)


def is_long_running(info: RequestInfo) -> bool:
    """Whether a request may go on for as long as the client likes: watches, and what reaches into pods."""
    return info.verb in _LONG_RUNNING or info.subresource.partition("/")[0] in _LONG_RUNNING_SUBRESOURCES


def _without_secrets(query: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    if not any(map(_is_secret, query)):
        return query
    return {name: ["REDACTED"] if _is_secret(name) else values for name, values in query.items()}


@lru_cache(1024)
def _is_secret(parameter: str) -> bool:
    lower = parameter.lower()
    return any(word in lower for word in _SECRET_PARAMETERS)


def _micro_time(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _user_agent(headers: Mapping[str, str]) -> str:
    agent = headers.get("user-agent", "")
    return agent if len(agent) <= _LONGEST_USER_AGENT else f"{agent[:_LONGEST_USER_AGENT]}...TRUNCATED"


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


def _names(record: AuditRecord) -> list[str]:
    return [user.name for user in (record.user, record.impersonated) if user is not None]
