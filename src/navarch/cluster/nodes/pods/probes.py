"""Probes and lifecycle hooks of containers: exec, HTTP, TCP, gRPC and sleep actions. Each returns a fault, or None."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Literal

from navarch._base.clock import Clock
from navarch._base.tasks import within
from navarch.cluster.nodes.pods.grpc_health import grpc_fault
from navarch.cluster.nodes.runtime import Runtime
from navarch.cluster.streams import ProcessOptions
from navarch.errors import ContainerError
from navarch.k8s.core.v1 import (
    Container,
    ExecAction,
    GRPCAction,
    HTTPGetAction,
    LifecycleHandler,
    Probe,
    TCPSocketAction,
)

ProbeKind = Literal["Startup", "Liveness", "Readiness"]
Fault = str | None
"""Why a probe failed; None if it did not."""
_MOST_OUTPUT: Final = 10240
_AGENT: Final = "kube-probe/1.36"
_LOCALHOST: Final = frozenset({"localhost", "127.0.0.1", "::1"})


async def probe_results(probe: Probe, target: ProbeTarget, clock: Clock) -> AsyncIterator[tuple[Fault, bool | None]]:
    """Yields the fault of each probe, and whether the container is healthy from now on (None: unchanged).

    A container becomes healthy after `successThreshold` successes in a row, unhealthy after `failureThreshold`
    failures.
    """
    needed = {True: probe.success_threshold or 1, False: probe.failure_threshold or 3}
    in_a_row, last = 0, None
    await clock.sleep(probe.initial_delay_seconds or 0)
    while True:
        fault = await _looked(probe, target, clock)
        well = fault is None
        in_a_row, last = (in_a_row + 1 if well is last else 1), well
        yield fault, well if in_a_row >= needed[well] else None
        await clock.sleep(probe.period_seconds or 10)


async def _looked(probe: Probe, target: ProbeTarget, clock: Clock) -> Fault:
    seconds = probe.timeout_seconds or 1
    try:
        return await within(clock, seconds, _look(probe, target))
    except TimeoutError:
        return _late(probe, seconds)
    except ContainerError as error:
        return str(error)


def _late(probe: Probe, seconds: float) -> str:
    if probe.exec is not None:
        return f"command timed out: {' '.join(probe.exec.command or [])!r} timed out after {seconds}s"
    return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


async def _look(probe: Probe, target: ProbeTarget) -> Fault:
    if probe.grpc is not None:
        return await grpc_health_fault(target, probe.grpc)
    return await action_fault(target, probe)


async def hook_fault(hook: LifecycleHandler, target: ProbeTarget, clock: Clock) -> str | None:
    """Runs the hook to its end; returns its fault, or None."""
    if hook.sleep is not None:
        await clock.sleep(hook.sleep.seconds)
    try:
        return await action_fault(target, hook)
    except ContainerError as error:
        return str(error)


class ProbeTarget:
    """The container that is looked at, and the address of its pod, which may be that of its node (`on_host`)."""

    def __init__(
        self, runtime: Runtime, container_id: str, spec: Container, address: str, *, on_host: bool = False
    ) -> None:
        self.runtime = runtime
        self.container_id = container_id
        self.spec = spec
        self.address = address
        self._on_host = on_host

    def host(self, given: str | None) -> str:
        """Where to look: at the pod, or where the probe says. A pod on the network of its node is at the node's localhost."""
        return self.address if not given or (self._on_host and given in _LOCALHOST) else given

    def port(self, given: int | str) -> int:
        """A port by its number or its name; raises `ContainerError` for a name that the container does not know."""
        if isinstance(given, int) or given.isdigit():
            return int(given)
        found = next((port.container_port for port in self.spec.ports or [] if port.name == given), None)
        if found is None:
            raise ContainerError(f"couldn't find port: {given!r}")
        return found


