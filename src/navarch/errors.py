"""The one exception tree.

Error text says what was expected, what came instead, where, and what to do about it. It never carries a secret:
tokens, keys, passwords and the bodies of Secrets are left out.

    NavarchError
    ├── ConfigError              a kubeconfig, certificate or credential cannot be used
    │   ├── CredentialError      a token file, exec plugin or client certificate gave nothing usable
    │   ├── CrdError             the cluster's CRDs do not fit the operator's kinds
    │   └── MissingPermissionsError  the operator may not do what it declares; lists all of it
    ├── DefinitionError          a class does not declare a kind the API server would take
    ├── InvalidValueError        text that is no quantity, time, duration, selector, name or patch
    │   └── PatchError           a patch that does not fit its document
    ├── ValidationError          an object that does not satisfy its schema; carries every cause
    ├── DecodeError              bytes that are not the object they should be
    │   └── MalformedJsonError   bytes that are not even JSON
    ├── ClosedError              a client that was closed is used again
    ├── QueueClosedError         a queue that was closed hands out nothing more
    ├── NotLeaderError           a write of a process that does not lead; it was not sent
    ├── ContainerError           a container cannot be started, entered or found; in the words of Kubernetes' nodes
    ├── TransportError           no answer could be had
    │   ├── ConnectError         nobody answered at that address
    │   │   └── TlsError         whoever answered is not trusted, or does not speak TLS
    │   ├── ConnectionLostError  the answer broke off
    │   ├── DeadlineError        the answer did not come in time
    │   └── BadAnswerError       something answered that does not speak Kubernetes
    ├── EtcdError                etcd said no
    │   ├── EtcdUnavailableError no endpoint answered, or none has a leader; nothing was done
    │   ├── EtcdUncertainError   the answer did not come; a write may or may not have been carried out
    │   ├── EtcdCompactedError   the revision is no longer kept; carries the oldest that is
    │   ├── EtcdAccessError      the user or the token is not known, or may not do that
    │   ├── EtcdNotFoundError    no such lease or member
    │   ├── EtcdRefusedError     a request that makes no sense here: a revision of the future, a member that is there already
    │   └── EtcdExhaustedError   no space is left, or too much was asked at once
    └── ApiError                 the API server said no (code, reason, message, causes)
        ├── BadRequest           400
        ├── Unauthorized         401
        ├── Forbidden            403
        ├── NotFound             404
        ├── MethodNotAllowed     405
        ├── NotAcceptable        406
        ├── Conflict             409  the object has changed, or other managers own the fields
        ├── AlreadyExists        409  reason AlreadyExists
        ├── Gone                 410  the revision is no longer kept: list again
        ├── Invalid              422  carries the causes, field by field
        ├── TooLarge             413
        ├── UnsupportedMediaType 415
        ├── TooManyRequests      429
        └── ServerError          5xx
            └── Unavailable      503 and 504
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class NavarchError(Exception):
    """Whatever this framework raises on purpose."""


class ConfigError(NavarchError):
    """A configuration that cannot be used; names the file, the context and the missing piece."""


class CredentialError(ConfigError):
    """A credential that gave nothing usable; never shows it."""


class CrdError(ConfigError):
    """A CustomResourceDefinition is missing, or another one than the operator's classes need; names all of them."""


class MissingPermissionsError(ConfigError):
    """The operator may not do what it declares: one report of every missing verb, with the roles that would grant them."""


class DefinitionError(NavarchError):
    """A class that does not declare a kind the API server would take; names the place and the remedy."""


class InvalidValueError(NavarchError, ValueError):
    """Text that is not what it should be: a quantity, a time, a selector, a name, a patch."""


class PatchError(InvalidValueError):
    """A patch that does not fit the document it is applied to."""


class DecodeError(NavarchError):
    """Bytes that are not the object they should be; names the object and the field."""


class MalformedJsonError(DecodeError):
    """Bytes that are not even JSON."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason why an object was not taken: the field, the kind of fault, the sentence."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class ValidationError(NavarchError):
    """An object that does not satisfy its schema; `causes` has every fault, not only the first."""

    def __init__(self, message: str, causes: Sequence[Cause] = ()) -> None:
        super().__init__("; ".join([message, *map(str, causes)]))
        self.causes = tuple(causes)


class ClosedError(NavarchError):
    """A client that was closed is used again; use it inside its `async with`."""


class QueueClosedError(NavarchError):
    """A work queue that was closed hands out nothing more; its workers end."""


class NotLeaderError(NavarchError):
    """A write of a process that does not lead, or no longer; it was not sent, and whoever leads now does the work.

    It is no `TransportError`: those may be tried again, and this one must not be.
    """


class ContainerError(NavarchError):
    """A container of the embedded cluster that cannot be started, entered or found; says why as Kubernetes' nodes do."""


