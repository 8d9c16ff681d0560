"""One record of the audit log, and how it is written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from navarch.cluster.server.pipeline.authentication.users import user_info
from navarch.cluster.server.wire.request import Json, RequestInfo, User

__all__ = ["NO_ANNOTATIONS", "AuditRecord", "line_of"]

NO_ANNOTATIONS: Final[Mapping[str, str]] = {}

_LINES: Final = msgspec.json.Encoder()
_IN_PATHS: Final = "/:@!$&'()*+,;=~-._%"


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
