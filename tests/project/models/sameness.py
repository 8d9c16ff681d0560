"""Compares the CRD of generated classes with the CRD that they were generated from."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from navarch.api import Object
from navarch.api.merge_patch import differing_paths
from navarch.errors import DefinitionError
from navarch.project.models.annotations import undescribed
from navarch.project.models.crds import without_empty
from navarch.project.models.names import module_of_group
from navarch.schema import crd

Json = dict[str, Any]


class GeneratedModels:
    """Generated modules, imported from their folder under names that no other test has."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self._folder = folder
        self._prefix = prefix
        self._modules: dict[str, ModuleType] = {}

    def classes_of(self, manifest: Mapping[str, Any]) -> list[type[Object]]:
        """The classes of all versions of a CRD, in its order."""
        spec = manifest["spec"]
        return [self.class_of(spec["group"], version["name"], spec["names"]["kind"]) for version in spec["versions"]]

    def class_of(self, group: str, version: str, kind: str) -> type[Object]:
        """The class of one version of a kind."""
        module = self.module(f"{module_of_group(group)}/{module_of_group(version)}.py")
        known = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, Object)]
        return next(each for each in known if each is not Object and each.__kind__.kind == kind)

    def module(self, path: str) -> ModuleType:
        """One module, imported once."""
        if path not in self._modules:
            name = f"{self._prefix}_{path.removesuffix('.py').replace('/', '_')}"
            spec = importlib.util.spec_from_file_location(name, self._folder / path)
            assert spec is not None
            assert spec.loader is not None
            self._modules[path] = sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(self._modules[path])
        return self._modules[path]

    def forget(self) -> None:
        """Removes the modules again."""
        for module in self._modules.values():
            sys.modules.pop(module.__name__, None)


@contextmanager
def imported(folder: Path, prefix: str = "generated") -> Iterator[GeneratedModels]:
    """The modules in a folder, for a while."""
    models = GeneratedModels(folder, prefix)
    try:
        yield models
    finally:
        models.forget()


def differences(manifest: Mapping[str, Any], classes: list[type[Object]]) -> list[str]:
    """The paths at which the CRD of the classes differs from the manifest; a refused class is one difference."""
    try:
        made = crd(*classes)
    except DefinitionError as error:
        return [str(error)]
    return list(differing_paths(_comparable(manifest), _comparable(made)))


def _comparable(manifest: Mapping[str, Any]) -> Json:
    """What a CRD says, without descriptions, server-side defaults and the order of `required`."""
    plain: Json = msgspec.json.decode(msgspec.json.encode(manifest))
    annotations = {
        key: text for key, text in plain["metadata"].get("annotations", {}).items() if "last-applied" not in key
    }
    names = plain["spec"]["names"]
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    return {
        "name": plain["metadata"]["name"],
        "labels": plain["metadata"].get("labels", {}),
        "annotations": annotations,
        "group": plain["spec"]["group"],
        "scope": plain["spec"]["scope"],
        "names": names,
        "versions": [_version(version) for version in plain["spec"]["versions"]],
    }


def _version(version: Json) -> Json:
    version["schema"] = _in_order(undescribed(without_empty(version["schema"]["openAPIV3Schema"])))
    version["subresources"] = version.get("subresources") or {}
    for column in version.setdefault("additionalPrinterColumns", []):
        column.setdefault("priority", 0)
    version.setdefault("selectableFields", []).sort(key=lambda field: field["jsonPath"])
    return version


def _in_order(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_in_order(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: sorted(value) if key == "required" and isinstance(value, list) else _in_order(value)
        for key, value in schema.items()
    }
