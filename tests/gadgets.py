"""A custom kind for tests on a cluster, as a class and as the definition that is installed."""

from __future__ import annotations

import json
import urllib.request
from typing import Annotated, Any

import rig
from navarch.api import Dynamic, Kind, ListMap, Model, Resource, Spec, Status
from navarch.client import Client


class Part(Model):
    name: str
    count: int = 1


class GadgetSpec(Spec):
    size: int | None = None
    colour: str | None = None
    replicas: int | None = None
    parts: Annotated[list[Part] | None, ListMap("name")] = None


class GadgetStatus(Status):
    phase: str | None = None


class Gadget(Resource[GadgetSpec, GadgetStatus], group="test.example.com", version="v1"):
    """What tests make, change and delete."""


GADGET = Gadget.__kind__
CONFIG_MAP = Kind("", "v1", "ConfigMap", plural="configmaps")
EVENT = Kind("", "v1", "Event", plural="events")
"""The one kind that the API server does not cache: what etcd remembers of it is what counts."""

_CONDITION: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_PART: dict[str, Any] = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "count": {"type": "integer"}, "note": {"type": "string"}},
}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "minimum": 0},
                "colour": {"type": "string"},
                "replicas": {"type": "integer"},
                "hidden": {"type": "string"},
                "parts": {
                    "type": "array",
                    "items": _PART,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": {"type": "string"},
                "replicas": {"type": "integer"},
                "observedGeneration": {"type": "integer"},
                "conditions": {"type": "array", "items": _CONDITION},
            },
        },
    },
}
_VERSION: dict[str, Any] = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": _SCHEMA},
    "selectableFields": [{"jsonPath": ".spec.colour"}],
    "subresources": {
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
    },
}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.test.example.com"},
    "spec": {
        "group": "test.example.com",
        "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget", "shortNames": ["gd"]},
        "scope": "Namespaced",
        "versions": [_VERSION],
    },
}
"""It has `spec.hidden` and `note` in a part, which the class does not know."""


async def installed(client: Client) -> None:
    """Makes the kind known to the server; quick if it is already."""
    await client.install(DEFINITION)


def config_map(name: str, **fields: Any) -> Dynamic:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return Dynamic({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **fields})


def note(client: Client, name: str) -> Dynamic:
    """An Event in the client's namespace."""
    about = {"kind": "Namespace", "namespace": client.options.namespace, "name": client.options.namespace}
    return Dynamic({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": about})


def compact(cluster: rig.Cluster, revision: str) -> None:
    """Makes etcd forget everything before that revision."""
    body = json.dumps({"revision": revision, "physical": True}).encode()
    with urllib.request.urlopen(f"{cluster.etcd_url}/v3/kv/compaction", body, timeout=60) as answer:
        assert answer.status == 200, answer.read()
