"""Kinds from OpenAPI v3 documents, as API servers publish them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from navarch.k8s.published import published
from navarch.project.models import kinds_in_openapi, model_files, write_models
from navarch.schema import schema_of
from project.models.sameness import GeneratedModels, imported

GROUP = {"group": "store.example.com", "version": "v1"}
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
SHELF = {"type": "object", "properties": {"name": {"type": "string"}, "inner": {"$ref": "#/components/schemas/Shelf"}}}
SHOP = {
    "type": "object",
    "description": "A shop.",
    "required": ["spec"],
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [{"$ref": f"#/components/schemas/{META}.ObjectMeta"}], "description": "The metadata."},
        "spec": {
            "type": "object",
            "default": {},
            "properties": {
                "shelves": {
                    "type": "array",
                    "items": {"allOf": [{"$ref": "#/components/schemas/Shelf"}], "default": {}},
                },
                "since": {"$ref": f"#/components/schemas/{META}.Time"},
                "tills": {"type": "integer", "format": "int32", "minimum": 1},
            },
        },
    },
    "x-kubernetes-group-version-kind": [{**GROUP, "kind": "Shop"}],
}
PLACE = "/apis/store.example.com/v1"
POST = {"post": {"x-kubernetes-group-version-kind": {**GROUP, "kind": "Shop"}}}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.0",
    "paths": {
        f"{PLACE}/shops": {"get": {}},
        f"{PLACE}/namespaces/{{namespace}}/shops": POST,
        f"{PLACE}/namespaces/{{namespace}}/shops/{{name}}": {"get": {}},
        f"{PLACE}/namespaces/{{namespace}}/shops/{{name}}/status": {"get": {}},
    },
    "components": {"schemas": {"com.example.Shop": SHOP, "Shelf": SHELF, f"{META}.ObjectMeta": {"type": "object"}}},
}


@pytest.fixture
def models(tmp_path: Path) -> Iterator[GeneratedModels]:
    """The classes of the document."""
    write_models(tmp_path, model_files(kinds_in_openapi("shop.json", DOCUMENT)))
    with imported(tmp_path) as found:
        yield found


def test_paths_say_the_names_and_the_scope(models: GeneratedModels) -> None:
    """The plural, whether it has namespaces, and whether it has a status."""
    kind = models.class_of("store.example.com", "v1", "Shop").__kind__
    assert (kind.plural, kind.namespaced, kind.has_status) == ("shops", True, True)


def test_references_are_resolved(models: GeneratedModels) -> None:
    """A schema that holds itself ends in an open object; metadata is the server's business."""
    made = schema_of(models.class_of("store.example.com", "v1", "Shop"), description_limit=0)
    spec = made["properties"]["spec"]["properties"]
    open_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    shelf = {"type": "object", "properties": {"name": {"type": "string"}, "inner": open_object}, "default": {}}
    assert made["properties"]["metadata"] == {"type": "object"}
    assert made["required"] == ["spec"]
    assert spec == {
        "shelves": {"type": "array", "items": shelf},
        "since": {"type": "string", "format": "date-time"},
        "tills": {"type": "integer", "format": "int32", "minimum": 1},
    }


def test_a_document_of_kubernetes_itself_can_be_read() -> None:
    """Every kind with a path of its own, and no lists, options or reviews of others."""
    kinds = kinds_in_openapi("apps.json", published().document("apis/apps/v1"))
    assert sorted(each.kind for each in kinds) == [
        "ControllerRevision",
        "DaemonSet",
        "Deployment",
        "ReplicaSet",
        "StatefulSet",
    ]
    assert {each.kind for each in kinds if not each.has_status} == {"ControllerRevision"}
