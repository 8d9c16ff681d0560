"""The one exception tree.

An error's text says what was expected, what was found, where, and what to do. It never contains a secret: no token, key
or password, and no body of a Secret.

    NavarchError
    ├── ConfigError              a kubeconfig, certificate or credential cannot be used
    │   ├── CredentialError      a token file, exec plugin or client certificate returned nothing usable
    │   ├── CrdError             the cluster's CRDs do not match the operator's kinds
    │   └── MissingPermissionsError  the operator lacks permissions that it declares; lists all of them
    ├── DefinitionError          a class does not declare a kind that the API server accepts
    ├── InvalidValueError        text is no valid quantity, time, duration, selector, name or patch
    │   └── PatchError           a patch does not fit its document
    ├── ValidationError          an object does not satisfy its schema; has every cause
    ├── DecodeError              bytes do not decode as the expected object
    │   └── MalformedJsonError   bytes are not JSON
    ├── ConversionError          an object cannot be converted to another version
    ├── ClosedError              a closed client is used again
    ├── QueueClosedError         a closed queue hands out no key
    ├── NotLeaderError           a process that is not the leader tried to write; the request was not sent
    ├── ContainerError           a container cannot be started, entered or found
    ├── ImageError               an image, archive or package is damaged, or cannot be built
    ├── DeployError              an operator cannot be deployed, does not work, or cannot be removed
    ├── RegistryError            a registry refused, broke off, or sent something else than it promised
    ├── TransportError           the server sent no answer
    │   ├── ConnectError         no server answered at that address
    │   │   └── TlsError         the server is not trusted, or does not speak TLS
    │   ├── ConnectionLostError  the answer broke off
    │   ├── DeadlineError        the answer did not come in time
    │   └── BadAnswerError       the answer is not from Kubernetes
    ├── EtcdError                etcd returned an error
    │   ├── EtcdUnavailableError no endpoint answered, or none has a leader; nothing was executed
    │   ├── EtcdUncertainError   the answer did not come; a write may or may not have been executed
    │   ├── EtcdCompactedError   the revision was compacted; has the oldest that is left
    │   ├── EtcdAccessError      the user or token is unknown, or lacks the permission
    │   ├── EtcdNotFoundError    the lease or member does not exist
    │   ├── EtcdRefusedError     a future revision, or a member that exists already
    │   └── EtcdExhaustedError   no space is left, or the request is too large
    └── ApiError                 the API server answered with a failure (code, reason, message, causes)
        ├── BadRequest           400
        ├── Unauthorized         401
        ├── Forbidden            403
        ├── NotFound             404
        ├── MethodNotAllowed     405
        ├── NotAcceptable        406
        ├── Conflict             409  the object has changed, or other managers own the fields
        ├── AlreadyExists        409  reason AlreadyExists
        ├── Gone                 410  the resourceVersion has expired: list again
        ├── Invalid              422  has the causes, field by field
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
    """The base of every error that Navarch raises on purpose."""


class ConfigError(NavarchError):
    """A configuration cannot be used; the text names the file, the context and the missing part."""


class CredentialError(ConfigError):
    """A credential source returned nothing usable; the text never shows a credential."""


class CrdError(ConfigError):
    """A CustomResourceDefinition is missing, or does not match the operator's classes; the text names all of them."""


class MissingPermissionsError(ConfigError):
    """The operator lacks permissions that it declares: one report of every missing verb, with the roles that grant
    them.
    """


class DefinitionError(NavarchError):
    """A class does not declare a kind that the API server accepts; the text names the field and the remedy."""


class InvalidValueError(NavarchError, ValueError):
    """Text is not a valid quantity, time, duration, selector, name or patch."""


class PatchError(InvalidValueError):
    """A patch does not fit the document."""


class DecodeError(NavarchError):
    """Bytes do not decode as the expected object; the text names the object and the field."""


class MalformedJsonError(DecodeError):
    """Bytes are not JSON."""


