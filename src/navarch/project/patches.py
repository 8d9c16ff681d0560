"""`config/patches`: what a user changes of the generated objects, before they become files.

A document is a strategic merge patch (`apiVersion`, `kind`, `metadata.name`, and what differs) or a JSON patch (`target` and
`patch`). Kinds that Kubernetes does not define are merged as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from navarch.api import apply_json_patch, apply_merge_patch
from navarch.cluster.server.objects.fields.arranging import StrategicError
from navarch.cluster.server.objects.fields.strategic import strategic_merge
from navarch.errors import ConfigError, PatchError
from navarch.k8s.published import published
from navarch.project.files import read_text
from navarch.project.manifests.model import Json, ManifestObject

__all__ = ["FOLDER", "Patch", "apply_patches", "read_patches"]

FOLDER: Final = "config/patches"
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_PACKAGES: Final = {
    "v1": "io.k8s.api.core.v1",
    "apps/v1": "io.k8s.api.apps.v1",
    "networking.k8s.io/v1": "io.k8s.api.networking.v1",
    "rbac.authorization.k8s.io/v1": "io.k8s.api.rbac.v1",
    "admissionregistration.k8s.io/v1": "io.k8s.api.admissionregistration.v1",
    "apiextensions.k8s.io/v1": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
}
"""The packages of the schemas that say how lists are merged."""
_TARGET: Final = ("group", "version", "kind", "name", "namespace")


@dataclass(frozen=True, slots=True)
class Patch:
    """One patch: the fields that its objects have, and how these change."""

    source: str
    """Its file, and the number of the document if there are several."""
    target: Mapping[str, str]
    """Some of group, version, kind, name and namespace."""
    content: Json | Sequence[Any]
    """A strategic merge patch, or the operations of a JSON patch."""

    def matches(self, found: Json) -> bool:
        """Returns whether the patch is meant for this object."""
        identity = _identity(found)
        return all(identity[name] == value for name, value in self.target.items())

    def moved(self, old: str, new: str) -> Patch:
        """Returns the patch for a deployment that is in the namespace `new` instead of `old`."""
        if old == new:
            return self
        fields = ("namespace", "name") if self.target.get("kind") == "Namespace" else ("namespace",)

        def renamed(given: Mapping[str, Any]) -> dict[str, Any]:
            return {key: new if key in fields and value == old else value for key, value in given.items()}

        content = self.content
        if isinstance(content, Mapping):
            content = {**content, "metadata": renamed(content["metadata"])}
        return Patch(self.source, renamed(self.target), content)

    def applied(self, found: Json) -> Json:
        """Returns the object after the patch; empty if the patch deletes it. Raises `ConfigError`."""
        try:
            if isinstance(self.content, Mapping):
                return _merged(found, dict(self.content))
            return dict(apply_json_patch(self.content, found))
        except (StrategicError, PatchError) as error:
            raise ConfigError(f"{self.source}: cannot be applied to {_named(found)}: {error}") from None


def read_patches(root: Path) -> list[Patch]:
    """Returns the patches of a project, by the names of their files. Raises `ConfigError` for a document that is none."""
    folder = root / FOLDER
    names = sorted(each.name for each in folder.glob("*") if each.suffix in _SUFFIXES) if folder.is_dir() else []
    names = [name for name in names if name != "kustomization.yaml"]
    return [patch for name in names for patch in _in_file(f"{FOLDER}/{name}", read_text(folder / name) or "")]


def apply_patches(manifests: Iterable[ManifestObject], patches: Sequence[Patch]) -> list[ManifestObject]:
    """Returns the manifests after all patches. Raises `ConfigError` for a patch that matches nothing."""
    found = list(manifests)
    for patch in patches:
        chosen = [each for each in found if patch.matches(each.object)]
        if not chosen:
            raise ConfigError(_nothing_matches(patch, found))
        found = [_patched(each, patch) if each in chosen else each for each in found]
        found = [each for each in found if each.object]
    return found


def _patched(manifest: ManifestObject, patch: Patch) -> ManifestObject:
    return replace(manifest, object=patch.applied(manifest.object))


def _merged(found: Json, patch: Json) -> Json:
    package = _PACKAGES.get(found["apiVersion"])
    if patch.get("$patch") == "delete":
        return {}
    if package is None:
        return dict(apply_merge_patch(patch, found))
    return strategic_merge(found, patch, published().schema(f"{package}.{found['kind']}"))


def _in_file(file: str, text: str) -> Iterator[Patch]:
    try:
        documents = [each for each in yaml.safe_load_all(text) if each is not None]
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: expected YAML, got something else: {' '.join(str(error).split())}") from None
    for number, document in enumerate(documents, 1):
        yield _patch(file if len(documents) == 1 else f"{file}, document {number}", document)


def _patch(source: str, document: Any) -> Patch:
    if isinstance(document, Mapping) and "target" in document:
        return _json_patch(source, document)
    metadata = document.get("metadata") if isinstance(document, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not (isinstance(document, Mapping) and document.get("apiVersion") and document.get("kind") and name):
        raise ConfigError(
            f"{source}: expected a strategic merge patch with apiVersion, kind and metadata.name, or a JSON patch with target "
            f"and patch, got {_shown(document)}"
        )
    assert isinstance(metadata, Mapping)
    identity = _identity(document)
    wanted = identity if metadata.get("namespace") else {key: identity[key] for key in _TARGET if key != "namespace"}
    return Patch(source, wanted, dict(document))


def _json_patch(source: str, document: Mapping[str, Any]) -> Patch:
    target, operations = document["target"], document.get("patch")
    if isinstance(operations, str):  # as kustomize has it
        try:
            operations = yaml.safe_load(operations)
        except yaml.YAMLError:
            operations = None
    if not isinstance(operations, list):
        raise ConfigError(f"{source}: expected a list of operations as patch, got {_shown(operations)}")
    if not isinstance(target, Mapping) or not target or not target.keys() <= set(_TARGET):
        raise ConfigError(f"{source}: expected a target with some of {', '.join(_TARGET)}, got {_shown(target)}")
    return Patch(source, {key: str(value) for key, value in target.items()}, operations)


def _identity(found: Mapping[str, Any]) -> dict[str, str]:
    group, _, version = str(found.get("apiVersion", "")).rpartition("/")
    metadata = found.get("metadata") or {}
    return {
        "group": group,
        "version": version,
        "kind": str(found.get("kind", "")),
        "name": str(metadata.get("name", "")),
        "namespace": str(metadata.get("namespace", "")),
    }


def _nothing_matches(patch: Patch, found: Sequence[ManifestObject]) -> str:
    kind = patch.target.get("kind")
    alike = [each.object for each in found if each.object["kind"] == kind]
    candidates = sorted(map(_named, alike or [each.object for each in found]))
    wanted = " ".join(filter(None, (patch.target.get("kind"), patch.target.get("name")))) or dict(patch.target)
    return f"{patch.source}: expected a patch of an object of the deployment, got one of {wanted}; there are {', '.join(candidates)}"


def _named(found: Json) -> str:
    return f"{found['kind']} {found['metadata']['name']}"


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"fields {', '.join(map(str, value))}" if value else "nothing"
    return "nothing" if value is None else f"a {type(value).__name__}"
