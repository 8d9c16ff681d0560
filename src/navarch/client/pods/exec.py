"""Runs commands in containers, and attaches to their main program."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from navarch._base.tasks import within
from navarch.client.pods.session import Session
from navarch.client.pods.sockets import V4, V5, WebSocketClient, alongside
from navarch.client.rest_client import query_of
from navarch.client.subresources import PODS
from navarch.errors import ConnectionLostError, DeadlineError, InvalidValueError


class Attach(WebSocketClient):
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
        """Returns the output of a container's main program from now on, and its input if the container has `stdin`.

        `tty` must equal that of the container's spec. The session ends with the container; the client's time limit
        applies to the opening alone.
        """
        query = query_of(container=container, stdin=stdin, stdout=True, stderr=not tty, tty=tty)
        socket = await self._open_socket(name, namespace, "attach", query, (V5, V4))
        try:
            yield Session(socket, self._what("attach in", PODS, namespace, name), stdin=stdin, tty=tty)
        finally:
            await socket.close()


@dataclass(frozen=True, slots=True)
class ExecResult:
    """The exit code and output of a command."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class Exec(WebSocketClient):
    """exec and exec_session."""

    async def exec(
        self,
        name: str,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        container: str | None = None,
        stdin: bytes | None = None,
    ) -> ExecResult:
        """Runs a command in a container to its end. An exit code other than zero is a result, not an error.

        The command reads `stdin`, then the end of the file. All output is kept in memory: use `exec_session` for more
        than fits there. Raises `DeadlineError` when the client's time limit has passed (`client.using(timeout=600)`
        sets another), and an `ApiError` if the command cannot be started; it is never started twice.
        """
        work = self._run(name, command, namespace, container, stdin)
        try:
            return await within(self._caller.clock, self.options.timeout, work)
        except TimeoutError as error:
            raise DeadlineError(
                f"{self._what('exec in', PODS, namespace, name)}: expected the command to end within "
                f"{self.options.timeout:g} s; it may still run; allow more with client.using(timeout=...)"
            ) from error

    @asynccontextmanager
    async def exec_session(
        self,
        name: str,
        command: Sequence[str],
        *,
        namespace: str | None = None,
        container: str | None = None,
        stdin: bool = False,
        tty: bool = False,
    ) -> AsyncIterator[Session]:
        """Runs an interactive command; see `Session`. On a terminal (`tty`) all output is stdout.

        The client's time limit applies to the opening alone.
        """
        query = {
            **query_of(container=container, stdin=stdin, stdout=True, stderr=not tty, tty=tty),
            "command": _checked(command),
        }
        socket = await self._open_socket(name, namespace, "exec", query, (V5, V4))
        try:
            yield Session(socket, self._what("exec in", PODS, namespace, name), stdin=stdin, tty=tty)
        finally:
            await socket.close()

    async def _run(
        self, name: str, command: Sequence[str], namespace: str | None, container: str | None, stdin: bytes | None
    ) -> ExecResult:
        has_input = stdin is not None
        opening = self.exec_session(name, command, namespace=namespace, container=container, stdin=has_input)
        async with opening as session:
            if stdin is None:
                return await _collect(session)
            return await alongside(_collect(session), _feed(session, stdin))


async def _collect(session: Session) -> ExecResult:
    written: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
    async for output in session:
        written[output.stream].append(output.data)
    return ExecResult(await session.wait(), b"".join(written["stdout"]), b"".join(written["stderr"]))


async def _feed(session: Session, stdin: bytes) -> None:
    """Writes the input. A command may end without reading all of it; the reading side reports any other failure."""
    with suppress(ConnectionLostError):
        await session.send(stdin)
        await session.close_stdin()


def _checked(command: Sequence[str]) -> list[str]:
    if isinstance(command, str) or not command:
        raise InvalidValueError(
            f'expected a command as a list of words, got {command!r}; write ["ls", "-l"] or ["sh", "-c", "..."]'
        )
    return list(command)
