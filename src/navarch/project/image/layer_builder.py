"""`LayerBuilder`: the layers that the lock decides, base and dependencies, and the Python that compiles for them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from navarch.errors import ImageError
from navarch.oci.documents import Platform
from navarch.oci.file_tree import FileTree
from navarch.oci.layers import pack
from navarch.project.image.base import Base, BasePython, BaseSource, PackedLayer, environment_of, find_python
from navarch.project.image.build_cache import BuildCache, key_of
from navarch.project.image.bytecode import Interpreter, bytecode_of, interpreter_in, interpreter_of_this_machine
from navarch.project.image.lock_file import ImageLock, LockedPlatform
from navarch.project.image.pip import PipOptions, download
from navarch.project.image.targets import PythonTarget, host_platform, machine_of

_DEBIAN_PACKAGES: Final = "usr/lib/python3"
Progress = Callable[[str], None]


class BaseLayers(msgspec.Struct, frozen=True, kw_only=True):
    """A base, whose layers are in the cache."""

    layers: tuple[PackedLayer, ...]
    python: BasePython
    env: list[str]


class DependenciesLayer(msgspec.Struct, frozen=True, kw_only=True):
    """The dependencies, whose layer is in the cache."""

    layer: PackedLayer
    licenses: dict[str, str]
    """What each wheel says about its licence, by name."""


class LayerBuilder:
    """Builds what a lock decides. What was built before from the same entries of a lock comes from the cache.

    `base` opens the source of bases; it is called when a base is not in the cache.
    """

    def __init__(
        self,
        lock: ImageLock,
        base: Callable[[], BaseSource],
        cache: BuildCache,
        pip: PipOptions,
        progress: Progress,
    ) -> None:
        self._lock = lock
        self._base = base
        self._cache = cache
        self._pip = pip
        self._progress = progress
        self._trees: dict[str, Base] = {}

    def interpreter(self) -> Interpreter:
        """Returns the Python of the base for this machine or, for other machines, one of the same version.

        Raises `ImageError` if there is none, and if the platforms have different versions of Python.
        """
        versions = {_minor(locked.python) for locked in self._lock.platforms.values()}
        version = versions.pop()
        if versions:
            raise ImageError(
                f"image.lock: expected one version of Python for all platforms, got {', '.join(sorted({version, *versions}))}"
            )
        platform = host_platform()
        if platform not in self._lock.platforms:
            return interpreter_of_this_machine(version)
        key = key_of("interpreter", self._base_key(platform), str(self._cache.folder))
        with self._cache.locked(key):
            found = self._cache.record(key, Interpreter)
            if found is None or not Path(found.argv[0]).is_file():
                base = self._tree(platform)
                python = find_python(base, self._lock.base)
                root = self._cache.unpacked(key, base.tree.write_to)
                found = interpreter_in(root, base.tree, python, machine_of(platform))
                self._cache.add_record(key, found)
        return found

    def base(self, platform: str, interpreter: Interpreter) -> BaseLayers:
        """Returns the base for the platform: its own layers or, of packages, one with the bytecode of their modules."""
        key = key_of("base", self._base_key(platform), interpreter.version)
        with self._cache.locked(key):
            found = self._cache.record(key, BaseLayers)
            if found is None or not all(each.descriptor.digest in self._cache.layers for each in found.layers):
                base = self._tree(platform)
                python = find_python(base, self._lock.base)
                layers = base.layers or (self._packed_base(platform, base, python, interpreter),)
                found = BaseLayers(layers=layers, python=python, env=environment_of(base))
                self._cache.add_record(key, found)
        return found

    def dependencies(self, platform: str, base: BaseLayers, interpreter: Interpreter) -> DependenciesLayer:
        """Returns the layer of the locked wheels, with their bytecode and with that of a base that has none."""
        wheels = self._lock.platforms[platform].wheels
        key = key_of("dependencies", self._base_key(platform), interpreter.version, wheels)
        with self._cache.locked(key):
            found = self._cache.record(key, DependenciesLayer)
            if found is None or found.layer.descriptor.digest not in self._cache.layers:
                found = self._packed_dependencies(platform, base, interpreter)
                self._cache.add_record(key, found)
        return found

    def _packed_base(self, platform: str, base: Base, python: BasePython, interpreter: Interpreter) -> PackedLayer:
        self._progress(f"{platform}: packing the base")
        tree = FileTree()
        tree.update(base.tree)
        tree.update(bytecode_of(base.tree, interpreter, python.stdlib, _DEBIAN_PACKAGES))
        return self._cache.add_layer(pack(tree))

    def _packed_dependencies(self, platform: str, base: BaseLayers, interpreter: Interpreter) -> DependenciesLayer:
        from navarch.project.image.wheels import install_wheel  # noqa: PLC0415 - builds from the cache start sooner

        locked = self._lock.platforms[platform]
        self._download(platform, locked)
        self._progress(f"{platform}: packing {len(locked.wheels)} wheels")
        tree, site = FileTree(), base.python.site
        machine = machine_of(platform)
        licenses = {
            each.name: install_wheel(self._cache.wheel(each), each, tree, site, machine)
            for each in sorted(locked.wheels)
        }
        files = self._tree(platform).tree
        for path, entry in tree:
            if entry.kind == "file" and path in files and not path.startswith(f"{site.path}/"):
                raise ImageError(f"/{path}: expected wheels that add to the base, got one that replaces a file of it")
        bytecode = bytecode_of(tree, interpreter, site.path)
        if locked.base and f"{base.python.stdlib}/__pycache__" not in files:
            bytecode.update(bytecode_of(files, interpreter, base.python.stdlib))
        tree.update(bytecode)
        return DependenciesLayer(layer=self._cache.add_layer(pack(tree)), licenses=licenses)

    def _download(self, platform: str, locked: LockedPlatform) -> None:
        target = PythonTarget(platform=Platform.parse(platform), python=locked.python, glibc=locked.glibc)
        for wheel in locked.wheels:
            target.check(wheel.filename)
        missing = [each for each in locked.wheels if not self._cache.wheel(each).is_file()]
        if not missing:
            return
        self._progress(f"{platform}: downloading {len(missing)} wheels")
        with tempfile.TemporaryDirectory(prefix=".new-", dir=self._cache.folder) as folder:
            download(missing, target, Path(folder), self._pip)
            for wheel in missing:
                file = Path(folder) / wheel.filename
                if not file.is_file():
                    raise ImageError(
                        f"expected pip to download {wheel.filename}, got other files; run: navarch image lock"
                    )
                self._cache.add_wheel(wheel, file)

    def _tree(self, platform: str) -> Base:
        if platform not in self._trees:
            self._progress(f"{platform}: fetching the base")
            self._trees[platform] = self._base().tree(platform, self._lock.platforms[platform])
        return self._trees[platform]

    def _base_key(self, platform: str) -> str:
        locked = self._lock.platforms[platform]
        return key_of(self._lock.base if locked.packages else "", platform, locked.base, locked.packages)


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
