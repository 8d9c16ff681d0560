"""`Project`: the folder of an operator project, with its `PROJECT` file and its settings."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from navarch.errors import ConfigError
from navarch.project.files import read_text
from navarch.project.project_file import ProjectFile
from navarch.project.settings import Settings

PROJECT_FILE: Final = "PROJECT"
STATE_FOLDER: Final = ".navarch"
"""The folder with what commands need to know of earlier ones; it belongs into version control."""


@dataclass(frozen=True, slots=True)
class Project:
    """A project on disk. Its settings have no empty fields: defaults that follow from its name are filled in."""

    root: Path
    file: ProjectFile
    settings: Settings

    @staticmethod
    def find(start: Path) -> Project:
        """Returns the project that `start` is in. Raises `ConfigError` if there is none, or if its files cannot be read."""
        for folder in (start, *start.resolve().parents):
            text = read_text(folder / PROJECT_FILE)
            if text is not None:
                return Project.of(folder, ProjectFile.parse(text, PROJECT_FILE))
        raise ConfigError(
            f"expected an operator project, but neither {start} nor a folder above it has a file {PROJECT_FILE}; go to "
            f"your project, or begin one: navarch init NAME --domain example.com"
        )

    @staticmethod
    def of(root: Path, file: ProjectFile) -> Project:
        """Returns the project in that folder, with the settings of its `pyproject.toml`."""
        found = Settings.parse(read_text(root / "pyproject.toml") or "", "pyproject.toml")
        settings = msgspec.structs.replace(
            found,
            package=found.package or file.project_name.replace("-", "_"),
            namespace=found.namespace or f"{file.project_name}-system",
        )
        return Project(root, file, settings)

    def with_file(self, file: ProjectFile) -> Project:
        """Returns the project with another `PROJECT`, which is not written."""
        return dataclasses.replace(self, file=file)

    @property
    def watched_namespaces(self) -> tuple[str, ...]:
        """Returns the namespaces of the operator; none for all."""
        return self.settings.watch_namespaces or ((self.settings.namespace,) if self.file.namespaced else ())

    @property
    def source(self) -> Path:
        """Returns the folder of the operator's package."""
        return self.root / "src" / self.settings.package
