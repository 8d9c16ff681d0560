"""WebSockets to pods, and the channels of Kubernetes' remote commands: the first byte of a message names its
channel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from navarch.client.call import Attempts
from navarch.client.response_errors import StatusBody, bad_answer, error_from_response, error_from_status
from navarch.client.rest_client import RestClient
from navarch.client.subresources import PODS
from navarch.client.transport import Request, Response, WebSocket
from navarch.errors import ApiError, BadAnswerError, NavarchError

T = TypeVar("T")


async def alongside(main: Coroutine[Any, Any, T], helper: Coroutine[Any, Any, None]) -> T:
    """Returns the result of `main`; `helper` runs concurrently and is cancelled when `main` ends. An error of either
    ends both.
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            helping = tasks.create_task(helper)
            result = await main
            helping.cancel()
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures.exceptions[0].__cause__
    return result


_LONGEST_REASON = 1000


class WebSocketClient(RestClient):
    """The part of a client below the verbs that need a WebSocket."""

    async def _open_socket(
        self,
        name: str,
        namespace: str | None,
        subresource: str,
        query: Mapping[str, str | Sequence[str]],
        protocols: Sequence[str],
    ) -> WebSocket:
        """Opens a WebSocket, which the caller closes, within the client's time limit. Raises a refusal."""
        request = Request(
            method="GET",
            path=self._path(PODS, namespace, name, subresource),
            query=query,
            headers={"Accept": "application/json, */*"},  # kubelets refuse to upgrade for JSON alone
            timeout=self.options.timeout,
            long_lived=True,
        )
        what = self._what(f"{subresource} in", PODS, namespace, name)
        # It is a GET in name only: a command that may have begun must not begin again.
        attempts = Attempts(self.options.retry, replace(request, method="POST"), self._caller.clock, self._caller.rng)
        while True:
            try:
                return await self._handshake(replace(request, timeout=attempts.time_left()), protocols, what)
            except NavarchError as error:
                await attempts.wait_after(error)

    async def _handshake(self, request: Request, protocols: Sequence[str], what: str) -> WebSocket:
        answer = await self._caller.transport.connect(request, protocols)
        if not isinstance(answer, WebSocket):
            raise await _refusal(request, what, answer)
        if answer.protocol not in protocols:
            await answer.close()
            raise BadAnswerError(
                f"{what}: expected a WebSocket that speaks {' or '.join(protocols)}, got {answer.protocol or 'none'!r}"
            )
        return answer


async def _refusal(request: Request, what: str, response: Response) -> ApiError | BadAnswerError:
    """Returns the error for a refused WebSocket. The API server answers with a Status; kubelets, through it, with plain
    text.
    """
    try:
        body = await response.read()
    finally:
        await response.close()
    if response.status < 400:
        return bad_answer(request, response.status, response.headers, body, "it did not switch to a WebSocket")
    if response.headers.get("Content-Type", "").startswith("text/plain"):
        reason = body[:_LONGEST_REASON].decode(errors="replace").strip()
        return error_from_status(what, StatusBody(message=reason), response.status)
    return error_from_response(request, what, response.status, response.headers, body)


STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
ERROR: Final = 3
RESIZE: Final = 4
CLOSE: Final = 255
"""Followed by the number of a channel that has ended; since v5."""

V5: Final = "v5.channel.k8s.io"
V4: Final = "v4.channel.k8s.io"

PIECE: Final = 32 * 1024
"""Large enough to be fast, small enough that one message is never a burden."""


def pieces(channel: int, data: bytes) -> list[bytes]:
    """Yields the messages that carry `data` on a channel."""
    prefix = bytes([channel])
    return [prefix + data[start : start + PIECE] for start in range(0, len(data), PIECE)]
