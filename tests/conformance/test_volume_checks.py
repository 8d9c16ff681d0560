"""What the volumes of a pod and their mounts are refused for: above all, paths that lead out of a volume."""

from __future__ import annotations

from typing import Any

import pytest

from navarch.api import Dynamic
from navarch.client import Client
from navarch.errors import Invalid

_AT = "spec.template.spec.volumes[0]"
_MOUNTS = "spec.template.spec.containers[0].volumeMounts"
_PATHS = {
    "/etc/cron.d/x": ["must be a relative path"],
    "../x": ["must not contain '..'"],
    "a/../../x": ["must not contain '..'"],
    "a/..": ["must not contain '..'"],
    "..": ["must not contain '..'", "must not start with '..'"],
    "/..": ["must be a relative path", "must not contain '..'"],
    "..data": ["must not start with '..'"],
    "..data/x": ["must not start with '..'"],
    "...": ["must not start with '..'"],
    "..a/../b": ["must not contain '..'", "must not start with '..'"],
}
"""Paths of files in volumes, and what is said of them."""
_FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}
_SOURCES: dict[str, tuple[Any, str]] = {
    "configMap": (
        lambda path: {"configMap": {"name": "c", "items": [{"key": "k", "path": path}]}},
        "configMap.items[0].path",
    ),
    "secret": (
        lambda path: {"secret": {"secretName": "c", "items": [{"key": "k", "path": path}]}},
        "secret.items[0].path",
    ),
    "downwardAPI": (lambda path: {"downwardAPI": {"items": [{"path": path, **_FIELD}]}}, "downwardAPI.path"),
    "projected configMap": (
        lambda path: _projected({"configMap": {"name": "c", "items": [{"key": "k", "path": path}]}}),
        "projected.sources[0].configMap.items[0].path",
    ),
    "projected secret": (
        lambda path: _projected({"secret": {"name": "c", "items": [{"key": "k", "path": path}]}}),
        "projected.sources[0].secret.items[0].path",
    ),
    "projected downwardAPI": (
        lambda path: _projected({"downwardAPI": {"items": [{"path": path, **_FIELD}]}}),
        "projected.sources[0].downwardAPI.path",
    ),
    "projected token": (lambda path: _projected({"serviceAccountToken": {"path": path}}), "projected.path"),
}
_TWICE = {"name": "c", "items": [{"key": "k", "path": "same"}]}
_MODES = "must be a number between 0 and 0777 (octal), both inclusive"
_VOLUMES: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    ({"projected": {"sources": [{}]}}, []),
    ({"projected": {"defaultMode": 0o1000}}, [("projected.defaultMode", _MODES)]),
    (
        {"projected": {"sources": [{"configMap": _TWICE}, {"secret": {**_TWICE, "name": "d"}}]}},
        [("projected", "conflicting duplicate paths")],
    ),
    (
        {"projected": {"sources": [{"configMap": {"name": "c"}, "secret": {"name": "c"}}]}},
        [("projected.sources[0]", "may not specify more than 1 volume type per source")],
    ),
    (
        {"projected": {"sources": [{"configMap": {}}, {"secret": {"items": [{"key": "k", "path": "a", "mode": -1}]}}]}},
        [
            ("projected.sources[0].configMap.name", "Required value"),
            ("projected.sources[1].secret.name", "Required value"),
            ("projected.sources[1].secret.items[0].mode", _MODES),
        ],
    ),
    (
        {"projected": {"sources": [{"serviceAccountToken": {"path": "", "expirationSeconds": 599}}]}},
        [
            ("projected.sources[0].serviceAccountToken.expirationSeconds", "less than 10 minutes"),
            ("projected.path", "Required value"),
        ],
    ),
    (
        {"projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 2**32 + 1}}]}},
        [("projected.sources[0].serviceAccountToken.expirationSeconds", "larger than 2^32")],
    ),
    (
        {"projected": {"sources": [{"downwardAPI": {"items": [{"path": "a", "mode": 512, **_FIELD}, {"path": "b"}]}}]}},
        [
            ("projected.sources[0].downwardAPI.mode", _MODES),
            ("projected.sources[0].downwardAPI", "one of fieldRef and resourceFieldRef is required"),
        ],
    ),
    (
        {"downwardAPI": {"items": [{"path": "a", "resourceFieldRef": {"containerName": "c", "resource": "x"}}]}},
        [("downwardAPI.resourceFieldRef.resource", "Unsupported value")],
    ),
    ({"hostPath": {"path": "/a/../b"}}, [("hostPath.path", "must not contain '..'")]),
    ({"hostPath": {"path": "/a", "type": "Folder"}}, [("hostPath.type", "Unsupported value")]),
]
_BAD_MOUNTS: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    ({"subPath": "/etc"}, [(f"{_MOUNTS}.subPath", "must be a relative path")]),
    ({"subPath": "a/../../b"}, [(f"{_MOUNTS}.subPath", "must not contain '..'")]),
    ({"subPath": "..data"}, []),
    ({"subPathExpr": "/$(A)"}, [(f"{_MOUNTS}.subPathExpr", "must be a relative path")]),
    ({"subPathExpr": "../$(A)"}, [(f"{_MOUNTS}.subPathExpr", "must not contain '..'")]),
    ({"subPath": "a", "subPathExpr": "b"}, [(f"{_MOUNTS}[0].subPathExpr", "mutually exclusive")]),
    ({"mountPath": ""}, [(f"{_MOUNTS}[0].mountPath", "Required value")]),
    ({"mountPropagation": "Some"}, [(f"{_MOUNTS}.mountPropagation", "Unsupported value")]),
    ({"mountPropagation": "Bidirectional"}, [(f"{_MOUNTS}.mountPropagation", "only to privileged containers")]),
    ({"recursiveReadOnly": "Enabled"}, [(f"{_MOUNTS}.recursiveReadOnly", "when readOnly is true")]),
]


