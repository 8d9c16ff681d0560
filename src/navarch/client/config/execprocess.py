"""Running an exec plugin once: a process with a time limit, whose words are heard and whose secrets are not told."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress

from navarch._base.clock import Clock
from navarch._base.tasks import within
from navarch.client.config.execoutput import Answer, answer, question
from navarch.client.config.masking import mask, telling, telling_arguments
from navarch.client.config.model import Config, ExecPlugin
from navarch.errors import CredentialError

# Somebody who must fetch a password or press a button needs longer than a program.
_INTERACTIVE_SECONDS = 300.0
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
    process = await _start(plugin, environment, where, interactive=interactive)
    limit = max(plugin.timeout, _INTERACTIVE_SECONDS) if interactive else plugin.timeout
    said = _Tail()
    try:
        output = await within(clock, limit, _finish(process, said, where, grouped=not interactive))
    except TimeoutError:
        words = _last_words(said, plugin)
        raise CredentialError(
            f"{where}: expected a credential within {limit:g} s, got none; it was killed.{words}"
        ) from None
    if process.returncode:
        raise CredentialError(
            f"{where}: expected a credential, got exit code {process.returncode}.{_last_words(said, plugin)}"
        )
    return answer(output, plugin, where)


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


async def _start(
    plugin: ExecPlugin, environment: Mapping[str, str], where: str, *, interactive: bool
) -> asyncio.subprocess.Process:
    # A plugin that may talk to the user keeps the terminal; any other gets a session of its own, so that it cannot
    # wait for a prompt that nobody sees, and can be killed with all that it started.
    try:
        return await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if interactive else asyncio.subprocess.PIPE,
            env=environment,
            start_new_session=not interactive,
        )
    except (OSError, ValueError) as error:
        raise CredentialError(_not_started(error, plugin, where)) from None


def _not_started(error: Exception, plugin: ExecPlugin, where: str) -> str:
    hint = f" {plugin.install_hint.strip()}" if plugin.install_hint.strip() else ""
    if isinstance(error, FileNotFoundError):
        return f"{where}: expected the command to be installed, got no such file on the PATH.{hint}"
    why = error.strerror if isinstance(error, OSError) else "a NUL character in its command, arguments or environment"
    return f"{where}: expected a command that can be run, got: {why}.{hint}"


async def _finish(process: asyncio.subprocess.Process, said: _Tail, where: str, *, grouped: bool) -> bytes:
    """What the process printed, once it has ended; whatever happens, it does not outlive this."""
    try:
        output, _ = await asyncio.gather(_read_output(process, grouped=grouped), said.listen(process.stderr))
        await process.wait()
    finally:
        if process.returncode is None:
            _kill(process, grouped=grouped)
            await process.wait()
    if len(output) > _LARGEST_OUTPUT:
        raise CredentialError(f"{where}: expected a credential, got more than {_LARGEST_OUTPUT} bytes; it was killed")
    return output


async def _read_output(process: asyncio.subprocess.Process, *, grouped: bool) -> bytes:
    output = b""
    while process.stdout is not None and (chunk := await process.stdout.read(65536)):
        if len(output) <= _LARGEST_OUTPUT:
            output += chunk
        else:
            _kill(process, grouped=grouped)
    return output


def _kill(process: asyncio.subprocess.Process, *, grouped: bool) -> None:
    with suppress(ProcessLookupError):
        if grouped:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


class _Tail:
    """The end of what a process said on standard error."""

    def __init__(self) -> None:
        self._end = b""

    async def listen(self, stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (chunk := await stream.read(4096)):
            self._end = (self._end + chunk)[-2 * _STDERR_TAIL :]

    def text(self) -> str:
        return self._end.decode("utf-8", "replace")


def _last_words(said: _Tail, plugin: ExecPlugin) -> str:
    """The tail of standard error, masked; masked before it is cut, since half a secret would not be recognised."""
    secrets = [*plugin.env.values(), *telling(os.environ), *telling_arguments(plugin.args)]
    text = mask(said.text(), secrets)[-_STDERR_TAIL:].strip()
    lines = [line for line in text.splitlines() if line.strip()][-_STDERR_LINES:]
    return " Its last words: " + " | ".join(lines) if lines else ""
