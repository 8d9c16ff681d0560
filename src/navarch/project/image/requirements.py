"""Requirements of a project: what can be locked, and on which Python it runs."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from navarch.errors import ConfigError, ImageError

_WHERE = "pyproject.toml: [project]"


def checked_requirements(entries: Iterable[str]) -> list[str]:
    """Returns the requirements. Raises `ConfigError` for one that names a file or an address: a lock has neither."""
    found = []
    for text in entries:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            reason = str(error).partition("\n")[0]
            raise ConfigError(f"{_WHERE} dependencies: expected a requirement, got {text!r}: {reason}") from None
        if requirement.url is not None:
            raise ConfigError(
                f"{_WHERE} dependencies: expected a name and a version range, got {text!r}; build a wheel of it, and lock "
                f"with --find-links FOLDER"
            )
        found.append(str(requirement))
    return found


def check_python(accepted: str, version: str, base: str) -> None:
    """Raises `ImageError` if a project with this `requires-python` does not run on that version of Python."""
    try:
        runs = SpecifierSet(accepted).contains(version, prereleases=True)
    except InvalidSpecifier:
        raise ConfigError(f"{_WHERE} requires-python: expected a version range as >=3.11, got {accepted!r}") from None
    if not runs:
        raise ImageError(
            f"the project needs Python {accepted}, but the base {base} has {version}; name another base in "
            f"[tool.navarch.build]"
        )
