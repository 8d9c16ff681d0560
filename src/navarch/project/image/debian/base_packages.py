"""Which packages the base of a Python operator has, and what they say about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from navarch.errors import ImageError
from navarch.project.image.debian.package_index import DebianPackage
from navarch.project.image.debian.versions import DebianVersion

DEFAULT_SUITE: Final = "trixie"
_COMMON: Final = (
    "base-files",  # the folders, /etc/os-release, and the licences that copyright files refer to
    "ca-certificates",
    "libstdc++6",  # wheels may expect it of the system
    "netbase",  # /etc/services and /etc/protocols
    "tzdata",
)
BASE_PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "trixie": (*_COMMON, "libpython3.13-stdlib", "python3.13-minimal"),
    "bookworm": (*_COMMON, "libpython3.11-stdlib", "python3.11-minimal"),
}
"""The packages of a base by suite; resolution adds what they depend on."""
_PYTHON: Final = re.compile(r"python(\d+)\.(\d+)-minimal")


def base_packages(suite: str) -> tuple[str, ...]:
    """Returns the packages of the base; raises `ImageError` for a suite whose Python is not known."""
    if suite not in BASE_PACKAGES:
        raise ImageError(f"expected a Debian suite of {', '.join(BASE_PACKAGES)}, got {suite!r}")
    return BASE_PACKAGES[suite]


def python_version(packages: Iterable[DebianPackage]) -> tuple[int, int]:
    """Returns the version of the Python among the packages: (3, 13). Raises `ImageError` if there is none."""
    for package in packages:
        matched = _PYTHON.fullmatch(package.name)
        if matched is not None:
            return int(matched[1]), int(matched[2])
    raise ImageError("expected a package such as python3.13-minimal among the base's packages, got none")


def glibc_version(packages: Iterable[DebianPackage]) -> tuple[int, int]:
    """Returns the version of the C library: (2, 41), as wheels' tags name it. Raises `ImageError` if there is none."""
    for package in packages:
        if package.name == "libc6":
            major, minor, *_ = DebianVersion(package.version).upstream.split(".")
            return int(major), int(minor)
    raise ImageError("expected the package libc6 among the base's packages, got none")
