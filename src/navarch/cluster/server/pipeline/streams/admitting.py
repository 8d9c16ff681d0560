"""Admission of connections: what reaches into pods is asked about as CONNECT, with its options as the object."""

from __future__ import annotations

from typing import Any, Final

from navarch.cluster.server.pipeline.endpoints.call import Call
from navarch.cluster.server.pipeline.streams.parameters import flag
from navarch.cluster.server.wire.request import ApiRequest

__all__ = ["admit", "admit_command"]

_FLAGS: Final = ("stdin", "stdout", "stderr", "tty")


async def admit(call: Call, kind: str, **options: Any) -> None:
    """Refuses what admission does not let pass. Kubernetes asks before it looks for the pod; what is empty is left out."""
    value = {"kind": kind, "apiVersion": "v1", **{name: given for name, given in options.items() if given}}
    attributes = await call.admitted("CONNECT", value, None, {})
    await call.validated(attributes, attributes.value)


async def admit_command(call: Call, kind: str) -> None:
    """The same for commands: which streams, of which container, and what is to be run there."""
    request: ApiRequest = call.request
    flags = {name: flag(request, name) for name in _FLAGS}
    command = list(request.query.get("command", ())) if kind == "PodExecOptions" else []
    await admit(call, kind, **flags, container=request.parameter("container"), command=command)
