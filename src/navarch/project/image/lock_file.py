"""`ImageLock`: the file `image.lock`, which pins everything of an image but the project's own code."""

from __future__ import annotations

import hashlib
import re
from typing import Final

import msgspec

from navarch.errors import ImageError
from navarch.oci.documents import Platform
from navarch.oci.reference import is_digest
from navarch.project.files import read_text, write_files
from navarch.project.image.project_metadata import ProjectMetadata
from navarch.project.project import Project

LOCK_FILE: Final = "image.lock"
_VERSION: Final = 1
_WHEEL: Final = re.compile(r"([A-Za-z0-9_.]+)-[A-Za-z0-9_.!+]+(?:-[A-Za-z0-9_.]+){3,4}\.whl")
_RELOCK: Final = "run: navarch image lock"


class LockedWheel(msgspec.Struct, frozen=True, kw_only=True, order=True, forbid_unknown_fields=True):
    """A wheel."""

    name: str
    version: str
    filename: str
    sha256: str


class LockedPackage(msgspec.Struct, frozen=True, kw_only=True, order=True, forbid_unknown_fields=True):
    """A Debian package: any mirror has it below that path."""

    name: str
    version: str
    architecture: str
    path: str
    sha256: str
    size: int


class LockedPlatform(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An image for one platform. Its base is a list of Debian packages, or one image by its digest."""

    python: str
    glibc: str
    base: str = ""
    """The digest of the base's manifest; empty for Debian packages."""
    packages: tuple[LockedPackage, ...] = ()
    wheels: tuple[LockedWheel, ...] = ()


class ImageLock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an image is built from. It has neither hosts nor paths, so it is the same on every machine."""

    version: int
    inputs: str
    """The digest of what decided: see `inputs_of`."""
    base: str
    platforms: dict[str, LockedPlatform]

    @staticmethod
    def read(project: Project, inputs: str) -> ImageLock:
        """Returns the lock of the project. Raises `ImageError` if it is missing, malformed, or stale."""
        text = read_text(project.root / LOCK_FILE)
        if text is None:
            raise ImageError(f"expected {LOCK_FILE} in the project, got none; {_RELOCK}")
        try:
            found = msgspec.json.decode(text, type=ImageLock)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ImageError(
                f"{LOCK_FILE}: expected a lock as it was written, got another: {error}; {_RELOCK}"
            ) from None
        if found.version != _VERSION:
            raise ImageError(f"{LOCK_FILE}: expected version {_VERSION}, got {found.version}; {_RELOCK}")
        if found.inputs != inputs:
            raise ImageError(f"{LOCK_FILE} is stale: pyproject.toml has changed since; {_RELOCK}")
        for name, platform in found.platforms.items():
            _check(name, platform)
        return found

    def write(self, project: Project) -> bool:
        """Writes the lock into the project, and returns whether it changed."""
        return bool(write_files(project.root, {LOCK_FILE: self.text()}))

    def text(self) -> str:
        """Returns the content of the file: each wheel and package has one line, so that a diff shows what changed."""
        platforms = ",\n".join(f"    {_json(name)}: {_block(each)}" for name, each in sorted(self.platforms.items()))
        head = "".join(f'  "{name}": {_json(getattr(self, name))},\n' for name in ("version", "inputs", "base"))
        return f'{{\n{head}  "platforms": {{\n{platforms}\n  }}\n}}\n'


def new_lock(inputs: str, base: str, platforms: dict[str, LockedPlatform]) -> ImageLock:
    """Returns a lock in the format of this version."""
    return ImageLock(version=_VERSION, inputs=inputs, base=base, platforms=platforms)


def inputs_of(project: Project) -> str:
    """Returns the digest of what the project's lock depends on: its requirements, and its settings of the build.

    The order of entries has no influence. Raises `ConfigError` for dependencies that `pyproject.toml` does not list.
    """
    build, metadata = project.settings.build, ProjectMetadata.of(project)
    requirements = metadata.requirements(build.extras)
    inputs = [
        _VERSION,
        build.base,
        metadata.requires_python,
        sorted(build.platforms),
        sorted(build.packages),
        requirements,
    ]
    return f"sha256:{hashlib.sha256(msgspec.json.encode(inputs)).hexdigest()}"


def _block(platform: LockedPlatform) -> str:
    fields = {name: getattr(platform, name) for name in platform.__struct_fields__}
    lines = [f'      "{name}": {_value(value)}' for name, value in fields.items() if value != ""]
    return "{\n" + ",\n".join(lines) + "\n    }"


def _value(value: str | tuple[msgspec.Struct, ...]) -> str:
    if isinstance(value, str):
        return _json(value)
    rows = ",\n".join(f"        {_json(each)}" for each in sorted(value, key=_json))
    return f"[\n{rows}\n      ]" if rows else "[]"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _check(name: str, platform: LockedPlatform) -> None:
    """Raises `ImageError` for entries that no lock of ours has: they would lead elsewhere, or name other files."""
    where = f"{LOCK_FILE}: {Platform.parse(name)}"
    if bool(platform.base) == bool(platform.packages) or (platform.base and not is_digest(platform.base)):
        raise ImageError(f"{where}: expected packages or the digest of a base, got {platform.base or 'both or none'!r}")
    for wheel in platform.wheels:
        if not is_digest(f"sha256:{wheel.sha256}"):
            raise ImageError(f"{where}: {wheel.name}: expected a SHA-256 of 64 digits, got {wheel.sha256!r}; {_RELOCK}")
        named = _WHEEL.fullmatch(wheel.filename)
        if named is None:
            raise ImageError(f"{where}: expected the name of a wheel, got {wheel.filename!r}; {_RELOCK}")
        if re.sub("[-_.]+", "-", named[1]).lower() != wheel.name:
            raise ImageError(f"{where}: expected a wheel of {wheel.name}, got {wheel.filename}; {_RELOCK}")
