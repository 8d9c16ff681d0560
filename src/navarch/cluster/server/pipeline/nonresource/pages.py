"""Serves every path that is no resource: version, health and OpenID here, the others by their modules."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from navarch._base.supervisor import TaskStatus
from navarch.cluster.server.pipeline.authentication.signing import SigningKey
from navarch.cluster.server.pipeline.authentication.tokens import ISSUER
from navarch.cluster.server.pipeline.nonresource.discovery import DiscoveryDocuments
from navarch.cluster.server.pipeline.nonresource.openapi import OpenApi
from navarch.cluster.server.pipeline.routing import no_such_resource
from navarch.cluster.server.wire.request import ApiRequest, Reply
from navarch.cluster.server.wire.status_errors import method_not_allowed
from navarch.k8s.published import Published

STORAGE: Final = "storage"
"""The task that watches over the storage; it is shown under the name of Kubernetes' check, `etcd`."""
SERVER_TASKS: Final = frozenset({STORAGE, "customresourcedefinitions", "watch-ticker"})
"""The background tasks without which the server does not answer as it should."""

_TEXT_TYPE: Final = "text/plain; charset=utf-8"
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
_PROGRAMS: Final = ("curl", "Wget", "Mozilla/5.0")
CONFIGURATION: Final = "/.well-known/openid-configuration"
KEYS: Final = "/openid/v1/jwks"
_TEXT = "text/plain; charset=utf-8"
_ANY_METHOD = frozenset({"/", "/openapi/v2", "/metrics"})
"""What Kubernetes serves without looking at the method."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""The names of machines, as Go has them."""
_BUILD = {
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "cpython",
    "platform": f"{sys.platform}/{_ARCHITECTURES.get(os.uname().machine, os.uname().machine)}",
}
"""How the server was built: clients do not read a version without it."""
_COMPATIBILITY = ("emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor")
_VERSION = ("major", "minor", *_COMPATIBILITY, "gitVersion", *_BUILD)
_ROOTS = ("/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version")


class HealthReport(NamedTuple):
    """What is known of the cluster's health: why the storage cannot be read, if it cannot, and how its tasks are."""

    unreadable: str | None = None
    tasks: Sequence[TaskStatus] = ()


Health = Callable[[], HealthReport]


class _HealthCheck(NamedTuple):
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
        return Reply(200, b"ok", _TEXT_TYPE)
    shown = [f"[+]{name} excluded: ok" if name in excluded else check.line(name) for name, check in asked.items()]
    lines = "".join(f"{line}\n" for line in shown)
    verdict = "passed" if is_well else "failed"
    return Reply(200 if is_well else 500, f"{lines}{root} check {verdict}\n".encode(), _TEXT_TYPE)


def _checks(root: str, report: HealthReport) -> dict[str, _HealthCheck]:
    """The checks of an endpoint by name, in their order."""
    checks = dict.fromkeys(_CHECKS[root], _HealthCheck())
    unreadable = _HealthCheck(report.unreadable)
    checks |= {name: unreadable for name in _OF_STORAGE if name in checks}
    for task in report.tasks if root != "livez" else ():
        check = _HealthCheck(None if task.is_well else f"{task.state}: {task.cause}", task.restarts)
        if task.name == STORAGE:
            checks |= {name: check for name in _OF_STORAGE if name in checks and unreadable.fault is None}
        elif root == "healthz" or task.name in SERVER_TASKS:
            checks[task.name] = check
    return checks


def laid_out(request: ApiRequest, reply: Reply) -> Reply:
    """The answer as whoever asks likes to read it; streams and what is no JSON stay as they are."""
    if not _is_wanted(request) or reply.stream is not None or not reply.content_type.startswith("application/json"):
        return reply
    if not reply.body or request.path.startswith(("/openapi", "/.well-known")):
        return reply
    return replace(reply, body=msgspec.json.format(reply.body, indent=2))


def _is_wanted(request: ApiRequest) -> bool:
    if request.parameter("pretty"):
        return request.flag("pretty")
    return request.headers.get("user-agent", "").startswith(_PROGRAMS)


class OpenId:
    """The two documents of one key."""

    def __init__(self, key: SigningKey) -> None:
        self._key = key

    async def configuration(self, request: ApiRequest) -> Reply:
        """Who issues tokens, and where the keys are: where this document was found."""
        document = {
            "issuer": ISSUER,
            "jwks_uri": f"https://{request.headers.get('host', ISSUER.removeprefix('https://'))}{KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [self._key.algorithm],
        }
        return Reply(200, msgspec.json.encode(document))

    async def keys(self, _request: ApiRequest) -> Reply:
        """The public half of the key."""
        return Reply(200, msgspec.json.encode({"keys": [self._key.web_key()]}), "application/jwk-set+json")


Page = Callable[[ApiRequest], Awaitable[Reply]]
"""Serves one path."""


class NonResourcePages:
    """Finds what serves a path; `others` have pages of their own."""

    def __init__(
        self,
        published: Published,
        discovery: DiscoveryDocuments,
        openapi: OpenApi,
        health: Health,
        others: Mapping[str, Page] = MappingProxyType({}),
    ) -> None:
        self._published = published
        self._others = others
        self._discovery = discovery
        self._openapi = openapi
        self._health = health

    async def __call__(self, request: ApiRequest) -> Reply:
        """The answer; 404 for what is nowhere, 405 for what can only be read."""
        if (health := health_reply(request, self._health)) is not None:
            return health
        other = self._others.get(request.path)
        reply = await other(request) if other is not None else self._reply(request)
        if reply is None:
            return self._absent(request.path)
        if request.method != "GET" and request.path not in _ANY_METHOD:
            raise method_not_allowed()
        return reply

    def _reply(self, request: ApiRequest) -> Reply | None:
        if request.path.startswith("//"):
            return None
        path = request.path.rstrip("/") or "/"
        if path == "/version":
            return Reply(200, self._version())
        if path == "/":
            return Reply(200, msgspec.json.encode({"paths": sorted([*_ROOTS, *self._others])}))
        return self._discovery.reply(request) or self._openapi.reply(request)

    def _version(self) -> bytes:
        """As Go lays it out: people look at it, too."""
        known = {**self._published.version(), **_BUILD}
        return msgspec.json.format(msgspec.json.encode({name: known[name] for name in _VERSION}), indent=2)

    def _absent(self, path: str) -> Reply:
        """Below a group that is served a Status says so; elsewhere Kubernetes' router does, in its own words."""
        root, _, rest = path.removeprefix("/").partition("/")
        group = rest.partition("/")[0]
        if root == "api" or (root == "apis" and self._discovery.has_group(group)):
            raise no_such_resource()
        return Reply(404, b"404 page not found\n", _TEXT)
