"""`CallRecorder`: the calls of an operator's client in one test, each with the line of the user's code that made it."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
from asyncio import events
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from navarch.client import Request, Response, Transport, WebSocket
from navarch.client.transport import WrappedTransport
from navarch.cluster.server.pipeline.audit_log import AuditLog
from navarch.cluster.server.wire.request import ApiRequest, RequestInfo, request_info
from navarch.observe import logs
from navarch.operator import Operator
from navarch.operator.permission_sources import sources_of
from navarch.operator.roles import Permission
from navarch.project.recorded_calls import RecordedCall, Where

FOR_EVERYBODY: Final = frozenset(
    {
        Permission("create", "authorization.k8s.io", "selfsubjectaccessreviews"),
        Permission("create", "authorization.k8s.io", "selfsubjectrulesreviews"),
        Permission("create", "authentication.k8s.io", "selfsubjectreviews"),
    }
)
"""Permissions that Kubernetes grants to every user: `system:basic-user`."""
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class CodeLine(NamedTuple):
    """A line of the project's code: `src/cache_operator/controllers/memcached.py:24`, and the function that it is in."""

    line: str
    function: str


class ObservedCall(NamedTuple):
    """One request of the operator's client: its permissions, with the namespace, and the line that made it, if any."""

    permissions: tuple[Permission, ...]
    status: int
    line: CodeLine | None
    controller: str


class ObservedTransport(WrappedTransport):
    """Reports every request about a resource, with its answer, to `observe`."""

    def __init__(self, transport: Transport, root: Path, observe: Callable[[ObservedCall], None]) -> None:
        super().__init__(transport)
        self._root = root
        self._observe = observe

    async def send(self, request: Request) -> Response:
        """See `Transport.send`."""
        status = 0
        try:
            response = await self._transport.send(request)
            status = response.status
            return response
        finally:
            self._report(request, status)

    async def connect(self, request: Request, protocols: Sequence[str]) -> Response | WebSocket:
        """See `Transport.connect`."""
        status = 0
        try:
            opened = await self._transport.connect(request, protocols)
            status = 101 if isinstance(opened, WebSocket) else opened.status
            return opened
        finally:
            self._report(request, status)

    def _report(self, request: Request, status: int) -> None:
        info = request_info(_as_received(request))
        permissions = permissions_of_request(info, status)
        if permissions:
            self._observe(ObservedCall(permissions, status, line_of_code(self._root), _controller()))


def _as_received(request: Request) -> ApiRequest:
    query = {name: [value] if isinstance(value, str) else list(value) for name, value in request.query.items()}
    return ApiRequest(method=request.method, path=request.path, query=query)


def permissions_of_request(info: RequestInfo, status: int) -> tuple[Permission, ...]:
    """Returns the permissions that a request used: an apply that created its object needs two.

    None for a request that is not about a resource, or that everybody may make.
    """
    if not info.is_resource:
        return ()
    is_namespace = (info.group, info.resource) == ("", "namespaces")
    subresource = info.subresource.partition("/")[0]
    verbs = (info.verb, "create") if info.verb == "patch" and status == 201 else (info.verb,)
    place = None if is_namespace else info.namespace or None
    found = (Permission(verb, info.group, info.resource, subresource, place) for verb in verbs)
    return tuple(each for each in found if each not in FOR_EVERYBODY)


def used_permissions(audit: AuditLog, user: str) -> set[Permission]:
    """Returns the permissions that a user's requests used, as the cluster's audit log has them: `cluster.audit`.

    It also shows the calls of an operator that runs in a pod, whose client no test can observe.
    """
    records = audit.records(user=user, stage="")
    return {permission for record in records for permission in permissions_of_request(record.info, record.code)}


def line_of_code(root: Path) -> CodeLine | None:
    """Returns the innermost line below `src` in the stack of the running task; None if the runtime called by itself.

    A coroutine that was handed to another task, as `asyncio.gather` does, counts at the line that created it: see
    `sys.set_coroutine_origin_tracking_depth`.
    """
    source = f"{root / 'src'}{os.sep}"
    for file, number, function in (*_stack(), *_origin()):
        if file.startswith(source) and not any(folder in file for folder in _INSTALLED):
            return CodeLine(f"{Path(file).relative_to(root).as_posix()}:{number}", function)
    return None


def _stack() -> Iterator[tuple[str, int, str]]:
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - `inspect.stack` reads the source of every frame
    while frame is not None and frame.f_code.co_filename != events.__file__:  # below is who runs the loop
        yield frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname
        frame = frame.f_back


def _origin() -> tuple[tuple[str, int, str], ...]:
    """Returns where the coroutine of the running task was created, as far as it is tracked."""
    task = asyncio.current_task()
    coroutine = task.get_coro() if task is not None else None
    return (coroutine.cr_origin or ()) if inspect.iscoroutine(coroutine) else ()


def _controller() -> str:
    """Returns the name of the controller whose reconcile runs; empty outside of a reconcile."""
    name = str(logs.current_fields().get("controller", ""))
    return name.rpartition("/")[2]


class CallRecorder:
    """Collects the calls of an operator in one test; `own_namespace` is that of the operator in the test.

    Calls of the runtime that come only in some circumstances, such as a read after a conflict, are left out: the same
    tests record the same calls.
    """

    def __init__(self, operator: Operator, test: str, own_namespace: str) -> None:
        self._operator = operator
        self._test = test
        self._own_namespace = own_namespace
        self.calls: set[RecordedCall] = set()

    def __call__(self, call: ObservedCall) -> None:
        """Records the call."""
        for permission in call.permissions:
            by = call.line.function if call.line is not None else self._declared_by(permission, call.controller)
            if by:
                self.calls.add(
                    RecordedCall(
                        group=permission.group,
                        resource=permission.resource,
                        subresource=permission.subresource,
                        verb=permission.verb,
                        where=self._where(permission.namespace),
                        line=call.line.line if call.line is not None else "",
                        by=by,
                        test=self._test,
                    )
                )

    def _declared_by(self, permission: Permission, controller: str) -> str:
        """Returns what led to a call of the runtime; empty for one that comes only in some circumstances."""
        sources = sources_of(self._operator, permission, own_namespace=self._own_namespace)
        if any(source.reason for source in sources):
            return ""
        declared = [str(source) for source in sources]
        return f"controller {controller}" if controller else "; ".join(declared) or "the runtime"

    def _where(self, namespace: str | None) -> Where:
        if namespace is None:
            return "cluster"
        return "own" if namespace == self._own_namespace else "namespace"
