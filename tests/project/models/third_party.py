"""Every CRD of three well-known projects: cert-manager, prometheus-operator and gateway-api.

Their Go modules have the CRDs as files; `go mod download` fetches them, in these versions, into Go's own cache.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from navarch.api import to_builtins
from navarch.cli.manifests import documents
from navarch.project.models import kinds_in, model_files, write_models
from navarch.project.models.modules import module_path
from project.models.sameness import GeneratedModels, differences, imported


@dataclass(frozen=True, slots=True)
class CrdSource:
    """CRDs of a Go module that are installed together; `examples` are folders with objects of these kinds."""

    name: str
    module: str
    version: str
    files: str
    examples: str = ""


SOURCES: Final = (
    CrdSource("cert-manager", "github.com/cert-manager/cert-manager", "v1.21.2", "deploy/crds/*.yaml"),
    CrdSource(
        "prometheus-operator",
        "github.com/prometheus-operator/prometheus-operator",
        "v0.94.1",
        "example/prometheus-operator-crd/*.yaml",
        "example",
    ),
    CrdSource(
        "prometheus-operator-full",
        "github.com/prometheus-operator/prometheus-operator",
        "v0.94.1",
        "example/prometheus-operator-crd-full/*_alertmanagerconfigs.yaml",
    ),
    CrdSource("gateway-api", "sigs.k8s.io/gateway-api", "v1.6.3", "config/crd/standard/*.yaml", "examples/standard"),
    CrdSource(
        "gateway-api-experimental",
        "sigs.k8s.io/gateway-api",
        "v1.6.3",
        "config/crd/experimental/*.yaml",
        "examples/experimental",
    ),
)
_ERROR: Final = re.compile(r"^(?P<file>[^:\n]+\.py):\d+: error: (?P<text>.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CheckedCrd:
    """One CRD: where the CRD of its classes differs from it, and the errors of mypy in the modules of these classes."""

    source: str
    name: str
    differences: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def has_same_schema(self) -> bool:
        """Whether the CRD of the classes is the CRD that they were generated from, apart from descriptions."""
        return not self.differences

    @property
    def is_typed(self) -> bool:
        """Whether the classes pass `mypy --strict`."""
        return not self.errors


def checked_crds(folder: Path) -> Iterator[CheckedCrd]:
    """Generates the classes of all CRDs into the folder, and checks each of them. Takes about a minute."""
    for source in SOURCES:
        manifests = crds_of(source)
        target = folder / source.name.replace("-", "_")
        write_models(target, model_files(kinds_in(manifests)))
        errors = errors_of_mypy(target)
        with imported(target, source.name.replace("-", "_")) as models:
            for _, manifest in manifests:
                paths = {module_path(each) for each in kinds_in([("", manifest)])}
                found = tuple(error for path in sorted(paths) for error in errors.get(path, ()))
                differing = tuple(differences(manifest, models.classes_of(manifest)))
                yield CheckedCrd(source.name, manifest["metadata"]["name"], differing, found)


def crds_of(source: CrdSource) -> list[tuple[str, Any]]:
    """The CRDs of a source, each with the name of its file."""
    files = sorted(str(file) for file in folder_of(source).glob(source.files))
    found = [(Path(each.file).name, each.object) for each in documents(files) if each.object is not None]
    return [(file, manifest) for file, manifest in found if manifest.kind == "CustomResourceDefinition"]


def folder_of(source: CrdSource) -> Path:
    """The folder of the module in Go's cache. Raises CalledProcessError if it cannot be downloaded."""
    command = ["go", "mod", "download", "-json", f"{source.module}@{source.version}"]
    answer = subprocess.run(command, cwd="/", capture_output=True, check=True)
    return Path(msgspec.json.decode(answer.stdout)["Dir"])


def errors_of_mypy(folder: Path) -> dict[str, list[str]]:
    """The errors of `mypy --strict` in a folder, by file."""
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder.parent / ".mypy_cache"), "."]
    told = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    errors: dict[str, list[str]] = {}
    for match in _ERROR.finditer(told.stdout):
        errors.setdefault(match["file"], []).append(match["text"])
    if (told.returncode != 0) != bool(errors):
        raise RuntimeError(f"mypy ended with {told.returncode}: {told.stdout[-2000:]}{told.stderr[-2000:]}")
    return errors


def examples_of(source: CrdSource, models: GeneratedModels, known: set[tuple[str, str]]) -> Iterator[tuple[str, bool]]:
    """Each example of a source, and whether it has all its values after it was decoded and encoded again."""
    for found in documents([str(folder_of(source) / source.examples)]):
        if found.object is None or (found.object["apiVersion"], found.object.kind) not in known:
            continue
        group, _, version = found.object["apiVersion"].rpartition("/")
        given = to_builtins(found.object)
        made = to_builtins(models.class_of(group, version, found.object.kind).from_json(msgspec.json.encode(given)))
        yield f"{Path(found.file).name}:{found.line}", _holds(made, given)


def _holds(made: Any, given: Any) -> bool:
    """Whether `made` has all that `given` has; required fields that an example lacks are there too, empty as in Go."""
    if isinstance(given, dict) and isinstance(made, dict):
        return all(each is None or _holds(made.get(key), each) for key, each in given.items())
    if isinstance(given, list) and isinstance(made, list):
        return len(made) == len(given) and all(map(_holds, made, given))
    return bool(made == given)
