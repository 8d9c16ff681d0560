"""Attaching to the program that a container runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from navarch.client.core import query_of
from navarch.client.pods.channels import V4, V5
from navarch.client.pods.session import Session
from navarch.client.pods.sockets import Sockets
from navarch.client.subresources import PODS

__all__ = ["Attach"]


class Attach(Sockets):
    """attach."""

    @asynccontextmanager
    async def attach(
        self,
        name: str,
        *,
        namespace: str | None = None,
        container: str | None = None,
        stdin: bool = False,
        tty: bool = False,
    ) -> AsyncIterator[Session]:
        """The output of a container's own program from now on, and its input where the container has `stdin`.

        `tty` must be the same as in the container's spec. The session ends with the container; the client's time limit holds for
        the opening alone.
        """
        query = query_of(container=container, stdin=stdin, stdout=True, stderr=not tty, tty=tty)
        socket = await self._open_socket(name, namespace, "attach", query, (V5, V4))
        try:
            yield Session(socket, self._what("attach in", PODS, namespace, name), stdin=stdin, tty=tty)
        finally:
            await socket.close()
