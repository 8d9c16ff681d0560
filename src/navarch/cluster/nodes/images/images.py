"""`Images`: maps image names to programs of this machine, and to unpacked images."""

from __future__ import annotations

import logging
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from navarch.cluster.nodes.images.image import Image
from navarch.cluster.nodes.images.installed import installed_images
from navarch.errors import ConfigError, ContainerError, InvalidValueError

_log = logging.getLogger("navarch.nodes")

_VARIABLE: Final = "NAVARCH_IMAGES"
_MOST_BYTES: Final = 2**20
_MOST_UNTAGGED: Final = 10  # as many as a Deployment has revisions
_AT_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_REMEDY: Final = "fix the file, or remove it to have no added images"


class Images:
    """The images of a cluster: the programs found on this machine, and the added images.

    Added images come first, the newest of them before all. With a `path` they are stored in that file, which other
    processes may change. While the file cannot be read, the last images stay in force, and `fault` has the reason.
    """

    def __init__(self, added: tuple[Image, ...] = (), *, path: Path | None = None) -> None:
        self._added = list(added)
        self._path = path
        self._version: _Version | None = None
        self._installed: tuple[Image, ...] | None = None
        self._held: Counter[str] = Counter()
        self.fault: str | None = None

    @classmethod
    def load(cls, path: Path) -> Images:
        """Returns the images stored in the file; an absent file has none. Raises `ConfigError` for an invalid file."""
        images = cls(path=path)
        images._read_again()
        return images

    def refresh(self) -> None:
        """Reads the file again if it changed; an invalid file is logged once and changes nothing."""
        try:
            self._read_again()
        except ConfigError as error:
            if self.fault != str(error):
                _log.error("%s; the last images stay in force until then", error)
            self.fault = str(error)

    def _read_again(self) -> None:
        if self._path is None:
            return
        version = _version_of(self._path)
        if version == self._version and self.fault is None:
            return
        self._added = list(_read(self._path)) if version is not None else []
        if self.fault is not None:
            _log.info("the file of images %s is valid again", self._path)
        self._version, self.fault = version, None

    def __iter__(self) -> Iterator[Image]:
        self.refresh()
        return iter((*reversed(self._added), *self.installed))

    @property
    def installed(self) -> tuple[Image, ...]:
        """Returns the programs found on this machine, searched once. Raises `ConfigError` if the file that the
        environment names is invalid.
        """
        if self._installed is None:
            named = os.environ.get(_VARIABLE)
            self._installed = (*(_read(Path(named)) if named else ()), *installed_images())
        return self._installed

    def add(self, image: Image) -> None:
        """Adds the image, and replaces one of the same name and version. Raises `ConfigError` if the file is invalid.

        The last unpacked images that lost their tag to it are still found by their digests, so that a rollout can be undone.
        """
        self._read_again()
        others = [known for known in self._added if known.identity != image.identity and not known.is_part_of(image)]
        untagged = [
            msgspec.structs.replace(known, version="")
            for known in self._added
            if known.identity == image.identity and known.root not in {"", image.root}
        ]
        self._added = [*_without_oldest([*others, *untagged], image.name), image]
        self._save()

    def remove(self, identity: str) -> None:
        """Removes an added image; raises `InvalidValueError` if there is none of that name."""
        self._read_again()
        left = [known for known in self._added if identity not in {known.identity, known.name}]
        if len(left) == len(self._added):
            names = ", ".join(known.identity for known in self._added) or "none"
            raise InvalidValueError(f"expected an image that was added, got {identity!r}; added were: {names}")
        self._added = left
        self._save()

    def roots(self) -> set[str]:
        """Returns the folders of the unpacked images that have a name or are held. Raises `ConfigError` if the file is
        invalid.
        """
        self._read_again()
        return {image.root for image in self._added if image.root} | {*+self._held}

    @contextmanager
    def hold(self, image: Image) -> Iterator[None]:
        """Keeps the files of an unpacked image while the block lasts, also if the image loses its name."""
        self._held[image.root] += 1
        try:
            yield
        finally:
            self._held[image.root] -= 1

    def find(self, name: str) -> Image:
        """Returns the image for a container's reference; raises `ContainerError` with the known images."""
        found = next((image for image in self if image.fits(name)), None)
        if found is None:
            known = ", ".join(sorted({image.identity for image in self}))
            raise ContainerError(
                f'failed to pull and unpack image "{name}": not found; this machine has {known}; '
                f"`navarch image load` loads an image, `navarch cluster image add` registers a program under a name"
            )
        return found

    def _save(self) -> None:
        if self._path is None:
            return
        fresh = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_bytes(msgspec.json.format(msgspec.json.encode(self._added)))
            fresh.replace(self._path)
        except OSError as error:
            raise ConfigError(f"cannot write {self._path}: {error}") from error
        self._version = _version_of(self._path)


def _without_oldest(images: list[Image], name: str) -> list[Image]:
    """Returns the images without those of that name that have no tag, but for the newest."""
    untagged = [image for image in images if image.root and image.name == name and not image.version]
    dropped = {image.identity for image in untagged[:-_MOST_UNTAGGED]}
    return [image for image in images if image.identity not in dropped]


_Version = tuple[int, int, int]


def _version_of(path: Path) -> _Version | None:
    """Returns a stamp of the file that differs after each write; None if there is no file. Raises `ConfigError`."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: {error}; {_REMEDY}") from error
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: Path) -> tuple[Image, ...]:
    """Returns the images in the file; raises `ConfigError` if it is no list of images."""
    content = b""
    try:
        content = _content(path)
        return msgspec.json.decode(content, type=tuple[Image, ...])
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError, InvalidValueError) as error:
        raise ConfigError(
            f"{path}{_line(content, str(error))}: expected a list of images as JSON, got something else: {error}; {_REMEDY}"
        ) from error


def _content(path: Path) -> bytes:
    """Returns the content of a regular file; does not block on a pipe."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(file, "rb") as opened:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is no regular file")
        if found.st_size > _MOST_BYTES:
            raise OSError(f"it has {found.st_size} bytes, more than {_MOST_BYTES}")
        return opened.read(_MOST_BYTES)


def _line(content: bytes, error: str) -> str:
    """Returns the line at which the decoder failed, if its error has a position."""
    found = _AT_BYTE.search(error)
    end = int(found[1]) if found else len(content) if "truncated" in error else None
    return f", line {content.count(10, 0, end) + 1}" if content and end is not None else ""
