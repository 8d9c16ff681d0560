"""`WebhookRouter`: the webhooks of an operator by path, measured; both a server and a test in one process call it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from navarch._base.clock import Clock
from navarch.observe.metrics import WebhookMetrics
from navarch.webhook.verdict import ReviewError

Handler = Callable[[bytes], Awaitable["WebhookAnswer"]]


class WebhookAnswer(NamedTuple):
    """The HTTP answer to a review: always JSON."""

    status: int
    body: bytes


class Route(NamedTuple):
    """What answers at a path, the largest body that it takes, and its metrics."""

    answer: Handler
    largest: int
    metrics: WebhookMetrics


class WebhookRouter:
    """Answers the bodies that are posted to the paths of an operator's webhooks."""

    def __init__(self, routes: Mapping[str, Route], clock: Clock) -> None:
        self._routes = routes
        self._clock = clock

    def largest_body(self, path: str) -> int:
        """Returns the largest body of a path. Raises `ReviewError` for an unknown one."""
        return self._route(path).largest

    def _route(self, path: str) -> Route:
        try:
            return self._routes[path]
        except KeyError:
            known = ", ".join(sorted(self._routes))
            raise ReviewError(
                404,
                f"expected the path of a webhook of this replica ({known}), got {path[:200]}; in a rolling update, a replica "
                f"of the other release has it: try again until all replicas are updated",
            ) from None

    async def answer(self, path: str, body: bytes) -> WebhookAnswer:
        """Returns the answer to a body; never raises."""
        try:
            route = self._route(path)
        except ReviewError as error:
            return failure_answer(error)
        if len(body) > route.largest:
            return failure_answer(too_large(path, route.largest))
        began = self._clock.monotonic()
        route.metrics.started()
        status = 500
        try:
            answer = await route.answer(body)
            status = answer.status
        finally:
            route.metrics.finished(status, self._clock.monotonic() - began)
        return answer


def too_large(path: str, largest: int) -> ReviewError:
    """Returns the refusal of a body."""
    return ReviewError(413, f"expected a review of at most {largest} bytes at {path}, got more")


def failure_answer(error: ReviewError) -> WebhookAnswer:
    """Returns a failure as a Status, whose message the API server shows."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": str(error),
        "reason": HTTPStatus(error.status).phrase.title().replace(" ", ""),
        "code": error.status,
    }
    return WebhookAnswer(error.status, msgspec.json.encode(status))