class TransportError(NavarchError):
    """No answer could be had from the API server."""


class ConnectError(TransportError):
    """Nobody answered at that address; the request was never sent."""


class TlsError(ConnectError):
    """Whoever answered shows a certificate that does not verify, or does not speak TLS; nothing was sent."""


class ConnectionLostError(TransportError):
    """The connection broke before the answer was complete; the request may or may not have been carried out."""


class DeadlineError(TransportError, TimeoutError):
    """The answer did not come within the time allowed; the request may or may not have been carried out."""


class BadAnswerError(TransportError):
    """Something answered that does not speak Kubernetes: HTML, truncated JSON, a proxy's error page."""


class EtcdError(NavarchError):
    """etcd said no. The text is etcd's own word for it and where it came from; keys and values are left out."""


class EtcdUnavailableError(EtcdError):
    """No endpoint could be reached, or none has a leader; nothing was done. Says what each endpoint's fault was."""


class EtcdUncertainError(EtcdError):
    """The answer did not come, or broke off; a write may or may not have been carried out: read before trying again."""


class EtcdCompactedError(EtcdError):
    """The revision is no longer kept. `revision` is the oldest that is, 0 if etcd did not say."""

    def __init__(self, message: str, revision: int = 0) -> None:
        super().__init__(message)
        self.revision = revision


class EtcdAccessError(EtcdError):
    """The user, the password or the token is not known, or this user may not do that."""


class EtcdNotFoundError(EtcdError):
    """There is no such lease or member, or no longer."""


class EtcdRefusedError(EtcdError):
    """A request that makes no sense here and now: a revision of the future, a member that is there already."""


class EtcdExhaustedError(EtcdError):
    """etcd has no space left (see its alarms), or was asked for too much at once."""


class ApiError(NavarchError):
    """The API server answered with a failure.

    `code` is the HTTP status, `reason` Kubernetes' word for it, `causes` the faults field by field,
    `retry_after` what the server asked for in seconds.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int,
        reason: str = "",
        causes: Sequence[Cause] = (),
        retry_after: float | None = None,
        continue_token: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.causes = tuple(causes)
        self.retry_after = retry_after
        self.continue_token = continue_token


class BadRequest(ApiError):  # noqa: N818 - the names of this family are Kubernetes' own reasons
    """400: the request itself is malformed."""


class Unauthorized(ApiError):  # noqa: N818
    """401: the server does not know who is asking."""


class Forbidden(ApiError):  # noqa: N818
    """403: the server knows who is asking, and the answer is no."""


class NotFound(ApiError):  # noqa: N818
    """404: no such object, or no such kind."""


class MethodNotAllowed(ApiError):  # noqa: N818
    """405: this kind does not know that verb."""


class NotAcceptable(ApiError):  # noqa: N818
    """406: the server cannot answer in the form asked for."""


class Conflict(ApiError):  # noqa: N818
    """409: the object has changed since it was read, or other managers own the fields.

    `managers` names the field managers in the way of a server-side apply.
    """

    managers: tuple[str, ...] = ()


class AlreadyExists(ApiError):  # noqa: N818
    """409: an object of that name is already there."""


class Gone(ApiError):  # noqa: N818
    """410: the revision or continue token is no longer kept; list again."""


class TooLarge(ApiError):  # noqa: N818
    """413: the object is larger than the server takes."""


class UnsupportedMediaType(ApiError):  # noqa: N818
    """415: the server does not take a body of that form."""


class Invalid(ApiError):  # noqa: N818
    """422: the object does not validate; `causes` has the faults field by field."""


class TooManyRequests(ApiError):  # noqa: N818
    """429: the server is busy; `retry_after` says for how long."""


class ServerError(ApiError):
    """5xx: the server failed."""


class Unavailable(ServerError):  # noqa: N818
    """503 or 504: the server, or what it needs, is not there right now."""
