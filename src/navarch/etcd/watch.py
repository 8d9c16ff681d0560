"""A watch that survives lost connections and members."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec

from navarch.errors import EtcdCompactedError, EtcdError, EtcdRefusedError, EtcdUnavailableError, EtcdUncertainError
from navarch.etcd.gateway import Gateway
from navarch.etcd.messages import EtcdEvent, WatchResponse
from navarch.etcd.methods import Streaming

_WATCH = Streaming("/v3/watch", WatchResponse)


class WatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A watch of one key, or of the keys from `key` up to `range_end`, from `start_revision` on (0: from now on).

    `progress_notify` requests a progress notification every few minutes; `fragment` lets etcd split large responses,
    which the client joins again.
    """

    key: bytes
    range_end: bytes = b""
    start_revision: int = 0
    prev_kv: bool = False
    progress_notify: bool = False
    fragment: bool = True


async def watch_keys(gateway: Gateway, request: WatchRequest) -> AsyncGenerator[WatchResponse]:
    """Yields the confirmation of the watch, then events, each once, and progress notifications.

    After a lost connection it resumes at another endpoint; it raises `EtcdUnavailableError` only if none answers for
    `patience` seconds. Raises `EtcdCompactedError` if the next revision is compacted.
    """
    place = _WatchCursor(request)
    delays = gateway.later()
    while True:
        try:
            async with gateway.stream(_WATCH, {"create_request": place.request()}) as answers:
                async for answer in answers:
                    if (complete := place.advance(answer)) is not None:
                        delays.reset()
                        yield complete
        except EtcdUncertainError:
            pass  # the next request resumes at the cursor
        await gateway.sleep(delays.next_delay())


class _WatchCursor:
    """The position of a watch, from which a new request resumes it."""

    def __init__(self, request: WatchRequest) -> None:
        self._request = request
        self._next = request.start_revision
        self._fragments: list[EtcdEvent] = []
        self._has_begun = False

    def request(self) -> WatchRequest:
        self._fragments = []
        return msgspec.structs.replace(self._request, start_revision=self._next)

    def advance(self, answer: WatchResponse) -> WatchResponse | None:
        """Returns the response with all of its fragments, or None; raises the reason of a cancelled watch."""
        if answer.canceled or answer.compact_revision:
            raise _reason(answer)
        if answer.created:
            return self._begin(answer)
        self._fragments.extend(answer.events)
        if answer.fragment:
            return None
        events, self._fragments = self._fragments, []
        # A progress notification may be older than the requested revision.
        last = events[-1].kv.mod_revision if events else answer.header.revision
        self._next = max(self._next, last + 1)
        return msgspec.structs.replace(answer, events=events)

    def _begin(self, answer: WatchResponse) -> WatchResponse | None:
        """Fixes the start of a watch from now on, so that resuming it misses nothing; returns the first confirmation only."""
        self._next = self._next or answer.header.revision + 1
        if self._has_begun:
            return None
        self._has_begun = True
        return answer


def _reason(answer: WatchResponse) -> EtcdError:
    if answer.compact_revision:
        return EtcdCompactedError(
            f"/v3/watch: revisions before {answer.compact_revision} are compacted", answer.compact_revision
        )
    reason = answer.cancel_reason or "etcd gave no reason"
    if "no leader" in reason:
        return EtcdUnavailableError(f"/v3/watch: {reason}")
    return EtcdRefusedError(f"/v3/watch: cancelled: {reason}")
