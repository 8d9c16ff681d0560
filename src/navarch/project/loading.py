"""Loads a project's code: its operator, and the classes of the kinds that it defines."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from navarch.api import Resource
from navarch.errors import ConfigError
from navarch.operator import Operator, load_operator
from navarch.operator.loader import load_trouble
from navarch.operator.main import WATCH_NAMESPACE
from navarch.project.manifests.model import Custom
from navarch.project.project import Project
from navarch.project.project_file import ResourceEntry

__all__ = ["load_kinds", "load_project"]


def load_project(project: Project) -> Operator:
    """Imports the project's code from its folder `src` and returns its operator.

    Raises `ConfigError` with the file and line of the user's code if that fails. What the code prints goes to standard error.
    """
    package = project.settings.package
    if not project.source.is_dir():
        raise ConfigError(
            f"expected the package of the operator at {project.source}, got none; name it in pyproject.toml: [tool.navarch] package"
        )
    _forget_other(project)
    with _importing(project):
        return load_operator(package)


def load_kinds(project: Project, operator: Operator) -> list[Custom]:
    """Returns the classes of all kinds that the project defines, each version once, in the order of `PROJECT`.

    A kind that the operator reconciles or converts is defined here, unless `PROJECT` says that others define it. Raises
    `ConfigError` for an entry of `PROJECT` without a class.
    """
    entries = {entry.key: entry for entry in project.file.resources}
    found: dict[Custom, None] = {}
    for entry in project.file.resources:
        if entry.api is not None:
            found[_class_of(project, entry)] = None
    converted = (version for pair in operator.conversions for version in (pair.old, pair.new))
    for cls in (*(declared.primary for declared in operator.controllers), *converted):
        if issubclass(cls, Resource):
            kind = cls.__kind__
            foreign = entries.get((kind.group, kind.version, kind.kind))
            if foreign is None or foreign.api is not None:
                found[cls] = None
    return list(found)


def _class_of(project: Project, entry: ResourceEntry) -> Custom:
    with _importing(project):
        module = importlib.import_module(entry.path)
    for cls in vars(module).values():
        if isinstance(cls, type) and issubclass(cls, Resource) and hasattr(cls, "__kind__"):
            kind = cls.__kind__
            if (kind.group, kind.version, kind.kind) == entry.key:
                return cls
    raise ConfigError(
        f"{entry.path}: expected the class of {entry.kind} in {entry.api_group}/{entry.version}, as PROJECT says, got none; "
        f"restore it, or remove the kind: navarch delete api --group {entry.group} --version {entry.version} --kind {entry.kind}"
    )


@contextmanager
def _importing(project: Project) -> Iterator[None]:
    source = str(project.root / "src")
    if sys.path[0] != source:
        sys.path[:] = [source, *(each for each in sys.path if each != source)]
    try:
        with redirect_stdout(sys.stderr), _environment_of(project):
            yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # any code may run when a module is imported, also sys.exit
        raise ConfigError(load_trouble(error, project.settings.package)) from error


@contextmanager
def _environment_of(project: Project) -> Iterator[None]:
    """Sets the variables of the operator's container: the code may declare less or more because of them."""
    watched = project.watched_namespaces
    wanted = {**project.settings.environment, **({WATCH_NAMESPACE: ",".join(watched)} if watched else {})}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _forget_other(project: Project) -> None:
    """Forgets a package of the same name that was imported from another project in this process."""
    package = project.settings.package
    known = sys.modules.get(package)
    file = getattr(known, "__file__", None)
    if known is None or (file and project.source.resolve() in Path(file).resolve().parents):
        return
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]
    importlib.invalidate_caches()