async def action_fault(target: ProbeTarget, action: Probe | LifecycleHandler) -> str | None:
    """What probes and hooks have in common: a command, a request or a connection."""
    if action.exec is not None:
        return await _exec_fault(target, action.exec)
    if action.http_get is not None:
        return await _http_fault(target, action.http_get)
    return await _tcp_fault(target, action.tcp_socket) if action.tcp_socket is not None else None


async def _exec_fault(target: ProbeTarget, action: ExecAction) -> str | None:
    """What a command printed, if it failed."""
    process = await target.runtime.exec(target.container_id, tuple(action.command or ()), ProcessOptions())
    try:
        async with asyncio.TaskGroup() as group:
            parts = [group.create_task(_output(stream)) for stream in (process.stdout(), process.stderr())]
        code = await process.wait()
        return None if code == 0 else b"".join(part.result() for part in parts).decode(errors="replace")
    finally:
        await process.close()


async def _output(stream: AsyncIterator[bytes]) -> bytes:
    found = b""
    async for piece in stream:
        found = (found + piece)[:_MOST_OUTPUT]
    return found


async def _tcp_fault(target: ProbeTarget, action: TCPSocketAction) -> str | None:
    """Why nobody listens."""
    host, port = target.host(action.host), target.port(action.port)
    async with _connection(host, port, None) as opened:
        return opened if isinstance(opened, str) else None


async def _http_fault(target: ProbeTarget, action: HTTPGetAction) -> str | None:
    """Why the answer is not a good one: anything from 200 to 399 is."""
    host, port = target.host(action.host), target.port(action.port)
    scheme, path = (action.scheme or "HTTP").lower(), action.path or "/"
    context = _unchecked() if scheme == "https" else None
    async with _connection(host, port, context) as opened:
        if isinstance(opened, str):
            return f'Get "{scheme}://{host}:{port}{path}": {opened}'
        reader, writer = opened
        writer.write(_request(f"{host}:{port}", path, action))
        words = (await _line(reader)).split()
    if len(words) < 2 or not words[1].isdigit():
        return f'Get "{scheme}://{host}:{port}{path}": EOF'
    code = int(words[1])
    return None if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}"


async def _line(reader: asyncio.StreamReader) -> bytes:
    """The first line; nothing if it has no end."""
    try:
        return await reader.readline()
    except ValueError:
        return b""


def _request(host: str, path: str, action: HTTPGetAction) -> bytes:
    headers = {"host": ("Host", host), "user-agent": ("User-Agent", _AGENT), "accept": ("Accept", "*/*")}
    for given in action.http_headers or []:
        headers[given.name.lower()] = (given.name, given.value)
    lines = [f"{name}: {value}" for name, value in headers.values() if value]
    path = path if path.startswith("/") else f"/{path}"
    return "\r\n".join([f"GET {path} HTTP/1.1", *lines, "Connection: close", "", ""]).encode()


def _unchecked() -> ssl.SSLContext:
    """Probes do not ask who answers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def grpc_health_fault(target: ProbeTarget, action: GRPCAction) -> str | None:
    """What the health service says, if not that all is well."""
    async with _connection(target.address, action.port, None) as opened:
        if isinstance(opened, str):
            return f'error: failed to connect service "{target.address}:{action.port}": {opened}'
        return await grpc_fault(*opened, action.service or "")


@asynccontextmanager
async def _connection(
    host: str, port: int, context: ssl.SSLContext | None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter] | str]:
    """An open connection, or why there is none."""
    try:
        reader, writer = await asyncio.open_connection(host, port, ssl=context)
    except ConnectionRefusedError:
        yield f"dial tcp {host}:{port}: connect: connection refused"
        return
    except OSError as error:
        yield f"dial tcp {host}:{port}: {error.strerror or error}"
        return
    try:
        yield reader, writer
    except OSError as error:
        raise ContainerError(f"read tcp {host}:{port}: {error.strerror or error}") from error
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
