"""Classes for kinds that other projects define, from their CRDs: `navarch create api --crd`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from navarch.errors import ConfigError
from navarch.project.files import read_text
from navarch.project.models import KindVersion, kinds_in, model_files, plan_models, write_models
from navarch.project.models.modules import module_path
from navarch.project.project import Project

__all__ = ["FOLDER", "ThirdPartyKind", "read_third_party"]

FOLDER: Final = "models"
"""The package of these classes, beside `api`; `navarch generate models` writes there, too."""


@dataclass(frozen=True, slots=True)
class ThirdPartyKind:
    """A kind of a CRD, and the generated modules that its class needs."""

    found: KindVersion
    module: str
    folder: Path
    files: dict[str, str]

    def write(self) -> list[Path]:
        """Writes the modules that differ, and returns them. A module that somebody has edited is left alone."""
        return [self.folder / path for path in write_models(self.folder, self.files).written]


def read_third_party(project: Project, crd: Path, group: str, version: str, kind: str) -> ThirdPartyKind:
    """Reads the CRD of the kind. Raises `ConfigError` for a file without it, and for modules that would lose kinds."""
    manifests = [(crd.name, document) for document in _documents(crd)]
    kinds = kinds_in(manifests)
    named = [each for each in kinds if (each.version, each.kind) == (version, kind) and _is_group(each, group)]
    if not named:
        known = ", ".join(f"{each.group}/{each.version} {each.kind}" for each in kinds)
        raise ConfigError(
            f"--crd: expected {kind} of {group}/{version} in {crd}, got {known or 'no CRD'}; correct --group, --version or --kind"
        )
    found = named[0]
    folder = project.source / FOLDER
    files = {"__init__.py": "", **model_files([each for each in kinds if each.group == found.group])}
    plan_models(folder, files)
    path = module_path(found).removesuffix(".py").replace("/", ".")
    return ThirdPartyKind(found, f"{project.settings.package}.{FOLDER}.{path}", folder, files)


def _is_group(found: KindVersion, group: str) -> bool:
    return group in {found.group, found.group.partition(".")[0]}


def _documents(file: Path) -> Iterator[Any]:
    text = read_text(file)
    if text is None:
        raise ConfigError(
            f"--crd: expected a file with a CustomResourceDefinition, got no file {file}; correct the path"
        )
    try:
        yield from (each for each in yaml.load_all(text, _LOADER) if isinstance(each, dict))
    except yaml.YAMLError as error:
        raise ConfigError(f"--crd: {file}: expected YAML, got something else: {' '.join(str(error).split())}") from None


_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
