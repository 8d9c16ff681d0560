"""Where webhooks are: at a URL, or behind a service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from navarch.cluster.server.pipeline.admission.objects import Objects
from navarch.cluster.server.pipeline.admission.webhooks.errors import CallError
from navarch.cluster.server.wire.request import Json

__all__ = ["Address", "Place", "ResolveService", "place_of", "service_addresses"]


class Address(NamedTuple):
    """Where to connect to."""

    host: str
    port: int


ResolveService = Callable[[str, str, int], Awaitable[Address]]
"""Where the port of a service (namespace, name, port) can be reached. Raises `CallError` with the reason if it cannot."""


class Place(NamedTuple):
    """A webhook's place: `url` is what is said of it; `service` is who answers there, if it is a service."""

    url: str
    service: tuple[str, str, int] | None

    @property
    def host(self) -> str:
        """The name that its certificate must have."""
        return f"{self.service[1]}.{self.service[0]}.svc" if self.service else ""


def place_of(configuration: Json) -> Place:
    """The place that a `clientConfig` names."""
    service = configuration.get("service")
    if not service:
        return Place(str(configuration.get("url") or ""), None)
    namespace, name, port = service["namespace"], service["name"], service.get("port") or 443
    path = str(service.get("path") or "").lstrip("/")
    return Place(f"https://{name}.{namespace}.svc:{port}/{path}", (namespace, name, port))


def service_addresses(objects: Objects) -> ResolveService:
    """Services by their cluster IP, or by the name that they stand for: what kube-apiserver itself does."""

    async def resolve(namespace: str, name: str, port: int) -> Address:
        service = await objects.get(objects.resource("", "v1", "services"), namespace, name)
        if service is None:
            raise CallError(f'service "{name}" not found')
        return _address(service["spec"], name, port)

    return resolve


def _address(spec: Json, name: str, port: int) -> Address:
    if spec.get("type") == "ExternalName":
        return Address(str(spec.get("externalName", "")), port)
    if all(each.get("port") != port for each in spec.get("ports") or ()):
        raise CallError(f'no service port {port} found for service "{name}"')
    if spec.get("clusterIP") in {None, "", "None"}:
        raise CallError(f'service "{name}" has no cluster IP')
    return Address(str(spec["clusterIP"]), port)
