"""`Scaffolds`: what commands have scaffolded, in their order, as `.navarch/scaffolds.json` has it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec

from navarch.errors import ConfigError
from navarch.project.files import read_text
from navarch.project.project import STATE_FOLDER
from navarch.project.scaffold.names import module_of_group, package_of

RECORD: Final = f"{STATE_FOLDER}/scaffolds.json"
PRISTINE: Final = f"{STATE_FOLDER}/pristine"
"""The folder that has each scaffolded file as it was rendered last."""

License = Literal["apache2", "none"]
WebhookType = Literal["defaulting", "validation"]


class ProjectScaffold(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="scaffold", tag="project", omit_defaults=True
):
    """The files of `navarch init`."""

    name: str
    domain: str
    repo: str = ""
    owner: str = ""
    license: License = "apache2"

    @property
    def package(self) -> str:
        """Returns the Python package below `src`."""
        return package_of(self.name)

    @property
    def header(self) -> str:
        """Returns the comment at the top of Python files, with a line break at its end; empty without a licence."""
        if self.license == "none":
            return ""
        owner = self.owner or f"The {self.name} authors"
        return f"# Copyright {owner}\n# SPDX-License-Identifier: Apache-2.0\n"


class _KindPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A scaffold that belongs to one version of one kind."""

    group: str
    """The API's whole group, such as `cache.example.com`."""
    version: str
    kind: str
    class_module: str
    """The module of the kind's class."""
    header: str = ""
    """The comment at the top of its Python files, as `hack/boilerplate.py.txt` had it."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Returns what tells the kind and version from all others, as `ResourceEntry.key` has it."""
        return self.group, self.version, self.kind


class TypesScaffold(_KindPart, frozen=True, kw_only=True, tag_field="scaffold", tag="types", omit_defaults=True):
    """The class of a kind, and a sample of it."""

    short_group: str
    """The group without the project's domain."""
    plural: str = ""
    """Empty if it follows from the kind."""
    namespaced: bool = True
    image: str = ""
    base_module: str = ""
    """The module of the version that this one begins as; empty for a kind's first version."""


class ControllerScaffold(
    _KindPart, frozen=True, kw_only=True, tag_field="scaffold", tag="controller", omit_defaults=True
):
    """A reconciler and its test."""

    module: str
    """The name of its module."""
    name: str = ""
    """The name of the controller; empty if it is the kind's."""
    is_own: bool = True
    """Whether the project defines the kind."""
    namespaced: bool = True
    image: str = ""
    port: int = 0

    @property
    def controller_name(self) -> str:
        """The name that the controller has in the operator."""
        return self.name or self.kind.lower()


class WebhookScaffold(_KindPart, frozen=True, kw_only=True, tag_field="scaffold", tag="webhook", omit_defaults=True):
    """An admission webhook and its test."""

    module: str
    type: WebhookType
    is_own: bool = True
    """Whether the project defines the kind."""
    namespaced: bool = True


class ConversionScaffold(
    _KindPart, frozen=True, kw_only=True, tag_field="scaffold", tag="conversion", omit_defaults=True
):
    """The conversion between a version and the hub, and its test."""

    module: str
    hub_version: str
    hub_module: str


KindScaffold = TypesScaffold | ControllerScaffold | WebhookScaffold | ConversionScaffold


class Scaffolds(msgspec.Struct, frozen=True, kw_only=True):
    """The project and the parts of its kinds, in the order of the commands that wrote them."""

    project: ProjectScaffold
    parts: list[KindScaffold] = []

    @staticmethod
    def read(root: Path) -> Scaffolds:
        """Reads the record of the project. Raises `ConfigError` if it is missing or broken."""
        text = read_text(root / RECORD)
        if text is None:
            raise ConfigError(
                f"expected {RECORD}, which navarch init writes, got none; restore it from version control"
            )
        try:
            return msgspec.json.decode(text, type=Scaffolds)
        except msgspec.DecodeError as error:
            raise ConfigError(
                f"{RECORD}: expected the scaffolds of this project, got something else: {error}; restore it from version "
                f"control, or update navarch: pip install -U navarch"
            ) from None

    def text(self) -> str:
        """Returns the content of the record."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2).decode() + "\n"

    def adding(self, *parts: KindScaffold) -> Scaffolds:
        """Returns the scaffolds with these at the end."""
        return msgspec.structs.replace(self, parts=[*self.parts, *parts])

    def without(self, *parts: KindScaffold) -> Scaffolds:
        """Returns the scaffolds but these."""
        return msgspec.structs.replace(self, parts=[part for part in self.parts if part not in parts])

    def types(self) -> list[TypesScaffold]:
        """Returns the versions of kinds that the project defines."""
        return [part for part in self.parts if isinstance(part, TypesScaffold)]

    def controllers(self) -> list[ControllerScaffold]:
        """Returns the reconcilers of all kinds."""
        return [part for part in self.parts if isinstance(part, ControllerScaffold)]

    def modules(self) -> set[str]:
        """Returns the names of modules below `controllers` and `webhooks` that are taken."""
        return {part.module for part in self.parts if not isinstance(part, TypesScaffold)}


def class_module(package: str, short_group: str, version: str, kind: str) -> str:
    """Returns the module of a kind that the project defines: `cache_operator.api.cache.v1alpha1.memcached`."""
    parts = [package, "api", *([module_of_group(short_group)] if short_group else []), version, kind.lower()]
    return ".".join(parts)
