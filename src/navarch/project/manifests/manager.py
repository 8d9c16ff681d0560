"""`config/manager`: the namespace, the Deployment of the operator, and the Service of its metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from navarch.project.manifests.model import (
    HEALTH_PORT,
    METRICS_PORT,
    WEBHOOK_CERTIFICATES,
    WEBHOOK_PORT,
    DeploymentModel,
    Json,
    ManifestObject,
)

_CONTROL_PLANE: Final = {"control-plane": "controller-manager"}
_USER: Final = 65532
_AFTER_DRAIN_SECONDS: Final = 15
"""What a pod may take beyond its drain: webhooks linger, events are sent, the Lease is released."""


def manager(model: DeploymentModel) -> Iterator[ManifestObject]:
    """Yields the Namespace, the Deployment and the Service of the metrics."""
    yield ManifestObject("manager/manager.yaml", _namespace(model))
    yield ManifestObject("manager/manager.yaml", _deployment(model))
    yield ManifestObject("manager/metrics_service.yaml", _metrics_service(model))


def _namespace(model: DeploymentModel) -> Json:
    """The labels make the API server refuse pods that demand more than the Deployment's."""
    level = "restricted"
    modes = {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "audit", "warn")}
    metadata = model.metadata(model.namespace, {**_CONTROL_PLANE, **modes}, namespaced=False)
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _deployment(model: DeploymentModel) -> Json:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": model.selector},
    }
    pod = {
        "serviceAccountName": model.named("controller-manager"),
        "terminationGracePeriodSeconds": math.ceil(model.operator.drain_seconds) + _AFTER_DRAIN_SECONDS,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [spread],
        "containers": [_container(model)],
    }
    if model.uses_cert_manager:
        secret = {"secretName": model.named("webhook-server-cert")}
        pod["volumes"] = [{"name": "webhook-certs", "secret": secret}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": model.metadata(model.named("controller-manager"), _CONTROL_PLANE),
        "spec": {
            "replicas": model.settings.replicas,
            "selector": {"matchLabels": model.selector},
            "template": {
                "metadata": {
                    "annotations": {"kubectl.kubernetes.io/default-container": "manager"},
                    "labels": model.selector,
                },
                "spec": pod,
            },
        },
    }


def _container(model: DeploymentModel) -> Json:
    container: Json = {
        "name": "manager",
        "image": model.settings.image,
        "args": list(model.flags),  # the image's entrypoint is the program: python -m <package>
        "env": _environment(model),
        "ports": [
            {"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "health"},
            "initialDelaySeconds": 15,
            "periodSeconds": 20,
        },
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": "health"},
            "initialDelaySeconds": 1,
            "periodSeconds": 5,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "500m", "memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    if model.has_webhooks:
        container["ports"].append({"name": "webhook", "containerPort": WEBHOOK_PORT, "protocol": "TCP"})
    if model.uses_cert_manager:
        container["volumeMounts"] = [{"name": "webhook-certs", "mountPath": WEBHOOK_CERTIFICATES, "readOnly": True}]
    return container


def _environment(model: DeploymentModel) -> list[Json]:
    found = [_from_pod("POD_IP", "status.podIP"), _from_pod("POD_NAMESPACE", "metadata.namespace")]
    if model.settings.watch_namespaces:
        found.append({"name": "WATCH_NAMESPACE", "value": ",".join(model.settings.watch_namespaces)})
    elif model.namespaced:
        found.append(_from_pod("WATCH_NAMESPACE", "metadata.namespace"))
    return [*found, *({"name": name, "value": value} for name, value in sorted(model.settings.environment.items()))]


def _from_pod(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _metrics_service(model: DeploymentModel) -> Json:
    ports: list[dict[str, Any]] = [{"name": "https", "port": METRICS_PORT, "protocol": "TCP", "targetPort": "metrics"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": model.metadata(model.metrics_service, _CONTROL_PLANE),
        "spec": {"selector": model.selector, "ports": ports},
    }
