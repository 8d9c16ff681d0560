"""Opening WebSockets to pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from navarch.client.answers import StatusBody, bad_answer, error_from_answer, error_from_status
from navarch.client.core import Core
from navarch.client.retry import Attempts
from navarch.client.subresources import PODS
from navarch.client.transport import Request, Response, WebSocket
from navarch.errors import ApiError, BadAnswerError, NavarchError

__all__ = ["Sockets"]

_LONGEST_REASON = 1000


class Sockets(Core):
    """The part of a client under the verbs that need a WebSocket."""

    async def _open_socket(
        self,
        name: str,
        namespace: str | None,
        subresource: str,
        query: Mapping[str, str | Sequence[str]],
        protocols: Sequence[str],
    ) -> WebSocket:
        """A WebSocket that the caller closes, opened within the client's time limit; a refusal is raised."""
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
    """Why there is no WebSocket. The API server answers with a Status; kubelets, through it, with plain text."""
    try:
        body = await response.read()
    finally:
        await response.close()
    if response.status < 400:
        return bad_answer(request, response.status, response.headers, body, "it did not switch to a WebSocket")
    if response.headers.get("Content-Type", "").startswith("text/plain"):
        reason = body[:_LONGEST_REASON].decode(errors="replace").strip()
        return error_from_status(what, StatusBody(message=reason), response.status)
    return error_from_answer(request, what, response.status, response.headers, body)
