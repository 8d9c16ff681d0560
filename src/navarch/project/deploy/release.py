"""`Release`: what one revision deploys, as data that any later command can work with, without the project's code."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from navarch.api.json_patch import copy_json
from navarch.api.names import DNS_LABEL
from navarch.errors import ConfigError
from navarch.oci.reference import Reference
from navarch.operator import Operator, WebhookServer
from navarch.project.generate import Deployment
from navarch.project.kustomize import installed
from navarch.project.manifests.model import Json
from navarch.project.project import Project
from navarch.webhook.configurations import MUTATING, VALIDATING

__all__ = ["CRD", "MANAGED_BY", "OWNER", "ObjectId", "Release", "release_of", "with_overrides"]

CRD: Final = "CustomResourceDefinition"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
OWNER: Final = "navarch.dev/deployment"
"""The annotation of a deployed object: namespace and name of its deployment. CRDs have none: see `release_of`."""


class ObjectId(NamedTuple):
    """What tells an object from all others; its version is not a part of it."""

    group: str
    kind: str
    namespace: str
    name: str

    @staticmethod
    def of(found: Json) -> ObjectId:
        """Returns the identity of a manifest or of an object."""
        metadata = found["metadata"]
        group = found["apiVersion"].rpartition("/")[0]
        return ObjectId(group, found["kind"], metadata.get("namespace") or "", metadata["name"])

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class Release(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The objects of a deployment, and what its operator writes itself when it runs."""

    project: str
    namespace: str
    operator: str
    """The operator's name, which is also the field manager of its CRDs."""
    image: str
    deployment: str
    """The name of the Deployment."""
    selector: dict[str, str]
    """The labels of its pods."""
    lease: str = ""
    """The name of the Lease of the leader; empty without an election."""
    lease_namespace: str = ""
    converted: list[str] = []
    """The CRDs whose conversion the operator adds when it runs."""
    registered: list[str] = []
    """The kinds of the webhook configurations that the operator registers under its own name."""
    certificates: str = ""
    """The Secret with the certificates that the operator issues; empty if others issue them."""
    objects: list[dict[str, Any]]
    """In the order in which they depend on each other."""

    @property
    def owner(self) -> str:
        """Returns the value of the annotation of its objects."""
        return f"{self.namespace}/{self.project}"

    @property
    def crds(self) -> list[Json]:
        """Returns the CRDs."""
        return [each for each in self.objects if each["kind"] == CRD]

    @property
    def webhook_configurations(self) -> list[tuple[str, str]]:
        """Returns kind and name of the webhook configurations: the registered ones, and those among the objects."""
        kinds = {MUTATING.kind, VALIDATING.kind}
        applied = [(each["kind"], each["metadata"]["name"]) for each in self.objects if each["kind"] in kinds]
        return [*((kind, self.operator) for kind in self.registered), *applied]

    def with_image(self, image: str) -> Release:
        """Returns the release with another image of the operator."""
        objects: list[Json] = [copy_json(each) for each in self.objects]
        for each in objects:
            if (each["kind"], each["metadata"]["name"]) == ("Deployment", self.deployment):
                _manager(each)["image"] = image
        return msgspec.structs.replace(self, image=image, objects=objects)

    @property
    def written(self) -> list[Json]:
        """Returns what the operator writes for itself: objects with apiVersion, kind and metadata alone."""
        found = [_identity(MUTATING.api_version, kind, self.operator) for kind in self.registered]
        if self.lease:
            found.append(_identity("coordination.k8s.io/v1", "Lease", self.lease, self.lease_namespace))
        if self.certificates:
            found.append(_identity("v1", "Secret", self.certificates, self.namespace))
        return found


def _identity(api_version: str, kind: str, name: str, namespace: str = "") -> Json:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def with_overrides(project: Project, *, image: str = "", namespace: str = "") -> Project:
    """Returns the project with another image or namespace in its settings. Raises `InvalidValueError` for invalid ones."""
    changed: dict[str, str] = {}
    if image:
        Reference.parse(image)
        changed["image"] = image
    if namespace:
        changed["namespace"] = DNS_LABEL.check(namespace, where="--namespace")
    return dataclasses.replace(project, settings=msgspec.structs.replace(project.settings, **changed))


def release_of(deployment: Deployment, *, image: str = "") -> Release:
    """Returns the release of a deployment, with its objects marked; `image` also overrides the user's patches.

    CRDs are not marked: the operator and `navarch install` apply the same ones. Raises `ConfigError` if a patch has removed
    the Deployment of the operator.
    """
    model = deployment.model
    objects = [_marked(each, f"{model.namespace}/{model.name}") for each in installed(deployment.manifests)]
    name = model.named("controller-manager")
    found = next((each for each in objects if (each["kind"], each["metadata"]["name"]) == ("Deployment", name)), None)
    if found is None:
        raise ConfigError(
            f"config/patches: expected the deployment to have the Deployment {name}, got none; restore it"
        )
    operator = model.operator
    release = Release(
        project=model.name,
        namespace=model.namespace,
        operator=operator.name,
        image=_manager(found)["image"],
        deployment=name,
        selector=found["spec"]["selector"]["matchLabels"],
        lease=operator.election.name if operator.election else "",
        lease_namespace=(operator.election.namespace or model.namespace) if operator.election else "",
        converted=sorted({pair.old.__kind__.resource for pair in operator.conversions}),
        registered=[] if model.uses_cert_manager else list(_registered(operator)),
        certificates=_certificates(operator) if model.has_webhooks and not model.uses_cert_manager else "",
        objects=objects,
    )
    return release.with_image(image) if image else release


def _manager(deployment: Json) -> Json:
    """Returns the operator's container."""
    containers: list[Json] = deployment["spec"]["template"]["spec"]["containers"]
    return next((each for each in containers if each["name"] == "manager"), containers[0])


def _marked(manifest: Json, owner: str) -> Json:
    found: Json = copy_json(manifest)
    if found["kind"] != CRD:
        metadata = found["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), MANAGED_BY: "navarch"}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), OWNER: owner}
    return found


def _registered(operator: Operator) -> Iterable[str]:
    if operator.webhooks == "install":
        for kind, is_mutating in ((MUTATING, True), (VALIDATING, False)):
            if any(each.is_mutating is is_mutating for each in operator.admission_webhooks):
                yield kind.kind


def _certificates(operator: Operator) -> str:
    server = operator.webhook_server
    declared = server.certificates.secret if isinstance(server, WebhookServer) else ""
    return declared or f"{operator.name}-webhook-tls"
