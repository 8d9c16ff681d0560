"""Runs an exec plugin once, with a time limit, and reads its ExecCredential; errors show no secrets."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Annotated, Any, cast

import msgspec

from navarch._base.clock import Clock
from navarch._base.tasks import acquire, within
from navarch.client.config.masking import mask, printable, telling, telling_arguments
from navarch.client.config.model import Config, ExecPlugin
from navarch.client.config.tls import ClientCertificate, ca_certificates
from navarch.errors import CredentialError

_KIND = "ExecCredential"


class PluginCredential(msgspec.Struct, frozen=True, kw_only=True):
    """A credential from a plugin: a token, a client certificate, or both, with an optional expiry."""

    token: str = ""
    certificate: ClientCertificate | None = None
    expires: datetime | None = None

    def __repr__(self) -> str:
        return f"PluginCredential(expires={self.expires})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("expires", self.expires)]


class _ExecType(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecOutput(msgspec.Struct):
    status: _ExecStatus | None = None


def exec_info(plugin: ExecPlugin, config: Config, *, interactive: bool) -> str:
    """Returns the value of KUBERNETES_EXEC_INFO."""
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.provide_cluster_info:
        spec["cluster"] = _cluster(plugin, config)
    info = {"apiVersion": plugin.api_version, "kind": _KIND, "spec": spec}
    return msgspec.json.encode(info).decode()


def _cluster(plugin: ExecPlugin, config: Config) -> dict[str, Any]:
    cluster: dict[str, Any] = {
        "server": config.server,
        "tls-server-name": config.tls_server_name,
        "insecure-skip-tls-verify": config.insecure_skip_verify,
        "certificate-authority-data": base64.b64encode(ca_certificates(config)).decode(),
        "proxy-url": config.proxy_url,
        "disable-compression": not config.compression,
        "config": msgspec.Raw(plugin.cluster_extension) if plugin.cluster_extension else None,
    }
    return {key: value for key, value in cluster.items() if value or key == "server"}


def parse_output(output: bytes, plugin: ExecPlugin, where: str) -> PluginCredential:
    """Parses the credential that a plugin printed. Raises CredentialError with the expected form, never with the
    output.
    """
    _check_type(output, plugin, where)
    try:
        status = msgspec.json.decode(output, type=_ExecOutput).status
    except msgspec.ValidationError as error:
        raise CredentialError(f"{where}: expected an ExecCredential on standard output, got: {error}") from None
    if status is None:
        raise CredentialError(f"{where}: expected an ExecCredential with a status, got one without")
    if not status.token and not status.client_certificate_data and not status.client_key_data:
        raise CredentialError(f"{where}: expected a token, or a client certificate and its key, got neither")
    return PluginCredential(
        token=status.token or "",
        certificate=_certificate(status, where),
        expires=status.expiration_timestamp and status.expiration_timestamp.astimezone(UTC),
    )


def _check_type(output: bytes, plugin: ExecPlugin, where: str) -> None:
    expected = f"{where}: expected an {_KIND} of {plugin.api_version} as JSON on standard output"
    if not output.strip():
        raise CredentialError(f"{expected}, got nothing")
    try:
        found = msgspec.json.decode(output, type=_ExecType)
    except msgspec.DecodeError as error:
        # Only a ValidationError's words are fixed; that of malformed JSON says where, and no more.
        raise CredentialError(f"{expected}, got {len(output)} bytes of something else: {error}") from None
    if found.kind != _KIND:
        raise CredentialError(f"{expected}, got kind {_name(found.kind)}")
    if found.api_version != plugin.api_version:
        raise CredentialError(
            f"{expected}, got apiVersion {_name(found.api_version)}. "
            f"Set apiVersion in the kubeconfig to what the plugin speaks."
        )


def _name(value: str) -> str:
    """Returns a kind or version as an error may show it: a longer text may be a misplaced secret."""
    return repr(value) if len(value) <= 40 else f"of {len(value)} characters"


def _certificate(status: _ExecStatus, where: str) -> ClientCertificate | None:
    certificate, key = status.client_certificate_data, status.client_key_data
    if not certificate and not key:
        return None
    if not certificate or not key:
        missing = "clientKeyData" if certificate else "clientCertificateData"
        raise CredentialError(f"{where}: expected a client certificate and its key, got no {missing}")
    return ClientCertificate(
        certificate=certificate.encode(),
        key=key.encode(),
        certificate_name=f"{where}: clientCertificateData",
        key_name=f"{where}: clientKeyData",
    )


# Somebody who must fetch a password or press a button needs longer than a program.
_INTERACTIVE_SECONDS = 300.0
# A plugin may leave a daemon behind that holds its standard output open: then the end of output never comes.
_GRACE_SECONDS = 1.0
_LARGEST_OUTPUT = 1 << 20
_STDERR_TAIL = 4096
_STDERR_LINES = 10


async def run_plugin(plugin: ExecPlugin, config: Config, clock: Clock) -> PluginCredential:
    """Runs the plugin and returns its credential.

    Raises CredentialError if the plugin is missing, fails, prints something else or takes too long. After a timeout or
    cancellation it is killed together with its children before this returns.
    """
    where = f"{config.origin}: exec plugin {plugin.command!r}"
    interactive = _is_interactive(plugin, where)
    environment = {**os.environ, **plugin.env}
    environment["KUBERNETES_EXEC_INFO"] = exec_info(plugin, config, interactive=interactive)
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
    return parse_output(process.output, plugin, where)


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


class _PluginProcess(asyncio.SubprocessProtocol):
    """Collects the plugin's output and exit. asyncio's own Process would wait for a daemon that the plugin leaves
    behind.
    """

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
        """Returns when the process has ended and its output has been read."""
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
) -> AsyncIterator[_PluginProcess]:
    try:
        process = await acquire(_start(plugin, environment, interactive=interactive), _PluginProcess.end)
    except (OSError, ValueError) as error:
        raise CredentialError(_not_started(error, plugin, where)) from None
    try:
        yield process
    finally:
        await process.end()


async def _start(plugin: ExecPlugin, environment: Mapping[str, str], *, interactive: bool) -> _PluginProcess:
    # A plugin that may talk to the user keeps the terminal; any other gets a session of its own, so that it cannot
    # wait for a prompt that nobody sees, and can be killed with all that it started.
    _, process = await asyncio.get_running_loop().subprocess_exec(
        lambda: _PluginProcess(grouped=not interactive),
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
    """Returns the tail of standard error, masked before it is cut: half a secret would not be recognised."""
    secrets = [*plugin.env.values(), *telling(os.environ), *telling_arguments(plugin.args)]
    text = mask(said.decode("utf-8", "replace"), secrets)[-_STDERR_TAIL:].strip()
    lines = [line for line in text.splitlines() if line.strip()][-_STDERR_LINES:]
    return " Its last words: " + " | ".join(map(printable, lines)) if lines else ""
