"""`BuildCache`: wheels, packed layers and unpacked bases that builds share, by what they were made from."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from navarch.errors import ImageError
from navarch.oci.layers import Layer
from navarch.oci.layout import Layout
from navarch.project.image.base import PackedLayer
from navarch.project.image.lock_file import LockedWheel

_FORMAT: Final = 2
"""Part of each key: another builder makes other layers of the same packages."""
_Record = TypeVar("_Record", bound=msgspec.Struct)


def cache_folder() -> Path:
    """Returns the folder of the cache: `$XDG_CACHE_HOME/navarch/image`."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if Path(home).is_absolute() else Path.home() / ".cache") / "navarch" / "image"


def key_of(*parts: object) -> str:
    """Returns the key of what is made from these parts."""
    content = msgspec.json.encode((_FORMAT, *parts), order="deterministic")
    return hashlib.sha256(content).hexdigest()


class BuildCache:
    """A folder of finished things: an entry is there whole or not at all. Removing the folder costs time alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.layers = Layout.create(folder / "layers")

    def wheel(self, wheel: LockedWheel) -> Path:
        """Returns where the wheel is, or would be."""
        return self.folder / "wheels" / wheel.sha256 / wheel.filename

    def add_wheel(self, wheel: LockedWheel, file: Path) -> None:
        """Moves a downloaded wheel into the cache; raises `ImageError` if it is another."""
        found = hashlib.sha256(file.read_bytes()).hexdigest()
        if found != wheel.sha256:
            raise ImageError(f"{wheel.filename}: expected the SHA-256 {wheel.sha256} of image.lock, got {found}")
        target = self.wheel(wheel)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)

    def record(self, key: str, kind: type[_Record]) -> _Record | None:
        """Returns what was recorded under the key; None if nothing was, or if it cannot be read."""
        try:
            return msgspec.json.decode((self.folder / "records" / key).read_bytes(), type=kind)
        except (OSError, msgspec.MsgspecError):
            return None

    def add_record(self, key: str, record: msgspec.Struct) -> None:
        """Records what was made; the layers that it names have to be there."""
        with self._new_file(self.folder / "records" / key) as file:
            file.write_bytes(msgspec.json.encode(record))

    def add_layer(self, layer: Layer) -> PackedLayer:
        """Stores a layer."""
        descriptor = self.layers.add(layer.content, layer.descriptor.media_type)
        return PackedLayer(descriptor=descriptor, diff_id=layer.diff_id)

    def unpacked(self, key: str, write: Callable[[Path], None]) -> Path:
        """Returns the folder of that key; `write` fills a new one if there is none."""
        target = self.folder / "bases" / key
        if not target.is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
            new = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
            try:
                write(new)
                new.rename(target)
            finally:
                shutil.rmtree(new, ignore_errors=True)
        return target

    @contextmanager
    def locked(self, key: str) -> Iterator[None]:
        """Makes other builds wait that want to make the same."""
        with lock_file(self.folder / "locks" / key):
            yield

    @contextmanager
    def _new_file(self, target: Path) -> Iterator[Path]:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=target.parent) as folder:
            file = Path(folder) / target.name
            yield file
            file.replace(target)


@contextmanager
def lock_file(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Holds a lock on the file, which the kernel releases if the process ends; waits for others that hold it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
