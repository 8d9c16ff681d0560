"""AdmissionReviews as bytes: every answer has Kubernetes' form, and names the object and the cause."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest

from navarch import Operator
from navarch._base.movable_clock import MovableClock
from navarch._base.threads import ThreadPool
from navarch.observe.metrics import WebhookMetrics
from navarch.webhook import DeclaredWebhook, Review
from navarch.webhook.admission import AdmissionHandler
from navarch.webhook.review import CachedKinds
from navarch.webhook.router import Route, WebhookRouter
from webhook.caches import Webcache


@pytest.fixture
def threads() -> Iterator[ThreadPool]:
    pool = ThreadPool("webhooks", 2)
    yield pool
    pool.close()


def wire(size: int = 1, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "cache.example.com/v1",
        "kind": "Webcache",
        "metadata": {"name": "cache", "namespace": "default", **metadata},
        "spec": {"size": size},
    }


def review(**request: Any) -> bytes:
    return json.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "1-2-3",
                "kind": {"group": "cache.example.com", "version": "v1", "kind": "Webcache"},
                "name": "cache",
                "namespace": "default",
                "operation": "CREATE",
                "userInfo": {"username": "jane", "groups": ["devs"]},
                "object": wire(),
                "oldObject": None,
                "dryRun": False,
                "options": None,
                **request,
            },
        }
    ).encode()


async def ready() -> None: ...


async def fetch(what: Any, name: str, namespace: str) -> None: ...


def router_of(
    declared: DeclaredWebhook[Any, Any], threads: ThreadPool, clock: MovableClock | None = None
) -> WebhookRouter:
    clock, metrics = clock or MovableClock(), WebhookMetrics(declared.path)
    handler = AdmissionHandler(
        declared, clock, threads, lookup=CachedKinds({}), fetch=fetch, ready=ready, metrics=metrics
    )
    return WebhookRouter({declared.path: Route(handler.answer, 100_000, metrics)}, clock)


async def test_review_is_answered_with_its_uid(threads: ThreadPool) -> None:
    """A review with every part is decoded, and answered with the same uid, a patch in base64, warnings and annotations."""
    seen: list[Review[Webcache]] = []
    operator = Operator("cache-operator")

    @operator.mutate(Webcache)
    def grow(it: Webcache, request: Review[Webcache]) -> None:
        seen.append(request)
        it.spec.size += 1
        request.warn("grown")
        request.annotate("size", str(it.spec.size))

    body = review(operation="UPDATE", oldObject=wire(4), dryRun=True, options={"fieldManager": "kubectl"})
    status, answer = await router_of(grow, threads).answer(grow.path, body)
    response = json.loads(answer)["response"]
    assert status == 200
    assert (response["uid"], response["allowed"], response["patchType"]) == ("1-2-3", True, "JSONPatch")
    assert json.loads(b64decode(response["patch"])) == [{"op": "replace", "path": "/spec/size", "value": 2}]
    assert response["warnings"] == ["grown"]
    assert response["auditAnnotations"] == {"size": "2"}
    (request,) = seen
    assert (request.user, request.groups, request.dry_run, request.operation) == ("jane", ("devs",), True, "UPDATE")
    assert request.old is not None
    assert request.old.spec.size == 4
    assert request.options == {"fieldManager": "kubectl"}


async def test_deletion_has_the_deleted_object(threads: ThreadPool) -> None:
    """For a DELETE the function gets the old object."""
    operator = Operator("cache-operator")

    @operator.validate(Webcache, operations=("DELETE",))
    async def keep(it: Webcache, request: Review[Webcache]) -> None:
        assert request.old is it
        request.deny(f"{it.spec.size} is kept")

    body = review(operation="DELETE", object=None, oldObject=wire(9))
    _, answer = await router_of(keep, threads).answer(keep.path, body)
    response = json.loads(answer)["response"]
    assert not response["allowed"]
    assert response["status"]["message"] == "9 is kept"


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "expected an AdmissionReview as JSON, got 0 bytes"),
        (b"not json", 400, "expected an AdmissionReview as JSON"),
        (b"[" * 50_000, 400, "expected an AdmissionReview as JSON"),
        (b'{"kind": 3}', 400, "expected an AdmissionReview as JSON"),
        (b"{}", 400, "expected AdmissionReview admission.k8s.io/v1, got nothing"),
        (review().replace(b"k8s.io/v1", b"k8s.io/v1beta1"), 400, "got AdmissionReview admission.k8s.io/v1beta1"),
        (review(uid=""), 400, "expected an AdmissionReview with request.uid"),
        (review(operation="PATCH"), 400, "expected an AdmissionReview as JSON"),
        (review(object=None), 400, "expected an object or an old object in the review of Webcache default/cache"),
        (review(object={"spec": "x"}), 500, "failed for Webcache default/cache: expected Webcache"),
        (review(name="x" * 100_000), 413, "expected a review of at most 100000 bytes"),
    ],
)
async def test_bad_review_is_refused(threads: ThreadPool, body: bytes, status: int, message: str) -> None:
    """A review that cannot be judged gets an HTTP error with a Status, so that the failure policy applies."""
    operator = Operator("cache-operator")

    @operator.validate(Webcache)
    async def check(it: Webcache, request: Review[Webcache]) -> None:
        raise AssertionError("must not be called")

    found, answer = await router_of(check, threads).answer(check.path, body)
    told = json.loads(answer)
    assert (found, told["kind"], told["code"]) == (status, "Status", status)
    assert message in told["message"]


async def test_unknown_path_is_not_found(threads: ThreadPool) -> None:
    """A path of no webhook is 404, and the answer names the known ones."""
    operator = Operator("cache-operator")
    check = operator.validate(Webcache, name="check")(lambda it, request: None)
    status, answer = await router_of(check, threads).answer("/validate", review())
    assert status == 404
    assert check.path in json.loads(answer)["message"]


@pytest.mark.parametrize("plain", [True, False])
async def test_function_that_raises_is_no_verdict(threads: ThreadPool, plain: bool) -> None:
    """The answer names the webhook, the object and the cause, without a traceback."""
    operator = Operator("cache-operator")

    def fail(it: Webcache, request: Review[Webcache]) -> None:
        raise KeyError("zone")

    async def fail_async(it: Webcache, request: Review[Webcache]) -> None:
        fail(it, request)

    declared = operator.validate(Webcache, name="zones")(fail if plain else fail_async)
    status, answer = await router_of(declared, threads).answer(declared.path, review())
    told = json.loads(answer)["message"]
    assert status == 500
    assert told == "webhook zones.webcaches.cache.example.com failed for Webcache default/cache: KeyError: 'zone'"


async def test_function_that_hangs_is_cut_off(threads: ThreadPool) -> None:
    """The answer comes before the API server gives up, and says so."""
    operator, clock = Operator("cache-operator"), MovableClock()
    began = asyncio.Event()

    @operator.validate(Webcache, timeout=10)
    async def hang(it: Webcache, request: Review[Webcache]) -> None:
        began.set()
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        asking = group.create_task(router_of(hang, threads, clock).answer(hang.path, review()))
        await asyncio.wait_for(began.wait(), 10)
        await clock.advance(9.5)
    status, answer = asking.result()
    assert status == 500
    assert "it did not return within 9 s" in json.loads(answer)["message"]
