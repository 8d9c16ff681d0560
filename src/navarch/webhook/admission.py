"""Answers AdmissionReviews: decodes the request, calls the declared function, and encodes its verdict and patch.

A function that fails is no verdict: the answer is an HTTP error, so that the API server applies the failure policy.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

import msgspec

from navarch._base.clock import Clock
from navarch._base.tasks import within
from navarch._base.threads import ThreadPool, is_plain
from navarch.errors import DecodeError
from navarch.observe.logs import logger
from navarch.observe.metrics import WebhookMetrics
from navarch.webhook.declaration import DeclaredWebhook
from navarch.webhook.review import CachedKinds, Fetch, Operation, Review
from navarch.webhook.router import WebhookAnswer, failure_answer
from navarch.webhook.verdict import ReviewError, ReviewVerdict

_log = logger("navarch.webhook")

_API_VERSION = "admission.k8s.io/v1"
_NOTHING = (b"", b"null")
_MOST_SHOWN = 200


class _RequestKind(msgspec.Struct, gc=False):
    group: str = ""
    version: str = ""
    kind: str = ""


class _RequestUser(msgspec.Struct, gc=False):
    username: str = ""
    groups: tuple[str, ...] | None = None


class _AdmissionRequest(msgspec.Struct, gc=False, rename="camel"):
    uid: str = ""
    kind: _RequestKind = msgspec.field(default_factory=_RequestKind)
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    operation: Operation = "CREATE"
    user_info: _RequestUser = msgspec.field(default_factory=_RequestUser)
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    dry_run: bool | None = None
    options: dict[str, Any] | None = None


class _AdmissionReview(msgspec.Struct, gc=False, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: _AdmissionRequest | None = None


_decode_review = msgspec.json.Decoder(_AdmissionReview).decode
_encode = msgspec.json.Encoder().encode


class AdmissionHandler:
    """Answers the reviews of one declared webhook. Plain functions run in `threads`."""

    def __init__(
        self,
        webhook: DeclaredWebhook[Any, Any],
        clock: Clock,
        threads: ThreadPool,
        *,
        lookup: CachedKinds,
        fetch: Fetch,
        ready: Callable[[], Awaitable[None]],
        metrics: WebhookMetrics,
    ) -> None:
        self.webhook = webhook
        self._clock = clock
        self._call = _awaitable(webhook, threads)
        self._lookup = lookup
        self._fetch = fetch
        self._metrics = metrics
        self._ready = ready if webhook.options.reads else None

    async def answer(self, body: bytes) -> WebhookAnswer:
        """Returns the answer to one review."""
        try:
            request = _request(body)
        except ReviewError as error:
            _log.warning("refused a malformed admission review", webhook=self.webhook.name, why=str(error))
            return failure_answer(error)
        try:
            verdict = await self._verdict(request)
        except ReviewError as error:
            return failure_answer(error)
        self._metrics.judged("denied" if not verdict.allowed else "patched" if verdict.patch else "allowed")
        return WebhookAnswer(200, _response(request.uid, verdict))

    async def _verdict(self, request: _AdmissionRequest) -> ReviewVerdict:
        subject, review = self._decoded(request)
        try:
            return await within(self._clock, self._seconds(), self._judged(subject, review))
        except ReviewError:
            raise
        except TimeoutError:
            raise self._failed(request, f"it did not return within {self._seconds():g} s") from None
        except Exception as error:  # noqa: BLE001 - a user's function may raise anything
            _log.exception("a webhook function failed", webhook=self.webhook.name, object=_named(request))
            raise self._failed(request, f"{type(error).__name__}: {error}"[:_MOST_SHOWN]) from None

    async def _judged(self, subject: Any, review: Review[Any]) -> ReviewVerdict:
        if self._ready is not None:  # a verdict from a cache that is not complete would be a guess
            await self._ready()
        return await self.webhook.judge.verdict(self._call, subject, review)

    def _seconds(self) -> float:
        """Returns a little less than the API server waits: the answer that says why has to arrive."""
        return self.webhook.options.timeout * 0.9

    def _decoded(self, request: _AdmissionRequest) -> tuple[Any, Review[Any]]:
        new, old = (self._object(request, data) for data in (request.object, request.old_object))
        review: Review[Any] = Review(
            operation=request.operation,
            old=old,
            user=request.user_info.username,
            groups=request.user_info.groups or (),
            dry_run=bool(request.dry_run),
            subresource=request.sub_resource,
            options=request.options,
            name=request.name,
            namespace=request.namespace,
            lookup=self._lookup,
            fetch=self._fetch,
        )
        subject = new if new is not None else old
        if subject is None:
            raise ReviewError(
                400, f"expected an object or an old object in the review of {_named(request)}, got neither"
            )
        return subject, review

    def _object(self, request: _AdmissionRequest, data: msgspec.Raw) -> Any:
        wire = bytes(data)
        if wire in _NOTHING:
            return None
        try:
            return self.webhook.what.from_json(wire)
        except DecodeError as error:
            raise self._failed(request, str(error)) from None

    def _failed(self, request: _AdmissionRequest, why: str) -> ReviewError:
        return ReviewError(500, f"webhook {self.webhook.name} failed for {_named(request)}: {why}")


def _awaitable(
    webhook: DeclaredWebhook[Any, Any], threads: ThreadPool
) -> Callable[[Any, Review[Any]], Awaitable[object]]:
    if not is_plain(webhook.function):
        return cast(Callable[[Any, Review[Any]], Awaitable[object]], webhook.function)

    async def in_thread(subject: Any, review: Review[Any]) -> object:
        result = await asyncio.wrap_future(threads.submit(partial(webhook.function, subject, review)))
        return await result if asyncio.iscoroutine(result) else result  # a plain function may wrap a coroutine

    return in_thread


def _request(body: bytes) -> _AdmissionRequest:
    """Returns the request of a review. Raises `ReviewError` for any body that is no review of this version."""
    try:
        review = _decode_review(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReviewError(400, f"expected an AdmissionReview as JSON, got {len(body)} bytes: {error}") from None
    if (review.api_version, review.kind) != (_API_VERSION, "AdmissionReview"):
        got = f"{review.kind or 'nothing'} {review.api_version}".strip()[:_MOST_SHOWN]
        raise ReviewError(400, f"expected AdmissionReview {_API_VERSION}, got {got}")
    if review.request is None or not review.request.uid:
        raise ReviewError(400, "expected an AdmissionReview with request.uid, got none")
    return review.request


def _response(uid: str, verdict: ReviewVerdict) -> bytes:
    response: dict[str, Any] = {"uid": uid, "allowed": verdict.allowed}
    if verdict.status is not None:
        response["status"] = verdict.status
    if verdict.patch:
        response["patch"] = b64encode(_encode(verdict.patch)).decode()
        response["patchType"] = "JSONPatch"
    if verdict.annotations:
        response["auditAnnotations"] = verdict.annotations
    if verdict.warnings:
        response["warnings"] = verdict.warnings
    return _encode({"apiVersion": _API_VERSION, "kind": "AdmissionReview", "response": response})


def _named(request: _AdmissionRequest) -> str:
    place = f"{request.namespace}/{request.name}" if request.namespace else request.name
    return f"{request.kind.kind or 'an object'} {place or 'without a name'}"
