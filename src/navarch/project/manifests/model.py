"""`DeploymentModel`: what the manifests of a project follow from; `ManifestObject`: one object, and the file that has it."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from navarch.api import Resource
from navarch.errors import ConfigError
from navarch.operator import Operator, WebhookServer
from navarch.operator.main import WATCH_NAMESPACE, configure, parse_options
from navarch.project.files import read_text
from navarch.project.project import Project
from navarch.project.settings import Settings

Json = dict[str, Any]
Custom = type[Resource[Any, Any]]

HEALTH_PORT: Final = 8081
METRICS_PORT: Final = 8443
WEBHOOK_PORT: Final = 9443
WEBHOOK_CERTIFICATES: Final = "/etc/webhook-certs"
"""Where the Deployment mounts cert-manager's Secret."""
_POD_IP: Final = "$(POD_IP)"


@dataclass(frozen=True, slots=True)
class ManifestObject:
    """One object of the deployment, final but for the user's patches."""

    path: str
    """Its file below `config`; objects of one path are documents of one file."""
    object: Json
    is_installed: bool = True
    """Whether `config/default` and the installation have it."""

    @property
    def folder(self) -> str:
        """Returns the folder below `config`."""
        return self.path.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentModel:
    """An operator as its Deployment runs it. `operator` is a copy that has the flags of the Deployment applied."""

    name: str
    """The project's name, with which all names begin."""
    settings: Settings
    operator: Operator
    kinds: tuple[Custom, ...]
    """The classes of all kinds that the project defines, each version."""
    version: str = ""
    """The project's own version, as pyproject.toml has it; empty if it has none."""
    namespaced: bool = False
    flags: tuple[str, ...] = ()
    samples: tuple[str, ...] = field(default=())
    """The names of the files in `config/samples`."""

    @staticmethod
    def of(
        project: Project, operator: Operator, kinds: Iterable[Custom], samples: Iterable[str] = ()
    ) -> DeploymentModel:
        """Returns the model of the project. Raises `ConfigError` for settings that contradict the code."""
        settings = project.settings
        server = operator.webhook_server
        has_webhooks = bool(operator.admission_webhooks or operator.conversions)
        name = project.file.project_name
        flags = [
            "--leader-elect",
            f"--health-probe-bind-address={_POD_IP}:{HEALTH_PORT}",
            f"--metrics-bind-address={_POD_IP}:{METRICS_PORT}",
        ]
        if has_webhooks:
            if isinstance(server, WebhookServer) and server.url:
                raise ConfigError(
                    f"operator {operator.name}: expected webhooks behind a Service, got WebhookServer(url={server.url!r}), which "
                    f"no Deployment has; leave url= out"
                )
            declared = server.service if isinstance(server, WebhookServer) else ""
            flags.append(f"--webhook-bind-address={_POD_IP}:{WEBHOOK_PORT}")
            flags.append(f"--webhook-service={declared or f'{name}-webhook-service'}")
            if settings.certificates == "cert-manager":
                flags.append(f"--webhook-cert-path={WEBHOOK_CERTIFICATES}")
        watched = project.watched_namespaces
        environment = {WATCH_NAMESPACE: ",".join(watched)} if watched else {}
        deployed = copy.copy(operator)
        configure(deployed, parse_options([each.replace(_POD_IP, "127.0.0.1") for each in flags], environment))
        return DeploymentModel(
            name=name,
            settings=settings,
            operator=deployed,
            kinds=tuple(kinds),
            version=_version(project.root),
            namespaced=project.file.namespaced,
            flags=tuple(flags),
            samples=tuple(sorted(samples)),
        )

    def named(self, suffix: str) -> str:
        """Returns the name of an object: the project's name comes first."""
        return f"{self.name}-{suffix}"

    @property
    def namespace(self) -> str:
        """Returns the namespace of the operator."""
        return self.settings.namespace

    @property
    def account(self) -> str:
        """Returns the ServiceAccount as the API server names it."""
        return f"system:serviceaccount:{self.namespace}:{self.named('controller-manager')}"

    @property
    def labels(self) -> dict[str, str]:
        """Returns the labels of every object."""
        return {"app.kubernetes.io/name": self.name}

    @property
    def selector(self) -> dict[str, str]:
        """Returns the labels of the operator's pods."""
        return {"control-plane": "controller-manager", **self.labels}

    @property
    def has_webhooks(self) -> bool:
        """Whether the operator serves webhooks."""
        return bool(self.operator.admission_webhooks or self.operator.conversions)

    @property
    def uses_cert_manager(self) -> bool:
        """Whether cert-manager issues the certificate of the webhooks."""
        return self.has_webhooks and self.settings.certificates == "cert-manager"

    @property
    def webhook_service(self) -> str:
        """Returns the Service in front of the webhooks."""
        server = self.operator.webhook_server
        return server.service if isinstance(server, WebhookServer) else self.named("webhook-service")

    @property
    def metrics_service(self) -> str:
        """Returns the Service of the metrics, which is also the job of its scrapes."""
        return self.named("controller-manager-metrics-service")

    @property
    def certificate(self) -> str:
        """Returns cert-manager's Certificate of the webhooks."""
        return self.named("serving-cert")

    def metadata(self, name: str, labels: Mapping[str, str] | None = None, *, namespaced: bool = True) -> Json:
        """Returns the metadata of an object, in the operator's namespace or in none."""
        place = {"namespace": self.namespace} if namespaced else {}
        return {"name": name, **place, "labels": {**self.labels, **(labels or {})}}


def _version(root: Path) -> str:
    found = tomllib.loads(read_text(root / "pyproject.toml") or "").get("project", {}).get("version", "")
    return found if isinstance(found, str) else ""
