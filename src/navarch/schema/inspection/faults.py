"""One thing that is wrong with a CustomResourceDefinition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["DefinitionFault", "unexpected"]


@dataclass(frozen=True, slots=True)
class DefinitionFault:
    """`field` is the path in the manifest, `message` says what was expected and what came, `remedy` what to do.

    `told` is what the API server says of it, where that is known: `Invalid value: …`.
    """

    field: str
    message: str
    remedy: str
    told: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}; {self.remedy}"


def unexpected(path: str, expected: str, got: Any, remedy: str, *, told: str = "") -> DefinitionFault:
    """The fault in the one form that all of them have."""
    return DefinitionFault(path, f"expected {expected}, got {got}", remedy, told)
