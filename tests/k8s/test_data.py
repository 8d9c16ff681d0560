"""The data files: complete, deterministic, and only Kubernetes' own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubernetes_api import files
from kubernetes_api.compact import compact
from kubernetes_api.fetch import Added, fetch, without_descriptions
from navarch.k8s.published import DATA, published


def test_documents_can_be_made_compact_again() -> None:
    """The documents that are given back make the very files they came from: nothing is lost on the way."""
    documents = {name: published().document(name) for name in published().documents()}
    stored = files.read(DATA)
    others = {name: stored[name] for name in ("discovery.json", "tables.json", "version.json")}
    assert compact(documents) | others == stored


def test_documents_are_what_a_server_sends() -> None:
    """A document has its paths, parameters, schemas and extensions in full."""
    document = published().document("apis/apps/v1")
    schemas = document["components"]["schemas"]
    deployment = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    assert schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]["x-kubernetes-list-map-keys"] == ["name"]
    assert deployment["get"]["responses"]["200"]["content"]["application/yaml"]["schema"] == {
        "$ref": "#/components/schemas/io.k8s.api.apps.v1.Deployment"
    }
    assert {"in": "query", "name": "force", "schema": {"type": "boolean", "uniqueItems": True}} in deployment["patch"][
        "parameters"
    ]
    assert [
        kind["group"]
        for kind in schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"]["x-kubernetes-group-version-kind"]
    ] == ["", "apps"]


def test_every_reference_in_a_document_leads_somewhere() -> None:
    """Each document stands on its own."""
    for name in published().documents():
        text = json.dumps(published().document(name))
        schemas = published().document(name)["components"].get("schemas", {})
        for reference in text.split('"#/components/schemas/')[1:]:
            assert reference.split('"')[0] in schemas


def test_documents_are_private_copies() -> None:
    """A caller may change what it was given."""
    published().document("apis/apps/v1")["paths"].clear()
    published().discovery("apis")["items"].clear()
    assert published().document("apis/apps/v1")["paths"]
    assert published().discovery("apis")["items"]


def test_unknown_document_is_refused() -> None:
    """A name that is not listed, also one that would leave the folder, is a KeyError."""
    for name in ("apis/nothing/v1", "../discovery"):
        with pytest.raises(KeyError):
            published().document(name)


def test_columns_are_there_for_what_can_be_listed() -> None:
    """`kubectl get` has columns for every resource."""
    assert [column["name"] for column in published().columns()["apps/v1/deployments"]][:2] == ["Name", "Ready"]
    assert "v1/pods" in published().columns()


def test_documents_that_do_not_fit_are_refused() -> None:
    """Data that would not give back the document is an error when it is fetched, not when it is served."""
    document = published().document("version")
    document["servers"] = [{"url": "/"}]
    with pytest.raises(ValueError, match="the OpenAPI document version has parts"):
        compact({"version": document})


def test_descriptions_go_and_properties_of_that_name_stay() -> None:
    """Prose is dropped; a field that is called description is not prose."""
    document = {
        "description": "prose",
        "properties": {
            "description": {"type": "string", "description": "prose"},
            "properties": {"type": "object", "properties": {"description": {"description": "prose"}}},
        },
    }
    assert without_descriptions(document) == {
        "properties": {
            "description": {"type": "string"},
            "properties": {"type": "object", "properties": {"description": {}}},
        }
    }


def test_added_groups_are_told_from_built_in_ones() -> None:
    """A group goes if all its versions were added, a version if it was."""
    added = Added({("example.com", "v1"), ("apps", "v1alpha9")})
    every = {"apis/example.com", "apis/example.com/v1", "apis/apps", "apis/apps/v1", "apis/apps/v1alpha9", "version"}
    assert {name for name in every if not added.has_document(name, every)} == {"apis/apps", "apis/apps/v1", "version"}


class _Cluster:
    """Answers as an API server that publishes this package's own data, and one custom resource."""

    def get(self, path: str, accept: str = "application/json") -> Any:
        name = path.removeprefix("/openapi/v3/")
        if name == "apis/example.com/v1":
            raise AssertionError("expected documents of custom resources to be left alone")
        if name in published().documents() and path.startswith("/openapi/v3/"):
            return published().document(name)
        if "as=Table" in accept:
            resource = path.removeprefix("/apis/").removeprefix("/api/").partition("?")[0]
            return {"columnDefinitions": published().columns()[resource]}
        return self._answer(path)

    def _answer(self, path: str) -> Any:
        crd = {"spec": {"group": "example.com", "versions": [{"name": "v1"}]}}
        custom = {"metadata": {"name": "example.com", "uid": "u"}, "versions": [{"version": "v1", "resources": []}]}
        apis = published().discovery("apis")
        known: dict[str, Any] = {
            "/openapi/v3": {"paths": {name: {} for name in (*published().documents(), "apis/example.com/v1")}},
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {"items": [crd]},
            "/apis/apiregistration.k8s.io/v1/apiservices": {"items": [{"spec": {"group": "apps", "version": "v1"}}]},
            "/api": published().discovery("api"),
            "/apis": {**apis, "items": [*apis["items"], custom]},
            "/version": published().version() | {"goVersion": "go1", "buildDate": "today"},
        }
        return known[path]


def test_fetch_takes_only_what_is_kubernetes_own() -> None:
    """Custom resources, and facts about the server's build, do not reach the data."""
    assert fetch(_Cluster()) == files.read(DATA)


def test_data_files_are_laid_out_the_same_each_time(tmp_path: Path) -> None:
    """Written twice, in whatever order, the files are the same bytes as the ones that are checked in."""
    stored = files.read(DATA)
    files.write(tmp_path, dict(reversed(stored.items())))
    for name in stored:
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes(), name


def test_long_values_are_broken_over_lines() -> None:
    """What fits on a line stays on it; what does not has a line for each part."""
    assert files.render({"b": ["x" * 60, "y" * 60], "a": 1}) == (
        '{\n "a": 1,\n "b": [\n  "' + "x" * 60 + '",\n  "' + "y" * 60 + '"\n ]\n}\n'
    )
