"""Computes the files of volumes: ConfigMaps, Secrets, the downward API and service account tokens."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from navarch._base.clock import Clock
from navarch.api import Quantity
from navarch.client import Client
from navarch.cluster.nodes.volumes.atomic_writer import FileProjection
from navarch.errors import ContainerError, NotFound
from navarch.k8s.authentication.v1 import BoundObjectReference, TokenRequest, TokenRequestSpec
from navarch.k8s.core.v1 import (
    ConfigMap,
    Container,
    DownwardAPIVolumeFile,
    KeyToPath,
    Pod,
    ResourceFieldSelector,
    Secret,
    ServiceAccount,
    ServiceAccountTokenProjection,
    Volume,
    VolumeProjection,
)

_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")
_MODE: Final = 0o644
_TOKEN_SECONDS: Final = 3600
_RENEWED_AFTER: Final = 0.8
Files = dict[str, FileProjection]


class PodPlacement:
    """The addresses of a pod and its node, and the node's allocatable resources, before the status has them."""

    def __init__(self, node_address: str, address: str, allocatable: Mapping[str, str]) -> None:
        self.node_address = node_address
        self.address = address
        self.allocatable = allocatable


def field_value(pod: Pod, placement: PodPlacement, path: str) -> str:
    """Returns the text of a field for the environment or a file; raises `ContainerError` for an unsupported field."""
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript is not None:
        return str(getattr(pod.metadata, subscript[1]).get(subscript[2], ""))
    if path in {"metadata.labels", "metadata.annotations"}:
        return _lines(getattr(pod.metadata, path.removeprefix("metadata.")))
    plain = {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.metadata.uid,
        "spec.nodeName": pod.spec.node_name or "",
        "spec.serviceAccountName": pod.spec.service_account_name or "",
        "status.hostIP": placement.node_address,
        "status.hostIPs": placement.node_address,
        "status.podIP": placement.address,
        "status.podIPs": placement.address,
    }
    if path not in plain:
        raise ContainerError(f"unsupported fieldPath: {path}")
    return plain[path]


def _lines(values: Mapping[str, str]) -> str:
    """Returns labels or annotations one per line, quoted as Go quotes."""
    return "\n".join(f"{key}={_quoted(values[key])}" for key in sorted(values))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def resource_value(
    containers: Mapping[str, Container], own: str, selector: ResourceFieldSelector, placement: PodPlacement
) -> str:
    """Returns a container's limit or request in units of the divisor; a missing limit is the node's allocatable."""
    container = containers[selector.container_name or own]
    kind, _, name = selector.resource.partition(".")
    known = (getattr(container.resources, kind, None) if container.resources else None) or {}
    value = known.get(name)
    if value is None:
        value = Quantity(placement.allocatable.get(name, "0") if kind == "limits" else "0")
    divisor = selector.divisor
    unit = divisor if divisor is not None and divisor.decimal else Quantity("1")
    return str(math.ceil(value.decimal / unit.decimal))


