"""Running an exec plugin once: a process with a time limit, whose words are heard and whose secrets are not told."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import cast

from navarch._base.clock import Clock
from navarch._base.tasks import acquire, within
from navarch.client.config.execoutput import Answer, answer, question
from navarch.client.config.masking import mask, printable, telling, telling_arguments
from navarch.client.config.model import Config, ExecPlugin
from navarch.errors import CredentialError

# Somebody who must fetch a password or press a button needs longer than a program.
_INTERACTIVE_SECONDS = 300.0
# A plugin may leave a daemon behind that holds its standard output open: then the end of output never comes.
_GRACE_SECONDS = 1.0
_LARGEST_OUTPUT = 1 << 20
_STDERR_TAIL = 4096
_STDERR_LINES = 10


async def run_plugin(plugin: ExecPlugin, config: Config, clock: Clock) -> Answer:
    """The credential that the plugin gives now.

    Raises CredentialError if it is missing, fails, prints something else or takes too long. Too late or cancelled,
    it is killed together with its children before this returns.
    """
    where = f"{config.origin}: exec plugin {plugin.command!r}"
    interactive = _is_interactive(plugin, where)
    environment = {**os.environ, **plugin.env}
    environment["KUBERNETES_EXEC_INFO"] = question(plugin, config, interactive=interactive)
    limit = max(plugin.timeout, _INTERACTIVE_SECONDS) if interactive else plugin.timeout
    async with _started(plugin, environment, where, interactive=interactive) as process:
        try:
            await within(clock, limit, process.finish(clock))
        except TimeoutError:
            words = _last_words(process.said, plugin)
            raise CredentialError(
                f"{where}: expected a credential within {limit:g} s, got none; it was killed.{words}"
            ) from None
    if len(process.output) > _LARGEST_OUTPUT:
        raise CredentialError(f"{where}: expected a credential, got more than {_LARGEST_OUTPUT} bytes; it was killed")
    if process.exit_code:
        words = _last_words(process.said, plugin)
        raise CredentialError(f"{where}: expected a credential, got exit code {process.exit_code}.{words}")
    return answer(process.output, plugin, where)


def _is_interactive(plugin: ExecPlugin, where: str) -> bool:
    if plugin.interactive_mode == "Never":
        return False
    terminal = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not terminal:
        raise CredentialError(
            f"{where}: expected a terminal, since its interactiveMode is Always, got none. "
            f"Use a credential that does not need one, such as a service account's token."
        )
    return terminal


class _Process(asyncio.SubprocessProtocol):
    """What the plugin prints and when it ends. asyncio's own Process would wait for a daemon left behind."""

    def __init__(self, *, grouped: bool) -> None:
        loop = asyncio.get_running_loop()
        self._grouped = grouped
        self._transport: asyncio.SubprocessTransport | None = None
        self._exited: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self.output = b""
        self.said = b""
        self.exit_code: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)  # uvloop's is one in all but name

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.said = (self.said + data)[-2 * _STDERR_TAIL :]
        elif len(self.output) <= _LARGEST_OUTPUT:
            self.output += data
        else:
            self._kill()

    def process_exited(self) -> None:
        assert self._transport is not None
        self.exit_code = self._transport.get_returncode()
        self._exited.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the signature is asyncio's
        self._closed.set_result(None)

    async def finish(self, clock: Clock) -> None:
        """Returns when the process has ended and all that it printed has been read."""
        await asyncio.shield(self._exited)
        with suppress(TimeoutError):
            await within(clock, _GRACE_SECONDS, _wait_for(self._closed))

    async def end(self) -> None:
        """Kills the process if it still runs, with its children if it has a group of its own."""
        assert self._transport is not None
        if not self._exited.done():
            self._kill()
            await asyncio.shield(self._exited)
        self._transport.close()
        await asyncio.shield(self._closed)

    def _kill(self) -> None:
        assert self._transport is not None
        with suppress(ProcessLookupError):
            if self._grouped:
                os.killpg(self._transport.get_pid(), signal.SIGKILL)
            else:
                self._transport.kill()


async def _wait_for(future: asyncio.Future[None]) -> None:
    await asyncio.shield(future)


@asynccontextmanager
async def _started(
    plugin: ExecPlugin, environment: Mapping[str, str], where: str, *, interactive: bool
) -> AsyncIterator[_Process]:
    try:
        process = await acquire(_start(plugin, environment, interactive=interactive), _Process.end)
    except (OSError, ValueError) as error:
        raise CredentialError(_not_started(error, plugin, where)) from None
    try:
        yield process
    finally:
        await process.end()


async def _start(plugin: ExecPlugin, environment: Mapping[str, str], *, interactive: bool) -> _Process:
    # A plugin that may talk to the user keeps the terminal; any other gets a session of its own, so that it cannot
    # wait for a prompt that nobody sees, and can be killed with all that it started.
    _, process = await asyncio.get_running_loop().subprocess_exec(
        lambda: _Process(grouped=not interactive),
        plugin.command,
        *plugin.args,
        stdin=None if interactive else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=None if interactive else asyncio.subprocess.PIPE,
        env=environment,
        start_new_session=not interactive,
    )
    return process


def _not_started(error: Exception, plugin: ExecPlugin, where: str) -> str:
    hint = f" {printable(plugin.install_hint.strip())}" if plugin.install_hint.strip() else ""
    if isinstance(error, FileNotFoundError):
        return f"{where}: expected the command to be installed, got no such file on the PATH.{hint}"
    why = error.strerror if isinstance(error, OSError) else "a NUL character in its command, arguments or environment"
    return f"{where}: expected a command that can be run, got: {why}.{hint}"


def _last_words(said: bytes, plugin: ExecPlugin) -> str:
    """The tail of standard error, masked; masked before it is cut, since half a secret would not be recognised."""
    secrets = [*plugin.env.values(), *telling(os.environ), *telling_arguments(plugin.args)]
    text = mask(said.decode("utf-8", "replace"), secrets)[-_STDERR_TAIL:].strip()
    lines = [line for line in text.splitlines() if line.strip()][-_STDERR_LINES:]
    return " Its last words: " + " | ".join(map(printable, lines)) if lines else ""
