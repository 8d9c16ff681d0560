"""CRDs and documents that no classes can be generated from: each with the place and the remedy."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from navarch.errors import ConfigError
from navarch.project.models import kinds_in, kinds_in_openapi, model_files

SHOP: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "shops.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Shop", "plural": "shops"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}},
            }
        ],
    },
}


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """The CRD after a change."""
    manifest = copy.deepcopy(SHOP)
    change(manifest)
    return manifest


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (
            changed(lambda crd: crd.update(apiVersion="apiextensions.k8s.io/v1beta1")),
            "a.yaml: CRD shops.example.com: expected apiVersion apiextensions.k8s.io/v1, got apiextensions.k8s.io/v1beta1",
        ),
        (
            changed(lambda crd: crd["spec"]["versions"][0].pop("schema")),
            "shops.example.com, v1: expected a schema with properties, got no schema: .* leave it out, and use its objects as",
        ),
        (
            changed(lambda crd: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].update(properties={})),
            "shops.example.com, v1: expected a schema with properties, got one without",
        ),
        (changed(lambda crd: crd["spec"].pop("names")), "expected an object in spec.names, got None"),
        (changed(lambda crd: crd["spec"]["names"].update(kind=3)), "spec.names.kind: expected a text, got 3"),
        (
            changed(lambda crd: crd["spec"].update(versions=[])),
            r"expected a list of versions in spec.versions, got \[\]",
        ),
        (changed(lambda crd: crd["spec"].update(versions={"v1": {}})), "spec.versions: expected a list, got"),
        (changed(lambda crd: crd.update(metadata=None, spec=None)), "CRD without a name: expected an object in spec"),
    ],
)
def test_a_crd_without_types_is_refused(manifest: dict[str, Any], message: str) -> None:
    """With the file and the name of the CRD."""
    with pytest.raises(ConfigError, match=message):
        kinds_in([("a.yaml", manifest)])


def test_all_faults_are_reported_at_once() -> None:
    """A user repairs a folder in one go."""
    old = changed(lambda crd: crd.update(apiVersion="apiextensions.k8s.io/v1beta1"))
    with pytest.raises(ConfigError) as caught:
        kinds_in([("a.yaml", old), ("b.yaml", SHOP), ("c.yaml", SHOP), ("d.yaml", old)])
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == ["a.yaml", "d.yaml", "c.yaml"]
    assert "c.yaml: expected one CRD of Shop (example.com/v1), got another one in b.yaml" in str(caught.value)


def test_groups_that_would_share_a_package_are_refused() -> None:
    """They differ only in their punctuation."""
    other = changed(lambda crd: crd["spec"].update(group="example-com"))
    with pytest.raises(ConfigError, match="which are both example_com; generate them into different folders"):
        model_files(kinds_in([("a.yaml", SHOP), ("b.yaml", other)]))


def test_nothing_to_generate_is_refused() -> None:
    """No empty package is written."""
    with pytest.raises(ConfigError, match="expected kinds to generate classes of, got none"):
        model_files([])


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "a.json: expected an OpenAPI v3 document with components.schemas, got something else"),
        ({"swagger": "2.0", "definitions": {}}, "got swagger, definitions; get one: kubectl get --raw"),
        ({"openapi": "3.0.0", "components": {"schemas": {"A": {}}}}, "expected kinds with paths below /apis, got none"),
    ],
)
def test_a_document_without_kinds_is_refused(document: Any, message: str) -> None:
    """With the command that gets one."""
    with pytest.raises(ConfigError, match=message):
        kinds_in_openapi("a.json", document)
