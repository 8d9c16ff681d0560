"""`/healthz`, `/livez` and `/readyz`: whether the server can be used, check by check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from navarch.cluster.server.request import ApiRequest, Reply

__all__ = ["Health", "health_reply"]

Health = Callable[[], str | None]
"""None while all is well, else what is not."""

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
_OF_STORAGE: Final = frozenset({"etcd", "etcd-readiness"})


def health_reply(request: ApiRequest, health: Health) -> Reply | None:
    """The answer to a request for one of them, or for one check of it; None for other paths."""
    root, _, check = request.path.removeprefix("/").partition("/")
    checks = _CHECKS.get(root)
    if checks is None or (check and check not in checks) or request.path.endswith("/"):
        return None
    fault, excluded = health(), frozenset(request.query.get("exclude", ()))
    asked = (check,) if check else checks
    is_well = fault is None or _OF_STORAGE.isdisjoint(set(asked) - excluded)
    if is_well and "verbose" not in request.query:
        return Reply(200, b"ok", _TEXT)
    lines = "".join(f"{line}\n" for line in _lines(asked, fault, excluded))
    verdict = "passed" if is_well else "failed"
    return Reply(200 if is_well else 500, f"{lines}{root} check {verdict}\n".encode(), _TEXT)


def _lines(checks: tuple[str, ...], fault: str | None, excluded: frozenset[str]) -> Iterator[str]:
    for check in checks:
        if check in excluded:
            yield f"[+]{check} excluded: ok"
        elif fault is not None and check in _OF_STORAGE:
            yield f"[-]{check} failed: {fault}"
        else:
            yield f"[+]{check} ok"
