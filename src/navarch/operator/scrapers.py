"""Authorizes scrapes of the metrics through the API server, as kube-rbac-proxy does."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Final, Literal

from navarch._base.clock import Clock
from navarch.client import Client
from navarch.k8s.authentication.v1 import TokenReview, TokenReviewSpec, UserInfo
from navarch.k8s.authorization.v1 import NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec

__all__ = ["Scrapers", "Verdict"]

Verdict = Literal["allowed", "forbidden", "unknown"]

_SECONDS: Final = {"allowed": 60.0, "forbidden": 10.0, "unknown": 10.0}
_REMEMBERED = 100
_REVIEW_SECONDS = 10.0


class Scrapers:
    """Authorizes by token; caches a grant for a minute and a refusal for ten seconds.

    Needs the right to create TokenReviews and SubjectAccessReviews (ClusterRole `system:auth-delegator`).
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client.using(timeout=_REVIEW_SECONDS)
        self._clock = clock
        self._reviewing = asyncio.Lock()
        self._verdicts: dict[bytes, tuple[Verdict, float]] = {}

    async def verdict(self, token: str) -> Verdict:
        """Returns whether the owner of the token may `get /metrics`; raises `NavarchError` if the API server does not answer.

        One token is reviewed at a time, so that many scrapes do not become many reviews.
        """
        key = hashlib.sha256(token.encode(errors="surrogateescape")).digest()  # the token itself is not kept
        if (known := self._remembered(key)) is not None:
            return known
        async with self._reviewing:
            if (known := self._remembered(key)) is not None:
                return known
            verdict = await self._review(token)
            self._remember(key, verdict)
            return verdict

    def _remembered(self, key: bytes) -> Verdict | None:
        verdict, until = self._verdicts.get(key, (None, 0.0))
        return verdict if self._clock.monotonic() < until else None

    def _remember(self, key: bytes, verdict: Verdict) -> None:
        self._verdicts.pop(key, None)
        if len(self._verdicts) >= _REMEMBERED:
            del self._verdicts[next(iter(self._verdicts))]
        self._verdicts[key] = verdict, self._clock.monotonic() + _SECONDS[verdict]

    async def _review(self, token: str) -> Verdict:
        if not token.isascii():
            return "unknown"  # no token of Kubernetes, and nothing that could be sent as JSON
        review = await self._client.create(TokenReview(spec=TokenReviewSpec(token=token)))
        if not review.status.authenticated or review.status.user is None:
            return "unknown"
        return "allowed" if await self._may_scrape(review.status.user) else "forbidden"

    async def _may_scrape(self, user: UserInfo) -> bool:
        question = SubjectAccessReviewSpec(
            user=user.username,
            uid=user.uid,
            groups=user.groups,
            extra=user.extra,
            non_resource_attributes=NonResourceAttributes(path="/metrics", verb="get"),
        )
        return (await self._client.create(SubjectAccessReview(spec=question))).status.allowed