class VolumeProjections:
    """Reads the sources of one pod's volumes. Raises `ContainerError` for a source that does not exist and is not
    optional.
    """

    def __init__(self, client: Client, placement: PodPlacement, clock: Clock) -> None:
        self._client = client
        self._placement = placement
        self._clock = clock
        self._tokens: dict[tuple[str, str], tuple[str, datetime]] = {}

    async def files(self, pod: Pod, volume: Volume) -> Files:
        """Returns the current files of a volume."""
        if volume.config_map is not None:
            source = volume.config_map
            values = await self._config_map(pod, source.name or "", optional=source.optional is True)
            return _chosen("ConfigMap", values, source.items, source.default_mode, optional=source.optional is True)
        if volume.secret is not None:
            secret = volume.secret
            values = await self._secret(pod, secret.secret_name or "", optional=secret.optional is True)
            return _chosen("Secret", values, secret.items, secret.default_mode, optional=secret.optional is True)
        if volume.downward_api is not None:
            return self._downward(pod, volume.downward_api.items or [], volume.downward_api.default_mode)
        assert volume.projected is not None
        found: Files = {}
        for projection in volume.projected.sources or []:
            found |= await self._projected(pod, projection, volume.projected.default_mode)
        return found

    def seconds_until_renewal(self) -> float | None:
        """Returns the seconds until a token must be renewed; None if there is no token."""
        ends = [due for _, due in self._tokens.values()]
        return max((min(ends) - self._clock.now()).total_seconds(), 0.0) if ends else None

    async def _projected(self, pod: Pod, source: VolumeProjection, mode: int | None) -> Files:
        if source.config_map is not None:
            part = source.config_map
            values = await self._config_map(pod, part.name or "", optional=part.optional is True)
            return _chosen("ConfigMap", values, part.items, mode, optional=part.optional is True)
        if source.secret is not None:
            secret = source.secret
            values = await self._secret(pod, secret.name or "", optional=secret.optional is True)
            return _chosen("Secret", values, secret.items, mode, optional=secret.optional is True)
        if source.downward_api is not None:
            return self._downward(pod, source.downward_api.items or [], mode)
        if source.service_account_token is not None:
            token = await self._token(pod, source.service_account_token)
            return {source.service_account_token.path: _token_file(token, pod, mode)}
        raise ContainerError("unsupported source of a projected volume")

    async def _config_map(self, pod: Pod, name: str, *, optional: bool) -> Mapping[str, bytes]:
        try:
            found = await self._client.get(ConfigMap, name, namespace=pod.namespace)
        except NotFound as error:
            if optional:
                return {}
            raise ContainerError(f'configmap "{name}" not found') from error
        return {key: text.encode() for key, text in (found.data or {}).items()} | (found.binary_data or {})

    async def _secret(self, pod: Pod, name: str, *, optional: bool) -> Mapping[str, bytes]:
        try:
            return (await self._client.get(Secret, name, namespace=pod.namespace)).data or {}
        except NotFound as error:
            if optional:
                return {}
            raise ContainerError(f'secret "{name}" not found') from error

    def _downward(self, pod: Pod, items: Sequence[DownwardAPIVolumeFile], mode: int | None) -> Files:
        containers = {each.name: each for each in [*pod.spec.containers, *(pod.spec.init_containers or [])]}
        found = {}
        for item in items:
            if item.field_ref is not None:
                text = field_value(pod, self._placement, item.field_ref.field_path)
            elif item.resource_field_ref is not None:
                text = resource_value(containers, "", item.resource_field_ref, self._placement)
            else:
                raise ContainerError(f"expected a field for {item.path}, got none")
            found[item.path] = FileProjection(text.encode(), item.mode or mode or _MODE)
        return found

    async def _token(self, pod: Pod, source: ServiceAccountTokenProjection) -> str:
        """Returns a service account token; requests a new one after four fifths of its lifetime."""
        audience, seconds = source.audience or "", source.expiration_seconds or _TOKEN_SECONDS
        known = self._tokens.get((source.path, audience))
        if known is not None and known[1] > self._clock.now():
            return known[0]
        pod_reference = BoundObjectReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.metadata.uid)
        spec = TokenRequestSpec(
            audiences=[audience] if audience else [], expiration_seconds=seconds, bound_object_ref=pod_reference
        )
        account = pod.spec.service_account_name or "default"
        request = TokenRequest(spec=spec)
        try:
            made = await self._client.create_subresource(
                ServiceAccount, account, "token", request, namespace=pod.namespace
            )
        except NotFound as error:
            raise ContainerError(f"failed to fetch token: {error.message}") from error
        token = made.status.token or ""
        due = self._clock.now() + timedelta(seconds=seconds * _RENEWED_AFTER)
        self._tokens[source.path, audience] = (token, due)
        return token


def _chosen(
    kind: str, values: Mapping[str, bytes], items: Sequence[KeyToPath] | None, mode: int | None, *, optional: bool
) -> Files:
    """Returns a file for each key, or for the keys in `items` at their paths."""
    if items is None:
        return {key: FileProjection(value, mode or _MODE) for key, value in values.items()}
    found = {}
    for item in items:
        if item.key in values:
            found[item.path] = FileProjection(values[item.key], item.mode or mode or _MODE)
        elif not optional:
            raise ContainerError(f"{kind.lower()} references non-existent config key: {item.key}")
    return found


def _token_file(token: str, pod: Pod, mode: int | None) -> FileProjection:
    """Returns the token as a file that only the pod's group or user can read, if the pod names one."""
    context = pod.spec.security_context
    group, user = context.fs_group if context else None, _user_of(pod)
    if group is None and user is None:
        return FileProjection(token.encode(), mode or _MODE)
    owner = -1 if user is None else user
    return (
        FileProjection(token.encode(), 0o600, owner)
        if group is None
        else FileProjection(token.encode(), 0o640, owner, group)
    )


def _user_of(pod: Pod) -> int | None:
    """Returns the one user of all containers; None if there is none, or several."""
    context = pod.spec.security_context
    shared = context.run_as_user if context else None
    found = {
        shared
        if each.security_context is None or each.security_context.run_as_user is None
        else each.security_context.run_as_user
        for each in (*pod.spec.containers, *(pod.spec.init_containers or ()))
    }
    return found.pop() if len(found) == 1 else None
