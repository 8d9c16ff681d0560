"""ELF files, the machine code in wheels: for which machine they are, and without what only debuggers read."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from navarch.errors import ImageError

_MAGIC: Final = b"\x7fELF"
_64_BIT_LITTLE_ENDIAN: Final = b"\x02\x01"
_MACHINES: Final = {62: "x86_64", 183: "aarch64"}
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")


class _ElfHeader(NamedTuple):
    ident: bytes
    kind: int
    machine: int
    version: int
    entry: int
    segments: int
    sections: int
    flags: int
    header_size: int
    segment_size: int
    segment_count: int
    section_size: int
    section_count: int
    section_names: int


def is_elf(content: bytes) -> bool:
    """Returns whether the content is a program, a library or an extension module."""
    return content.startswith(_MAGIC)


def machine_of_elf(content: bytes, where: str) -> str:
    """Returns the machine as Linux names it, or its number in ELF; raises `ImageError` for a damaged file."""
    found = _header(content, where).machine
    return _MACHINES.get(found, f"machine {found}")


def without_symbols(content: bytes, where: str) -> bytes:
    """Returns the file without what its segments do not hold: symbols for debuggers, and the table of sections.

    The loader reads segments alone, so the program is the same. Raises `ImageError` for a damaged file.
    """
    header = _header(content, where)
    end = header.segments + header.segment_count * header.segment_size
    for at in range(header.segment_count):
        try:
            segment = _SEGMENT.unpack_from(content, header.segments + at * header.segment_size)
        except struct.error:
            raise ImageError(f"{where}: expected a whole ELF file, got a damaged one") from None
        end = max(end, segment[2] + segment[5])
    if not header.segment_count or end > len(content):
        return content
    bare = header._replace(sections=0, section_size=0, section_count=0, section_names=0)
    return _HEADER.pack(*bare) + content[_HEADER.size : end]


def _header(content: bytes, where: str) -> _ElfHeader:
    if not is_elf(content) or content[4:6] != _64_BIT_LITTLE_ENDIAN or len(content) < _HEADER.size:
        raise ImageError(f"{where}: expected an ELF file of 64 bits, got another")
    return _ElfHeader(*_HEADER.unpack_from(content))
