"""AdmissionReview responses: decoded and checked as kube-apiserver does."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final, NamedTuple

import msgspec

from navarch.api.strconv import go_quoted
from navarch.cluster.server.wire.budget import bounded_json
from navarch.cluster.server.wire.go_text import go_kind
from navarch.cluster.server.wire.json_errors import json_fault
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.webhook_client import WebhookCallError, WebhookResponse

_API_VERSION: Final = "admission.k8s.io/v1"
_TYPE_META: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)
_FIELDS: Final[tuple[tuple[str, type, str], ...]] = (
    ("uid", str, "types.UID"),
    ("allowed", bool, "bool"),
    ("status", dict, "v1.Status"),
    ("patch", str, "[]uint8"),
    ("patchType", str, "v1.PatchType"),
    ("auditAnnotations", dict, "map[string]string"),
    ("warnings", list, "[]string"),
)
_STATUS_FIELDS: Final[tuple[tuple[str, type, str], ...]] = (
    ("message", str, "string"),
    ("reason", str, "v1.StatusReason"),
    ("details", dict, "v1.StatusDetails"),
    ("code", int, "int32"),
)
_GENERIC: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    415: "the server was unable to respond with a content type that the client supports",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/]*={0,2}")
_LONGEST_SHOWN: Final = 2048


class AdmissionResponse(NamedTuple):
    """A valid answer. `patch` are operations, None if nothing is to change."""

    allowed: bool
    status: Json | None
    patch: list[Any] | None
    warnings: list[str]


def read_response(reply: WebhookResponse, uid: str, *, is_mutating: bool) -> AdmissionResponse:
    """The answer to the request with that uid. Raises `WebhookCallError`."""
    response = _response(_review(reply), uid)
    if not is_mutating:
        if response.get("patch") or response.get("patchType"):
            field = "patch" if response.get("patch") else "patchType"
            raise _invalid(f"validating webhook may not return response.{field}")
        return _answer(response, None)
    _check_patch(response)
    return _answer(response, _patch(response))


def _answer(response: Json, patch: list[Any] | None) -> AdmissionResponse:
    warnings = [text for text in response.get("warnings") or () if isinstance(text, str)]
    return AdmissionResponse(bool(response.get("allowed")), response.get("status"), patch, warnings)


def _failed(why: str) -> WebhookCallError:
    return WebhookCallError(f"failed to call webhook: {why}")


def _invalid(why: str) -> WebhookCallError:
    return WebhookCallError(f"received invalid webhook response: {why}")


def _review(reply: WebhookResponse) -> Json:
    if not 200 <= reply.status <= 206:
        raise _failed(_refusal_text(reply))
    if not reply.body:
        described = f"status code: {reply.status} and content type: {reply.content_type}"
        raise _failed(f"0-length response with {described}")
    document = _json(reply.body)
    if not isinstance(document, dict):
        kind = go_kind(document)
        raise _failed(_no_kind(f"json: cannot unmarshal {kind} into Go value of type {_TYPE_META}"))
    return document


def _json(body: bytes) -> Any:
    """A body that begins with no brace is read as YAML by Kubernetes: plain text is a string then."""
    try:
        return bounded_json(body)
    except (msgspec.DecodeError, RecursionError):
        if body.lstrip()[:1] not in {b"{", b"["}:
            return body.decode(errors="replace")
        raise _failed(_no_kind(json_fault(body) or "exceeded max depth")) from None


def _no_kind(why: str) -> str:
    return f"couldn't get version/kind; json parse error: {why}"


def _refusal_text(reply: WebhookResponse) -> str:
    """As a client says it: in the words of a Status, if there is one, else by the code."""
    text = reply.body[:_LONGEST_SHOWN].decode(errors="replace").strip()
    try:
        status = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, RecursionError):
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status" and isinstance(status.get("message"), str):
        return str(status["message"])
    if reply.status == 403:
        return text
    if reply.status in _GENERIC:
        return _GENERIC[reply.status]
    if reply.status >= 500:
        return f"an error on the server ({go_quoted(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {reply.status} but did not return more details"


def _response(document: Json, uid: str) -> Json:
    api_version, kind = document.get("apiVersion") or "", document.get("kind") or ""
    if kind not in {"", "AdmissionReview"}:
        raise _failed(f'no kind {go_quoted(str(kind))} is registered for version "{api_version}"')
    response = document.get("response")
    if response is None:
        raise _invalid("webhook response was absent")
    _check_types(response, _FIELDS, "AdmissionResponse.response")
    _check_types(response.get("status") or {}, _STATUS_FIELDS, "Status.response.status")
    if (response.get("uid") or "") != uid:
        raise _invalid(f"expected response.uid={go_quoted(uid)}, got {go_quoted(response.get('uid') or '')}")
    if (api_version, kind) != (_API_VERSION, "AdmissionReview"):
        got = api_version if "/" in str(api_version) else f"/{api_version}"
        raise _invalid(f"expected webhook response of {_API_VERSION}, Kind=AdmissionReview, got {got}, Kind={kind}")
    return dict(response)


def _check_types(document: Any, fields: tuple[tuple[str, type, str], ...], where: str) -> None:
    if not isinstance(document, dict):
        described = f"json: cannot unmarshal {go_kind(document)} into Go struct field"
        raise _failed(f"{described} AdmissionReview.response of type v1.AdmissionResponse")
    for name, kind, described in fields:
        value = document.get(name)
        if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            found = go_kind(value)
            raise _failed(f"json: cannot unmarshal {found} into Go struct field {where}.{name} of type {described}")


def _check_patch(response: Json) -> None:
    patch, patch_type = response.get("patch"), response.get("patchType")
    if patch and not patch_type:
        raise _invalid("webhook returned response.patch but not response.patchType")
    if patch_type and not patch:
        raise _invalid("webhook returned response.patchType but not response.patch")


def _patch(response: Json) -> list[Any] | None:
    if not response.get("patch") or not response.get("allowed"):
        return None
    body = _decoded(response["patch"])
    try:
        operations = bounded_json(body)
    except (msgspec.DecodeError, RecursionError):
        raise _undecodable(json_fault(body) or "exceeded max depth") from None
    if operations is not None and not isinstance(operations, list):
        raise _undecodable(f"json: cannot unmarshal {go_kind(operations)} into Go value of type jsonpatch.Patch")
    if operations and response["patchType"] != "JSONPatch":
        raise WebhookCallError(f"unsupported patch type {go_quoted(response['patchType'])}")
    return operations or None


def _undecodable(why: str) -> WebhookCallError:
    return WebhookCallError(f"received undecodable patch in webhook response: {why}")


def _decoded(text: str) -> bytes:
    given = text.encode()
    try:
        return base64.b64decode(given, validate=True)
    except binascii.Error:
        fitting = _BASE64.match(given)
        raise _failed(f"illegal base64 data at input byte {fitting.end() if fitting else 0}") from None
