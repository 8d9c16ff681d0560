"""What is tried again, and for how long."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass

from navarch._base.backoff import Backoff, Delays
from navarch._base.clock import Clock
from navarch.client.transport import Request
from navarch.errors import (
    ApiError,
    BadAnswerError,
    ConnectError,
    ConnectionLostError,
    DeadlineError,
    NavarchError,
    TlsError,
    TransportError,
)

__all__ = ["Attempts", "Retry", "may_pass"]

_log = logging.getLogger("navarch.client")
_APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often a call is tried and how long it waits in between. The call's own time limit always holds."""

    attempts: int = 8
    backoff: Backoff = Backoff(initial=0.1, maximum=10.0, jitter=0.5)


class Attempts:
    """The attempts of one call: decides after each failure whether there is another, and when."""

    def __init__(self, retry: Retry, request: Request, clock: Clock, rng: random.Random) -> None:
        self._left = retry.attempts - 1
        self._delays = Delays(retry.backoff, rng)
        self._clock = clock
        self._request = request
        self._ends = None if request.timeout is None else clock.monotonic() + request.timeout

    def time_left(self) -> float | None:
        """Seconds until the call's own limit; None if it has none. Raises `DeadlineError` when it has passed."""
        if self._ends is None:
            return None
        left = self._ends - self._clock.monotonic()
        if left <= 0:
            raise DeadlineError(
                f"expected an answer to {self._request.method} {self._request.path} within {self._request.timeout:g} s"
            )
        return left

    async def wait_after(self, error: NavarchError) -> None:
        """Waits until it is time for the next attempt; raises `error` if there is none."""
        if self._left <= 0 or not _may_repeat(self._request, error):
            raise error
        self._left -= 1
        pause = self._delays.next_delay()
        asked = error.retry_after if isinstance(error, ApiError) else None
        delay = pause + (asked or 0.0)
        # An attempt with less time than the pause before it could only say that its time was up.
        if self._ends is not None and self._clock.monotonic() + delay + pause >= self._ends:
            if asked:
                error.args = (f"{error}; the server asks for {asked:g} s of quiet, and the call has not that long",)
            raise error
        _log.info("%s; tried again in %.1f s", error, delay)
        await self._clock.sleep(delay)


def may_pass(error: NavarchError) -> bool:
    """Whether waiting may mend it. Who shows a wrong certificate, or does not speak Kubernetes, will do so again."""
    if isinstance(error, ApiError):
        return error.code == 429 or error.code >= 500
    return isinstance(error, TransportError) and not isinstance(error, (BadAnswerError, TlsError))


def _may_repeat(request: Request, error: NavarchError) -> bool:
    """Whether a second try cannot do harm: it was refused unseen, or doing it twice is the same as once."""
    if isinstance(error, ConnectError):
        return may_pass(error)
    if isinstance(error, ApiError) and _was_put_off(error):
        return True
    if not _is_idempotent(request):
        return False
    if isinstance(error, ApiError):
        return error.code in {502, 503, 504} or (error.code >= 500 and error.retry_after is not None)
    return isinstance(error, ConnectionLostError)


def _was_put_off(error: ApiError) -> bool:
    """Whether the server asked to come again without having begun; one that ran out of time may have begun."""
    asked = error.code == 429 or (error.code >= 500 and error.retry_after is not None)
    return asked and error.reason not in {"ServerTimeout", "Timeout"}


def _is_idempotent(request: Request) -> bool:
    return request.method == "GET" or request.headers.get("Content-Type") == _APPLY
