"""`StatusError`: an error of the API, as a Status with a code, a reason and details."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

MOST_CAUSES: Final = 1000
"""How many faults of one object are looked for: a body of a few bytes each could have any number."""


class StatusError(Exception):
    """The request is refused; `status()` is the body of the answer. `headers` go with it (`Retry-After`)."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Json | None = None,
        metadata: Json | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata = metadata
        self.headers = headers or {}

    def status(self) -> Json:
        """The Status object."""
        body: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata or {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


UNEXPECTED: Final = StatusError(500, "InternalError", "an error on the server has prevented the request")
"""500: a fault of the server, of which the client learns nothing more."""


def _named(group: str, resource: str, name: str, **more: Any) -> Json:
    details: Json = {"name": name, "group": group, "kind": resource}
    return {key: value for key, value in {**details, **more}.items() if value}


def _qualified(group: str, resource: str) -> str:
    return f"{resource}.{group}" if group else resource


def not_found(group: str, resource: str, name: str) -> StatusError:
    """404: there is no such object."""
    message = f'{_qualified(group, resource)} "{name}" not found'
    return StatusError(404, "NotFound", message, details=_named(group, resource, name))


def already_exists(group: str, resource: str, name: str) -> StatusError:
    """409: there is one of that name."""
    message = f'{_qualified(group, resource)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=_named(group, resource, name))


def conflict(group: str, resource: str, name: str, why: str) -> StatusError:
    """409: it is not what it was when it was read."""
    message = f'Operation cannot be fulfilled on {_qualified(group, resource)} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_named(group, resource, name))


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> StatusError:
    """422, with every cause, field by field, or the first of very many."""
    causes = causes[:MOST_CAUSES]
    listed = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    said = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    message = f'{_qualified(group, kind)} "{name}" is invalid: {said}'
    details = _named(group, kind, name)
    details["causes"] = [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes]
    return StatusError(422, "Invalid", message, details=details)


def bad_request(message: str) -> StatusError:
    """400: the request makes no sense."""
    return StatusError(400, "BadRequest", message)


def unauthorized() -> StatusError:
    """401: nobody knows who asks."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(group: str, resource: str, name: str, why: str) -> StatusError:
    """403: whoever asks may not."""
    subject = (
        f'{_qualified(group, resource)} "{name}" is forbidden'
        if name
        else (f"{_qualified(group, resource)} is forbidden")
    )
    return StatusError(403, "Forbidden", f"{subject}: {why}", details=_named(group, resource, name))


def method_not_allowed(message: str = "the server does not allow this method on the requested resource") -> StatusError:
    """405: the resource does not know that verb."""
    return StatusError(405, "MethodNotAllowed", message, details={})


def gone(message: str, *, continue_token: str = "") -> StatusError:
    """410: the revision, or the token, is no longer kept."""
    metadata = {"continue": continue_token} if continue_token else None
    return StatusError(410, "Expired", message, metadata=metadata)
