"""Scripts, sent to a real API server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime

from cluster.fields import widgets
from cluster.fields.replay import Json, Step
from cluster.fields.scripts import Script, Write
from cluster.fields.sequences import Server, object_path, send, time_of

_SECOND = 1.1


def performed(server: Server, script: Script) -> Iterator[Step]:
    """Each write of a script with what was there before it; the object is gone afterwards."""
    path = object_path(script.plural, "v1", script.name)
    _forget(server, path)
    for write in script.writes:
        if isinstance(write, str):
            threading.Event().wait(_SECOND)  # times are in whole seconds
            continue
        yield _step(server, script, write)
    _forget(server, path)


def _forget(server: Server, path: str) -> None:
    server.ask("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
    server.ask("DELETE", f"{path}?gracePeriodSeconds=0&propagationPolicy=Background")


def _step(server: Server, script: Script, write: Write) -> Step:
    for _ in range(20):
        step = _attempt(server, script, write)
        if "the object has been modified" not in step.answer.get("message", ""):
            return step
    raise AssertionError(f"expected controllers to leave {script.plural} alone for a moment")


def _attempt(server: Server, script: Script, write: Write) -> Step:
    live = _read(server, script, write.version)
    body = write.body
    if write.operation in {"apply", "update"} and live is not None:
        body = {**body, "metadata": {**body["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}}
    start = datetime.now(UTC)  # noqa: TID251 - the real server has no other clock
    place = object_path(script.plural, write.version, script.name, write.subresource)
    code, answer = send(server, place, write.operation, write.manager, body, force=write.force)
    return Step(
        plural=script.plural,
        version=write.version,
        operation=write.operation,
        manager=write.manager,
        force=write.force,
        subresource=write.subresource,
        body=body,
        live=live,
        code=code,
        answer=answer,
        now=time_of(answer, start),
    )


def _read(server: Server, script: Script, version: str) -> Json | None:
    version = version if script.plural == widgets.PLURAL else "v1"
    code, found = server.ask("GET", object_path(script.plural, version, script.name))
    return found if code == 200 else None
