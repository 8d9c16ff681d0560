"""Below requests: sockets that notice who is gone, and answers to what is no request, in the words of Go's server."""

from __future__ import annotations

import socket
from http import HTTPStatus
from typing import Final

from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

__all__ = ["BACKLOG", "Connection", "listening", "plain_answer"]

BACKLOG: Final = 1024
_PROBES: Final = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}
"""Whoever is gone without a word is noticed: by asking after so many seconds of silence, and after so many milliseconds in
which nothing that was sent has arrived.
"""


def listening(host: str, port: int) -> socket.socket:
    """A socket whose connections are all watched for peers that are gone: they inherit what it is set to."""
    opened = socket.create_server((host, port), backlog=BACKLOG)
    for name, value in _PROBES.items():
        if (option := getattr(socket, name, None)) is not None:
            opened.setsockopt(socket.IPPROTO_TCP, option, value)
    return opened


def plain_answer(status: int, why: str = "") -> Response:
    """A line of text, after which the connection is closed."""
    line = f"{status} {HTTPStatus(status).phrase}"
    response = Response(text=f"{line}: {why}" if why else line, status=status)
    response.force_close()
    return response


class Connection(RequestHandler):
    """A connection on which what is no request gets a short answer, and is nothing to be logged; nor is who leaves."""

    __slots__ = ()

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """The answer; a fault of this server is aiohttp's to tell. Whoever is gone gets none."""
        if isinstance(exc, ConnectionError):
            raise exc
        if status != 400 or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        return plain_answer(431 if isinstance(exc, LineTooLong) else 400)
