"""A request as an AdmissionRequest has it."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.pipeline.admission.matching import Shown
from navarch.cluster.server.pipeline.authentication.users import user_info
from navarch.cluster.server.wire.request import Json

__all__ = ["described", "review_of"]

_OPTIONS: Final = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


def review_of(attributes: Attributes, shown: Shown, uid: str) -> Json:
    """The AdmissionReview that a webhook gets."""
    request = described(attributes, shown.resource)
    request = {"uid": uid, **request, "object": shown.value, "oldObject": shown.old}
    request["dryRun"] = request.pop("dryRun")
    request["options"] = request.pop("options")
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def described(attributes: Attributes, resource: ResourceType) -> Json:
    """What is said about a request, shown as one for `resource`, beside its objects."""
    subresource = attributes.subresource
    said: Json = {
        "kind": _kind(attributes, resource),
        "resource": _resource(resource),
        "subResource": subresource,
        "requestKind": _kind(attributes, attributes.resource),
        "requestResource": _resource(attributes.resource),
        "requestSubResource": subresource,
        "name": attributes.name,
        "namespace": _namespace(attributes),
        "operation": attributes.operation,
    }
    said = {key: value for key, value in said.items() if value}
    said["userInfo"] = user_info(attributes.user)
    said["dryRun"] = attributes.dry_run
    said["options"] = _options(attributes)
    return said


def _kind(attributes: Attributes, resource: ResourceType) -> Json:
    """What a subresource takes is of a kind of its own, which its objects tell."""
    value = attributes.value or attributes.old
    if attributes.subresource and value and value.get("kind") not in {None, resource.kind}:
        group, _, version = str(value.get("apiVersion", "")).rpartition("/")
        return {"group": group, "version": version, "kind": value["kind"]}
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _resource(resource: ResourceType) -> Json:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def _namespace(attributes: Attributes) -> str:
    """A namespace is said to be in itself."""
    if attributes.resource.plural == "namespaces" and not attributes.resource.group:
        return attributes.name
    return attributes.namespace


def _options(attributes: Attributes) -> Json | None:
    """A patch is an update, or a creation, by then; that it was forced is nobody's business."""
    kind = _OPTIONS.get(attributes.operation)
    if kind is None:
        return None
    rest = {key: value for key, value in attributes.options.items() if key not in {"kind", "apiVersion", "force"}}
    return {"kind": kind, "apiVersion": "meta.k8s.io/v1", **rest}
