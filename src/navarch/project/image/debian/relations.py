"""Relations between packages: `libc6 (>= 2.38) | libc6-alternative, zlib1g:any`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from navarch.errors import ImageError
from navarch.project.image.debian.versions import DebianVersion

_RELATION: Final = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9+.-]+)(?::(?P<architecture>[a-z0-9-]+))?"
    r"(?:\s*\(\s*(?P<operator><<|<=|=|>=|>>|<|>)\s*(?P<version>\S+?)\s*\))?"
)


class Relation(msgspec.Struct, frozen=True, kw_only=True):
    """One package that another names, with the versions and the architecture that it takes."""

    name: str
    operator: str = ""
    version: str = ""
    architecture: str = ""
    """What follows the colon: `any`, `native` or an architecture."""

    def allows(self, version: str) -> bool:
        """Returns whether the relation takes that version."""
        if not self.operator:
            return True
        found, named = DebianVersion(version), DebianVersion(self.version)
        match self.operator:
            case "<<":
                return found < named
            case "<=" | "<":  # a lone < is an old way to write <=
                return found <= named
            case "=":
                return found == named
            case ">>":
                return found > named
            case _:
                return found >= named

    def is_for(self, architecture: str) -> bool:
        """Returns whether a package of an image of that architecture can be meant."""
        return self.architecture in {"", "any", "native", architecture}

    def __str__(self) -> str:
        named = f"{self.name}:{self.architecture}" if self.architecture else self.name
        return f"{named} ({self.operator} {self.version})" if self.operator else named


def parse_relations(text: str, *, where: str) -> list[tuple[Relation, ...]]:
    """Returns what a field such as `Depends` names: all of the list, and of each entry one alternative.

    Raises `ImageError` for text of another form.

    >>> [[str(each) for each in group] for group in parse_relations("awk, libc6 (>= 2.38) | libc0.1", where="Depends")]
    [['awk'], ['libc6 (>= 2.38)', 'libc0.1']]
    """
    entries = (entry.strip() for entry in text.split(","))
    return [tuple(_alternatives(entry, where)) for entry in entries if entry]


def _alternatives(entry: str, where: str) -> Iterator[Relation]:
    for alternative in entry.split("|"):
        matched = _RELATION.fullmatch(alternative.strip())
        if matched is None:
            raise ImageError(f"{where}: expected a relation such as libc6 (>= 2.38), got {alternative.strip()[:80]!r}")
        yield Relation(**{name: value for name, value in matched.groupdict().items() if value})
