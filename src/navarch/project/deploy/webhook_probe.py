"""Whether the webhooks of a deployed operator answer: they are registered, trusted, have endpoints, and serve a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from navarch.api import Dynamic, Kind
from navarch.client import Client
from navarch.errors import ApiError, NotFound
from navarch.project.deploy.release import Release
from navarch.webhook.configurations import MUTATING, VALIDATING

__all__ = ["webhook_obstacle"]

_CRDS: Final = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
_SLICES: Final = Kind("discovery.k8s.io", "v1", "EndpointSlice", plural="endpointslices")
_KINDS: Final = {MUTATING.kind: MUTATING, VALIDATING.kind: VALIDATING}
_WITHOUT_SIDE_EFFECTS: Final = frozenset({"None", "NoneOnDryRun"})
_UNANSWERED: Final = ("failed calling webhook", "failed to call webhook", "conversion webhook for")


async def webhook_obstacle(client: Client, release: Release) -> str:
    """Returns why a webhook does not answer yet; empty if all of them do."""
    for kind, name in release.webhook_configurations:
        try:
            found = await client.get(_KINDS[kind], name)
        except NotFound:
            return f"the operator has not registered its {kind} {name} yet"
        for entry in found.get("webhooks") or ():
            if obstacle := await _of_entry(client, entry):
                return obstacle
    for name in release.converted:
        if obstacle := await _of_conversion(client, name):
            return obstacle
    return ""


async def _of_entry(client: Client, entry: Mapping[str, Any]) -> str:
    name, config = entry["name"], entry["clientConfig"]
    if not config.get("caBundle"):
        return f"webhook {name} has no CA bundle yet"
    if obstacle := await _of_service(client, config):
        return f"webhook {name}: {obstacle}"
    if entry.get("sideEffects") in _WITHOUT_SIDE_EFFECTS:
        for sample in await _samples(client, entry):
            if obstacle := await _refused(client, sample):
                return f"webhook {name}: {obstacle}"
    return ""


async def _of_service(client: Client, config: Mapping[str, Any]) -> str:
    service = config.get("service")
    if not service:
        return ""
    labels = {"kubernetes.io/service-name": service["name"]}
    slices = await client.list(_SLICES, namespace=service["namespace"], labels=labels)
    ready = [
        each
        for found in slices
        for each in found.get("endpoints") or ()
        if (each.get("conditions") or {}).get("ready") is not False
    ]
    return "" if ready else f"Service {service['namespace']}/{service['name']} has no ready endpoint"


async def _samples(client: Client, entry: Mapping[str, Any]) -> list[Dynamic]:
    """Returns an object of each kind whose creation the webhook is called for."""
    config = entry["clientConfig"].get("service") or {}
    found = []
    for group, version, plural in _created(entry):
        api_version = f"{group}/{version}" if group else version
        try:
            served = await client.discovery.resources(api_version)
        except NotFound:
            continue
        for resource in served:
            if resource.kind.plural == plural:
                metadata = {"name": "navarch-probe"}
                if resource.kind.namespaced:
                    metadata["namespace"] = config.get("namespace") or client.options.namespace
                found.append(
                    Dynamic({"apiVersion": api_version, "kind": resource.kind.kind, "metadata": metadata, "spec": {}})
                )
    return found


def _created(entry: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for rule in entry.get("rules") or ():
        if {"CREATE", "*"} & {*rule["operations"]}:
            for group in rule["apiGroups"]:
                for version in rule["apiVersions"]:
                    for plural in rule["resources"]:
                        if not {"*"} & {group, version, plural} and "/" not in plural:
                            yield group, version, plural


async def _refused(client: Client, sample: Dynamic) -> str:
    """Creates the object as a dry run: any answer but a failed call shows that the webhook was reached, or is not asked."""
    try:
        await client.using(dry_run=True, field_validation="Ignore").create(sample)
    except ApiError as error:
        if any(each in error.message for each in _UNANSWERED):
            return f"it does not answer: {error.message}"
    return ""


async def _of_conversion(client: Client, name: str) -> str:
    try:
        found = await client.get(_CRDS, name)
    except NotFound:
        return f"CRD {name} does not exist"
    config = ((found["spec"].get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
    if not config.get("caBundle"):
        return f"the operator has not published the conversion of CRD {name} yet"
    if obstacle := await _of_service(client, config):
        return f"the conversion of CRD {name}: {obstacle}"
    spec = found["spec"]
    for version in spec["versions"]:
        if version["served"]:
            kind = Kind(spec["group"], version["name"], spec["names"]["kind"], plural=spec["names"]["plural"])
            try:
                await (
                    client.list(kind, namespace="*" if spec["scope"] == "Namespaced" else None, page_size=1)
                    .pages()
                    .next()
                )
            except ApiError as error:
                if any(each in error.message for each in _UNANSWERED):
                    return f"the conversion of CRD {name} does not answer: {error.message}"
    return ""