def _projected(source: dict[str, Any]) -> dict[str, Any]:
    return {"projected": {"sources": [source]}}


@pytest.mark.parametrize("source", _SOURCES)
async def test_path_of_a_file_stays_in_its_volume(client: Client, source: str) -> None:
    """Whatever kind of volume shows the file."""
    make, field = _SOURCES[source]
    for path, said in _PATHS.items():
        found = await _causes(client, {"volumes": [{"name": "v", **make(path)}]})
        assert [(at, _found(text, said)) for at, text in found] == [(f"{_AT}.{field}", each) for each in said], path


async def test_volumes_are_refused_for_what_makes_no_sense_in_them(client: Client) -> None:
    """In the fields that Kubernetes names."""
    for volume, expected in _VOLUMES:
        found = await _causes(client, {"volumes": [{"name": "v", **volume}]})
        assert _shown(found, expected) == sorted((f"{_AT}.{field}", said) for field, said in expected), volume


async def test_mounts_are_refused_for_what_makes_no_sense_in_them(client: Client) -> None:
    """In the fields that Kubernetes names."""
    for mount, expected in _BAD_MOUNTS:
        mounts = [{"name": "v", "mountPath": "/v", **mount}]
        found = await _causes(client, {"volumes": [{"name": "v", "emptyDir": {}}]}, volumeMounts=mounts)
        assert _shown(found, expected) == sorted(expected), mount


async def _causes(client: Client, spec: dict[str, Any], **fields: Any) -> list[tuple[str, str]]:
    containers = [{"name": "c", "image": "i", **fields}]
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": containers, **spec}}
    owner = {"metadata": {"name": "refused"}, "spec": {"selector": {"app": "a"}, "template": template}}
    body = {"apiVersion": "v1", "kind": "ReplicationController", **owner}
    try:
        await client.using(dry_run=True).create(Dynamic(body))
    except Invalid as error:
        return [(cause.field, cause.message) for cause in error.causes if "not found" not in cause.message.lower()]
    return []


def _found(text: str, expected: list[str]) -> str:
    return next((said for said in expected if said in text), text)


def _shown(found: list[tuple[str, str]], expected: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted((field, _found(text, [said for _, said in expected])) for field, text in found)
