"""Computes the environment of a container from all of its sources, and expands `$(NAME)` as Kubernetes does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from navarch.client import Client
from navarch.cluster.nodes.pods.status import ephemeral_containers
from navarch.cluster.nodes.volumes.projections import PodPlacement, field_value, resource_value
from navarch.errors import ContainerError, NotFound
from navarch.k8s.core.v1 import ConfigMap, Container, EnvFromSource, EnvVar, EnvVarSource, Pod, Secret, Service

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")
_NAME: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


def expanded(text: str, values: Mapping[str, str]) -> str:
    """Replaces the references in the text; `$$` becomes `$`, and an unknown reference stays.

    >>> expanded("$(HOST):$(PORT) $$(HOST) $(NOBODY)", {"HOST": "db", "PORT": "80"})
    'db:80 $(HOST) $(NOBODY)'
    """

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return values.get(found[1], found[0])

    # No reference ends behind the last parenthesis; looking for its end from each place would take time by the square.
    last = text.rfind(")") + 1
    return _REFERENCE.sub(value, text[:last]) + text[last:].replace("$$", "$")


class Environment:
    """Computes the environment of one container. Raises `ContainerError` for a missing source."""

    def __init__(self, client: Client, pod: Pod, placement: PodPlacement, services: Sequence[Service]) -> None:
        self._client = client
        self._pod = pod
        self._placement = placement
        self._services = services
        known = [*pod.spec.containers, *(pod.spec.init_containers or []), *ephemeral_containers(pod)]
        self._containers = {each.name: each for each in known}

    async def of(self, container: Container) -> dict[str, str]:
        """Returns all variables: those of services first; later sources override earlier ones."""
        links = self._pod.spec.enable_service_links is not False
        services = service_variables(self._services, self._pod.namespace, links=links)
        found: dict[str, str] = {}
        for source in container.env_from or []:
            found |= await self._from(source)
        for variable in container.env or []:
            await self._add(variable, container, found, services)
        return {**services, **found}

    async def _from(self, source: EnvFromSource) -> dict[str, str]:
        prefix = source.prefix or ""
        reference = source.config_map_ref or source.secret_ref
        if reference is None:
            return {}
        if source.config_map_ref is not None:
            values = await self._config_map(reference.name or "", optional=reference.optional is True)
        else:
            values = await self._secret(reference.name or "", optional=reference.optional is True)
        return {prefix + key: value for key, value in (values or {}).items() if _NAME.fullmatch(prefix + key)}

    async def _add(
        self, variable: EnvVar, container: Container, found: dict[str, str], services: Mapping[str, str]
    ) -> None:
        if variable.value_from is None:
            found[variable.name] = expanded(variable.value or "", {**services, **found})
            return
        value = await self._value(variable.value_from, container)
        if value is not None:
            found[variable.name] = value

    async def _value(self, source: EnvVarSource, container: Container) -> str | None:
        if source.field_ref is not None:
            return field_value(self._pod, self._placement, source.field_ref.field_path)
        if source.resource_field_ref is not None:
            return resource_value(self._containers, container.name, source.resource_field_ref, self._placement)
        reference = source.config_map_key_ref or source.secret_key_ref
        if reference is None:
            raise ContainerError("unsupported source of an environment variable")
        kind = "configmap" if source.config_map_key_ref is not None else "secret"
        name, optional = reference.name or "", reference.optional is True
        read = self._config_map if kind == "configmap" else self._secret
        values = await read(name, optional=optional)
        if values is None or (optional and reference.key not in values):
            return None
        if reference.key not in values:
            what = "ConfigMap" if kind == "configmap" else "Secret"
            raise ContainerError(f"couldn't find key {reference.key} in {what} {self._pod.namespace}/{name}")
        return values[reference.key]

    async def _config_map(self, name: str, *, optional: bool) -> dict[str, str] | None:
        try:
            return (await self._client.get(ConfigMap, name, namespace=self._pod.namespace)).data or {}
        except NotFound as error:
            if optional:
                return None
            raise ContainerError(f'configmap "{name}" not found') from error

    async def _secret(self, name: str, *, optional: bool) -> dict[str, str] | None:
        try:
            found = await self._client.get(Secret, name, namespace=self._pod.namespace)
        except NotFound as error:
            if optional:
                return None
            raise ContainerError(f'secret "{name}" not found') from error
        return {key: value.decode(errors="replace") for key, value in (found.data or {}).items()}


def service_variables(services: Sequence[Service], namespace: str, *, links: bool) -> dict[str, str]:
    """Returns the variables of services, as Docker links had them; without `links` only those of the API server.

    >>> from navarch.k8s.core.v1 import ServicePort, ServiceSpec
    >>> spec = ServiceSpec(cluster_ip="127.0.0.9", ports=[ServicePort(port=80, protocol="TCP")])
    >>> service_variables([Service(name="web", namespace="a", spec=spec)], "a", links=True)["WEB_PORT"]
    'tcp://127.0.0.9:80'
    """
    found: dict[str, str] = {}
    for service in services:
        master = (service.namespace, service.name) == ("default", "kubernetes")
        address = service.spec.cluster_ip
        if address and address != "None" and (master or (links and service.namespace == namespace)):
            found |= _variables(service, address)
    return found


def _variables(service: Service, address: str) -> dict[str, str]:
    name = service.name.upper().replace("-", "_")
    ports = service.spec.ports or []
    found = {f"{name}_SERVICE_HOST": address}
    for index, port in enumerate(ports):
        protocol = (port.protocol or "TCP").lower()
        url, link = f"{protocol}://{address}:{port.port}", f"{name}_PORT_{port.port}_{protocol.upper()}"
        if index == 0:
            found |= {f"{name}_SERVICE_PORT": str(port.port), f"{name}_PORT": url}
        if port.name:
            found[f"{name}_SERVICE_PORT_{port.name.upper().replace('-', '_')}"] = str(port.port)
        found |= {link: url, f"{link}_PROTO": protocol, f"{link}_PORT": str(port.port), f"{link}_ADDR": address}
    return found
