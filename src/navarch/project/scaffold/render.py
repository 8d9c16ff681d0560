"""`render`: the scaffolds of a project as files. It reads nothing but the templates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import jinja2

from navarch._version import __version__
from navarch.project.scaffold.python_lines import imports, wrapped
from navarch.project.scaffold.scaffolds import (
    ControllerScaffold,
    ConversionScaffold,
    KindScaffold,
    ProjectScaffold,
    Scaffolds,
    TypesScaffold,
    WebhookScaffold,
)

__all__ = ["LINKS", "render", "render_part"]

LINKS: Final = {"bin": ".venv/bin"}
"""Symbolic links of a project, which are no text."""

_TEMPLATES: Final = Path(__file__).parent / "templates"
_PROJECT: Final = {
    ".dockerignore": "project/dockerignore",
    ".github/workflows/ci.yml": "project/ci.yml",
    ".gitignore": "project/gitignore",
    "Dockerfile": "project/Dockerfile",
    "Makefile": "project/Makefile",
    "README.md": "project/README.md",
    "config/patches/.gitkeep": "empty",
    "config/samples/.gitkeep": "empty",
    "hack/boilerplate.py.txt": "project/boilerplate.py.txt",
    "pyproject.toml": "project/pyproject.toml",
    "src/{package}/__init__.py": "project/package.py",
    "src/{package}/__main__.py": "project/main.py",
    "src/{package}/api/__init__.py": "empty",
    "src/{package}/controllers/__init__.py": "empty",
    "src/{package}/webhooks/__init__.py": "empty",
    "tests/permissions.py": "project/permissions.py",
    "tests/test_operator.py": "project/test_operator.py",
}


def render(scaffolds: Scaffolds) -> dict[str, str]:
    """Returns all scaffolded files by their path, in the order of the scaffolds."""
    environment = _environment()
    found = dict(_project_files(environment, scaffolds.project))
    for part in scaffolds.parts:
        found |= _part_files(environment, scaffolds.project, part)
    return found


def render_part(project: ProjectScaffold, part: KindScaffold) -> dict[str, str]:
    """Returns the files of one scaffold."""
    return dict(_part_files(_environment(), project, part))


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - the results are Python, TOML and YAML
    )
    environment.globals.update(navarch_version=__version__, wrapped=wrapped)
    return environment


def _project_files(environment: jinja2.Environment, project: ProjectScaffold) -> Iterator[tuple[str, str]]:
    for path, template in _PROJECT.items():
        yield path.format(package=project.package), _rendered(environment, template, project, project)


def _part_files(
    environment: jinja2.Environment, project: ProjectScaffold, part: KindScaffold
) -> Iterator[tuple[str, str]]:
    for path, template in _part_templates(project, part):
        yield path, _rendered(environment, template, project, part)


def _part_templates(project: ProjectScaffold, part: KindScaffold) -> Iterator[tuple[str, str]]:
    """Yields the path and the template of each file."""
    source = f"src/{project.package}"
    match part:
        case TypesScaffold():
            file = f"src/{part.class_module.replace('.', '/')}.py"
            for folder in list(Path(file).parents)[:-3][::-1]:
                if folder.as_posix() != f"{source}/api":
                    yield f"{folder.as_posix()}/__init__.py", "empty"
            yield file, "api/types_second.py" if part.base_module else "api/types.py"
            prefix = f"{part.short_group}_" if part.short_group else ""
            yield f"config/samples/{prefix}{part.version}_{part.kind.lower()}.yaml", "api/sample.yaml"
        case ControllerScaffold():
            yield (
                f"{source}/controllers/{part.module}.py",
                "api/controller_image.py" if part.image else "api/controller.py",
            )
            yield f"tests/test_{part.module}.py", _controller_test(part)
        case WebhookScaffold():
            yield f"{source}/webhooks/{part.module}.py", f"webhook/{part.type}.py"
            yield (
                f"tests/test_{part.module}.py",
                f"webhook/test_{part.type}.py" if part.is_own else "webhook/test_foreign.py",
            )
        case ConversionScaffold():
            yield f"{source}/webhooks/{part.module}.py", "webhook/conversion.py"
            yield "tests/test_conversions.py", "webhook/test_conversion.py"


def _controller_test(part: ControllerScaffold) -> str:
    if part.image:
        return "api/test_controller_image.py"
    return "api/test_controller.py" if part.is_own else "api/test_controller_foreign.py"


def _rendered(environment: jinja2.Environment, template: str, project: ProjectScaffold, it: Any) -> str:
    text = environment.get_template(f"{template}.j2").render(
        project=project, it=it, imports=partial(imports, project.package)
    )
    return it.header + text if template.endswith(".py") and text else text
