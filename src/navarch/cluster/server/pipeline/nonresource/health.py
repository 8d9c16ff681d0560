"""`/healthz`, `/livez` and `/readyz`: whether the server and the cluster work, check by check.

`/livez` fails when the server cannot read its storage. `/readyz` also fails when it cannot write, or when a background
task of the server itself has failed. `/healthz` is about the whole cluster: it has a check for every background task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from navarch._base.supervisor import TaskStatus
from navarch.cluster.server.wire.request import ApiRequest, Reply

STORAGE: Final = "storage"
"""The task that watches over the storage; it is shown under the name of Kubernetes' check, `etcd`."""
SERVER_TASKS: Final = frozenset({STORAGE, "customresourcedefinitions", "watch-ticker"})
"""The background tasks without which the server does not answer as it should."""

_TEXT: Final = "text/plain; charset=utf-8"
_HOOKS: Final = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
    "storage-object-count-tracker-hook",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "start-system-namespaces-controller",
    "peer-endpoint-reconciler-controller",
    "start-cluster-authentication-info-controller",
    "start-kube-apiserver-identity-lease-controller",
    "start-kube-apiserver-identity-lease-garbage-collector",
    "storage-readiness",
    "start-legacy-token-tracking-controller",
    "start-service-ip-repair-controllers",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "bootstrap-controller",
    "start-kubernetes-service-cidr-controller",
    "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "apiservice-registration-controller",
    "apiservice-discovery-controller",
    "kube-apiserver-autoregistration",
)
_LAST_HOOKS: Final = ("apiservice-openapi-controller", "apiservice-openapiv3-controller")
_STARTED: Final = (
    *(f"poststarthook/{name}" for name in _HOOKS),
    "autoregister-completion",
    *(f"poststarthook/{name}" for name in _LAST_HOOKS),
)
"""What kube-apiserver does when it starts. This server has done whatever of it there is before it first answers."""
_ALIVE: Final = ("ping", "log", "loopback-serving-certificate", "etcd", *_STARTED)
_CHECKS: Final = {
    "healthz": _ALIVE,
    "livez": _ALIVE,
    "readyz": ("ping", "log", "etcd", "etcd-readiness", "informer-sync", *_STARTED, "shutdown"),
}
_OF_STORAGE: Final = ("etcd", "etcd-readiness")


class HealthReport(NamedTuple):
    """What is known of the cluster's health: why the storage cannot be read, if it cannot, and how its tasks are."""

    unreadable: str | None = None
    tasks: Sequence[TaskStatus] = ()


Health = Callable[[], HealthReport]


class _Check(NamedTuple):
    """One line of an answer. `fault` is None while all is well."""

    fault: str | None = None
    restarts: int = 0

    def line(self, name: str) -> str:
        """In the form of Kubernetes, with the cause, and how often a task was restarted."""
        restarted = f" (restarts: {self.restarts})" if self.restarts else ""
        return f"[+]{name} ok{restarted}" if self.fault is None else f"[-]{name} failed: {self.fault}{restarted}"


def health_reply(request: ApiRequest, health: Health) -> Reply | None:
    """The answer to a request for one of them, or for one check of it; None for other paths."""
    root, _, name = request.path.removeprefix("/").partition("/")
    if root not in _CHECKS or request.path.endswith("/"):
        return None
    checks = _checks(root, health())
    if name and name not in checks:
        return None
    excluded = frozenset(request.query.get("exclude", ()))
    asked = {name: checks[name]} if name else checks
    is_well = all(check.fault is None for name, check in asked.items() if name not in excluded)
    if is_well and "verbose" not in request.query:
        return Reply(200, b"ok", _TEXT)
    shown = [f"[+]{name} excluded: ok" if name in excluded else check.line(name) for name, check in asked.items()]
    lines = "".join(f"{line}\n" for line in shown)
    verdict = "passed" if is_well else "failed"
    return Reply(200 if is_well else 500, f"{lines}{root} check {verdict}\n".encode(), _TEXT)


def _checks(root: str, report: HealthReport) -> dict[str, _Check]:
    """The checks of an endpoint by name, in their order."""
    checks = dict.fromkeys(_CHECKS[root], _Check())
    unreadable = _Check(report.unreadable)
    checks |= {name: unreadable for name in _OF_STORAGE if name in checks}
    for task in report.tasks if root != "livez" else ():
        check = _Check(None if task.is_well else f"{task.state}: {task.cause}", task.restarts)
        if task.name == STORAGE:
            checks |= {name: check for name in _OF_STORAGE if name in checks and unreadable.fault is None}
        elif root == "healthz" or task.name in SERVER_TASKS:
            checks[task.name] = check
    return checks
