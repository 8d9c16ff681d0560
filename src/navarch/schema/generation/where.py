"""Where something stands: as the class's author wrote it, as the schema has it, as JSON has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Where", "author_place"]


@dataclass(frozen=True, slots=True)
class Where:
    """One place of a kind in its three names.

    `place` is for people (`Memcached.spec.size_gib`), `path` is inside the schema
    (`.properties[spec].properties[sizeGib]`), `json_path` is inside an object (`.spec.sizeGib`; None below a list or
    map, where there is no single path).
    """

    place: str
    path: str = ""
    json_path: str | None = ""

    def field(self, name: str, wire_name: str) -> Where:
        """A field of the struct that stands here."""
        json_path = None if self.json_path is None else f"{self.json_path}.{wire_name}"
        return Where(f"{self.place}.{name}", f"{self.path}.properties[{wire_name}]", json_path)

    def item(self) -> Where:
        """The items of the list that stands here."""
        return Where(f"{self.place}[]", f"{self.path}.items", None)

    def value(self) -> Where:
        """The values of the map that stands here."""
        return Where(f"{self.place}{{}}", f"{self.path}.additionalProperties", None)


def author_place(path: str, places: Mapping[str, str]) -> str:
    """The author's name of a schema path; what a hand-written schema adds below it is kept as it is.

    >>> author_place(".properties[spec].pattern", {"": "Cache", ".properties[spec]": "Cache.spec"})
    'Cache.spec'
    """
    known = max((known for known in places if path.startswith(known)), key=len)
    below = path[len(known) :]
    return places[known] + (below if ".properties[" in below or ".items" in below else "")
