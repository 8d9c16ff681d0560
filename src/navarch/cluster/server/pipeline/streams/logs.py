"""The endpoint `pods/log`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from navarch.api import parse_time
from navarch.cluster.server.kinds.builtin.generic.go_time import time_fault
from navarch.cluster.server.objects.list_pages import parsed_integer
from navarch.cluster.server.pipeline.endpoints.call import ResourceCall
from navarch.cluster.server.pipeline.streams.node_access import NodeDirectory, container_of, host_of, pod_of
from navarch.cluster.server.pipeline.streams.upgrades import flag
from navarch.cluster.server.wire import status_causes
from navarch.cluster.server.wire.request import Reply
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, invalid
from navarch.cluster.streams import LogOptions
from navarch.errors import Cause, ContainerError

_TEXT: Final = "text/plain"
_LONG_AGO: Final = 1000 * 365 * 86_400
_WORTH_SENDING: Final = 64 * 1024

Logs = Callable[[LogOptions], AsyncIterator[bytes]]
"""The logs of one container."""


async def log(nodes: NodeDirectory, call: ResourceCall) -> Reply:
    """What a container has written, as text; with `follow` also what it goes on to write."""
    options = _options(call)
    pod = await pod_of(call)
    container = container_of(pod, call.request.parameter("container"))
    host = await host_of(call, pod)
    if host is None:
        return Reply(204, content_type=_TEXT, warnings=call.warnings)
    node = nodes.find(host.name)
    if node is None:
        place = f"https://{host.address}/containerLogs/{call.info.namespace}/{call.info.name}/{container}"
        raise StatusError(500, "", f'Get "{place}": {host.unreachable}')
    logs = partial(node.logs, pod["metadata"]["uid"], container)
    try:
        stream = await (_followed if options.follow else _gathered)(logs, options)
    except ContainerError as error:
        raise bad_request(str(error)) from error
    return Reply(content_type=_TEXT, warnings=call.warnings, stream=stream, patient=True)


async def _followed(logs: Logs, options: LogOptions) -> AsyncIterator[bytes]:
    """Line by line. Whether there is a log is found out by a byte of it: the next line may be long in coming."""
    async for _ in logs(LogOptions(previous=options.previous, limit_bytes=1)):
        pass
    return logs(options)


async def _gathered(logs: Logs, options: LogOptions) -> AsyncIterator[bytes]:
    """In pieces that are worth sending."""
    pieces = logs(options)
    return _in_large_pieces(await anext(pieces, b""), pieces)


async def _in_large_pieces(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    gathered, size = [first], len(first)
    async for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= _WORTH_SENDING:
            yield b"".join(gathered)
            gathered, size = [], 0
    if size:
        yield b"".join(gathered)


def _options(call: ResourceCall) -> LogOptions:
    request = call.request
    numbers = {
        name: parsed_integer(request, name)
        for name in ("sinceSeconds", "tailLines", "limitBytes")
        if name in request.query
    }
    since_time = request.parameter("sinceTime")
    if since_time and (fault := time_fault(since_time)):
        raise bad_request(fault)
    if faults := [*_faults(numbers, since_time, has_stream="stream" in request.query)]:
        raise invalid("", "PodLogOptions", call.info.name, faults)
    since = _since(since_time) if since_time else None
    if "sinceSeconds" in numbers:
        since = call.kernel.clock.now() - timedelta(seconds=min(numbers["sinceSeconds"], _LONG_AGO))
    return LogOptions(
        follow=flag(request, "follow"),
        previous=flag(request, "previous"),
        since=since,
        tail=numbers.get("tailLines"),
        timestamps=flag(request, "timestamps"),
        limit_bytes=numbers.get("limitBytes"),
    )


def _since(text: str) -> datetime:
    """A moment in the past; before the year 1 nothing was written."""
    return datetime.min.replace(tzinfo=UTC) if text.startswith("0000") else parse_time(text)


def _faults(numbers: dict[str, int], since_time: str, *, has_stream: bool) -> Iterator[Cause]:
    if numbers.get("tailLines", 0) < 0:
        yield status_causes.invalid("tailLines", numbers["tailLines"], "must be greater than or equal to 0")
    if numbers.get("limitBytes", 1) < 1:
        yield status_causes.invalid("limitBytes", numbers["limitBytes"], "must be greater than 0")
    if "sinceSeconds" in numbers and since_time:
        yield status_causes.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified")
    elif numbers.get("sinceSeconds", 1) < 1:
        yield status_causes.invalid("sinceSeconds", numbers["sinceSeconds"], "must be greater than 0")
    if has_stream:
        yield status_causes.forbidden("stream", "may not be specified")
