"""`config/network-policy`: who reaches the operator's pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from navarch.project.manifests.model import METRICS_PORT, WEBHOOK_PORT, DeploymentModel, Json, ManifestObject


def network_policies(model: DeploymentModel) -> Iterator[ManifestObject]:
    """Yields a policy for the metrics and, with webhooks, one for these.

    A pod that some policy selects accepts only what a policy allows. Probes come from the node, which is always allowed; the
    API server calls webhooks from an address that no namespace or pod has, so that port is open to all.
    """
    scrapers = [{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}]
    policies = {"metrics": _policy(model, "metrics", METRICS_PORT, {"from": scrapers})}
    if model.has_webhooks:
        policies["webhook"] = _policy(model, "webhook", WEBHOOK_PORT, {})
    for name, policy in policies.items():
        yield ManifestObject(f"network-policy/allow-{name}-traffic.yaml", policy, model.settings.network_policy)


def _policy(model: DeploymentModel, purpose: str, port: int, source: dict[str, Any]) -> Json:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": model.metadata(model.named(f"allow-{purpose}-traffic")),
        "spec": {
            "podSelector": {"matchLabels": model.selector},
            "policyTypes": ["Ingress"],
            "ingress": [{**source, "ports": [{"port": port, "protocol": "TCP"}]}],
        },
    }
