"""`PackageIndex`: the packages that suites offer for one architecture, from their files `Packages`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from navarch.errors import ImageError
from navarch.project.image.debian.control import parse_paragraph
from navarch.project.image.debian.relations import Relation, parse_relations
from navarch.project.image.debian.versions import DebianVersion

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_PATH: Final = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9+._~/%-]*\.deb")
_LARGEST_PACKAGE: Final = 2**30


class DebianPackage(msgspec.Struct, frozen=True, kw_only=True, order=True, forbid_unknown_fields=True):
    """A package as a lock names it: any mirror has it below that path."""

    name: str
    version: str
    architecture: str
    """`all` for a package without machine code."""
    path: str
    """Below the mirror's address: pool/main/z/zlib/zlib1g_1.3_amd64.deb."""
    sha256: str
    size: int

    def __post_init__(self) -> None:
        if (
            not _SHA256.fullmatch(self.sha256)
            or not _PATH.fullmatch(self.path)
            or not 0 < self.size <= _LARGEST_PACKAGE
        ):
            raise ImageError(
                f"the Debian package {self.name}: expected a path below the mirror, a SHA-256 and a size, got "
                f"{self.path[:200]!r}, {self.sha256[:80]!r} and {self.size}"
            )


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A package that can be chosen, with what it needs."""

    package: DebianPackage
    depends: tuple[tuple[Relation, ...], ...]
    """All of them are needed, of each one alternative; `Pre-Depends` first."""
    conflicts: tuple[Relation, ...]
    """What cannot be in one image with it: `Conflicts` and `Breaks`."""
    provides: tuple[Relation, ...]

    @property
    def name(self) -> str:
        return self.package.name

    def satisfies(self, relation: Relation) -> bool:
        """Returns whether the package is what the relation asks for, by its own name or one that it provides."""
        if relation.name == self.name:
            return relation.allows(self.package.version)
        return any(
            each.name == relation.name
            and (not relation.operator or (each.operator == "=" and relation.allows(each.version)))
            for each in self.provides
        )


class PackageIndex:
    """The packages of suites. Only paragraphs that are asked for are read: a suite has tens of thousands."""

    def __init__(self, architecture: str, contents: Iterable[tuple[str, bytes]]) -> None:
        """Takes the file `Packages` of each suite, with its address for errors."""
        self.architecture = architecture
        self._paragraphs: dict[str, list[tuple[str, bytes]]] = {}
        self._providers: dict[str, set[str]] = {}
        self._read: dict[str, Candidate | None] = {}
        for where, content in contents:
            for paragraph in content.split(b"\n\n"):
                self._add(where, paragraph)

    def candidate(self, name: str) -> Candidate | None:
        """Returns the newest package of that name; None if no suite has it for the architecture."""
        if name not in self._read:
            self._read[name] = self._newest(name)
        return self._read[name]

    def providers(self, name: str) -> Iterator[Candidate]:
        """Yields packages that provide the name, in the order of their own names."""
        for each in sorted(self._providers.get(name, ())):
            found = self.candidate(each)
            if found is not None and any(provided.name == name for provided in found.provides):
                yield found

    def _add(self, where: str, paragraph: bytes) -> None:
        name = _field(paragraph, b"Package").decode(errors="replace")
        self._paragraphs.setdefault(name, []).append((where, paragraph))
        if provides := _field(paragraph, b"Provides"):
            for entry in provides.decode(errors="replace").split(","):
                self._providers.setdefault(entry.strip().partition(" ")[0].partition("(")[0], set()).add(name)

    def _newest(self, name: str) -> Candidate | None:
        newest: tuple[DebianVersion, Candidate] | None = None
        for where, paragraph in self._paragraphs.get(name, ()):
            found = _candidate(paragraph, f"{where}: {name}")
            if found.package.architecture not in {"all", self.architecture}:
                continue
            version = DebianVersion(found.package.version)
            if newest is None or newest[0] < version:
                newest = (version, found)
        return newest[1] if newest is not None else None


def _field(paragraph: bytes, name: bytes) -> bytes:
    """Returns a field of a paragraph, without reading the others; empty if there is none."""
    if paragraph.startswith(name + b": "):
        start = 0
    elif not (start := paragraph.find(b"\n" + name + b": ") + 1):
        return b""
    start += len(name) + 2
    end = paragraph.find(b"\n", start)
    while end >= 0 and paragraph[end + 1 : end + 2] in {b" ", b"\t"}:
        end = paragraph.find(b"\n", end + 1)
    return paragraph[start:] if end < 0 else paragraph[start:end]


def _candidate(paragraph: bytes, where: str) -> Candidate:
    try:
        fields = parse_paragraph(paragraph.decode(), where=where)
        package = DebianPackage(
            name=fields["Package"],
            version=str(DebianVersion(fields["Version"])),
            architecture=fields["Architecture"],
            path=fields["Filename"],
            sha256=fields["SHA256"],
            size=int(fields["Size"]),
        )
    except KeyError as error:
        raise ImageError(f"{where}: expected the field {error.args[0]}, got none") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise ImageError(f"{where}: expected a package's fields, got others: {error}") from None
    depends = (
        group for field in ("Pre-Depends", "Depends") for group in parse_relations(fields.get(field, ""), where=where)
    )
    conflicts = (each for field in ("Conflicts", "Breaks") for each in _single(fields.get(field, ""), where))
    return Candidate(
        package=package,
        depends=tuple(depends),
        conflicts=tuple(conflicts),
        provides=tuple(_single(fields.get("Provides", ""), where)),
    )


def _single(text: str, where: str) -> Iterator[Relation]:
    for group in parse_relations(text, where=where):
        yield from group
