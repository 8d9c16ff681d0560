"""`ElfProgram`: what a program for Linux says about itself: its machine, its loader, the libraries that it needs."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Final, NamedTuple

_MAGIC: Final = b"\x7fELF"
_MACHINES: Final = {62: "amd64", 183: "arm64"}
_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_NEEDED, _STRING_TABLE, _END = 1, 5, 0
_HEADER: Final = struct.Struct("<16xHHIQQQIHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_ENTRY: Final = struct.Struct("<qQ")
_64_BIT, _LITTLE_ENDIAN = 2, 1


class ElfProgram(NamedTuple):
    """A program or library of 64 bits. `architecture` is as images name it, or the number of another one."""

    architecture: str
    loader: str
    """The path of the loader that runs it; empty for a static program and for most libraries."""
    needed: tuple[str, ...]
    """The names of the libraries that it is linked with."""

    @classmethod
    def read(cls, path: Path) -> ElfProgram | None:
        """Returns what the file says; None if it is no whole program of 64 bits. Raises `OSError`."""
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return None
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return cls.parse(content)

    @classmethod
    def parse(cls, content: bytes | mmap.mmap) -> ElfProgram | None:
        """Returns what the content of a file says; None if it is no whole program of 64 bits."""
        if content[:4] != _MAGIC or content[4:6] != bytes((_64_BIT, _LITTLE_ENDIAN)):
            return None
        try:
            _, machine, _, _, start, _, _, _, size, count = _HEADER.unpack_from(content)
            segments = [_SEGMENT.unpack_from(content, start + number * size) for number in range(count)]
            loader = [_text(content, each[2]) for each in segments if each[0] == _INTERPRETER]
            return cls(_MACHINES.get(machine, str(machine)), "".join(loader[:1]), _needed(content, segments))
        except (struct.error, ValueError, StopIteration):
            return None


def _needed(content: bytes | mmap.mmap, segments: list[tuple[int, ...]]) -> tuple[str, ...]:
    dynamic = next((each for each in segments if each[0] == _DYNAMIC), None)
    if dynamic is None:
        return ()
    entries = []
    for kind, value in _ENTRY.iter_unpack(content[dynamic[2] : dynamic[2] + dynamic[5] // _ENTRY.size * _ENTRY.size]):
        if kind == _END:
            break
        entries.append((kind, value))
    names = next(value for kind, value in entries if kind == _STRING_TABLE)
    loaded = next(each for each in segments if each[0] == _LOAD and each[3] <= names < each[3] + each[5])
    strings = names - loaded[3] + loaded[2]
    return tuple(_text(content, strings + value) for kind, value in entries if kind == _NEEDED)


def _text(content: bytes | mmap.mmap, start: int) -> str:
    end = content.find(b"\0", start)
    if end < 0:
        raise ValueError("expected a text that ends, got none")
    return content[start:end].decode()
