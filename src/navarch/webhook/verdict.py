"""`ReviewVerdict`: what a webhook function decided about a request, with the patch of a mutating one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any

import msgspec

from navarch.api import Dynamic, Kind, Object, create_json_patch, encode, full_wire
from navarch.api.strconv import go_quoted
from navarch.api.unknown_fields import ObjectChange
from navarch.errors import Cause, NavarchError
from navarch.webhook.review import Denial, Review


class ReviewError(NavarchError):
    """A review that cannot be answered with a verdict; `status` is the HTTP status of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewVerdict:
    """The answer to one request, as a test reads it.

    `causes` are the refused fields; `patch` are the operations (RFC 6902) of a mutating function.
    """

    allowed: bool
    message: str = ""
    causes: tuple[Cause, ...] = ()
    warnings: tuple[str, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    patch: tuple[Mapping[str, Any], ...] = ()
    status: Mapping[str, Any] | None = None
    """The Status that the API server passes on to the user of a refused request."""


class Judge:
    """Calls one webhook function and turns what it did into a verdict."""

    def __init__(self, name: str, kind: Kind, *, is_mutating: bool) -> None:
        self._name = name
        self._kind = kind
        self._is_mutating = is_mutating

    async def verdict(
        self, call: Callable[[Any, Review[Any]], object], subject: Any, review: Review[Any]
    ) -> ReviewVerdict:
        """Raises what the function raises, and `ReviewError` for a function that breaks its contract."""
        identity, change = _identity(subject), _change(subject) if self._is_mutating else None
        result = call(subject, review)
        if isawaitable(result):
            result = await result
        self._refuse_result(result)
        if review.denials:
            return _refusal(self._kind, subject, review)
        if _identity(subject) != identity:
            raise ReviewError(
                500,
                f"expected {self._name} to keep apiVersion, kind, name, namespace and uid of the object, got others",
            )
        patch = () if change is None else tuple(change.patch())
        return ReviewVerdict(
            allowed=True, warnings=tuple(review.warnings), annotations=dict(review.annotations), patch=patch
        )

    def _refuse_result(self, result: object) -> None:
        if result is not None:
            remedy = "change the object in place" if self._is_mutating else "call review.deny(...)"
            raise ReviewError(500, f"expected {self._name} to return None, got {type(result).__name__}; {remedy}")


def _change(subject: Any) -> ObjectChange | _DynamicChange:
    return ObjectChange(subject) if isinstance(subject, Object) else _DynamicChange(subject)


class _DynamicChange:
    """See `ObjectChange`: of an object without a model."""

    def __init__(self, subject: Any) -> None:
        self._subject = subject
        self._before = _wire(subject)

    def patch(self) -> list[dict[str, Any]]:
        return create_json_patch(self._before, _wire(self._subject))


def _wire(subject: Any) -> Any:
    """Returns the object as JSON; of a typed object also the fields that its model lacks."""
    return full_wire(subject) if isinstance(subject, Object) else msgspec.json.decode(encode(subject))


def _identity(subject: Object | Dynamic) -> tuple[str, ...]:
    """Returns what no webhook may change."""
    uid = subject.metadata.uid if isinstance(subject, Object) else subject.metadata.get("uid")
    return subject.api_version, subject.kind, subject.name, subject.namespace, uid or ""


def _refusal(kind: Kind, subject: Any, review: Review[Any]) -> ReviewVerdict:
    """Returns the refusal: 422 Invalid with the faults of all fields, or 403 Forbidden if no fault has a field."""
    name = review.name or getattr(subject, "name", "")
    causes = tuple(_cause(kind, subject, denial) for denial in review.denials)
    details: dict[str, Any] = {"name": name, "group": kind.group, "kind": kind.kind}
    if any(cause.field for cause in causes):
        said = [str(cause) for cause in causes]
        listed = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
        qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
        message = f"{qualified} {go_quoted(name)} is invalid: {listed}"
        details["causes"] = [msgspec.to_builtins(cause) for cause in causes]
        status = {"status": "Failure", "code": 422, "reason": "Invalid", "message": message, "details": details}
    else:
        message = "; ".join(cause.message for cause in causes)
        status = {"status": "Failure", "code": 403, "reason": "Forbidden", "message": message, "details": details}
    return ReviewVerdict(
        allowed=False,
        message=message,
        causes=causes,
        warnings=tuple(review.warnings),
        annotations=dict(review.annotations),
        status=status,
    )


def _cause(kind: Kind, subject: Any, denial: Denial) -> Cause:
    """Returns the fault in the API server's form: a field is told with its value, but never the value of a secret."""
    if not denial.field:
        return Cause("", "FieldValueForbidden", denial.message)
    if _is_secret(kind, subject, denial.field):
        return Cause(denial.field, "FieldValueInvalid", f"Invalid value: {denial.message}")
    from navarch.schema.values.violations import shown  # noqa: PLC0415 - only a refusal needs it

    value = _value_at(_wire(subject), denial.field)
    return Cause(denial.field, "FieldValueInvalid", f"Invalid value: {shown(value)}: {denial.message}")


def _is_secret(kind: Kind, subject: Any, path: str) -> bool:
    """Returns whether the path leads into a Secret's data, or into a field that its model declares as sensitive."""
    if kind.kind == "Secret":
        return not path.startswith("metadata")
    here = subject
    for part in path.split("."):
        attribute = _attribute(here, part.partition("[")[0])
        if attribute in getattr(type(here), "__sensitive__", ()):
            return True
        here = getattr(here, attribute, None) if attribute else None
    return False


def _attribute(model: Any, wire_name: str) -> str:
    names = getattr(type(model), "__struct_encode_fields__", ())
    return model.__struct_fields__[names.index(wire_name)] if wire_name in names else ""


def _value_at(wire: Any, path: str) -> Any:
    """Returns the value of a field such as `spec.ports[0].name`; None where there is none."""
    here = wire
    for step in path.replace("[", ".[").split("."):
        if step.startswith("[") and step.endswith("]"):
            key = step[1:-1].strip("'\"")
            inside = here if isinstance(here, list | dict) else ()
            here = _item(inside, key)
        else:
            here = here.get(step) if isinstance(here, dict) else None
    return here


def _item(inside: Any, key: str) -> Any:
    if isinstance(inside, Mapping):
        return inside.get(key)
    return inside[int(key)] if key.isdecimal() and int(key) < len(inside) else None
