"""`config/prometheus`: how the Prometheus operator scrapes the metrics, and when it raises an alert."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from navarch.project.manifests.alerts import alert_rules
from navarch.project.manifests.model import DeploymentModel, Json, ManifestObject

_API_VERSION: Final = "monitoring.coreos.com/v1"


def monitoring(model: DeploymentModel) -> Iterator[ManifestObject]:
    """Yields the ServiceMonitor and the PrometheusRule."""
    is_installed = model.settings.prometheus
    yield ManifestObject("prometheus/monitor.yaml", _monitor(model), is_installed)
    rules = {
        "apiVersion": _API_VERSION,
        "kind": "PrometheusRule",
        "metadata": model.metadata(model.named("controller-manager-alerts")),
        "spec": alert_rules(model),
    }
    yield ManifestObject("prometheus/rules.yaml", rules, is_installed)


def _monitor(model: DeploymentModel) -> Json:
    """The operator signs the certificate of its metrics itself, so Prometheus cannot check it; a token is demanded of it."""
    endpoint = {
        "path": "/metrics",
        "port": "https",
        "scheme": "https",
        "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "tlsConfig": {"insecureSkipVerify": True},
    }
    return {
        "apiVersion": _API_VERSION,
        "kind": "ServiceMonitor",
        "metadata": model.metadata(model.named("controller-manager-metrics-monitor")),
        "spec": {"endpoints": [endpoint], "selector": {"matchLabels": model.selector}},
    }
