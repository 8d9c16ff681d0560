"""A watch that outlives connections and members."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec

from navarch.errors import EtcdCompactedError, EtcdError, EtcdRefusedError, EtcdUnavailableError, EtcdUncertainError
from navarch.etcd.gateway import Gateway, Streaming
from navarch.etcd.messages import WatchEvent, WatchResponse

__all__ = ["WatchRequest", "watching"]

_WATCH = Streaming("/v3/watch", WatchResponse)


class WatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to watch: one key, or those from `key` up to `range_end`; from `start_revision` on, 0: from now on.

    `progress_notify` lets etcd say every few minutes how far it is; `fragment` lets it send much in small pieces, which
    are put together again.
    """

    key: bytes
    range_end: bytes = b""
    start_revision: int = 0
    prev_kv: bool = False
    progress_notify: bool = False
    fragment: bool = True


async def watching(gateway: Gateway, request: WatchRequest) -> AsyncGenerator[WatchResponse]:
    """The first answer says that the watch stands; then come events, each once, and word of progress.

    When a connection breaks, the watch goes on at another endpoint where it was: only when none answers for as long as
    patience lasts, it raises `EtcdUnavailableError`. Raises `EtcdCompactedError` if what comes next is no longer kept.
    """
    place = _Place(request)
    delays = gateway.later()
    while True:
        try:
            async with gateway.stream(_WATCH, {"create_request": place.request()}) as answers:
                async for answer in answers:
                    if (complete := place.advance(answer)) is not None:
                        delays.reset()
                        yield complete
        except EtcdUncertainError:
            pass  # it goes on where it was
        await gateway.sleep(delays.next_delay())


class _Place:
    """How far a watch is: what to ask for when it has to be begun again."""

    def __init__(self, request: WatchRequest) -> None:
        self._request = request
        self._next = request.start_revision
        self._fragments: list[WatchEvent] = []
        self._has_begun = False

    def request(self) -> WatchRequest:
        self._fragments = []
        return msgspec.structs.replace(self._request, start_revision=self._next)

    def advance(self, answer: WatchResponse) -> WatchResponse | None:
        """The answer if it is for the user, with all of its fragments. Raises what the watch was cancelled for."""
        if answer.canceled or answer.compact_revision:
            raise _reason(answer)
        if answer.created:
            return self._begin(answer)
        self._fragments.extend(answer.events)
        if answer.fragment:
            return None
        events, self._fragments = self._fragments, []
        # Word of progress may be older than what was asked for.
        last = events[-1].kv.mod_revision if events else answer.header.revision
        self._next = max(self._next, last + 1)
        return msgspec.structs.replace(answer, events=events)

    def _begin(self, answer: WatchResponse) -> WatchResponse | None:
        """A watch from now on begins after the revision at which it was made, however often it is begun again."""
        self._next = self._next or answer.header.revision + 1
        if self._has_begun:
            return None
        self._has_begun = True
        return answer


def _reason(answer: WatchResponse) -> EtcdError:
    if answer.compact_revision:
        return EtcdCompactedError(
            f"/v3/watch: revisions before {answer.compact_revision} are no longer kept", answer.compact_revision
        )
    reason = answer.cancel_reason or "etcd gave no reason"
    if "no leader" in reason:
        return EtcdUnavailableError(f"/v3/watch: {reason}")
    return EtcdRefusedError(f"/v3/watch: cancelled: {reason}")