class ConversionError(NavarchError):
    """An object cannot be converted to another version; the text names the object, both versions and the cause."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason why an object was refused: the field, the reason, the message."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class ValidationError(NavarchError):
    """An object does not satisfy its schema; `causes` has every fault, not only the first."""

    def __init__(self, message: str, causes: Sequence[Cause] = ()) -> None:
        super().__init__("; ".join([message, *map(str, causes)]))
        self.causes = tuple(causes)


class ClosedError(NavarchError):
    """A closed client is used again; use it inside its `async with`."""


class QueueClosedError(NavarchError):
    """A closed work queue hands out no key; its workers end."""


class NotLeaderError(NavarchError):
    """A process that is not the leader tried to write; the request was not sent, and the leader does the work.

    It is no `TransportError`: those may be retried, and this one must not be.
    """


class ContainerError(NavarchError):
    """A container of the embedded cluster cannot be started, entered or found; the text is that of
    Kubernetes' nodes.
    """


class ImageError(NavarchError):
    """An image, an archive or a package is damaged, or cannot be built; the text names the file and the remedy."""


class DeployError(NavarchError):
    """An operator cannot be deployed, does not work once it is, or cannot be removed; the text has cause and remedy."""


class RegistryError(NavarchError):
    """A registry refused, broke off, or sent something else than it promised; `status` is its answer's, 0 without one."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class TransportError(NavarchError):
    """The API server sent no answer."""


class ConnectError(TransportError):
    """No server answered at that address; the request was not sent."""


class TlsError(ConnectError):
    """The server's certificate does not verify, or the server does not speak TLS; the request was not sent."""


class ConnectionLostError(TransportError):
    """The connection broke before the answer was complete; the server may or may not have executed the request."""


class DeadlineError(TransportError, TimeoutError):
    """The answer did not come in time; the server may or may not have executed the request."""


class BadAnswerError(TransportError):
    """The answer is not from Kubernetes: HTML, truncated JSON, a proxy's error page."""


class EtcdError(NavarchError):
    """etcd returned an error. The text is etcd's own, with the endpoint; it contains no keys and values."""


class EtcdUnavailableError(EtcdError):
    """No endpoint could be reached, or none has a leader; nothing was executed. The text names the error of each
    endpoint.
    """


class EtcdUncertainError(EtcdError):
    """The answer did not come, or broke off; etcd may or may not have executed a write: read before a retry."""


class EtcdCompactedError(EtcdError):
    """The revision was compacted. `revision` is the oldest that is left, 0 if etcd did not report it."""

    def __init__(self, message: str, revision: int = 0) -> None:
        super().__init__(message)
        self.revision = revision


class EtcdAccessError(EtcdError):
    """etcd does not know the user, the password or the token, or the user lacks the permission."""


class EtcdNotFoundError(EtcdError):
    """The lease or member does not exist."""


class EtcdRefusedError(EtcdError):
    """etcd refuses the request: a future revision, or a member that exists already."""


class EtcdExhaustedError(EtcdError):
    """etcd has no space left (see its alarms), or the request is too large."""


class ApiError(NavarchError):
    """The API server answered with a failure.

    `code` is the HTTP status, `reason` the reason of the Status object, `causes` the faults field by field,
    `retry_after` the delay that the server asks for, in seconds.
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
    """400: the request is malformed."""


class Unauthorized(ApiError):  # noqa: N818
    """401: the server does not know the user."""


class Forbidden(ApiError):  # noqa: N818
    """403: the user lacks the permission."""


class NotFound(ApiError):  # noqa: N818
    """404: the object or the kind does not exist."""


class MethodNotAllowed(ApiError):  # noqa: N818
    """405: the kind does not support the verb."""


class NotAcceptable(ApiError):  # noqa: N818
    """406: the server cannot answer in the requested media type."""


class Conflict(ApiError):  # noqa: N818
    """409: the object has changed since it was read, or other managers own the fields.

    `managers` names the field managers that conflict with a server-side apply.
    """

    managers: tuple[str, ...] = ()


class AlreadyExists(ApiError):  # noqa: N818
    """409: an object with that name exists already."""


class Gone(ApiError):  # noqa: N818
    """410: the resourceVersion or continue token has expired; list again."""


class TooLarge(ApiError):  # noqa: N818
    """413: the object exceeds the server's limit."""


class UnsupportedMediaType(ApiError):  # noqa: N818
    """415: the server does not accept the media type of the body."""


class Invalid(ApiError):  # noqa: N818
    """422: the object does not validate; `causes` has the faults field by field."""


class TooManyRequests(ApiError):  # noqa: N818
    """429: the server is busy; `retry_after` says for how long."""


class ServerError(ApiError):
    """5xx: the server failed."""


class Unavailable(ServerError):  # noqa: N818
    """503 or 504: the server, or a service that it needs, is not available."""
