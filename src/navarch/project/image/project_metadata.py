"""`ProjectMetadata`: what the table `[project]` of `pyproject.toml` says about the project's distribution."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from navarch.errors import ConfigError
from navarch.project.files import read_text
from navarch.project.project import Project

_WHERE = "pyproject.toml: [project]"


class ProjectMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The distribution of a project. Fields that the build backend would compute are refused where they are needed."""

    name: str
    version: str = "0.0.0"
    description: str = ""
    requires_python: str = ""
    license: str | dict[str, str] = ""
    dependencies: list[str] = []
    optional_dependencies: dict[str, list[str]] = {}
    scripts: dict[str, str] = {}
    entry_points: dict[str, dict[str, str]] = {}
    urls: dict[str, str] = {}
    dynamic: list[str] = []

    @staticmethod
    def of(project: Project) -> ProjectMetadata:
        """Reads the project's metadata. Raises `ConfigError` for a missing or malformed table."""
        text = read_text(project.root / "pyproject.toml")
        table: Any = tomllib.loads(text or "").get("project")
        if table is None:
            raise ConfigError("pyproject.toml: expected a table [project] with name and dependencies, got none")
        try:
            return msgspec.convert(table, ProjectMetadata)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{_WHERE}: {error}") from None

    @property
    def distribution(self) -> str:
        """Returns the name as file names have it: `cache_operator`."""
        return _canonical(self.name).replace("-", "_")

    @property
    def license_expression(self) -> str:
        """Returns the SPDX expression; empty if the project states none."""
        return self.license if isinstance(self.license, str) else ""

    @property
    def source(self) -> str:
        """Returns the address of the source code; empty if the project states none."""
        found = {name.lower(): address for name, address in self.urls.items()}
        return next((found[each] for each in ("source", "repository", "source code", "homepage") if each in found), "")

    def requirements(self, extras: Iterable[str] = ()) -> list[str]:
        """Returns the dependencies, and those of the extras, in order and without repetitions.

        Raises `ConfigError` for an unknown extra, and for dependencies that only the build backend knows.
        """
        if "dependencies" in self.dynamic or ("optional-dependencies" in self.dynamic and tuple(extras)):
            raise ConfigError(
                f"{_WHERE}: expected dependencies in the file, got dynamic ones, which only its build backend knows; "
                f"list them as `dependencies = [...]`"
            )
        known = {_canonical(name): entries for name, entries in self.optional_dependencies.items()}
        found = list(self.dependencies)
        for extra in extras:
            if _canonical(extra) not in known:
                there = ", ".join(sorted(known)) or "none"
                raise ConfigError(
                    f"[tool.navarch.build] extras: expected extras of the project, {there}; got {extra!r}"
                )
            found += known[_canonical(extra)]
        return sorted({" ".join(each.split()) for each in found})

    def files(self) -> Iterator[tuple[str, str]]:
        """Yields the names and contents of its dist-info, as an installed distribution has them."""
        lines = ["Metadata-Version: 2.4", f"Name: {self.name}", f"Version: {self.version}"]
        lines += [f"Summary: {' '.join(self.description.split())}"] if self.description else []
        lines += [f"License-Expression: {self.license_expression}"] if self.license_expression else []
        lines += [f"Requires-Python: {self.requires_python}"] if self.requires_python else []
        lines += [f"Requires-Dist: {each}" for each in self.dependencies]
        yield "METADATA", "\n".join(lines) + "\n"
        yield "INSTALLER", "navarch\n"
        groups = {**self.entry_points, **({"console_scripts": self.scripts} if self.scripts else {})}
        if groups:
            yield "entry_points.txt", "\n".join(_group(name, entries) for name, entries in sorted(groups.items()))


def _group(name: str, entries: dict[str, str]) -> str:
    return f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in sorted(entries.items()))


def _canonical(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()
