"""Applies JSON, merge and strategic merge patches to an object, with Kubernetes' messages for malformed ones."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from navarch.api import apply_json_patch, apply_merge_patch
from navarch.api.strconv import go_quoted
from navarch.cluster.server.objects.fields.arranging import StrategicError
from navarch.cluster.server.objects.fields.strategic import strategic_merge
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.wire.budget import bounded_json, current_budget
from navarch.cluster.server.wire.go_text import go_kind, go_text
from navarch.cluster.server.wire.json_errors import json_fault
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError, bad_request
from navarch.errors import PatchError

APPLY: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
_MOST_OPERATIONS: Final = 10000
_OF_OPERATIONS: Final = frozenset({"op", "path", "from", "value"})
_MAP: Final = "Go value of type map[string]interface {}"


def patched(
    live: Json, body: bytes, media_type: str, resource: ResourceType, *, field_validation: str = "Warn"
) -> Json:
    """The live object after a JSON, merge or strategic merge patch; `live` is not changed.

    What the result looks like is not checked; see `unfit_patch`. Raises StatusError.
    """
    try:
        return _patched(live, body, media_type, resource, field_validation)
    except RecursionError:
        raise bad_request("exceeded max depth") from None


def _patched(live: Json, body: bytes, media_type: str, resource: ResourceType, field_validation: str) -> Json:
    if media_type == JSON_PATCH:
        return _as_object(_json_patched(live, body, field_validation), resource)
    if media_type == MERGE_PATCH:
        return _as_object(_merge_patched(live, body, field_validation), resource)
    if media_type == STRATEGIC and not resource.is_custom:
        return _strategic_patched(live, body, resource)
    raise unsupported(resource)


def unsupported(resource: ResourceType) -> StatusError:
    """415: no patch is of that media type."""
    if not resource.is_custom:
        return StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
    accepted = f"{JSON_PATCH}, {MERGE_PATCH}, {APPLY}"
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return StatusError(415, "UnsupportedMediaType", message)


def _json_patched(live: Json, body: bytes, field_validation: str) -> Any:
    is_checked = field_validation != "Ignore"
    prefix = "error decoding patch: " if is_checked else ""
    patch = _decoded(body, prefix)
    if patch is None:
        patch = []
    if not isinstance(patch, list):
        kind = "[]handlers.jsonPatchOp" if is_checked else "jsonpatch.Patch"
        raise bad_request(f"{prefix}json: cannot unmarshal {go_kind(patch)} into Go value of type {kind}")
    _check_operations(patch, prefix, is_checked=is_checked)
    if len(patch) > _MOST_OPERATIONS:
        raise _too_many(len(patch))
    try:
        budget = current_budget()
        result = apply_json_patch(list(map(_rooted, patch)), live, charge_copy=budget.charge_copy)
    except PatchError:
        raise rejected() from None
    if not isinstance(result, dict | list):
        raise rejected()
    budget.charge_value(result)  # operations can nest it deeper than their own text is
    return result


def _check_operations(patch: list[Any], prefix: str, *, is_checked: bool) -> None:
    for operation in patch:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            kind = "handlers.jsonPatchOp" if is_checked else "jsonpatch.Operation"
            raise bad_request(f"{prefix}json: cannot unmarshal {go_kind(operation)} into Go value of type {kind}")
        for name in ("op", "path", "from") if is_checked else ():
            if not isinstance(operation.get(name), str | None):
                kind = f"{go_kind(operation[name])} into Go struct field jsonPatchOp.{name}"
                raise bad_request(f"{prefix}json: cannot unmarshal {kind} of type string")


def unknown_in_operations(body: bytes) -> list[str]:
    """What a JSON patch says beside what operations have, in the words of field validation."""
    return [
        f'json patch unknown field "[{index}].{name}"'
        for index, operation in enumerate(msgspec.json.decode(body) or ())
        if isinstance(operation, dict)
        for name in operation
        if name not in _OF_OPERATIONS
    ]


def _rooted(operation: Any) -> Any:
    """The operation with paths as the real server reads them: what is before the first slash does not count."""
    if not isinstance(operation, dict):
        return operation
    paths = {name: operation[name] for name in ("path", "from") if isinstance(operation.get(name), str)}
    return {**operation, **{name: path[path.index("/") :] for name, path in paths.items() if "/" in path}}


def _too_many(count: int) -> StatusError:
    message = f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, got {count}"
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def rejected() -> StatusError:
    """422, without a word about what is wrong."""
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request", details={})


def _merge_patched(live: Json, body: bytes, field_validation: str) -> Any:
    if field_validation == "Ignore":
        try:
            patch = bounded_json(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise bad_request("Invalid JSON Patch") from None
    else:
        patch = _decoded(body, "error decoding patch: ")
        if patch is not None and not isinstance(patch, dict):
            raise bad_request(f"error decoding patch: json: cannot unmarshal {go_kind(patch)} into {_MAP}")
    if not isinstance(patch, dict | list):
        raise bad_request("Invalid JSON Patch")
    return apply_merge_patch(patch, live)


def _strategic_patched(live: Json, body: bytes, resource: ResourceType) -> Json:
    patch = _decoded(body, "")
    if patch is None:
        patch = {}
    if not isinstance(patch, dict):
        raise bad_request(f"json: cannot unmarshal {go_kind(patch)} into {_MAP}")
    try:
        return strategic_merge(live, patch, resource.schema.document)
    except StrategicError as error:
        if error.code == 400:
            raise bad_request(str(error)) from None
        raise rejected() if error.code == 422 else StatusError(500, "", str(error)) from None


def _decoded(body: bytes, prefix: str) -> Any:
    try:
        return bounded_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_request(prefix + (json_fault(body) or "exceeded max depth")) from None


def _as_object(result: Any, resource: ResourceType) -> Json:
    """What a patch made, if it is an object that says what it is; of a built-in kind, that is known."""
    if not isinstance(result, dict):
        fields = 'APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\""'
        where = f"Go value of type struct {{ {fields} }}"
        why = f"couldn't get version/kind; json parse error: json: cannot unmarshal {go_kind(result)} into {where}"
        raise unfit_patch(result, why)
    if not result.get("kind") and not resource.is_custom:
        return {"apiVersion": resource.api_version, **result, "kind": resource.kind}
    if not result.get("kind"):
        raise unfit_patch(result, f"Object 'Kind' is missing in '{msgspec.json.encode(result).decode()}'")
    return result


def unfit_patch(result: Any, why: str, *, strategic: bytes | None = None) -> StatusError:
    """422: what a patch made cannot be read. `strategic` is the patch, if it is a strategic merge patch."""
    shown = go_text(msgspec.json.decode(strategic)) if strategic else msgspec.json.encode(result).decode()
    message = f"Invalid value: {go_quoted(shown)}: {why}"
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": "patch"}]
    return StatusError(422, "Invalid", f' "" is invalid: patch: {message}', details={"causes": causes})
