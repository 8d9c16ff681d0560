"""The bodies of writes: patches, delete options, and objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from navarch.api import Dynamic, Kind, Object, decode, encode, full_wire
from navarch.api.unknown_fields import check_sendable
from navarch.errors import (
    ApiError,
    Conflict,
    DecodeError,
    Forbidden,
    Invalid,
    InvalidValueError,
    NotFound,
    PatchError,
    Unauthorized,
    UnsupportedMediaType,
)

Propagation = Literal["Background", "Foreground", "Orphan"]
_UNEXPLAINED = "due to an error in our request"
_OPERATIONS = {
    "add": ("value",),
    "remove": (),
    "replace": ("value",),
    "move": ("from",),
    "copy": ("from",),
    "test": ("value",),
}


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """RFC 6902: a list of operations, each of which must apply."""

    operations: list[dict[str, Any]]
    media_type: ClassVar[str] = "application/json-patch+json"

    def __post_init__(self) -> None:
        if not isinstance(self.operations, list):
            raise PatchError(f"expected a list of operations, got {type(self.operations).__name__}")
        for index, operation in enumerate(self.operations):
            _check_operation(index, operation)

    def body(self) -> bytes:
        """Returns the patch as it is sent."""
        return encode(self.operations)


def _check_operation(index: int, operation: Any) -> None:
    """Refuses an operation that the server would refuse without a reason."""
    expected = f"expected operation {index} as {{'op': 'replace', 'path': '/spec/size', 'value': 3}}"
    if not isinstance(operation, dict) or operation.get("op") not in _OPERATIONS:
        raise PatchError(f"{expected}, got no op of {', '.join(_OPERATIONS)}")
    missing = [key for key in ("path", *_OPERATIONS[operation["op"]]) if key not in operation]
    if missing:
        raise PatchError(f"{expected}, got {operation['op']!r} without {' and '.join(missing)}")


@dataclass(frozen=True, slots=True)
class MergePatch:
    """RFC 7386: sets the named fields, null removes a field, lists are replaced whole."""

    changes: dict[str, Any]
    media_type: ClassVar[str] = "application/merge-patch+json"

    def body(self) -> bytes:
        """Returns the patch as it is sent."""
        return encode(self.changes)


@dataclass(frozen=True, slots=True)
class StrategicPatch:
    """Kubernetes' own: like a merge patch, but lists of built-in kinds are merged by key."""

    changes: dict[str, Any]
    media_type: ClassVar[str] = "application/strategic-merge-patch+json"

    def body(self) -> bytes:
        """Returns the patch as it is sent."""
        return encode(self.changes)


Patch = JsonPatch | MergePatch | StrategicPatch


def required_patch(patch: object) -> Patch:
    """Returns `patch` if it has one of the patch types."""
    if not isinstance(patch, (JsonPatch, MergePatch, StrategicPatch)):
        raise PatchError(
            f"expected a patch, got {type(patch).__name__}; wrap it: MergePatch({{...}}) or JsonPatch([...])"
        )
    return patch


def explain_refusal(error: ApiError, patch: Patch) -> None:
    """Adds the reason to the error of a refused patch if the server does not give it."""
    if isinstance(error, UnsupportedMediaType) and isinstance(patch, StrategicPatch):
        reason = "custom kinds take no strategic merge patch; use MergePatch, or apply"
    elif isinstance(error, Invalid) and isinstance(patch, JsonPatch) and error.message.endswith(_UNEXPLAINED):
        reason = "an operation does not fit the object: there is nothing at its path, or a test failed"
    else:
        return
    error.args = (f"{error.message}; {reason}",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preconditions:
    """The server deletes the object only if it still has this uid and resourceVersion."""

    uid: str | None = None
    resource_version: str | None = None

    def wire(self) -> dict[str, str]:
        """Returns the preconditions as they are sent."""
        given = {"uid": self.uid, "resourceVersion": self.resource_version}
        return {key: value for key, value in given.items() if value is not None}


# What the server sets or what says "only this revision": an apply states intent, so it carries none of it.
_NOT_APPLIED = (
    "managedFields",
    "resourceVersion",
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)


def object_body(target: Object | Dynamic, kind: Kind, subresource: str | None) -> bytes:
    """Returns the object as it is written, without the status if the server would ignore it."""
    return encode(_without_status(_wire(target, kind), kind, subresource))


def applied_body(
    desired: Object | Dynamic, kind: Kind, subresource: str | None, resource_version: str | None = None
) -> bytes:
    """Returns the object as it is applied: the fields that its owner sets, without those that the server sets.

    With a `resource_version` the server accepts it only if the object has that version.
    """
    wire = _without_status(_wire(desired, kind), kind, subresource)
    kept = {key: value for key, value in wire.get("metadata", {}).items() if key not in _NOT_APPLIED}
    condition = {"resourceVersion": resource_version} if resource_version else {}
    return encode({**wire, "metadata": {**kept, **condition}})


def _wire(target: Object | Dynamic, kind: Kind) -> dict[str, Any]:
    """Returns the object with apiVersion and kind, which items of a list lack."""
    if isinstance(target, Dynamic):
        return {"apiVersion": kind.api_version, "kind": kind.kind, **target}
    check_sendable(target)
    wire = full_wire(target)
    return {"apiVersion": kind.api_version, "kind": kind.kind, **wire}


def _without_status(wire: dict[str, Any], kind: Kind, subresource: str | None) -> dict[str, Any]:
    if subresource is not None or not kind.has_status:
        return wire
    return {key: value for key, value in wire.items() if key != "status"}


def explain_types(error: ApiError, given: Object | Dynamic, body: bytes) -> None:
    """Names the value of a refused object that has another type than its class declares."""
    if isinstance(given, Dynamic) or isinstance(error, (Conflict, Forbidden, NotFound, Unauthorized)):
        return
    try:
        decode(type(given), body)
    except DecodeError as mismatch:
        error.args = (f"{error.message}; the object does not fit its class: {mismatch}",)


def required_name(target: Object | Dynamic) -> str:
    """Returns the object's name; only `create` can do without one."""
    if not target.name:
        raise InvalidValueError(f"expected a {target.kind} with a name, got one without; set metadata.name")
    return target.name


def delete_options(
    propagation: Propagation | None, grace_seconds: int | None, preconditions: Preconditions | None, *, dry_run: bool
) -> dict[str, Any]:
    """Returns DeleteOptions; the server decides about each that is None."""
    options = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": propagation,
        "gracePeriodSeconds": grace_seconds,
        "preconditions": preconditions.wire() if preconditions else None,
        "dryRun": ["All"] if dry_run else None,
    }
    return {key: value for key, value in options.items() if value is not None}
