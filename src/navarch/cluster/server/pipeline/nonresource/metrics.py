"""`/metrics`: requests, their durations and stored objects, under kube-apiserver's names; background tasks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from navarch._base.supervisor import TaskStatus
from navarch.cluster.server.objects.types import Catalog, ResourceType
from navarch.cluster.server.wire.request import ApiRequest, Reply, RequestInfo
from navarch.cluster.storage import Storage
from navarch.observe.exposition import Metrics
from navarch.observe.families import Buckets, Histogram, MetricFamily, MetricSource, Sample

_RESTARTS: Final = MetricFamily(
    "counter", "navarch_task_restarts_total", "How often a background task was restarted after a failure.", ("task",)
)
_HEALTHY: Final = MetricFamily("gauge", "navarch_task_healthy", "Whether a background task works: 1, or 0.", ("task",))
_DROPPED: Final = MetricFamily(
    "counter",
    "apiserver_audit_error_total",
    "Records of the audit log that were dropped, since they could not be written.",
    ("plugin",),
)
_SECONDS: Final[Buckets] = (
    *(0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5),
    *(2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)
_VERBS: Final = {"create": "POST", "update": "PUT"}
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_PAGES: Final = {"/healthz": "/healthz", "/livez": "/livez", "/readyz": "/readyz", "/api": "api", "/apis": "apis"}
"""What is counted of paths that are no resources, as Kubernetes calls it; anybody can think of others."""
_OBJECTS: Final = MetricFamily(
    "gauge",
    "apiserver_resource_objects",
    "Number of stored objects at the time of last check split by kind.",
    ("group", "resource"),
)
_OLD_OBJECTS: Final = MetricFamily(
    "gauge",
    "apiserver_storage_objects",
    "Number of stored objects at the time of last check split by kind.",
    ("resource",),
)


class TaskMetrics:
    """Shows what `statuses` returns, and how many audit records were `dropped`."""

    def __init__(self, statuses: Callable[[], Sequence[TaskStatus]], dropped: Callable[[], int]) -> None:
        self._statuses = statuses
        self._dropped = dropped

    def samples(self) -> Iterator[Sample]:
        """See `observe.MetricSource`."""
        for status in self._statuses():
            yield Sample(_RESTARTS, (status.name,), status.restarts)
            yield Sample(_HEALTHY, (status.name,), int(status.is_well))
        yield Sample(_DROPPED, ("log",), self._dropped())


class _RequestLabels(NamedTuple):
    """What a request was, in the order of the labels."""

    component: str = ""
    dry_run: str = ""
    group: str = ""
    resource: str = ""
    scope: str = ""
    subresource: str = ""
    verb: str = ""
    version: str = ""


_WITHOUT_DRY_RUN: Final = tuple(name for name in _RequestLabels._fields if name != "dry_run")
_REQUESTS: Final = MetricFamily(
    "counter",
    "apiserver_request_total",
    "Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, "
    "and HTTP response code.",
    ("code", *_RequestLabels._fields),
)
_DURATION: Final = MetricFamily(
    "histogram",
    "apiserver_request_duration_seconds",
    "Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope "
    "and component.",
    _RequestLabels._fields,
)
_LONG: Final = MetricFamily(
    "gauge",
    "apiserver_longrunning_requests",
    "Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and "
    "component.",
    _WITHOUT_DRY_RUN,
)


class _Counted:
    """Requests that were alike. `under_way` are the long ones among them that have not ended."""

    __slots__ = ("codes", "labels", "seconds", "under_way")

    def __init__(self, labels: _RequestLabels) -> None:
        self.labels = labels
        self.codes: Counter[int] = Counter()
        self.seconds = Histogram(_SECONDS)
        self.under_way = 0

    def samples(self) -> Iterator[Sample]:
        for code, count in self.codes.items():
            yield Sample(_REQUESTS, (str(code), *self.labels), count)
        yield Sample(_DURATION, self.labels, self.seconds)
        if self.labels.verb == "WATCH":
            yield Sample(_LONG, tuple(getattr(self.labels, name) for name in _WITHOUT_DRY_RUN), self.under_way)


class RequestCounts:
    """Takes the records of an audit log on their way to it, and counts them.

    What leads to nothing is not counted: there is no end of what may be asked for.
    """

    def __init__(self, audit: Any, catalog: Catalog) -> None:
        self._audit = audit
        self._catalog = catalog
        self._known: dict[tuple[str | bool, ...], _Counted] = {}

    def started(self, request: ApiRequest, info: RequestInfo, *rest: Any, **more: Any) -> None:
        """See `Audit.started`."""
        self._audit.started(request, info, *rest, **more)
        if (counted := self._counted(request, info)) is not None:
            counted.under_way += 1

    def completed(
        self, request: ApiRequest, info: RequestInfo, user: Any, code: int, seconds: float, **more: Any
    ) -> None:
        """See `Audit.completed`."""
        self._audit.completed(request, info, user, code, seconds, **more)
        if (counted := self._counted(request, info)) is not None:
            counted.codes[code] += 1
            counted.seconds.add(seconds)
            if counted.under_way:
                counted.under_way -= 1

    def samples(self) -> Iterator[Sample]:
        """See `observe.MetricSource`."""
        for counted in self._known.values():
            yield from counted.samples()

    def _counted(self, request: ApiRequest, info: RequestInfo) -> _Counted | None:
        """Found without making the labels, which would cost more than all the rest."""
        what = (info.group, info.version, info.resource, info.subresource, info.path if not info.resource else "")
        dry, applied = "dryRun" in request.query, "apply-patch" in request.headers.get("content-type", "")
        key = (request.method, info.verb, *what, bool(info.name), bool(info.namespace), dry, applied)
        found = self._known.get(key)
        if found is None and (labels := self._labels(request, info)) is not None:
            found = self._known[key] = _Counted(labels)
        return found

    def _labels(self, request: ApiRequest, info: RequestInfo) -> _RequestLabels | None:
        if not info.resource:
            return _page_labels(request.method, info.path)
        found = self._catalog.find(info.group, info.version, info.resource)
        if found is None or (info.subresource and info.subresource not in found.subresources):
            return None
        dry_run = "All" if "dryRun" in request.query else ""
        what = (info.group, info.resource, _scope(info), info.subresource)
        return _RequestLabels("apiserver", dry_run, *what, _verb(request, info), info.version)


def _page_labels(method: str, path: str) -> _RequestLabels | None:
    page = _PAGES.get(path)
    if page is None or method not in _METHODS:
        return None
    return _RequestLabels("apiserver" if page in {"api", "apis"} else "", subresource=page, verb=method)


def _scope(info: RequestInfo) -> str:
    if info.name or info.verb == "create":
        return "resource"
    return "namespace" if info.namespace else "cluster"


def _verb(request: ApiRequest, info: RequestInfo) -> str:
    if info.verb == "patch" and "apply-patch" in request.headers.get("content-type", ""):
        return "APPLY"
    return _VERBS.get(info.verb) or info.verb.upper()


class _StoredObjects:
    """How many objects there are of each resource."""

    def __init__(self, counts: dict[tuple[str, str], int]) -> None:
        self._counts = counts

    def samples(self) -> Iterator[Sample]:
        for (group, plural), count in self._counts.items():
            yield Sample(_OBJECTS, (group, plural), count)
            yield Sample(_OLD_OBJECTS, (f"{plural}.{group}" if group else plural,), count)


async def metrics_page(
    request: ApiRequest, requests: RequestCounts, tasks: MetricSource, catalog: Catalog, storage: Storage
) -> Reply:
    """Everything as Prometheus reads it, with the figures of the process."""
    stored = {resource.storage_prefix: resource for resource in catalog if "list" in resource.verbs}
    counts = await asyncio.gather(*(_counted(storage, prefix) for prefix in stored))
    metrics = Metrics()
    metrics.add(requests)
    metrics.add(tasks)
    metrics.add(_StoredObjects(dict(zip(map(_name, stored.values()), counts, strict=True))))
    body, content_type = metrics.exposition(request.headers.get("accept", ""))
    return Reply(200, body, content_type)


async def _counted(storage: Storage, prefix: str) -> int:
    page = await storage.page(prefix, limit=1)
    return len(page.items) + page.remaining


def _name(resource: ResourceType) -> tuple[str, str]:
    return resource.group, resource.plural
