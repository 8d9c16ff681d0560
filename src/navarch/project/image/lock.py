"""`lock_image`: finds out what an image is to be built from, for all of its platforms."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from navarch.errors import ConfigError
from navarch.oci.documents import Platform
from navarch.project.image.base import BaseSource
from navarch.project.image.lock_file import ImageLock, LockedPlatform, inputs_of, new_lock
from navarch.project.image.pip import PipOptions
from navarch.project.image.project_metadata import ProjectMetadata
from navarch.project.image.requirements import check_python, checked_requirements
from navarch.project.image.targets import PythonTarget, machine_of
from navarch.project.image.wheel_resolver import resolve
from navarch.project.project import Project


def lock_image(
    project: Project, base: BaseSource, pip: PipOptions, progress: Callable[[str], None] = lambda _: None
) -> ImageLock:
    """Returns a new lock with the newest packages and wheels that the project accepts, which is not written yet.

    Raises `ConfigError` and `ImageError`, with the platform and the package that cannot be had.
    """
    build, metadata = project.settings.build, ProjectMetadata.of(project)
    requirements = checked_requirements(metadata.requirements(build.extras))
    platforms = _platforms(project)

    def locked(name: str) -> LockedPlatform:
        progress(f"{name}: resolving the base")
        found = base.lock(name)
        check_python(metadata.requires_python, found.python, build.base)
        target = PythonTarget(platform=Platform.parse(name), python=found.python, glibc=found.glibc)
        progress(f"{name}: resolving wheels for Python {found.python} and glibc {found.glibc}")
        return msgspec.structs.replace(found, wheels=resolve(requirements, target, pip))

    with ThreadPoolExecutor(len(platforms)) as pool:
        entries = dict(zip(platforms, pool.map(locked, platforms), strict=True))
    return new_lock(inputs_of(project), build.base, entries)


def differing_versions(lock: ImageLock) -> list[str]:
    """Returns a line for each wheel that does not have the same version on all platforms."""
    versions: dict[str, dict[str, list[str]]] = {}
    for platform, locked in sorted(lock.platforms.items()):
        for wheel in locked.wheels:
            versions.setdefault(wheel.name, {}).setdefault(wheel.version, []).append(platform)
    return [
        f"{name}: "
        + ", ".join(f"{version} for {' and '.join(platforms)}" for version, platforms in sorted(found.items()))
        for name, found in sorted(versions.items())
        if len(found) > 1
    ]


def _platforms(project: Project) -> tuple[str, ...]:
    platforms = project.settings.build.platforms
    if not platforms or len(set(platforms)) < len(platforms):
        raise ConfigError(
            f"[tool.navarch.build] platforms: expected one or more different platforms, got {', '.join(platforms) or 'none'}"
        )
    for each in platforms:
        machine_of(each)
    return platforms
