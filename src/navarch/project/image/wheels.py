"""Installs wheels into a file tree, at the places where an image's Python looks for them."""

from __future__ import annotations

import base64
import hashlib
import warnings
import zipfile
from collections.abc import Iterable
from email.parser import HeaderParser
from pathlib import Path
from typing import BinaryIO, Final, Literal

from installer import install
from installer.destinations import WheelDestination
from installer.exceptions import InstallerError
from installer.records import Hash, RecordEntry
from installer.sources import WheelFile
from installer.utils import Scheme, construct_record_file
from packaging.utils import canonicalize_name
from packaging.version import Version

from navarch.errors import ImageError
from navarch.oci.file_tree import FileTree
from navarch.project.image.elf import is_elf, machine_of_elf, without_symbols
from navarch.project.image.lock_file import LockedWheel
from navarch.project.image.site_folder import SCRIPTS, SiteFolder

LARGEST_WHEEL: Final = 2**30
"""The bytes of a wheel's files that we unpack, so that a small wheel cannot fill memory."""
_DATA: Final = "usr/local"
_SCRIPT_PREFIX: Final = b"#!python"


def install_wheel(file: Path, wheel: LockedWheel, tree: FileTree, site: SiteFolder, machine: str) -> str:
    """Adds the files of the wheel to the tree, and returns its licence.

    Machine code loses its symbols for debuggers, most of its bytes in many wheels. Raises `ImageError` for a wheel of
    another digest or name, a damaged one, one with machine code for another machine, and one with files outside its
    folders.
    """
    content = file.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != wheel.sha256:
        raise ImageError(f"{wheel.filename}: expected the SHA-256 {wheel.sha256} of image.lock, got {found}")
    try:
        with WheelFile.open(file) as source, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a wheel with bytecode: ours takes its place
            _check_size(source)
            install(source, _TreeDestination(tree, site, machine), {"INSTALLER": b"navarch\n"})
            return _license(source.read_dist_info("METADATA"), wheel)
    except ImageError as error:
        raise ImageError(f"{wheel.filename}: {error}") from None
    except (InstallerError, zipfile.BadZipFile, KeyError, ValueError, EOFError, AssertionError) as error:
        raise ImageError(
            f"{wheel.filename}: expected a wheel, got a damaged one: {str(error) or type(error).__name__}"
        ) from None


class _TreeDestination(WheelDestination):
    """Where the files of one wheel go."""

    def __init__(self, tree: FileTree, site: SiteFolder, machine: str) -> None:
        self._tree = tree
        self._site = site
        self._machine = machine

    def write_script(self, name: str, module: str, attr: str, section: Literal["console", "gui"]) -> RecordEntry:
        """Adds the program of an entry point."""
        del section
        return _record(name, self._site.add_script(self._tree, name, module, attr))

    def write_file(self, scheme: Scheme, path: object, stream: BinaryIO, is_executable: bool) -> RecordEntry:
        """Adds a file; C headers are left out, since nothing is compiled in the image."""
        place = str(path)
        content = self._code(stream.read(), place)
        if scheme == "scripts" and content.startswith(_SCRIPT_PREFIX):
            content = f"#!{self._site.python}\n".encode() + content.partition(b"\n")[2]
        if scheme != "headers":
            mode = 0o755 if is_executable or scheme == "scripts" else 0o644
            self._tree.add_file(f"{self._folder(scheme)}/{place}", content, mode=mode)
        return _record(place, content)

    def finalize_installation(
        self, scheme: Scheme, record_file_path: str, records: Iterable[tuple[Scheme, RecordEntry]]
    ) -> None:
        """Adds the list of the installed files."""
        up = "../" * len(self._site.path.split("/"))
        prefixes = {each: f"{up}{self._folder(each)}/" for each in ("scripts", "data")}
        written = [(each, record) for each, record in records if each != "headers"]
        listed = construct_record_file(written, prefixes.get)
        self._tree.add_file(f"{self._folder(scheme)}/{record_file_path}", listed.read())

    def _code(self, content: bytes, path: str) -> bytes:
        if not is_elf(content):
            return content
        found = machine_of_elf(content, path)
        if found != self._machine:
            raise ImageError(f"{path}: expected code for {self._machine}, got code for {found}")
        return without_symbols(content, path)

    def _folder(self, scheme: str) -> str:
        return {"scripts": SCRIPTS, "data": _DATA}.get(scheme, self._site.path)


def _check_size(source: WheelFile) -> None:
    size = sum(each.file_size for each in source._zipfile.infolist())  # noqa: SLF001 - it has no public way to the sizes
    if size > LARGEST_WHEEL:
        raise ImageError(f"expected at most {LARGEST_WHEEL} bytes of files, got {size}")


def _record(path: str, content: bytes) -> RecordEntry:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return RecordEntry(path, Hash("sha256", digest), len(content))


def _license(metadata: str, wheel: LockedWheel) -> str:
    """Returns what the wheel's metadata says about its licence; raises `ImageError` if it is of another distribution."""
    headers = HeaderParser().parsestr(metadata)
    found = canonicalize_name(str(headers["Name"])), Version(str(headers["Version"]))
    if found != (wheel.name, Version(wheel.version)):
        raise ImageError(f"expected {wheel.name} {wheel.version} of image.lock, got {found[0]} {found[1]}")
    stated = str(headers.get("License-Expression") or headers.get("License") or "").strip()
    return stated if "\n" not in stated else ""
