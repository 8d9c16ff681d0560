"""`Base`: the files of a base for one platform, and its Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from navarch.errors import ImageError
from navarch.oci.documents import Descriptor
from navarch.oci.file_tree import FileTree
from navarch.project.image.lock_file import LockedPlatform
from navarch.project.image.site_folder import SiteFolder

DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CA_BUNDLE: Final = "etc/ssl/certs/ca-certificates.crt"
_PREFERRED: Final = "usr/local/bin/python3"
_NAME: Final = re.compile(r"python(3\.\d+)")
_GLIBC: Final = re.compile(rb"GNU C Library [^\n]{0,200}? version (\d+\.\d+)")
_GLIBC_FOLDERS: Final = ("lib/{}-linux-gnu", "usr/lib/{}-linux-gnu", "lib64", "usr/lib64", "lib", "usr/lib")


class PackedLayer(msgspec.Struct, frozen=True, kw_only=True):
    """A layer in a layout."""

    descriptor: Descriptor
    diff_id: str


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """A base for one platform."""

    tree: FileTree
    layers: tuple[PackedLayer, ...] = ()
    """The layers as they are; none if the files are to be packed."""
    env: tuple[str, ...] = ()
    """The environment that its configuration sets."""

    @property
    def variables(self) -> dict[str, str]:
        """Returns the environment by name."""
        return dict(each.partition("=")[::2] for each in self.env)


class BasePython(msgspec.Struct, frozen=True, kw_only=True):
    """The Python of a base."""

    executable: str
    """The path without a slash at its start, as PATH finds it: usr/local/bin/python3."""
    version: str
    """The whole version, as far as the base states it: 3.13.5."""
    stdlib: str
    """The folder of the standard library."""
    site: SiteFolder

    @property
    def minor(self) -> str:
        """Returns the version without its last part."""
        return ".".join(self.version.split(".")[:2])


class BaseSource(Protocol):
    """A base, for each of its platforms."""

    def lock(self, platform: str) -> LockedPlatform:
        """Returns what the base is today, without wheels; raises `ImageError` if it cannot be had for the platform."""
        ...

    def tree(self, platform: str, locked: LockedPlatform) -> Base:
        """Returns the files of the base as it was locked; the layers that it names are in the cache then."""
        ...


def find_python(base: Base, name: str) -> BasePython:
    """Returns the Python that PATH finds; raises `ImageError` for a base without one."""
    tree, variables = base.tree, base.variables
    folders = variables.get("PATH", DEFAULT_PATH).split(":")
    places = [_PREFERRED, *(f"{folder.strip('/')}/python3" for folder in folders)]
    found = ((place, tree.resolve(place)) for place in places if tree.read(place) is not None)
    for place, program in found:
        version = _NAME.fullmatch((program or "").rpartition("/")[2])
        if version is not None and program is not None:
            prefix = program.rpartition("/bin/")[0]
            return BasePython(
                executable=place,
                version=_whole_version(version[1], variables.get("PYTHON_VERSION", "")),
                stdlib=f"{prefix}/lib/python{version[1]}",
                site=SiteFolder(python=f"/{place}", path=_site(tree, prefix, version[1])),
            )
    raise ImageError(
        f"the base {name}: expected python3 with its version in {':'.join(folders)}, got none; name another base"
    )


def find_glibc(tree: FileTree, machine: str, name: str) -> str:
    """Returns the version of the C library; raises `ImageError` for a base without glibc."""
    for folder in _GLIBC_FOLDERS:
        content = tree.read(f"{folder.format(machine)}/libc.so.6")
        version = _GLIBC.search(content) if content is not None else None
        if version is not None:
            return version[1].decode()
    raise ImageError(
        f"the base {name}: expected the C library glibc, got none: wheels for Linux need it; name another base"
    )


def _whole_version(minor: str, stated: str) -> str:
    return stated if stated.startswith(f"{minor}.") else f"{minor}.0"


def _site(tree: FileTree, prefix: str, version: str) -> str:
    """Returns where this Python looks for packages: Debian's own looks elsewhere."""
    if prefix == "usr" and "usr/lib/python3" in tree:
        return f"usr/local/lib/python{version}/dist-packages"
    return f"{prefix}/lib/python{version}/site-packages"


def environment_of(base: Base) -> list[str]:
    """Returns the environment of the image: the base's, with what a Python in a container needs."""
    variables = {"PATH": DEFAULT_PATH, **base.variables}
    variables |= {"LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
    if CA_BUNDLE in base.tree:
        variables["SSL_CERT_FILE"] = f"/{CA_BUNDLE}"
    return [f"{name}={value}" for name, value in sorted(variables.items())]


def layers_of(found: Sequence[Descriptor], diff_ids: Sequence[str]) -> tuple[PackedLayer, ...]:
    """Returns the layers of a manifest with the diff ids of its configuration."""
    return tuple(PackedLayer(descriptor=each, diff_id=diff) for each, diff in zip(found, diff_ids, strict=True))
