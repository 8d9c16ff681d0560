"""Where bases come from: Debian packages, OCI layouts and registries."""

from __future__ import annotations

import abc
import asyncio
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from navarch.errors import ConfigError, ImageError
from navarch.oci.documents import (
    MANIFEST,
    Descriptor,
    Platform,
    decode_config,
    descriptor_of,
)
from navarch.oci.layout import Layout
from navarch.oci.reference import Reference
from navarch.oci.registry import RegistryClient, RegistryOptions, pull
from navarch.oci.unpacked_images import flatten
from navarch.project.image.base import Base, BaseSource, find_glibc, find_python, layers_of
from navarch.project.image.build_cache import BuildCache
from navarch.project.image.debian.archive import DebianArchive, DebianOptions
from navarch.project.image.debian.base_packages import base_packages, glibc_version, python_version
from navarch.project.image.debian.base_tree import base_tree
from navarch.project.image.debian.package_index import DebianPackage
from navarch.project.image.debian.versions import DebianVersion
from navarch.project.image.lock_file import LockedPackage, LockedPlatform
from navarch.project.image.targets import machine_of
from navarch.project.project import Project

_DEBIAN: Final = "debian:"
_LAYOUT: Final = "oci:"


class _ImageSource(abc.ABC):
    """An image that others have built: its layers stay as they are."""

    def __init__(self, name: str, cache: Layout) -> None:
        self._name = name
        self._cache = cache

    @abc.abstractmethod
    def _fetch(self, platform: str, digest: str) -> Descriptor:
        """Puts the image for the platform into the cache; the one with the digest, if there is one."""

    def lock(self, platform: str) -> LockedPlatform:
        """Returns the digest of the image for the platform, and the versions in it."""
        found = self._fetch(platform, "")
        base = self._base(found, platform)
        python = find_python(base, self._name).version
        return LockedPlatform(
            python=python, glibc=find_glibc(base.tree, machine_of(platform), self._name), base=found.digest
        )

    def tree(self, platform: str, locked: LockedPlatform) -> Base:
        """Returns the files of the image with the locked digest, whatever its name stands for today."""
        return self._base(self._fetch(platform, locked.base), platform)

    def _base(self, image: Descriptor, platform: str) -> Base:
        _, manifest = self._cache.image(image, Platform.parse(platform))
        config = decode_config(self._cache.read(manifest.config.digest), where=self._name)
        if not config.platform.fits(Platform.parse(platform)):
            raise ImageError(f"the base {self._name}: expected an image for {platform}, got one for {config.platform}")
        return Base(
            tree=flatten(self._cache, manifest, config),
            layers=layers_of(manifest.layers, config.rootfs.diff_ids),
            env=tuple((config.config.env if config.config else None) or ()),
        )


class RegistrySource(_ImageSource):
    """An image in a registry."""

    def __init__(self, reference: Reference, cache: Layout, options: RegistryOptions) -> None:
        super().__init__(str(reference), cache)
        self._reference = reference
        self._options = options

    def _fetch(self, platform: str, digest: str) -> Descriptor:
        if digest in self._cache:
            return descriptor_of(self._cache.read(digest), MANIFEST)
        wanted = self._reference._replace(tag="", digest=digest) if digest else self._reference
        return asyncio.run(self._pull(wanted, Platform.parse(platform)))

    async def _pull(self, reference: Reference, platform: Platform) -> Descriptor:
        async with RegistryClient(self._options) as client:
            return await pull(client, reference, self._cache, platform)


class LayoutSource(_ImageSource):
    """The only image of a layout."""

    def __init__(self, name: str, folder: Path, cache: Layout) -> None:
        super().__init__(name, cache)
        self._folder = folder

    def _fetch(self, platform: str, digest: str) -> Descriptor:
        source = Layout.open(self._folder)
        roots = list({each.digest: each for each in source.names.values()}.values())
        if len(roots) != 1:
            raise ImageError(f"the base {self._name}: expected a layout with one named image, got {len(roots)}")
        found, _ = source.image(roots[0], Platform.parse(platform))
        if digest and found.digest != digest:
            raise ImageError(
                f"the base {self._name}: expected {digest} of image.lock, got {found.digest}; to build on that, run: "
                f"navarch image lock"
            )
        for each in source.reachable([found]):
            if each.digest not in self._cache:
                with source.path(each.digest).open("rb") as content, self._cache.writing(each) as file:
                    shutil.copyfileobj(content, file, 2**20)
        return found


class DebianSource:
    """A base of Debian packages."""

    def __init__(self, suite: str, packages: Iterable[str], cache: Path, options: DebianOptions) -> None:
        self._names = (*base_packages(suite), *packages)
        self._cache = cache
        self._options = options

    def lock(self, platform: str) -> LockedPlatform:
        """Returns the newest packages of the suite."""
        found = asyncio.run(self._resolve(Platform.parse(platform).architecture))
        glibc = ".".join(map(str, glibc_version(found)))
        return LockedPlatform(
            python=_python_version(found),
            glibc=glibc,
            packages=tuple(LockedPackage(**msgspec.structs.asdict(each)) for each in found),
        )

    def tree(self, platform: str, locked: LockedPlatform) -> Base:
        """Returns the files of the locked packages, with what their maintainer scripts would have made."""
        del platform
        packages = [DebianPackage(**msgspec.structs.asdict(each)) for each in locked.packages]
        return Base(tree=base_tree(asyncio.run(self._fetch(packages))))

    async def _resolve(self, architecture: str) -> tuple[DebianPackage, ...]:
        async with DebianArchive(self._options, self._cache) as archive:
            return await archive.resolve(self._names, architecture)

    async def _fetch(self, packages: list[DebianPackage]) -> list[Path]:
        async with DebianArchive(self._options, self._cache) as archive:
            return await archive.fetch(packages)


def _python_version(packages: Iterable[DebianPackage]) -> str:
    """Returns the whole version: 3.13.5."""
    minor = ".".join(map(str, python_version(packages)))
    package = next(each for each in packages if each.name == f"python{minor}-minimal")
    found = re.match(r"\d+\.\d+\.\d+", DebianVersion(package.version).upstream)
    return found[0] if found else f"{minor}.0"


def open_base(project: Project, cache: BuildCache, registry: RegistryOptions, debian: DebianOptions) -> BaseSource:
    """Returns the base of the project: `debian:SUITE`, `oci:PATH` beside its files, or an image in a registry.

    Raises `ConfigError` for Debian packages on a base that is an image, and `InvalidValueError` for an invalid name.
    """
    name, packages = project.settings.build.base, project.settings.build.packages
    if name.startswith(_DEBIAN):
        suite = name.removeprefix(_DEBIAN)
        return DebianSource(suite, packages, cache.folder / "debian", msgspec.structs.replace(debian, suite=suite))
    if packages:
        raise ConfigError(
            f"[tool.navarch.build] packages: expected none on the base {name}, got {', '.join(packages)}; only bases as "
            f"debian:trixie are made of packages"
        )
    if name.startswith(_LAYOUT):
        return LayoutSource(name, project.root / name.removeprefix(_LAYOUT), cache.layers)
    return RegistrySource(Reference.parse(name), cache.layers, registry)
