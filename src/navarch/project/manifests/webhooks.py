"""`config/webhook` and `config/certmanager`: the Service of the webhooks and, with cert-manager, their registration."""

from __future__ import annotations

from collections.abc import Iterator

from navarch.operator import configurations_of
from navarch.project.manifests.model import DeploymentModel, Json, ManifestObject


def webhooks(model: DeploymentModel) -> Iterator[ManifestObject]:
    """Yields what the webhooks need; nothing for an operator without webhooks.

    With its own certificates the operator registers its webhooks itself: it knows its CA, and repairs what others change.
    """
    if not model.has_webhooks:
        return
    yield ManifestObject("webhook/service.yaml", _service(model))
    if model.uses_cert_manager:
        certificate = f"{model.namespace}/{model.certificate}"
        for found in configurations_of(
            model.operator, namespace=model.namespace, service=model.webhook_service, cert_manager=certificate
        ):
            found["metadata"]["labels"] = model.labels
            yield ManifestObject("webhook/manifests.yaml", found)
        yield ManifestObject("certmanager/issuer.yaml", _issuer(model))
        yield ManifestObject("certmanager/certificate.yaml", _certificate(model))


def _service(model: DeploymentModel) -> Json:
    ports = [{"name": "webhook", "port": 443, "protocol": "TCP", "targetPort": "webhook"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": model.metadata(model.webhook_service),
        "spec": {"selector": model.selector, "ports": ports},
    }


def _issuer(model: DeploymentModel) -> Json:
    return {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": model.metadata(model.named("selfsigned-issuer")),
        "spec": {"selfSigned": {}},
    }


def _certificate(model: DeploymentModel) -> Json:
    host = f"{model.webhook_service}.{model.namespace}.svc"
    return {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": model.metadata(model.certificate),
        "spec": {
            "dnsNames": [host, f"{host}.cluster.local"],
            "issuerRef": {"kind": "Issuer", "name": model.named("selfsigned-issuer")},
            "secretName": model.named("webhook-server-cert"),
        },
    }
