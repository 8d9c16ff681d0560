"""`ImagePrograms`: runs programs of an unpacked image where containers have no root file system of their own.

The image stays in its folder, and its paths are replaced by where they are there. A program is run by the loader of the
image with the libraries of the image, a script by the interpreter of the image.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from navarch.cluster.nodes.runtime import ContainerConfig, Mount
from navarch.errors import ContainerError
from navarch.oci.documents import Platform
from navarch.oci.elf import ElfProgram

_PATH: Final = re.compile(r"(?:(?<![\w./@-])|(?<=://))/[\w.@+%/-]+")
_OF_MACHINE: Final = ("/dev", "/proc", "/sys", "/tmp", "/run", "/var/run", "/var/tmp")  # noqa: S108 - no file is made
"""Folders of this machine in every container: an image has nothing in them that a program reads."""
_LIBRARIES: Final = ("usr/local/lib", "lib", "usr/lib", "lib64", "usr/lib64")
_CONFIGURED: Final = "etc/ld.so.conf.d/*.conf"
_NO_CACHE: Final = b"--inhibit-cache"
_MOST_INTERPRETERS: Final = 4
_LONGEST_LINE: Final = 256


class ImagePrograms:
    """The programs of one container. Its `volumes` have programs too, which the interpreters of the image run.

    A path in a text is replaced if the image has something there, unless this machine's own is meant (/tmp, /proc).
    """

    def __init__(self, root: Path, volumes: Iterable[Mount] = ()) -> None:
        self._root = root
        self._volumes = tuple(each.source for each in volumes)

    def in_text(self, text: str) -> str:
        """Returns the text with paths of the image replaced by where they are."""
        return _PATH.sub(lambda found: str(self._place(found[0]) or found[0]), text)

    def _place(self, path: str) -> Path | None:
        """Returns where the path of the image is on this machine; None if the image does not have it."""
        normal = Path(os.path.normpath(path))
        if len(normal.parts) < 2 or self._is_ours(normal) or any(normal.is_relative_to(each) for each in _OF_MACHINE):
            return None
        place = self._root.joinpath(*normal.parts[1:])
        return place if place.exists() else None

    def _is_ours(self, path: Path) -> bool:
        """Returns whether a path of this machine is in the image or in a volume."""
        return any(path.is_relative_to(each) for each in (self._root, *self._volumes))

    def in_launch(self, launch: ContainerConfig) -> ContainerConfig:
        """Returns the configuration with replaced paths and a command that runs on this machine; raises `ContainerError`."""
        env = {name: self.in_text(value) for name, value in launch.env.items()}
        folder = self.in_text(launch.folder)
        return msgspec.structs.replace(
            launch,
            argv=self.command(launch.argv, env, folder),
            env=env,
            folder=folder,
            mounts=(*launch.mounts, *self._only_here()),
        )

    def _only_here(self) -> Iterator[Mount]:
        """Yields the folders at the image's top that this machine does not have: programs find them at their paths."""
        for each in sorted(self._root.iterdir()):
            if not each.is_symlink() and not os.path.lexists(f"/{each.name}"):
                yield Mount(each, f"/{each.name}", read_only=True)

    def command(self, argv: tuple[str, ...], env: Mapping[str, str], folder: str) -> tuple[str, ...]:
        """Returns the command line that runs the program of the image; raises `ContainerError` as runtimes word it."""
        program = self._found(argv[0], env.get("PATH", ""), folder)
        if program is None:
            place = "executable file not found in $PATH" if "/" not in argv[0] else "no such file or directory"
            raise ContainerError(f'exec: "{argv[0]}": {place}')
        return (*self._run(program, _MOST_INTERPRETERS), *map(self.in_text, argv[1:]))

    def _found(self, program: str, path: str, folder: str) -> Path | None:
        """Returns the program's file: one of the image or of a volume, never one of this machine."""
        if "/" in program:
            found = Path(os.path.normpath(Path(folder, self.in_text(program))))
            return found if self._is_ours(found) and found.is_file() else None
        candidates = [Path(each, program) for each in path.split(":") if self._is_ours(Path(each))]
        return next((each for each in candidates if each.is_file() and os.access(each, os.X_OK)), None)

    def _run(self, program: Path, left: int) -> tuple[str, ...]:
        """Returns the beginning of the command line, up to the program."""
        try:
            found = ElfProgram.read(program)
            line = b"" if found is not None else _first_line(program)
        except OSError as error:
            raise ContainerError(f'exec: "{program}": {(error.strerror or str(error)).lower()}') from error
        if found is not None and found.architecture == Platform.of_machine().architecture:
            return (*self._loaded(program, found), str(program))
        if line.startswith(b"#!") and left:
            interpreter, _, argument = os.fsdecode(line[2:]).strip().partition(" ")
            place = self._place(interpreter)
            if place is None:
                raise ContainerError(
                    f'exec: "{program}": expected its interpreter {interpreter} in the image, got none'
                )
            return (*self._run(place, left - 1), *filter(None, [self.in_text(argument.strip())]), str(program))
        raise ContainerError(f'exec: "{program}": {os.strerror(errno.ENOEXEC).lower()}')

    def _loaded(self, program: Path, found: ElfProgram) -> tuple[str, ...]:
        if not found.loader:
            return ()
        loader = self._place(found.loader)
        if loader is None:
            raise ContainerError(f'exec: "{program}": expected its loader {found.loader} in the image, got none')
        no_cache = [_NO_CACHE.decode()] if _NO_CACHE in loader.read_bytes() else []  # musl has neither
        return (str(loader), *no_cache, "--library-path", ":".join(self._libraries()))

    def _libraries(self) -> Iterator[str]:
        """Yields the folders of libraries: those that the image configures, and the usual ones with their architecture."""
        triplet = f"{os.uname().machine}-linux-gnu"
        usual = (each for folder in _LIBRARIES for each in (f"{folder}/{triplet}", folder))
        for path in dict.fromkeys((*self._configured(), *usual)):
            place = self._root / path.lstrip("/")
            if place.is_dir():
                yield str(place)

    def _configured(self) -> Iterator[str]:
        for file in sorted(self._root.glob(_CONFIGURED)):
            lines = file.read_text(errors="replace").splitlines()
            yield from (line.strip() for line in lines if line.startswith("/"))


def _first_line(program: Path) -> bytes:
    with program.open("rb") as file:
        return file.readline(_LONGEST_LINE)
