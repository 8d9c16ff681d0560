"""Where webhooks are: at a URL, or behind a service."""

from __future__ import annotations

from navarch.cluster.server.pipeline.admission.objects import Objects
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.webhook_client import ResolveService, ServiceEndpoint, WebhookCallError


def service_addresses(objects: Objects) -> ResolveService:
    """Services by their cluster IP, or by the name that they stand for: what kube-apiserver itself does."""

    async def resolve(namespace: str, name: str, port: int) -> ServiceEndpoint:
        service = await objects.get(objects.resource("", "v1", "services"), namespace, name)
        if service is None:
            raise WebhookCallError(f'service "{name}" not found')
        return _address(service["spec"], name, port)

    return resolve


def _address(spec: Json, name: str, port: int) -> ServiceEndpoint:
    if spec.get("type") == "ExternalName":
        return ServiceEndpoint(str(spec.get("externalName", "")), port)
    if all(each.get("port") != port for each in spec.get("ports") or ()):
        raise WebhookCallError(f'no service port {port} found for service "{name}"')
    if spec.get("clusterIP") in {None, "", "None"}:
        raise WebhookCallError(f'service "{name}" has no cluster IP')
    return ServiceEndpoint(str(spec["clusterIP"]), port)
